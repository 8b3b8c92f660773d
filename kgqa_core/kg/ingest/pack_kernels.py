"""The compiled loops that put triples of integers into single words, so that sorting words sorts triples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

U: Any = np.uint64


@_jit
def mark(ids: Array, column: int, canonical: Array, seen: Array) -> None:
    """Sets seen[canonical[id]] for every id of a column of ids."""
    for i in range(ids.shape[0]):
        seen[canonical[ids[i, column]]] = True


@_jit
def pack(ids: Array, canonical: Array, predicate_index: Array, middle: int, low: int, out: Array) -> None:
    """out[i]: canonical subject, index of the predicate in `middle` bits, canonical object in `low` bits."""
    for i in range(ids.shape[0]):
        s, p, o = canonical[ids[i, 0]], predicate_index[canonical[ids[i, 1]]], canonical[ids[i, 2]]
        out[i] = (U(s) << U(middle + low)) | (U(p) << U(low)) | U(o)


@_jit
def distinct(
    keys: Array, begin: int, middle: int, low: int, predicates: Array, rows: Array, copies: Array
) -> tuple[int, int]:
    """Cuts sorted words from number `begin` into rows (3, n) of distinct triples, and how often each stands.

    predicates[index] becomes the predicate.  Returns (the first word that is not done, rows that were written).
    """
    n, count = keys.shape[0], 0
    low_mask, middle_mask = (U(1) << U(low)) - U(1), (U(1) << U(middle)) - U(1)
    i = begin
    while i < n and count < copies.shape[0]:
        key = keys[i]
        j = i + 1
        while j < n and keys[j] == key:
            j += 1
        rows[0, count] = np.int32(key >> U(middle + low))
        rows[1, count] = predicates[np.int64((key >> U(low)) & middle_mask)]
        rows[2, count] = np.int32(key & low_mask)
        copies[count] = j - i
        count += 1
        i = j
    return i, count


@_jit
def encode(
    subjects: Array, predicates: Array, objects: Array, ranks: Array, ids: Array, relation_ids: Array, kinds: Array,
    width: int, middle: int, low: int, out: Array, degrees: Array, pairs: Array,
) -> bool:  # fmt: skip
    """Facts as words of head, relation, tail and rank + 1 (two bits); are they in order?

    Counts the degrees of ids; met[i] becomes relation * width + the kind of the object.
    """
    ordered = True
    for i in range(subjects.shape[0]):
        h, r, t = ids[subjects[i]], relation_ids[predicates[i]], ids[objects[i]]
        key = (U(h) << U(middle + low + 2)) | (U(r) << U(low + 2)) | (U(t) << U(2)) | U(ranks[i] + 1)
        if i and out[i - 1] > key:
            ordered = False
        out[i] = key
        degrees[h] += 1
        degrees[t] += 1
        pairs[i] = np.int64(r) * width + kinds[objects[i]]
    return ordered


@_jit
def decode(keys: Array, middle: int, low: int, rows: Array, ranks: Array) -> None:
    """Words as `encode` makes them, as rows (3, n) of head, relation and tail, and ranks."""
    low_mask, middle_mask = (U(1) << U(low)) - U(1), (U(1) << U(middle)) - U(1)
    for i in range(keys.shape[0]):
        key = keys[i]
        ranks[i] = np.int8(np.int64(key & U(3)) - 1)
        rows[0, i] = np.int32(key >> U(middle + low + 2))
        rows[1, i] = np.int32((key >> U(low + 2)) & middle_mask)
        rows[2, i] = np.int32((key >> U(2)) & low_mask)
