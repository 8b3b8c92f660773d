"""The compiled loops that put terms in canonical order, write them in it, and merge sorted runs of them.

Terms lie in arenas of words as `intern_kernels` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.intrinsics import pointer, put

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

U: Any = np.uint64
N: Any = np.int64
_LOW, _ALL, _S32 = U(0xFFFFFFFF), U(0xFFFFFFFFFFFFFFFF), U(32)


@_jit
def swapped(value: Any) -> Any:
    """A word with its bytes in the opposite order: as a number it then compares as the bytes do."""
    m1, m2 = U(0x00FF00FF00FF00FF), U(0x0000FFFF0000FFFF)
    value = ((value >> U(8)) & m1) | ((value & m1) << U(8))
    value = ((value >> U(16)) & m2) | ((value & m2) << U(16))
    return (value >> _S32) | (value << _S32)


@_jit
def compare(a: Array, i: int, b: Array, j: int, depth: int, ranks: Array) -> int:
    """-1, 0 or 1: the term at word i of a against that at word j of b, by bytes from word `depth` on, then tag."""
    size_a, size_b = N(a[i] >> _S32), N(b[j] >> _S32)
    words_a, words_b = (size_a + 7) >> 3, (size_b + 7) >> 3
    for k in range(depth, min(words_a, words_b)):
        x, y = a[i + 2 + k], b[j + 2 + k]
        if x != y:
            return -1 if swapped(x) < swapped(y) else 1
    if size_a != size_b:
        return -1 if size_a < size_b else 1
    x, y = ranks[N(a[i + 1] & _LOW)], ranks[N(b[j + 1] & _LOW)]
    if x == y:
        return 0
    return -1 if x < y else 1


@_jit
def _radix(keys: Array, ids: Array, lo: int, hi: int, keys2: Array, ids2: Array) -> None:
    """Sorts keys[lo:hi], and ids with them, by passes over the bytes that differ."""
    some, every = U(0), _ALL
    for i in range(lo, hi):
        some |= keys[i]
        every &= keys[i]
    differs = some ^ every
    counts = np.empty(257, dtype=np.int64)
    source, source_ids, target, target_ids = keys, ids, keys2, ids2
    passes = 0
    for byte in range(8):
        shift = U(8 * byte)
        if (differs >> shift) & U(0xFF) == U(0):
            continue
        counts[:] = 0
        for i in range(lo, hi):
            counts[N((source[i] >> shift) & U(0xFF)) + 1] += 1
        counts[0] = lo
        for b in range(256):
            counts[b + 1] += counts[b]
        for i in range(lo, hi):
            b = N((source[i] >> shift) & U(0xFF))
            target[counts[b]] = source[i]
            target_ids[counts[b]] = source_ids[i]
            counts[b] += 1
        source, source_ids, target, target_ids = target, target_ids, source, source_ids
        passes += 1
    if passes & 1:
        for i in range(lo, hi):  # a copy of slices costs two seconds more to compile
            keys[i] = keys2[i]
            ids[i] = ids2[i]


@_jit
def _insertion(arena: Array, starts: Array, ids: Array, lo: int, hi: int, depth: int, ranks: Array) -> None:
    for i in range(lo + 1, hi):
        moving = ids[i]
        at = N(starts[moving])
        j = i
        while j > lo and compare(arena, at, arena, N(starts[ids[j - 1]]), depth, ranks) < 0:
            ids[j] = ids[j - 1]
            j -= 1
        ids[j] = moving


@_jit
def sort_terms(arena: Array, starts: Array, ids: Array, ranks: Array) -> None:
    """Sorts ids of terms by bytes, then ranks[tag], in place.

    From the most significant word down: groups of terms that agree so far are cut by their next word; what they have in
    common is skipped at once, and small groups are sorted by insertion.
    """
    n = ids.shape[0]
    keys = np.empty(n, dtype=np.uint64)
    keys2 = np.empty(n, dtype=np.uint64)
    ids2 = np.empty(n, dtype=ids.dtype)
    stack = [(0, n, 0)]
    while len(stack):
        lo, hi, depth = stack.pop()
        if hi - lo <= 24:
            _insertion(arena, starts, ids, lo, hi, depth, ranks)
            continue
        first = N(starts[ids[lo]])
        common = (N(arena[first] >> _S32)) >> 3  # whole words only, so that no term ends in what is skipped
        for i in range(lo + 1, hi):
            at = N(starts[ids[i]])
            common = min(common, N(arena[at] >> _S32) >> 3)
            k = depth
            while k < common and arena[at + 2 + k] == arena[first + 2 + k]:
                k += 1
            common = k
            if common <= depth:
                break
        depth = max(depth, common)
        for i in range(lo, hi):
            at = N(starts[ids[i]])
            keys[i] = swapped(arena[at + 2 + depth]) if N(arena[at] >> _S32) > 8 * depth else U(0)
        _radix(keys, ids, lo, hi, keys2, ids2)
        i = lo
        while i < hi:
            j = i + 1
            while j < hi and keys[j] == keys[i]:
                j += 1
            if j - i > 1:
                # Terms that end in this word come first, shorter before longer (they differ in zeros), then by tag.
                ended = i
                for k in range(i, j):
                    if N(arena[N(starts[ids[k]])] >> _S32) <= 8 * (depth + 1):
                        ids[k], ids[ended] = ids[ended], ids[k]
                        ended += 1
                if ended - i > 24:
                    for k in range(i, ended):
                        at = N(starts[ids[k]])
                        keys2[k] = 0
                        keys[k] = (arena[at] >> _S32 << _S32) | U(ranks[N(arena[at + 1] & _LOW)])
                    same = keys[j - 1]
                    _radix(keys, ids, i, ended, keys2, ids2)
                    keys[i:ended] = same
                elif ended - i > 1:
                    _insertion(arena, starts, ids, i, ended, depth, ranks)
                if j - ended > 1:
                    stack.append((ended, j, depth + 1))
            i = j


@_jit
def in_order(arena: Array, starts: Array, ids: Array, out: Array, begin: int) -> int:
    """Copies terms of the arena in the order of ids, from number `begin`, until `out` is full; the number reached.

    out[0] is where the words end.
    """
    used = 1
    i = begin
    while i < ids.shape[0]:
        at = N(starts[ids[i]])
        words = 2 + ((N(arena[at] >> _S32) + 7) >> 3)
        if used + words > out.shape[0]:
            break
        for k in range(words):
            out[used + k] = arena[at + k]
        used += words
        i += 1
    out[0] = U(used)
    return i


@_jit
def emit(
    arena: Array, starts: Array, ids: Array, begin: int, stop: int, offsets: Array, text: Array, tags: Array,
    ranks: Array,
) -> None:  # fmt: skip
    """Strings (offsets, text with 8 bytes to spare) and ranks of tags of the terms ids[begin:stop], in this order."""
    used = 0
    offsets[0] = 0
    for i in range(begin, stop):
        at = N(starts[ids[i]])
        size = N(arena[at] >> _S32)
        tags[i - begin] = ranks[N(arena[at + 1] & _LOW)]
        used = _spell(arena, at, size, text, used)
        offsets[i - begin + 1] = used


@_jit
def _spell(arena: Array, at: int, size: int, text: Array, used: int) -> int:
    raw = pointer(text)
    for k in range((size + 7) >> 3):
        put(raw, used + 8 * k, arena[at + 2 + k])
    return used + size


@_jit
def text_bytes(arena: Array, starts: Array, ids: Array, begin: int, stop: int) -> int:
    """Bytes of the terms ids[begin:stop] together."""
    total = 0
    for i in range(begin, stop):
        total += N(arena[N(starts[ids[i]])] >> _S32)
    return total


@_jit
def merge(
    arena: Array, heads: Array, ends: Array, more: Array, maps: Array, map_starts: Array, ranks: Array, tid: int,
    offsets: Array, text: Array, tags: Array,
) -> tuple[int, int]:  # fmt: skip
    """Merges sorted runs whose buffers lie in one arena, until a buffer with more to come is empty or the output full.

    heads[r], ends[r]: words of run r that wait; more[r]: the file of the run goes on.  maps[map_starts[r] + id] becomes
    the tid of each term.  Returns (distinct terms written, bytes of text written); numbers start at `tid`.
    """
    runs = heads.shape[0]
    written, used = 0, 0
    offsets[0] = 0
    equal = np.empty(runs, dtype=np.int64)
    while written < tags.shape[0]:
        count = 0
        for r in range(runs):
            if heads[r] >= ends[r]:
                if more[r]:
                    return written, used
                continue
            if count == 0:
                equal[0] = r
                count = 1
                continue
            order = compare(arena, heads[r], arena, heads[equal[0]], 0, ranks)
            if order < 0:
                equal[0] = r
                count = 1
            elif order == 0:
                equal[count] = r
                count += 1
        if count == 0:
            break
        at = heads[equal[0]]
        size = N(arena[at] >> _S32)
        if used + size + 8 > text.shape[0]:
            break
        tags[written] = ranks[N(arena[at + 1] & _LOW)]
        used = _spell(arena, at, size, text, used)
        for k in range(count):
            r = equal[k]
            maps[map_starts[r] + N(arena[heads[r]] & _LOW)] = tid + written
            heads[r] += 2 + ((size + 7) >> 3)
        written += 1
        offsets[written] = used
    return written, used


@_jit
def whole_terms(words: Array, stop: int) -> int:
    """Where the last whole term of a buffer of terms ends."""
    at = 0
    while at + 2 <= stop:
        size = 2 + ((N(words[at] >> _S32) + 7) >> 3)
        if at + size > stop:
            break
        at += size
    return at
