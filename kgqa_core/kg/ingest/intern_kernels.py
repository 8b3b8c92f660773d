"""The compiled loops of the interner: a hash table over an arena of terms.

A term lies in the arena, an array of 64-bit words, as two words and its bytes: id | length << 32, tag | hash << 32,
then the bytes, filled up with zeros.  A slot of the table holds the index of a term in its low 40 bits and part of its
hash above them; 0 is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.intrinsics import pointer, prefetch, word

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

U: Any = np.uint64
N: Any = np.int64
_ONE, _TWO, _LOW = U(1), U(2), U(0xFFFFFFFF)
_INDEX, _MARK = U((1 << 40) - 1), U(40)
_K1, _K2, _K3 = U(0x9E3779B97F4A7C15), U(0xC2B2AE3D27D4EB4F), U(0xD6E8FEB86659FD93)
_S32, _S29 = U(32), U(29)
_ALL = U(0xFFFFFFFFFFFFFFFF)

COUNT, USED = 0, 1
"""Indexes of an interner's state: terms, and words of the arena in use."""


@_jit
def mix(h: Any, value: Any) -> Any:
    """A hash that goes on from h by a word."""
    h = (h ^ value) * _K1
    return h ^ (h >> _S29)


@_jit
def hashed(data: Array, at: int, length: int, tag: int) -> Any:
    """Hash of the term of these bytes and this tag; `data` has 8 bytes to spare at its end."""
    raw = pointer(data)
    h = mix(U(length) * _K2, U(tag) * _K3)
    whole = length >> 3
    for i in range(whole):
        h = mix(h, word(raw, at + 8 * i))
    rest = length & 7
    if rest:
        h = mix(h, word(raw, at + 8 * whole) & (_ALL >> U(64 - 8 * rest)))
    h = (h ^ (h >> _S32)) * _K3
    return h ^ (h >> _S32)


@_jit
def intern(
    data: Array, at: int, length: int, tag: int, h: Any, table: Array, mask: Any, arena: Array, starts: Array,
    state: Array,
) -> int:  # fmt: skip
    """The id of the term of these bytes, this tag and this hash, added if it is new."""
    raw = pointer(data)
    tagged = U(tag)
    size = U(length)
    whole = length >> 3
    rest = length & 7
    last = U(0)
    if rest:
        last = word(raw, at + 8 * whole) & (_ALL >> U(64 - 8 * rest))
    mark = h >> _MARK
    slot = h & mask
    while True:
        held = table[slot]
        if held == U(0):
            break
        if held >> _MARK == mark:
            index = held & _INDEX
            if arena[index] >> _S32 == size and arena[index + _ONE] & _LOW == tagged:
                same = True
                begin = N(index) + 2
                for i in range(whole):
                    if arena[begin + i] != word(raw, at + 8 * i):
                        same = False
                        break
                if same and (rest == 0 or arena[begin + whole] == last):
                    return N(arena[index] & _LOW)
        slot = (slot + _ONE) & mask
    new = state[COUNT]
    place_new = state[USED]
    table[slot] = U(place_new) | (mark << _MARK)
    arena[place_new] = U(new) | (size << _S32)
    arena[place_new + 1] = tagged | ((h & _LOW) << _S32)
    for i in range(whole):
        arena[place_new + 2 + i] = word(raw, at + 8 * i)
    if rest:
        arena[place_new + 2 + whole] = last
    starts[new] = place_new
    state[COUNT] = new + 1
    state[USED] = place_new + 2 + whole + (1 if rest else 0)
    return new


@_jit
def _ahead(i: int, hashes: Array, table: Array, mask: Any, arena: Array) -> None:
    """Asks for the slot of the term after next but some, and for the index in the arena of a nearer one."""
    n = hashes.shape[0]
    if i + 16 < n:
        prefetch(table, N(hashes[i + 16] & mask))
    if i + 8 < n:
        held = table[hashes[i + 8] & mask]
        if held != U(0):
            prefetch(arena, N(held & _INDEX))


@_jit
def intern_column(
    data: Array, begins: Array, lengths: Array, tags: Array, table: Array, arena: Array, starts: Array, state: Array,
    out: Array,
) -> None:  # fmt: skip
    """Ids of a column of strings, each with a tag; a length below 0 is null, and its id -1."""
    mask = U(table.shape[0] - 1)
    n = begins.shape[0]
    hashes = np.zeros(n, dtype=np.uint64)
    for i in range(n):
        if lengths[i] >= 0:
            hashes[i] = hashed(data, begins[i], lengths[i], tags[i])
    for i in range(n):
        _ahead(i, hashes, table, mask, arena)
        if lengths[i] < 0:
            out[i] = -1
        else:
            out[i] = intern(data, begins[i], lengths[i], tags[i], hashes[i], table, mask, arena, starts, state)


@_jit
def intern_rows(
    data: Array, rows: Array, table: Array, arena: Array, starts: Array, state: Array,
    tag_table: Array, tag_arena: Array, tag_starts: Array, tag_state: Array, out: Array,
) -> None:  # fmt: skip
    """Ids of (subject, predicate, object) of rows of `ntriples_kernels`; tags are ids of datatypes, plus 1."""
    mask = U(table.shape[0] - 1)
    tag_mask = U(tag_table.shape[0] - 1)
    n = rows.shape[0]
    hashes = np.empty(3 * n, dtype=np.uint64)
    tags = np.zeros(n, dtype=np.int64)
    for i in range(n):
        row = rows[i]
        if row[8] != 0:
            tags[i] = 1  # a plain string, whose datatype was interned first
            if row[7] > 0:
                h = hashed(data, row[6], row[7], 0)
                tags[i] = 1 + intern(data, row[6], row[7], 0, h, tag_table, tag_mask, tag_arena, tag_starts, tag_state)
        hashes[3 * i] = hashed(data, row[0], row[1], 0)
        hashes[3 * i + 1] = hashed(data, row[2], row[3], 0)
        hashes[3 * i + 2] = hashed(data, row[4], row[5], tags[i])
    for i in range(n):
        row = rows[i]
        for k in range(3):
            j = 3 * i + k
            _ahead(j, hashes, table, mask, arena)
            tag = tags[i] if k == 2 else 0
            out[i, k] = intern(data, row[2 * k], row[2 * k + 1], tag, hashes[j], table, mask, arena, starts, state)


@_jit
def refill(table: Array, arena: Array, starts: Array, count: int) -> None:
    """Puts the first `count` terms of the arena into an empty table."""
    mask = U(table.shape[0] - 1)
    for i in range(count):
        index = U(starts[i])
        low = arena[index + _ONE] >> _S32
        # The table has at most 2^32 slots, so that the low half of the hash says where to look; the mark is made again.
        size = N(arena[index] >> _S32)
        h = mix(U(size) * _K2, (arena[index + _ONE] & _LOW) * _K3)
        for j in range((size + 7) >> 3):
            h = mix(h, arena[index + _TWO + U(j)])
        h = (h ^ (h >> _S32)) * _K3
        h ^= h >> _S32
        slot = low & mask
        while table[slot] != U(0):
            slot = (slot + _ONE) & mask
        table[slot] = index | ((h >> _MARK) << _MARK)
