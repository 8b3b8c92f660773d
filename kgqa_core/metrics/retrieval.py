"""Metrics of what a retriever returns: ranked entities, triples, relation paths, and entity-relation pairs.

Every metric is in [0, 1], higher is better.

Entities and triples: a question without a gold entity in the graph scores 0, for a count or a yes/no answer is no
entity.  Relation paths: scored only for questions that are annotated with paths.

Pairs (Huang et al. 2024): an entity and a relation that leads away from it, an inverse one with the prefix `<inv>-`.  A
triple holds two pairs, that of its head and, inverted, that of its tail: whoever reads the triple reads both, whichever
way retrieval followed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from kgqa_core.types import INVERSE, Question


def hit(ranked: Iterable[object], gold: Collection[Any], k: int | None = None) -> float:
    """1 when a gold entity or path is among the first k, or among all of them.  Range 0 or 1, higher is better."""
    return float(any(candidate in gold for candidate in islice(ranked, k)))


RelationPath = tuple[str, ...]


def hop_accuracy(ranked: Sequence[RelationPath], gold: Collection[int]) -> float:
    """1 when the first predicted path has an annotated number of hops.  Range 0 or 1, higher is better.

    Source: Wu et al. 2023, hop prediction.
    """
    return float(bool(ranked) and len(ranked[0]) in gold)


Pair = tuple[int, str]
"""(entity id, relation key)."""

Alternatives = frozenset[Pair]
"""Pairs of which one suffices; empty where the graph has none."""


def gold_pairs(question: Question, entities: Mapping[str, Collection[int]]) -> list[Alternatives]:
    """The pairs that a question needs, each once; empty when it is not annotated.

    They are those of `gold_triples`: the pair of the triple's topic entity, that of its head when both or neither end
    is a topic.  Where there are no gold triples, they are the first steps of the annotated relation paths, from
    whichever topic has them.
    entities: key → ids, of the ends of the gold triples; a pair of an end that has none can never be found.
    """
    topics = set(question.topic_entities)
    gold: dict[tuple[str, str], Alternatives] = {}
    for head, relation, tail in question.gold_triples:
        inverse = topics.intersection(entities.get(tail, ())) and not topics.intersection(entities.get(head, ()))
        key, step = (tail, invert(relation)) if inverse else (head, relation)
        gold[key, step] = frozenset((entity, step) for entity in entities.get(key, ()))
    if not question.gold_triples:
        for step in dict.fromkeys(path[0] for path in question.relation_paths if path):
            gold["", step] = frozenset((topic, step) for topic in topics)
    return list(gold.values())


def triple_pairs(head: int, relation: str, tail: int) -> tuple[Pair, Pair]:
    """The two pairs that a triple holds, that of its head first.

    >>> triple_pairs(1, "capital", 2)
    ((1, 'capital'), (2, '<inv>-capital'))
    """
    return (head, relation), (tail, invert(relation))


def invert(relation: str) -> str:
    """The same relation the other way round."""
    return relation.removeprefix(INVERSE) if relation.startswith(INVERSE) else INVERSE + relation


def recall_at(k: int | None, ranks: Sequence[int | None]) -> float:
    """Share of ranks that are at most k; of all that there are when k is None.  Range [0, 1], higher is better.

    >>> recall_at(2, [1, 3, None, 2])
    0.5
    """
    hits = sum(rank is not None and (k is None or rank <= k) for rank in ranks)
    return hits / len(ranks) if ranks else 0.0
