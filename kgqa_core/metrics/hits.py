"""Did the retriever find the answer?  Ranked entities and facts against gold entities.

Every metric is 0 or 1, higher is better.  A question without a gold entity in the graph scores 0: a count or a
yes/no answer is no entity, so these metrics ask nothing less of the retriever than to be right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def hits_at_1(ranked: Sequence[int], gold: Collection[int]) -> float:
    """1 when the first-ranked entity is a gold answer.  Range 0 or 1, higher is better.  Source: PAPERS §5."""
    return hits_at(1, ranked, gold)


def hits_at_5(ranked: Sequence[int], gold: Collection[int]) -> float:
    """1 when a gold answer is among the first five ranked entities.  Range 0 or 1, higher is better."""
    return hits_at(5, ranked, gold)


def hits_at(k: int, ranked: Sequence[int], gold: Collection[int]) -> float:
    """1 when a gold answer is among the first k ranked entities, best first.  Range 0 or 1, higher is better."""
    return float(any(entity in gold for entity in ranked[:k]))


def recall_of_answers(found: Iterable[int], gold: Collection[int]) -> float:
    """1 when a gold answer is head or tail of a retrieved fact.  Range 0 or 1, higher is better.

    It bounds what a model that only reads the facts can get right on questions whose answer is an entity.
    """
    return float(any(entity in gold for entity in found))


RETRIEVER_METRICS = ("hits_at_1", "hits_at_5", "recall_of_answers")
"""Metrics of a retriever alone, in the order of the tables."""
