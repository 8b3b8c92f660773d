"""The compiled loop of the lazy last hop, forward and backward; see `last_hop`.

Arguments that are not those of `kernels`, for B questions, n source entities and m answers in all:

    source           [n] the source entities, ascending within a question
    rows             [E + 1] where the rows of the DKG begin; relations: R, of one direction
    aptr, answer     [B + 1], [m] the answers of each question
    one_way          [m] answers whose row lacks the inverse edges (literals): sought in every followed run
    back             False: mass and total are filled.  True: they are gradients, and grad_x and grad_r are added to
    mass, total      [m], [B] weight that reaches each answer, and weight that reaches any entity
    sptr, skip       [B + 1], [s] entities of each question that are not counted, ascending
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.dkg.plan_kernels import FrontierArrays, index_of, run_end
from kgqa_core.kg.intrinsics import prefetch

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_AHEAD = 12


@_jit
def fill_runs(
    rel: Array,
    tail: Array,
    xptr: Array,
    start: Array,
    stop: Array,
    r: Array,
    epsilon: float,
    sptr: Array,
    skip: Array,
    fill: bool,
    source: Array,
    relation: Array,
    edges: Array,
) -> int:
    """Fills source (index of the source entity), relation and edges (their number) of each run, all [runs].

    A run is the edges of one relation in a row.  Those whose relation weighs less than `epsilon` are left out; edges
    to `skip` are not counted.  Returns how many runs there are; without `fill` nothing is written.
    """
    number = 0
    for b in range(xptr.shape[0] - 1):
        for i in range(xptr[b], xptr[b + 1]):
            e = np.int64(start[i])
            while e < stop[i]:
                q = rel[e]
                after = run_end(rel, e, stop[i], q)
                if abs(r[b, q]) >= epsilon:
                    if fill:
                        count = after - e
                        for j in range(sptr[b], sptr[b + 1]):
                            if index_of(tail, e, after, skip[j]) >= 0:
                                count -= 1
                        source[number], relation[number], edges[number] = i, q, count
                    number += 1
                e = after
    return number


@_jit
def arrive(
    first: int,
    last: int,
    frontier: FrontierArrays,
    source: Array,
    rows: Array,
    relations: int,
    aptr: Array,
    answer: Array,
    one_way: Array,
    back: bool,
    mass: Array,
    total: Array,
    grad_x: Array,
    grad_r: Array,
) -> None:
    """What reaches each answer (mass) and all entities (total) of questions [first, last), or the gradients of both.

    Answers are met from their own rows, whose inverse edges lead back to the sources: a hub's edges are only counted.
    """
    rel, tail, xptr, start, stop, weight, r, epsilon = frontier
    for b in range(first, last):
        begin, end = xptr[b], xptr[b + 1]
        searched = False
        for j in range(aptr[b], aptr[b + 1]):
            if one_way[j]:
                searched = True
        all_ = 0.0
        up = total[b]
        for i in range(begin, end):
            if i + _AHEAD < start.shape[0]:
                prefetch(rel, np.intp(start[i + _AHEAD]))
            w = weight[i]
            e = start[i]
            row_sum = 0.0
            while e < stop[i]:
                q = rel[e]
                rw = r[b, q]
                after = run_end(rel, e, stop[i], q)
                if abs(rw) >= epsilon:
                    n = after - e
                    row_sum += rw * n
                    if back:
                        grad_r[b, q] += w * n * up
                    if searched:
                        for j in range(aptr[b], aptr[b + 1]):
                            if one_way[j] and index_of(tail, e, after, answer[j]) >= 0:
                                if back:
                                    grad_x[i] += rw * mass[j]
                                    grad_r[b, q] += w * mass[j]
                                else:
                                    mass[j] += w * rw
                e = after
            if back:
                grad_x[i] += row_sum * up
            else:
                all_ += w * row_sum
        if not back:
            total[b] = all_
        for j in range(aptr[b], aptr[b + 1]):
            row = answer[j]
            if one_way[j] or row + 1 >= rows.shape[0]:
                continue
            e, row_end = np.int64(rows[row]), np.int64(rows[row + 1])
            result = 0.0
            while e < row_end:
                p = np.int64(rel[e])
                after = run_end(rel, e, row_end, p)
                q = p - relations if p >= relations else p + relations
                rw = r[b, q]
                if abs(rw) >= epsilon:
                    few = end - begin < after - e  # the shorter list is sought in the longer one
                    for k in range(begin if few else e, end if few else after):
                        if few:
                            i = k if index_of(tail, e, after, source[k]) >= 0 else -1
                        else:
                            i = index_of(source, begin, end, tail[k])
                        if i < 0 or start[i] == stop[i]:  # a literal has no edges, though some lead to it
                            continue
                        if back:
                            grad_x[i] += rw * mass[j]
                            grad_r[b, q] += weight[i] * mass[j]
                        else:
                            result += weight[i] * rw
                e = after
            if not back:
                mass[j] = result
