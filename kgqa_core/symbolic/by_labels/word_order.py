"""How much of a question a phrase says in the same order of words, each word of it once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_jit: Any = njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _ordered(like: NDArray[np.float32], weights: NDArray[np.float32], length: int, back: bool) -> float:
    """The largest sum of weighted likeness over pairs of words in order, by dynamic programming over both texts."""
    above = np.zeros(length + 1, dtype=np.float32)
    row = np.zeros(length + 1, dtype=np.float32)
    for t in range(like.shape[0]):
        for u in range(length):
            pair = above[u] + weights[t] * like[t, length - 1 - u if back else u]
            row[u + 1] = max(pair, above[u + 1], row[u])
        above[:] = row
    return float(above[length])


@_jit
def ordered_shares(
    like: NDArray[np.float32], weights: NDArray[np.float32], lengths: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Of each phrase the share of its likeness to a question that remains when both are read in order, [phrases].

    The words of the phrase may be read forwards or backwards (`director of film` and `film's director`), each stands
    for one word of the question at most.  1 where that loses nothing.  like [phrases, question words, phrase words],
    0 or more; weights [question words]; lengths [phrases]: words of each phrase.
    """
    out = np.ones(len(lengths), dtype=np.float32)
    for c in range(len(lengths)):
        free = 0.0
        for t in range(like.shape[1]):
            free += weights[t] * like[c, t, : lengths[c]].max() if lengths[c] else 0.0
        if free > 0:
            forwards = _ordered(like[c], weights, lengths[c], False)
            out[c] = max(forwards, _ordered(like[c], weights, lengths[c], True)) / free
    return out
