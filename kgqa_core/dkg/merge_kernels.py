"""The compiled loops of `dkg.update`: find what differs from the old arrays, and merge it into them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")

ENTITY, EDGE, INPUT, REMOVED, ADDED, UNCHANGED, LITERAL, TURNED, UNSORTED, BEFORE = range(10)
"""Places of `compare`'s state, int64 [12]: the row and edge that are next in the old arrays; triples consumed of this
chunk, removed and added in this call; then over all calls: triples in both, old triples with a literal as tail, triples
in both whose tail became or ceased to be a literal, 1 when the new triples are not ascending, and the last new one."""


@_jit
def compare(
    ptr: Array,
    rel: Array,
    tail: Array,
    relations: int,
    old_literal: Array,
    new_literal: Array,
    new_head: Array,
    new_relation: Array,
    new_tail: Array,
    last: bool,
    state: Array,
    removed: Array,
    added: Array,
) -> bool:
    """Walks the old forward edges beside a chunk of the new triples, both by (head, relation, tail).

    removed, added: int64 [n, 3], filled with triples of one side only.  False when one is full before the chunk is
    consumed (or before the old edges are, in the `last` chunk): call again with the same chunk.
    """
    entities = ptr.shape[0] - 1
    e, p = state[ENTITY], state[EDGE]
    i = state[INPUT]
    h0, q0, t0 = state[BEFORE], state[BEFORE + 1], state[BEFORE + 2]
    n_removed = n_added = 0
    done = True
    while True:
        while e < entities and (p >= ptr[e + 1] or rel[p] >= relations):
            e += 1
            if e < entities:
                p = np.int64(ptr[e])
        fresh = i < new_head.shape[0]
        if not fresh and (not last or e >= entities):
            break
        if n_removed == removed.shape[0] or n_added == added.shape[0]:
            done = False
            break
        order = 1  # -1: the old triple comes first, 0: the same, 1: the new one first
        if not fresh:
            order = -1
        elif e < entities:
            r, t = np.int64(rel[p]), np.int64(tail[p])
            if e != new_head[i]:
                order = -1 if e < new_head[i] else 1
            elif r != new_relation[i]:
                order = -1 if r < new_relation[i] else 1
            elif t != new_tail[i]:
                order = -1 if t < new_tail[i] else 1
            else:
                order = 0
        if order <= 0:
            t = np.int64(tail[p])
            state[LITERAL] += old_literal[t]
            if order < 0:
                removed[n_removed, 0], removed[n_removed, 1], removed[n_removed, 2] = e, rel[p], t
                n_removed += 1
            else:
                state[UNCHANGED] += 1
                state[TURNED] += old_literal[t] != new_literal[t]
            p += 1
        if order >= 0:
            h, q, t = np.int64(new_head[i]), np.int64(new_relation[i]), np.int64(new_tail[i])
            if h < h0 or (h == h0 and (q < q0 or (q == q0 and t <= t0))):
                state[UNSORTED] = 1
            h0, q0, t0 = h, q, t
            if order > 0:
                added[n_added, 0], added[n_added, 1], added[n_added, 2] = new_head[i], new_relation[i], new_tail[i]
                n_added += 1
            i += 1
    state[ENTITY], state[EDGE], state[INPUT], state[REMOVED], state[ADDED] = e, p, i, n_removed, n_added
    state[BEFORE], state[BEFORE + 1], state[BEFORE + 2] = h0, q0, t0
    return done


@_jit
def merge(
    old_ptr: Array,
    old_rel: Array,
    old_tail: Array,
    old_relations: int,
    relations: int,
    less: Array,
    more: Array,
    ptr: Array,
    rel: Array,
    tail: Array,
) -> bool:
    """Fills `rel` and `tail` with the old edges, without `less` and with `more`.

    less, more: directed edges (row, relation, tail), int64 [n, 3], sorted, with inverses from the larger of the two
    numbers of relations on.  ptr: of the new arrays.  Runs of untouched rows are copied whole.  False when an edge of
    `less` is not there.
    """
    base = max(old_relations, relations)
    shift = relations - old_relations
    rows, old_rows = ptr.shape[0] - 1, old_ptr.shape[0] - 1
    d = a = 0
    row = 0
    while row < rows:
        touched = rows
        if d < less.shape[0]:
            touched = min(touched, less[d, 0])
        if a < more.shape[0]:
            touched = min(touched, more[a, 0])
        if row < touched:
            start, stop = np.int64(old_ptr[min(row, old_rows)]), np.int64(old_ptr[min(touched, old_rows)])
            move = ptr[row] - start
            for q in range(start, stop):
                r = np.int64(old_rel[q])
                rel[q + move] = r + shift if r >= old_relations else r
            for q in range(start, stop):
                tail[q + move] = old_tail[q]
            row = touched
            continue
        p, stop = np.int64(old_ptr[min(row, old_rows)]), np.int64(old_ptr[min(row + 1, old_rows)])
        at = ptr[row]
        while True:
            has = p < stop
            r = t = np.int64(0)
            if has:
                r, t = np.int64(old_rel[p]), np.int64(old_tail[p])
                if r >= old_relations:
                    r += base - old_relations
                if d < less.shape[0] and less[d, 0] == row and less[d, 1] == r and less[d, 2] == t:
                    d += 1
                    p += 1
                    continue
            comes = a < more.shape[0] and more[a, 0] == row
            if comes and (not has or more[a, 1] < r or (more[a, 1] == r and more[a, 2] < t)):
                other = more[a, 1]
                rel[at], tail[at] = other - base + relations if other >= base else other, more[a, 2]
                a += 1
                at += 1
                continue
            if not has:
                break
            rel[at], tail[at] = r - base + relations if r >= base else r, t
            p += 1
            at += 1
        if at != ptr[row + 1] or (d < less.shape[0] and less[d, 0] <= row):
            return False
        row += 1
    # What is left to remove lies in rows that the new graph does not have.
    return a == more.shape[0] and (d == less.shape[0] or less[d, 0] >= rows)
