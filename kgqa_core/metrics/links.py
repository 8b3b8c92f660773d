"""Did linking find what a question is about?  Linked entities against gold topics, of questions that have gold topics.

Every metric is in [0, 1], higher is better.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def link_precision(linked: Collection[int], gold: Collection[int]) -> float:
    """Share of the linked entities that are gold topics; 0 where nothing was linked."""
    return len(set(linked) & set(gold)) / len(set(linked)) if linked else 0.0


def link_recall(linked: Collection[int], gold: Collection[int]) -> float:
    """Share of the gold topics that were linked."""
    return len(set(linked) & set(gold)) / len(set(gold)) if gold else 0.0


def link_f1(linked: Collection[int], gold: Collection[int]) -> float:
    """Harmonic mean of precision and recall; 0 where no gold topic was linked."""
    precision, recall = link_precision(linked, gold), link_recall(linked, gold)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def link_recall_at_5(ranked: Sequence[int], gold: Collection[int]) -> float:
    """Share of the gold topics among the first five candidates, however sure the tagger is of them.

    ranked: entities by falling ρ, each once.
    """
    return link_recall(ranked[:5], gold)
