"""Which edges of an entity a picture shows where it has too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgqa_core.dkg.csr import Dkg

MOST_RANKED = 10_000
"""Neighbours of one relation that are compared."""

RULE = (
    "Relations take turns, one triple each, in the order of their ids, outgoing ones first, until the limit; within a "
    f"relation the neighbours with the most triples come first (of its first {MOST_RANKED:,}), ties by id."
)


def chosen_edges(dkg: Dkg, start: int, stop: int, limit: int) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """At most `limit` edges of the row from `start` to `stop` after RULE, by relation, and what is left out.

    The second is (directed relation, how many edges) in order of relations, without those of which all are shown.
    """
    relations, first, counts = np.unique(dkg.rel[start:stop], return_index=True, return_counts=True)
    shares = _shares(counts, limit)
    edges = [np.empty(0, dtype=np.int64)]
    for begin, count, share in zip((start + first).tolist(), counts.tolist(), shares.tolist(), strict=True):
        indices = np.arange(begin, begin + min(count, MOST_RANKED), dtype=np.int64)
        if 0 < share < count:
            tails = dkg.tail[indices].astype(np.int64)
            starts, stops = dkg.row_bounds(tails)
            indices = indices[np.lexsort((tails, starts - stops))[:share]]
        edges.append(indices[:share])
    rest = zip(relations.tolist(), (counts - shares).tolist(), strict=True)
    return np.concatenate(edges), [(number, count) for number, count in rest if count]


def _shares(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """How many each gets of `limit` in turns of one, in order; none more than it has.

    >>> _shares(np.array([9, 1, 9]), 6).tolist(), _shares(np.array([1, 1, 1]), 2).tolist()
    ([3, 1, 2], [1, 1, 0])
    """
    low, high = 0, limit
    while low < high:  # the most whole turns that fit
        turns = (low + high + 1) // 2
        low, high = (turns, high) if int(np.minimum(counts, turns).sum()) <= limit else (low, turns - 1)
    shares: NDArray[np.int64] = np.minimum(counts, low).astype(np.int64)
    left = limit - int(shares.sum())
    shares[np.flatnonzero(counts > low)[:left]] += 1
    return shares
