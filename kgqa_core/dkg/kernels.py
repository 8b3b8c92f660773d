"""The compiled loops of `follow` and `trace`.

Each loop treats a range of questions [first, last) on one thread, question by question and edge by edge in one fixed
order, and releases the GIL; `frontier_numba` gives ranges to threads, so results do not depend on their number and no
threading layer of numba is needed.

A question's sums are stored in one of two layouts.  Here: a number for every entity of the graph, with a bitmap of what
was touched, which is read back in ascending order without sorting.  For graphs too large for that, see
`ranked_kernels`.

Arguments that the kernels of both modules share, for B questions and n source entities in all:

    first, last      questions [first, last) are treated
    frontier         what is followed (`plan_kernels.FrontierArrays`)
    cost             [B] edges out of a question's sources, before any budget
    optr, oentity    [B + 1], [m] what each question reached, as `forward` returned it
    grad             [m] gradients of the weights of what was reached
    grad_x, grad_r   [n], [B, 2R] gradients of `weight` and `r`
    out_*            results of the questions back to back, and their number for each question
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.dkg.plan_kernels import FrontierArrays, run_end
from kgqa_core.kg.intrinsics import bit_count, lowest_bit, prefetch

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_inline: Any = njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
"""A call that passes arrays costs more than what these do."""
SHORT_ROW = 48
_AHEAD = 12
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


@_inline
def look_ahead(rel: Array, tail: Array, start: Array, i: int) -> None:
    """Rows lie anywhere: starts to load the one that is due soon."""
    if i + _AHEAD < start.shape[0]:
        prefetch(rel, np.intp(start[i + _AHEAD]))
        prefetch(tail, np.intp(start[i + _AHEAD]))


@_jit
def forward(
    first: int,
    last: int,
    frontier: FrontierArrays,
    cost: Array,
    acc: Array,
    words: Array,
    groups: Array,
    out_entity: Array,
    out_weight: Array,
    out_count: Array,
) -> int:
    """Follow for questions [first, last): fills out_entity, out_weight back to back and out_count per question.

    acc [E]: sums of weights.  words [E / 64], groups [E / 4096]: bitmaps of the entities that were touched, and of the
    words that are not 0.  All are zeros before and after.  Returns entities written.
    """
    rel, tail, xptr, start, stop, weight, r, epsilon = frontier
    written = 0
    for b in range(first, last):
        flat = words.shape[0] <= 2 * cost[b]  # then all words are read, and nobody marks their groups
        row = r[b]
        for i in range(xptr[b], xptr[b + 1]):
            look_ahead(rel, tail, start, i)
            w = weight[i]
            e, end = start[i], stop[i]
            if flat and (epsilon <= 0 or end - e <= SHORT_ROW):
                while e < end:
                    rw = row[rel[e]]
                    if abs(rw) >= epsilon:
                        t = np.uint64(tail[e])
                        words[t >> _SIX] |= _ONE << (t & _LOW)
                        acc[t] += w * rw
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
                    t = np.uint64(tail[e])
                    word = t >> _SIX
                    words[word] |= _ONE << (t & _LOW)
                    groups[word >> _SIX] |= _ONE << (word & _LOW)
                    acc[t] += value
                    e += 1
        begin = written
        if flat:
            for index in range(words.shape[0]):
                if words[index] != 0:
                    written = _harvest(np.uint64(index), acc, words, out_entity, out_weight, written)
            groups[:] = np.uint64(0)
        else:
            for g in range(groups.shape[0]):
                group = groups[g]
                if group != 0:
                    groups[g] = np.uint64(0)
                    while group != 0:
                        place_of = (np.uint64(g) << _SIX) | lowest_bit(group)
                        group &= group - _ONE
                        written = _harvest(place_of, acc, words, out_entity, out_weight, written)
        out_count[b] = written - begin
    return written


@_inline
def _harvest(index: np.uint64, acc: Array, words: Array, out_entity: Array, out_weight: Array, written: int) -> int:
    """Moves the sums of one word's entities to the output, and leaves zeros."""
    bits = words[index]
    words[index] = np.uint64(0)
    while bits != 0:
        t = (index << _SIX) | lowest_bit(bits)
        bits &= bits - _ONE
        out_entity[written] = np.int64(t)
        out_weight[written] = acc[t]
        acc[t] = 0
        written += 1
    return written


@_inline
def rank(table: Array, entity: int) -> Any:
    """Rank of a marked entity among the marked ones of the bitmap of `ranked_kernels`."""
    t = np.uint64(entity)
    word = t >> _SIX
    return np.int64(table[word, 1] + bit_count(table[word, 0] & ((_ONE << (t & _LOW)) - _ONE)))


@_inline
def _gradient_at(table: Array, grad: Array, entity: int) -> Any:
    """The gradient of an entity that was reached, in either layout."""
    if table.ndim == 1:
        return table[entity]
    return grad[rank(table, entity)]


@_jit
def backward(
    first: int,
    last: int,
    frontier: FrontierArrays,
    optr: Array,
    oentity: Array,
    grad: Array,
    table: Array,
    grad_x: Array,
    grad_r: Array,
) -> None:
    """Gradients of follow for questions [first, last): fills grad_x [n] and adds to grad_r [B, 2R].

    table: a number for every entity, [E], of which only what the question reached is read, and that is written before;
    or the bitmap of `ranked_kernels`, [E / 64, 2], its first column zeros before and after.
    """
    rel, tail, xptr, start, stop, weight, r, epsilon = frontier
    for b in range(first, last):
        row, to_row = r[b], grad_r[b]
        for j in range(optr[b], optr[b + 1]):
            if table.ndim == 1:
                table[oentity[j]] = grad[j]
                continue
            word = oentity[j] >> 6
            if table[word, 0] == 0:
                table[word, 1] = np.uint64(j)
            table[word, 0] |= _ONE << np.uint64(oentity[j] & 63)
        for i in range(xptr[b], xptr[b + 1]):
            look_ahead(rel, tail, start, i)
            w = weight[i]
            e, end = start[i], stop[i]
            gradient = grad.dtype.type(0)
            if end - e <= SHORT_ROW:  # short rows have short runs: guessing their ends costs more
                while e < end:
                    q = rel[e]
                    rw = row[q]
                    if abs(rw) >= epsilon:
                        reach = _gradient_at(table, grad, tail[e])
                        gradient += rw * reach
                        to_row[q] += w * reach
                    e += 1
                grad_x[i] = gradient
                continue
            while e < end:
                q = rel[e]
                rw = row[q]
                if abs(rw) < epsilon:
                    e = run_end(rel, e, end, q)
                    continue
                total = grad.dtype.type(0)
                while e < end and rel[e] == q:
                    total += _gradient_at(table, grad, tail[e])
                    e += 1
                gradient += rw * total
                to_row[q] += w * total
            grad_x[i] = gradient
        if table.ndim == 2:
            for j in range(optr[b], optr[b + 1]):
                table[oentity[j] >> 6, 0] = np.uint64(0)


@_jit
def heaviest(
    first: int, last: int, frontier: FrontierArrays, k: int, out_edge: Array, out_weight: Array, out_count: Array
) -> None:
    """The k heaviest edges of questions [first, last), by (weight descending, edge): fills out_edge, out_weight [B, k].

    Edges of one run weigh the same, so a run costs its first k edges at most.
    """
    rel, _, xptr, start, stop, weight, r, epsilon = frontier
    for b in range(first, last):
        n = 0
        edge, heavy = out_edge[b], out_weight[b]
        for i in range(xptr[b], xptr[b + 1]):
            e, end = start[i], stop[i]
            if i + _AHEAD < start.shape[0]:
                prefetch(rel, np.intp(start[i + _AHEAD]))
            while e < end:
                q = rel[e]
                rw = r[b, q]
                value = weight[i] * rw
                after = run_end(rel, e, end, q)
                if abs(rw) >= epsilon and value != 0:
                    for candidate in range(e, min(after, e + k)):
                        if n == k and not (value > heavy[n - 1] or (value == heavy[n - 1] and candidate < edge[n - 1])):
                            break
                        index = n if n < k else k - 1
                        while index > 0 and (
                            value > heavy[index - 1] or (value == heavy[index - 1] and candidate < edge[index - 1])
                        ):
                            heavy[index] = heavy[index - 1]
                            edge[index] = edge[index - 1]
                            index -= 1
                        heavy[index] = value
                        edge[index] = candidate
                        if n < k:
                            n += 1
                e = after
        out_count[b] = n
