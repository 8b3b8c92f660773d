"""Keys as 64-bit codes, and sets of codes: what a pass over a dump keeps of an entity.

A key of at most eleven of the characters `0-9 a-z _ . Q P L`, as Wikidata's and Freebase's ids are, has a code of its
own: its digits to the base 42.  Any other key has a hash of 63 bits (words multiplied and folded, the last bytes by
FNV-1a, mixed by murmur3's finaliser) with the highest bit set: of n such keys about n²/2⁶⁴ pairs share one, one pair in
three hundred million keys about once in two hundred graphs.  0 is no key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.ingest.intern import StringColumn
from kgqa_core.kg.intrinsics import pointer, word

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

LONGEST = 11
"""Characters of a key whose code is exact."""

BYTES_PER_ENTITY = 56
"""Most bytes of a `CodeSet` for each of its codes."""

_U: Any = np.uint64
_DIGITS = np.zeros(256, dtype=np.uint8)
for _number, _character in enumerate(b"0123456789abcdefghijklmnopqrstuvwxyz_.QPL", start=1):
    _DIGITS[_character] = _number
_BASE, _HASHED = _U(42), _U(1 << 63)
_FNV_START, _FNV_PRIME = _U(0xCBF29CE484222325), _U(0x100000001B3)
_HALF = _U(32)
_MIX_1, _MIX_2, _SHIFT = _U(0xFF51AFD7ED558CCD), _U(0xC4CEB9FE1A85EC53), _U(33)
_GOLDEN = _U(0x9E3779B97F4A7C15)
_COLON = 58


@_jit
def _code(data: Array, begin: int, length: int) -> Any:
    """The code of a span; whole words of eight bytes are mixed in at once, the bytes behind them one by one."""
    if 0 < length <= LONGEST:
        value = _U(0)
        for k in range(begin, begin + length):
            digit = _DIGITS[data[k]]
            if digit == 0:
                break
            value = value * _BASE + _U(digit)
        else:
            return value
    value = _FNV_START ^ _U(length)
    k = begin
    words = pointer(data)
    while k + 8 <= begin + length:
        value = (value ^ word(words, k)) * _MIX_1
        value ^= value >> _HALF
        k += 8
    while k < begin + length:
        value = (value ^ _U(data[k])) * _FNV_PRIME
        k += 1
    value = (value ^ (value >> _SHIFT)) * _MIX_1
    value = (value ^ (value >> _SHIFT)) * _MIX_2
    return (value ^ (value >> _SHIFT)) | _HASHED


@_jit
def _codes_at(data: Array, begins: Array, lengths: Array, out: Array) -> None:
    for i in range(begins.shape[0]):
        out[i] = _code(data, begins[i], lengths[i])


@_jit
def _without_colons(data: Array, begins: Array, lengths: Array, out: Array) -> None:
    for i in range(begins.shape[0]):
        out[i] = True
        for k in range(begins[i], begins[i] + lengths[i]):
            if data[k] == _COLON:
                out[i] = False
                break


@_jit
def _fill(codes: Array, table: Array, indexes: Array, shift: Any) -> None:
    mask = _U(table.shape[0] - 1)
    for i in range(codes.shape[0]):
        slot = (codes[i] * _GOLDEN) >> shift
        while table[slot] != 0:
            slot = (slot + _U(1)) & mask
        table[slot] = codes[i]
        indexes[slot] = i


@_jit
def _find(codes: Array, table: Array, indexes: Array, shift: Any, out: Array) -> None:
    mask = _U(table.shape[0] - 1)
    for i in range(codes.shape[0]):
        out[i] = -1
        if codes[i] == 0:
            continue
        slot = (codes[i] * _GOLDEN) >> shift
        while table[slot] != 0:
            if table[slot] == codes[i]:
                out[i] = indexes[slot]
                break
            slot = (slot + _U(1)) & mask


def span_codes(data: Array, begins: Array, lengths: Array) -> Array:
    """The code of each span of bytes, as uint64."""
    out = np.empty(len(begins), dtype=np.uint64)
    _codes_at(data, begins, lengths, out)
    return out


def spans_without_colons(data: Array, begins: Array, lengths: Array) -> Array:
    """Which spans hold no colon."""
    out = np.empty(len(begins), dtype=np.bool_)
    _without_colons(data, begins, lengths, out)
    return out


def key_codes(keys: pl.Series) -> Array:
    """The code of each key of a series of strings, as uint64; of a null 0."""
    if keys.is_empty():
        return np.zeros(0, dtype=np.uint64)
    column = StringColumn.of(keys)
    codes = span_codes(column.data, column.begins, column.lengths)
    codes[column.lengths < 0] = 0
    return codes


def codes_of(keys: Any) -> Array:
    """The code of each key of a sequence."""
    return key_codes(pl.Series(list(keys), dtype=pl.String))


class CodeSet:
    """A set of codes that tells their indexes.  codes: uint64, sorted, each once, none 0."""

    def __init__(self, codes: Array) -> None:
        self.codes = codes
        bits = max(4, int(2 * len(codes)).bit_length())
        self._table = np.zeros(1 << bits, dtype=np.uint64)
        self._places = np.empty(1 << bits, dtype=np.int32 if len(codes) < 2**31 else np.int64)
        self._shift = _U(64 - bits)
        _fill(codes, self._table, self._places, self._shift)

    def __len__(self) -> int:
        return len(self.codes)

    def find(self, codes: Array) -> Array:
        """The index of each code in `codes` of this set, as int64; -1 for one that is not in it."""
        out = np.empty(len(codes), dtype=np.int64)
        _find(codes, self._table, self._places, self._shift, out)
        return out

    def has(self, codes: Array) -> Array:
        """Which codes are in the set."""
        mask: Array = self.find(codes) >= 0
        return mask


def distinct(parts: list[Array]) -> Array:
    """The codes of all parts, sorted, each once, without 0."""
    codes = np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.uint64)
    return codes[1:] if len(codes) and codes[0] == 0 else codes
