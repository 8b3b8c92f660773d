"""The compiled loops of set arithmetic on rows of ascending entities; see `sets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.dkg.plan_kernels import index_of

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _union_of_two(aptr: Array, a: Array, bptr: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    batch = aptr.shape[0] - 1
    ptr = np.zeros(batch + 1, dtype=np.int64)
    entity = np.empty(a.shape[0] + b.shape[0], dtype=np.int64)
    place_a = np.empty(a.shape[0], dtype=np.int64)
    place_b = np.empty(b.shape[0], dtype=np.int64)
    n = 0
    for row in range(batch):
        i, stop_i, j, stop_j = aptr[row], aptr[row + 1], bptr[row], bptr[row + 1]
        while i < stop_i or j < stop_j:
            take_a = i < stop_i and (j >= stop_j or a[i] <= b[j])
            take_b = j < stop_j and (i >= stop_i or b[j] <= a[i])
            if take_a:
                entity[n] = a[i]
                place_a[i] = n
                i += 1
            if take_b:
                entity[n] = b[j]
                place_b[j] = n
                j += 1
            n += 1
        ptr[row + 1] = n
    return ptr, entity[:n].copy(), place_a, place_b


def union(parts: Sequence[tuple[Array, Array]]) -> list[Array]:
    """Row-wise union of sets (ptr, entity), each ascending: [ptr, entity, index of each part's entities in it …]."""
    ptr, entity = parts[0]
    indices: list[Array] = [np.arange(len(entity))]
    for other_ptr, other in parts[1:]:
        ptr, entity, old, new = _union_of_two(ptr, entity, other_ptr, other)
        indices = [old[index] for index in indices] + [new]
    return [ptr, entity, *indices]


@_jit
def locate(ptr: Array, entity: Array, wanted_ptr: Array, wanted: Array) -> Array:
    """The index of each wanted entity in its row of the sets, -1 where absent, by binary search."""
    index = np.empty(wanted.shape[0], dtype=np.int64)
    for row in range(wanted_ptr.shape[0] - 1):
        for j in range(wanted_ptr[row], wanted_ptr[row + 1]):
            index[j] = index_of(entity, ptr[row], ptr[row + 1], wanted[j])
    return index


@_jit
def without(ptr: Array, entity: Array, other_ptr: Array, other: Array) -> tuple[Array, Array]:
    """ptr of the sets less the others' entities, and the indices that stay; both ascending within a row."""
    new_ptr = np.zeros(ptr.shape[0], dtype=np.int64)
    remaining = np.empty(entity.shape[0], dtype=np.int64)
    n = 0
    for row in range(ptr.shape[0] - 1):
        j = other_ptr[row]
        for i in range(ptr[row], ptr[row + 1]):
            while j < other_ptr[row + 1] and other[j] < entity[i]:
                j += 1
            if j == other_ptr[row + 1] or other[j] != entity[i]:
                remaining[n] = i
                n += 1
        new_ptr[row + 1] = n
    return new_ptr, remaining[:n].copy()


@_jit
def top(ptr: Array, weight: Array, k: int) -> tuple[Array, Array]:
    """Indices [B, k] of the k heaviest entries of each row, heaviest first, ties in row order; and how many [B]."""
    batch = ptr.shape[0] - 1
    best, count = np.zeros((batch, k), dtype=np.int64), np.zeros(batch, dtype=np.int64)
    for row in range(batch):
        n = 0
        top_of_row = best[row]
        for i in range(ptr[row], ptr[row + 1]):
            if n == k and (k == 0 or weight[i] <= weight[top_of_row[k - 1]]):
                continue
            index = n if n < k else k - 1
            while index > 0 and weight[i] > weight[top_of_row[index - 1]]:
                top_of_row[index] = top_of_row[index - 1]
                index -= 1
            top_of_row[index] = i
            n = min(n + 1, k)
        count[row] = n
    return best, count
