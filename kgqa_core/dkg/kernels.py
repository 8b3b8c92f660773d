"""The compiled loops of `follow` and `trace`.

Each loop treats a range of questions [first, last) on one thread, question by question and edge by edge in one fixed
order, and releases the GIL; `frontier_numba` gives ranges to threads, so results do not depend on their number and no
threading layer of numba is needed.  A question's sums are kept in an accumulator that is either dense over the
entities, with a two-level bitmap of what was touched (read back in ascending order without sorting), or, for graphs too
large for that, an open-addressing hash table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_intrinsic: Any = intrinsic
_SHORT_ROW = 48
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


@_intrinsic
def _lowest_bit(typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), generate


@_jit
def run_end(rel: Array, at: int, stop: int, relation: int) -> int:
    """First place after the run of `relation` that covers `at`: gallop, then halve."""
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
def costs(ptr: Array, xptr: Array, source: Array) -> Array:
    """Edges out of each question's entities, int64 [B]; -1 in the first place when an entity is out of range."""
    batch = xptr.shape[0] - 1
    total = np.zeros(batch, dtype=np.int64)
    for b in range(batch):
        edges = 0
        for i in range(xptr[b], xptr[b + 1]):
            entity = source[i]
            if entity < 0 or entity >= ptr.shape[0] - 1:
                total[0] = -1
                return total
            edges += ptr[entity + 1] - ptr[entity]
        total[b] = edges
    return total


@_jit
def _slot(keys: Array, mask: int, entity: int) -> int:
    """The place of an entity in a hash table of mask + 1 places, or the free place where it belongs."""
    at = ((entity * 0x9E3779B1) >> 7) & mask
    while keys[at] != entity and keys[at] != -1:
        at = (at + 1) & mask
    return at


@_jit
def table_mask(bound: int) -> int:
    """Places less one of a hash table that is at most half full with `bound` entries."""
    size = 16
    while size < 2 * bound:
        size *= 2
    return size - 1


@_jit
def forward(
    first: int,
    last: int,
    ptr: Array,
    rel: Array,
    tail: Array,
    xptr: Array,
    source: Array,
    weight: Array,
    r: Array,
    epsilon: float,
    budget: int,
    bound: Array,
    acc: Array,
    words: Array,
    groups: Array,
    keys: Array,
    touched: Array,
    out_entity: Array,
    out_weight: Array,
    out_count: Array,
    cut: Array,
) -> int:
    """Follow for questions [first, last): fills out_entity and out_weight back to back, out_count and cut per question.

    Sources are visited in the order given.  budget < 0: none.  keys empty: dense accumulator.
    Returns entities written.
    """
    dense = keys.shape[0] == 0
    written = 0
    for b in range(first, last):
        mask = 0 if dense else table_mask(bound[b])
        n_touched = 0
        remaining = budget if budget >= 0 else np.int64(1) << 62
        left_out = 0
        for i in range(xptr[b], xptr[b + 1]):
            w = weight[i]
            e = ptr[source[i]]
            stop = ptr[source[i] + 1]
            if epsilon <= 0 and dense:  # nothing is skipped: no need to see where runs end
                limit = min(stop, e + remaining)
                remaining -= limit - e
                left_out += stop - limit
                while e < limit:
                    t = np.uint64(tail[e])
                    word = t >> _SIX
                    words[word] |= _ONE << (t & _LOW)
                    groups[word >> _SIX] |= _ONE << (word & _LOW)
                    acc[t] += w * r[b, rel[e]]
                    e += 1
                continue
            while e < stop:
                q = rel[e]
                rw = r[b, q]
                if abs(rw) < epsilon:
                    e = run_end(rel, e, stop, q)
                    continue
                value = w * rw
                limit = min(stop, e + remaining)
                begin = e
                if dense:
                    while e < limit and rel[e] == q:
                        t = np.uint64(tail[e])
                        word = t >> _SIX
                        before = words[word]
                        if before == 0:
                            groups[word >> _SIX] |= _ONE << (word & _LOW)
                        words[word] = before | (_ONE << (t & _LOW))
                        acc[t] += value
                        e += 1
                else:
                    while e < limit and rel[e] == q:
                        at = _slot(keys, mask, tail[e])
                        if keys[at] == -1:
                            keys[at] = tail[e]
                            touched[n_touched] = tail[e]
                            n_touched += 1
                        acc[at] += value
                        e += 1
                remaining -= e - begin
                if e == limit and e < stop and rel[e] == q:
                    end = run_end(rel, e, stop, q)
                    left_out += end - e
                    e = end
        cut[b] = left_out
        start = written
        if dense:
            for g in range(groups.shape[0]):
                group = groups[g]
                if group == 0:
                    continue
                groups[g] = np.uint64(0)
                while group != 0:
                    place = (np.uint64(g) << _SIX) | _lowest_bit(group)
                    group &= group - _ONE
                    bits = words[place]
                    words[place] = np.uint64(0)
                    while bits != 0:
                        t = (place << _SIX) | _lowest_bit(bits)
                        bits &= bits - _ONE
                        out_entity[written] = np.int64(t)
                        out_weight[written] = acc[t]
                        acc[t] = 0
                        written += 1
        else:
            mine = touched[:n_touched]
            mine.sort()
            for j in range(n_touched):
                at = _slot(keys, mask, mine[j])
                out_entity[written] = mine[j]
                out_weight[written] = acc[at]
                acc[at] = 0
                written += 1
            # An erased place breaks the probing of others, so all are read before any is erased.
            if n_touched * 4 > mask:
                keys[: mask + 1] = -1
            else:
                _erase(keys, acc, mask, mine)
        out_count[b] = written - start
    return written


@_jit
def _erase(keys: Array, acc: Array, mask: int, entities: Array) -> None:
    """Empty the places that these entities, and only these, hold: each walk clears to the end of its cluster."""
    for j in range(entities.shape[0]):
        at = ((entities[j] * 0x9E3779B1) >> 7) & mask
        while keys[at] != -1:
            keys[at] = -1
            acc[at] = 0
            at = (at + 1) & mask


@_jit
def backward(
    first: int,
    last: int,
    ptr: Array,
    rel: Array,
    tail: Array,
    xptr: Array,
    source: Array,
    weight: Array,
    r: Array,
    epsilon: float,
    budget: int,
    optr: Array,
    oentity: Array,
    grad: Array,
    acc: Array,
    keys: Array,
    grad_x: Array,
    grad_r: Array,
) -> None:
    """Gradients of `forward` for questions [first, last): fills grad_x [n] and adds to grad_r [B, 2R]."""
    dense = keys.shape[0] == 0
    for b in range(first, last):
        mask = 0 if dense else table_mask(optr[b + 1] - optr[b])
        for j in range(optr[b], optr[b + 1]):
            if dense:
                acc[oentity[j]] = grad[j]
            else:
                at = _slot(keys, mask, oentity[j])
                keys[at] = oentity[j]
                acc[at] = grad[j]
        remaining = budget if budget >= 0 else np.int64(1) << 62
        for i in range(xptr[b], xptr[b + 1]):
            if remaining == 0:
                break
            w = weight[i]
            e = ptr[source[i]]
            stop = ptr[source[i] + 1]
            mine = 0.0
            if (
                epsilon <= 0 and dense and stop - e <= _SHORT_ROW
            ):  # short rows have short runs: guessing their ends costs more
                limit = min(stop, e + remaining)
                remaining -= limit - e
                while e < limit:
                    value = acc[tail[e]]
                    q = rel[e]
                    mine += r[b, q] * value
                    grad_r[b, q] += w * value
                    e += 1
                grad_x[i] = mine
                continue
            while e < stop:
                q = rel[e]
                rw = r[b, q]
                if abs(rw) < epsilon:
                    e = run_end(rel, e, stop, q)
                    continue
                limit = min(stop, e + remaining)
                begin = e
                total = 0.0
                if dense:
                    while e < limit and rel[e] == q:
                        total += acc[tail[e]]
                        e += 1
                else:
                    while e < limit and rel[e] == q:
                        total += acc[_slot(keys, mask, tail[e])]
                        e += 1
                remaining -= e - begin
                mine += rw * total
                grad_r[b, q] += w * total
                if remaining == 0:
                    break
            grad_x[i] = mine
        if dense:
            for j in range(optr[b], optr[b + 1]):
                acc[oentity[j]] = 0
        else:
            _erase(keys, acc, mask, oentity[optr[b] : optr[b + 1]])


@_jit
def heaviest(
    first: int,
    last: int,
    ptr: Array,
    rel: Array,
    xptr: Array,
    source: Array,
    weight: Array,
    r: Array,
    epsilon: float,
    budget: int,
    k: int,
    out_edge: Array,
    out_weight: Array,
    out_count: Array,
) -> None:
    """The k heaviest edges of questions [first, last), by (weight descending, edge): fills out_edge, out_weight [B, k].

    Edges of one run weigh the same, so a run costs its first k edges at most.
    """
    for b in range(first, last):
        n = 0
        remaining = budget if budget >= 0 else np.int64(1) << 62
        edge, heavy = out_edge[b], out_weight[b]
        for i in range(xptr[b], xptr[b + 1]):
            if remaining == 0:
                break
            e = ptr[source[i]]
            stop = ptr[source[i] + 1]
            while e < stop and remaining > 0:
                q = rel[e]
                rw = r[b, q]
                end = run_end(rel, e, stop, q)
                if abs(rw) < epsilon:
                    e = end
                    continue
                value = weight[i] * rw
                reach = min(end, e + remaining)
                remaining -= reach - e
                if value != 0:
                    for candidate in range(e, min(reach, e + k)):
                        if n == k and not (value > heavy[n - 1] or (value == heavy[n - 1] and candidate < edge[n - 1])):
                            break
                        place = n if n < k else k - 1
                        while place > 0 and (
                            value > heavy[place - 1] or (value == heavy[place - 1] and candidate < edge[place - 1])
                        ):
                            heavy[place] = heavy[place - 1]
                            edge[place] = edge[place - 1]
                            place -= 1
                        heavy[place] = value
                        edge[place] = candidate
                        if n < k:
                            n += 1
                e = end
        out_count[b] = n
