"""A set of statements that holds two hashes of each and no text: which statements of a graph does a dump state?

Statements count as equal when 64 bits of one hash and some of another are; both are keyed anew for every set.  A
statement that is not in the set is taken for one that is with a probability of about 10^-19.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.formats.ntriples_columns import DATATYPE, KIND, OBJECT, PREDICATE, SUBJECT
from kgqa_core.kg.formats.spans import XSD_STRING, SpanBatch
from kgqa_core.kg.ingest.intern import StringColumn
from kgqa_core.kg.ingest.intern_kernels import mix
from kgqa_core.kg.intrinsics import pointer, word

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

U: Any = np.uint64
_K2 = U(0xC2B2AE3D27D4EB4F)
_S32, _S31 = U(32), U(31)
_ALL = U(0xFFFFFFFFFFFFFFFF)

ABSENT, PRESENT, STATED, REMOVED = range(4)
"""States of a slot: empty, a statement of the set, one that was stated since, one that was taken out."""

SLOT_BYTES = 9


class StatementSet:
    """Statements, to which others are compared.  Hashes of terms and statements are uint64 [2, n]."""

    def __init__(self, most: int) -> None:
        """Makes room for so many statements."""
        slots = 1 << max(10, int(most * 1.5).bit_length())
        self._check = np.zeros(slots, dtype=np.uint64)
        self._state = np.zeros(slots, dtype=np.uint8)
        self._seeds = np.frombuffer(secrets.token_bytes(16), dtype=np.uint64).copy()
        self._plain = self._strings(pl.Series([XSD_STRING]), None)

    @staticmethod
    def bytes_for(most: int) -> int:
        """Memory of a set with room for so many statements."""
        return SLOT_BYTES << max(10, int(most * 1.5).bit_length())

    def terms(self, keys: pl.Series, tags: pl.Series | None = None) -> Array:
        """Hashes of terms: keys, and of literals datatype and detail as one text; null of entities."""
        return self._strings(keys, None if tags is None else self._strings(tags, None))

    def of_terms(self, subjects: Array, predicates: Array, objects: Array) -> Array:
        """Hashes of statements."""
        out = np.empty((2, subjects.shape[1]), dtype=np.uint64)
        _combine(subjects, predicates, objects, out)
        return out

    def of_ids(self, heads: Array, relations: Array, tails: Array, entities: Array, names: Array) -> Array:
        """Hashes of statements by indexes of the hashes of entities and of relations."""
        return self.of_terms(entities[:, heads], names[:, relations], entities[:, tails])

    def of_spans(self, batch: SpanBatch) -> Array:
        """Hashes of a batch of statements."""
        out = np.empty((2, batch.height), dtype=np.uint64)
        _hash_spans(batch.data, batch.rows, self._seeds, self._plain, out)
        return out

    def add(self, hashes: Array) -> None:
        """Puts statements into the set."""
        _add(hashes, self._check, self._state)

    def remove(self, hashes: Array) -> None:
        """Takes statements out of the set."""
        slots = _slots(hashes, self._check, self._state)
        self._state[slots[self._state[slots] != ABSENT]] = REMOVED

    @property
    def left(self) -> int:
        """Statements of the set that were not stated."""
        return int(np.count_nonzero(self._state == PRESENT))

    def state(self, hashes: Array) -> tuple[Array, int]:
        """Which of the statements are in the set (bool), and how many of those were stated before; they are now."""
        there = np.empty(hashes.shape[1], dtype=np.bool_)
        return there, int(_state(hashes, self._check, self._state, there))

    def unstated(self, hashes: Array) -> Array:
        """Which of these statements of the set were not stated (bool)."""
        unstated: Array = self._state[_slots(hashes, self._check, self._state)] == PRESENT
        return unstated

    def _strings(self, texts: pl.Series, tags: Array | None) -> Array:
        column = StringColumn.of(texts)
        out = np.empty((2, len(column.begins)), dtype=np.uint64)
        nothing = np.zeros((2, 1), dtype=np.uint64)
        _hash_strings(column.data, column.begins, column.lengths, self._seeds, nothing if tags is None else tags, out)
        return out


@_jit
def _two(h: Any, value: Any) -> Any:
    h = (h ^ value) * _K2
    return h ^ (h >> _S31)


@_jit
def _bytes(data: Array, at: int, length: int, a: Any, b: Any) -> Any:
    """Both hashes of some bytes, that go on from a and b; `data` has 8 bytes to spare at its end."""
    raw = pointer(data)
    a, b = mix(a, U(length)), _two(b, U(length))
    whole = length >> 3
    for i in range(whole):
        value = word(raw, at + 8 * i)
        a, b = mix(a, value), _two(b, value)
    rest = length & 7
    if rest:
        value = word(raw, at + 8 * whole) & (_ALL >> U(64 - 8 * rest))
        a, b = mix(a, value), _two(b, value)
    a, b = mix(a, a >> _S32), _two(b, b >> _S32)
    return a, b


@_jit
def _hash_strings(data: Array, begins: Array, lengths: Array, seeds: Array, tags: Array, out: Array) -> None:
    single_tag = tags.shape[1] == 1
    for i in range(begins.shape[0]):
        if lengths[i] < 0:
            out[0, i] = out[1, i] = U(0)
            continue
        tag = 0 if single_tag else i
        out[0, i], out[1, i] = _bytes(data, begins[i], lengths[i], seeds[0] ^ tags[0, tag], seeds[1] ^ tags[1, tag])


@_jit
def _hash_spans(data: Array, rows: Array, seeds: Array, plain: Array, out: Array) -> None:
    for i in range(rows.shape[0]):
        a, b = seeds[0], seeds[1]
        s = _bytes(data, rows[i, SUBJECT], rows[i, SUBJECT + 1], a, b)
        p = _bytes(data, rows[i, PREDICATE], rows[i, PREDICATE + 1], a, b)
        if rows[i, KIND] == 1:
            if rows[i, DATATYPE + 1]:
                t = _bytes(data, rows[i, DATATYPE], rows[i, DATATYPE + 1], a, b)
                a, b = a ^ t[0], b ^ t[1]
            else:
                a, b = a ^ plain[0, 0], b ^ plain[1, 0]
        o = _bytes(data, rows[i, OBJECT], rows[i, OBJECT + 1], a, b)
        out[0, i] = mix(mix(mix(U(1), s[0]), p[0]), o[0])
        out[1, i] = _two(_two(_two(U(1), s[1]), p[1]), o[1])


@_jit
def _combine(s: Array, p: Array, o: Array, out: Array) -> None:
    for i in range(out.shape[1]):
        out[0, i] = mix(mix(mix(U(1), s[0, i]), p[0, i]), o[0, i])
        out[1, i] = _two(_two(_two(U(1), s[1, i]), p[1, i]), o[1, i])


@_jit
def _slot(first: Any, second: Any, check: Array, state: Array) -> Any:
    """The slot of a statement, or the empty one where it would be."""
    mask = U(check.shape[0] - 1)
    slot = (first ^ (first >> _S32)) & mask
    while state[slot] != ABSENT and check[slot] != second:
        slot = (slot + U(1)) & mask
    return slot


@_jit
def _add(hashes: Array, check: Array, state: Array) -> None:
    for i in range(hashes.shape[1]):
        slot = _slot(hashes[0, i], hashes[1, i], check, state)
        check[slot], state[slot] = hashes[1, i], PRESENT


@_jit
def _slots(hashes: Array, check: Array, state: Array) -> Array:
    out = np.empty(hashes.shape[1], dtype=np.int64)
    for i in range(hashes.shape[1]):
        out[i] = _slot(hashes[0, i], hashes[1, i], check, state)
    return out


@_jit
def _state(hashes: Array, check: Array, state: Array, there: Array) -> int:
    again = 0
    for i in range(hashes.shape[1]):
        slot = _slot(hashes[0, i], hashes[1, i], check, state)
        there[i] = state[slot] == PRESENT or state[slot] == STATED
        again += state[slot] == STATED
        if there[i]:
            state[slot] = STATED
    return again
