"""The compiled loops that turn sorted triples into rows of edges: count, place, sort.  See `build`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_SHORT = 32


@_jit
def _is_literal(bounds: Array, entity: int) -> bool:
    """Whether an entity lies in one of the ranges whose starts and stops alternate in `bounds`."""
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] <= entity:
            low = middle + 1
        else:
            high = middle
    return low % 2 == 1


@_jit
def count(head: Array, relation: Array, tail: Array, before: Array, bounds: Array, out: Array, back: Array) -> int:
    """Adds a chunk to the numbers of edges along (out [E]) and against (back [E]) triples, none out of literals.

    before [3]: the last triple of the chunk before, and then of this one.  Returns -1, or the place of a triple that is
    not after the one before it.
    """
    h, r, t = before[0], before[1], before[2]
    for i in range(head.shape[0]):
        h1, r1, t1 = np.int64(head[i]), np.int64(relation[i]), np.int64(tail[i])
        if not (h1 > h or (h1 == h and (r1 > r or (r1 == r and t1 > t)))):
            return i
        h, r, t = h1, r1, t1
        out[h] += 1
        if not _is_literal(bounds, t):
            back[t] += 1
    before[0], before[1], before[2] = h, r, t
    return -1


@_jit
def place(
    head: Array,
    relation: Array,
    tail: Array,
    state: Array,
    relations: int,
    bounds: Array,
    ptr: Array,
    back: Array,
    rel_out: Array,
    tail_out: Array,
) -> None:
    """Writes the edges of a chunk.  state [2]: the head at work and its next place.  back counts down to 0.

    Edges against triples land in order of heads, so that a row's still have to be sorted by relation.
    """
    h, at = state[0], state[1]
    for i in range(head.shape[0]):
        if head[i] != h:
            h = np.int64(head[i])
            at = np.int64(ptr[h])
        t = np.int64(tail[i])
        rel_out[at] = relation[i]
        tail_out[at] = t
        at += 1
        if not _is_literal(bounds, t):
            to = np.int64(ptr[t + 1]) - np.int64(back[t])
            back[t] -= 1
            rel_out[to] = relation[i] + relations
            tail_out[to] = h
    state[0], state[1] = h, at


@_jit
def sort_rows(ptr: Array, out: Array, rel: Array, tail: Array, first: int, last: int) -> None:
    """Puts the edges against triples of rows [first, last) in order of (relation, tail)."""
    for row in range(first, last):
        start, stop = np.int64(ptr[row]) + np.int64(out[row]), np.int64(ptr[row + 1])
        n = stop - start
        if n < 2:
            continue
        at = start + 1
        while at < stop and (rel[at - 1] < rel[at] or (rel[at - 1] == rel[at] and tail[at - 1] <= tail[at])):
            at += 1
        if at == stop:
            continue
        if n <= _SHORT:
            for i in range(at, stop):
                q, t = rel[i], tail[i]
                j = i
                while j > start and (rel[j - 1] > q or (rel[j - 1] == q and tail[j - 1] > t)):
                    rel[j], tail[j] = rel[j - 1], tail[j - 1]
                    j -= 1
                rel[j], tail[j] = q, t
        else:
            keys = np.empty(n, dtype=np.int64)
            for i in range(n):
                keys[i] = (np.int64(rel[start + i]) << 31) | np.int64(tail[start + i])
            keys.sort()
            for i in range(n):
                rel[start + i] = keys[i] >> 31
                tail[start + i] = keys[i] & 0x7FFFFFFF
