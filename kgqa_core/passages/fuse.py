"""Ranked passages and how two rankings become one (Cormack, Clarke and Büttcher 2009)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

Ranked = list[tuple[int, float]]
"""(passage, score), best first, ties by passage."""

CONSTANT = 60
"""Of reciprocal rank, as published."""


def reciprocal_rank(rankings: Sequence[Ranked], k: int) -> Ranked:
    """The k best of several rankings by the sum of 1 / (60 + rank), the first rank being 1; ties by passage.

    >>> reciprocal_rank([[(7, 0.9), (3, 0.1)], [(3, 4.2)]], 2)
    [(3, 0.032522), (7, 0.016393)]
    """
    total: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, (passage, _) in enumerate(ranking, start=1):
            total[passage] += 1 / (CONSTANT + rank)
    rounded = ((passage, round(score, 6)) for passage, score in total.items())
    return sorted(rounded, key=lambda item: (-item[1], item[0]))[:k]
