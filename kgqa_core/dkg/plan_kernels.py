"""The compiled loops that decide what a hop follows: rows of the frontier, and where an edge budget cuts them.

After them a frontier is a list of edge ranges [start, stop), one per source, and no later loop knows of budgets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.intrinsics import prefetch


class FrontierArrays(NamedTuple):
    """The edges that a hop follows, of B questions and n source entities in all, as kernels take it.

    rel, tail: [edges] relation and end of each edge of the DKG.  xptr: [B + 1] which sources are a question's.
    start, stop: [n] the edges of each source's row that may be followed.  weight: [n] x of each source.
    r: [B, 2R] weight of each directed relation; those below `epsilon` are skipped.
    """

    rel: Array
    tail: Array
    xptr: Array
    start: Array
    stop: Array
    weight: Array
    r: Array
    epsilon: float


Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_AHEAD = 16
_DIGIT = 11


@_jit
def run_end(rel: Array, at: int, stop: int, relation: int) -> int:
    """First index after the run of `relation` that covers `at`: gallop, then halve."""
    step = 1
    low = at
    while low + step < stop and rel[low + step] == relation:
        low += step
        step *= 2
    high = min(low + step, stop)
    while low + 1 < high:
        middle = (low + high) // 2
        if rel[middle] == relation:
            low = middle
        else:
            high = middle
    return high


@_jit
def index_of(values: Array, start: int, stop: int, wanted: int) -> int:
    """Index of `wanted` in values[start:stop], ascending; -1 if it is not."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and values[low] == wanted else -1


@_jit
def spans(ptr: Array, entities: int, xptr: Array, source: Array, start: Array, stop: Array, cost: Array) -> int:
    """Fills start, stop [n] with the row of each source and cost [B] with the edges of each question.

    Rows at or beyond the end of ptr are empty.  Returns -1, or the index of a source that is no entity.
    """
    last = ptr.shape[0] - 1
    n = source.shape[0]
    for b in range(xptr.shape[0] - 1):
        edges = 0
        for i in range(xptr[b], xptr[b + 1]):
            if i + _AHEAD < n and 0 <= source[i + _AHEAD] < last:
                prefetch(ptr, np.intp(source[i + _AHEAD]))
            entity = source[i]
            if entity < 0 or entity >= entities:
                return int(i)
            if entity < last:
                start[i] = ptr[entity]
                stop[i] = ptr[entity + 1]
                edges += stop[i] - start[i]
            else:
                start[i] = 0
                stop[i] = 0
        cost[b] = edges
    return -1


@_jit
def _heaviest_first(bits: Array, begin: int, end: int) -> Array:
    """Indices begin..end - 1 by descending float, then index: a radix sort of the floats' bits (uint32 or uint64)."""
    n = end - begin
    width = bits.itemsize * 8
    sign = np.uint64(1) << np.uint64(width - 1)
    full = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width)
    key, index = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
    for i in range(n):
        raw = np.uint64(bits[begin + i])
        if raw == sign:  # minus zero
            raw = np.uint64(0)
        key[i] = raw if raw & sign else full ^ (raw | sign)
        index[i] = begin + i
    other_key, other_place = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
    size = 1 << _DIGIT
    low = np.uint64(size - 1)
    count = np.empty(size, dtype=np.int64)
    shift = 0
    while shift < width:
        move = np.uint64(shift)
        count[:] = 0
        for i in range(n):
            count[(key[i] >> move) & low] += 1
        if count[(key[0] >> move) & low] < n:  # else all agree in this digit
            before = 0
            for digit in range(size):
                here = count[digit]
                count[digit] = before
                before += here
            for i in range(n):
                digit_of = (key[i] >> move) & low
                to = count[digit_of]
                count[digit_of] = to + 1
                other_key[to] = key[i]
                other_place[to] = index[i]
            key, other_key = other_key, key
            index, other_place = other_place, index
        shift += _DIGIT
    return index


@_jit
def clip(
    first: int,
    last: int,
    rel: Array,
    xptr: Array,
    bits: Array,
    r: Array,
    epsilon: float,
    budget: int,
    cost: Array,
    start: Array,
    stop: Array,
    cut: Array,
) -> None:
    """Shortens the ranges of questions [first, last) to `budget` followed edges each, and fills cut [B].

    Heaviest sources first, ties in order of id; the last one is cut in row order.  Edges whose relation weighs less
    than epsilon are free.  cut counts what is left out of the row that was cut, and the whole rows of those after it.
    bits: the weights of the sources as unsigned integers.
    """
    for b in range(first, last):
        if cost[b] <= budget:
            continue
        order = _heaviest_first(bits, xptr[b], xptr[b + 1])
        remaining = budget
        truncated = 0
        for j in range(order.shape[0]):
            i = order[j]
            if remaining > 0 and j + _AHEAD < order.shape[0]:
                prefetch(rel, np.intp(start[order[j + _AHEAD]]))
            if remaining == 0:
                truncated += stop[i] - start[i]
                stop[i] = start[i]
                continue
            if epsilon <= 0:
                followed = min(stop[i] - start[i], remaining)
                remaining -= followed
                truncated += stop[i] - start[i] - followed
                stop[i] = start[i] + followed
                continue
            e, end, whole = start[i], np.int64(-1), stop[i]
            while e < whole:
                q = rel[e]
                after = run_end(rel, e, whole, q)
                if abs(r[b, q]) >= epsilon:
                    followed = min(after - e, remaining)
                    remaining -= followed
                    if followed < after - e:
                        truncated += after - e - followed
                        if end < 0:
                            end = e + followed
                e = after
            if end >= 0:
                stop[i] = end
        cut[b] = truncated
