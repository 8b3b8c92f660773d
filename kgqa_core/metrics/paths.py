"""Did the path retriever see how a question is to be answered?  Predicted relation paths against annotated ones.

Every metric is 0 or 1, higher is better, and is asked only of questions that are annotated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

RelationPath = tuple[str, ...]


def hop_accuracy(ranked: Sequence[RelationPath], gold: Collection[int]) -> float:
    """1 when the first predicted path has an annotated number of hops.  Range 0 or 1, higher is better.

    Source: Wu et al. 2023, hop prediction (PAPERS §2).
    """
    return float(bool(ranked) and len(ranked[0]) in gold)


def path_at_1(ranked: Sequence[RelationPath], gold: Collection[RelationPath]) -> float:
    """1 when the first predicted path is an annotated one.  Range 0 or 1, higher is better."""
    return path_at(1, ranked, gold)


def path_at_5(ranked: Sequence[RelationPath], gold: Collection[RelationPath]) -> float:
    """1 when an annotated path is among the first five predicted ones.  Range 0 or 1, higher is better."""
    return path_at(5, ranked, gold)


def path_at(k: int, ranked: Sequence[RelationPath], gold: Collection[RelationPath]) -> float:
    """1 when an annotated path is among the first k predicted, relations and directions alike."""
    return float(any(path in gold for path in ranked[:k]))


PATH_METRICS = ("hop_accuracy", "path_at_1", "path_at_5")
"""Metrics of predicted relation paths, in the order of the tables."""
