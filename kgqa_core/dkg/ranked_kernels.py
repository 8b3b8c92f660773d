"""The compiled loop of `follow` on graphs too large for a number per entity.

The edges are walked twice: the first walk marks their ends in a bitmap, the second adds at the rank that an end has
among the marked ones (marks before its word, and set bits below it within).  That takes a quarter byte an entity, needs
neither hashing nor sorting, and its sums are as compact as the result.  As in `kernels`, one question is treated in one
fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.dkg.kernels import SHORT_ROW, look_ahead, rank
from kgqa_core.dkg.plan_kernels import FrontierArrays, run_end
from kgqa_core.kg.intrinsics import lowest_bit

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_inline: Any = njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


@_inline
def _mark(table: Array, groups: Array, tops: Array, entity: int) -> None:
    """Notes an entity in a bitmap of three levels; table [E / 64, 2]: bits of a word, and how many come before it.

    There is no test for an empty word: its load is slow and the branch is not predictable.
    """
    t = np.uint64(entity)
    word = t >> _SIX
    group = word >> _SIX
    table[word, 0] |= _ONE << (t & _LOW)
    groups[group] |= _ONE << (word & _LOW)
    tops[group >> _SIX] |= _ONE << (group & _LOW)


@_jit
def forward(
    first: int,
    last: int,
    frontier: FrontierArrays,
    table: Array,
    groups: Array,
    tops: Array,
    out_entity: Array,
    out_weight: Array,
    out_count: Array,
) -> int:
    """As `kernels.forward`, whose module has the table of arguments.

    table [E / 64, 2], groups [E / 4096], tops [E / 262144]: the bitmap of `_mark`, zeros before and after.
    """
    rel, tail, xptr, start, stop, weight, r, epsilon = frontier
    written = 0
    for b in range(first, last):
        row = r[b]
        for i in range(xptr[b], xptr[b + 1]):
            look_ahead(rel, tail, start, i)
            e, end = start[i], stop[i]
            if epsilon <= 0 or end - e <= SHORT_ROW:
                while e < end:
                    if epsilon <= 0 or abs(row[rel[e]]) >= epsilon:
                        _mark(table, groups, tops, tail[e])
                    e += 1
                continue
            while e < end:
                q = rel[e]
                if abs(row[q]) < epsilon:
                    e = run_end(rel, e, end, q)
                    continue
                while e < end and rel[e] == q:
                    _mark(table, groups, tops, tail[e])
                    e += 1
        begin = written
        for top in range(tops.shape[0]):
            top_bits = tops[top]
            tops[top] = np.uint64(0)
            while top_bits != 0:
                group = (np.uint64(top) << _SIX) | lowest_bit(top_bits)
                top_bits &= top_bits - _ONE
                group_bits = groups[group]
                groups[group] = np.uint64(0)
                while group_bits != 0:
                    word = (group << _SIX) | lowest_bit(group_bits)
                    group_bits &= group_bits - _ONE
                    bits = table[word, 0]
                    table[word, 1] = np.uint64(written)
                    while bits != 0:
                        out_entity[written] = np.int64((word << _SIX) | lowest_bit(bits))
                        out_weight[written] = 0
                        bits &= bits - _ONE
                        written += 1
        for i in range(xptr[b], xptr[b + 1]):
            w = weight[i]
            e, end = start[i], stop[i]
            if end - e <= SHORT_ROW:
                while e < end:
                    rw = row[rel[e]]
                    if abs(rw) >= epsilon:
                        out_weight[rank(table, tail[e])] += w * rw
                    e += 1
                continue
            while e < end:
                q = rel[e]
                rw = row[q]
                if abs(rw) < epsilon:
                    e = run_end(rel, e, end, q)
                    continue
                value = w * rw
                while e < end and rel[e] == q:
                    out_weight[rank(table, tail[e])] += value
                    e += 1
        for j in range(begin, written):
            table[out_entity[j] >> 6, 0] = np.uint64(0)
        out_count[b] = written - begin
    return written
