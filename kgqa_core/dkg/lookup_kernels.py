"""The compiled searches behind `Dkg`: where an edge starts, which triple it stands for, where an edge is.

Triples are numbered in the order of forward edges.  `forward[k]` counts the forward edges before row k * BLOCK, so that
the number of a triple costs a look at fewer than BLOCK rows and no array of triples exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
BLOCK = 16
"""Rows from one entry of `forward` to the next."""


@_jit
def first_index(rel: Array, tail: Array, start: int, stop: int, relation: int, other: int) -> int:
    """First index of a row [start, stop) that is not before (relation, other)."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        here = np.int64(rel[middle])
        if here < relation or (here == relation and tail[middle] < other):
            low = middle + 1
        else:
            high = middle
    return low


@_jit
def _upper(values: Array, wanted: int) -> int:
    """Number of values, ascending, that are not above `wanted`."""
    low, high = 0, values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if np.int64(values[middle]) <= wanted:
            low = middle + 1
        else:
            high = middle
    return low


@_jit
def _split(rows: Array, rel: Array, row: int, relations: int) -> Any:
    """Where the inverse edges of a row begin."""
    return first_index(rel, rel, np.int64(rows[row]), np.int64(rows[row + 1]), relations, 0)


@_jit
def forward_before(rows: Array, rel: Array, relations: int, forward: Array, row: int) -> Any:
    """Forward edges in the rows before `row`."""
    block = row // BLOCK
    total = np.int64(forward[block])
    for other in range(block * BLOCK, row):
        total += _split(rows, rel, other, relations) - np.int64(rows[other])
    return total


@_jit
def forward_counts(rows: Array, rel: Array, relations: int, every: int) -> Array:
    """Forward edges before each `every`th row, and all of them at the end; int64."""
    count = rows.shape[0] - 1
    blocks = (count + every - 1) // every
    out = np.zeros(blocks + 1, dtype=np.int64)
    total = 0
    for block in range(blocks):
        out[block] = total
        for row in range(block * every, min((block + 1) * every, count)):
            total += _split(rows, rel, row, relations) - np.int64(rows[row])
    out[blocks] = total
    return out


@_jit
def sources(rows: Array, edges: Array) -> Array:
    """The row of each edge."""
    out = np.empty(edges.shape[0], dtype=np.int64)
    for j in range(edges.shape[0]):
        out[j] = _upper(rows, edges[j]) - 1
    return out


@_jit
def triples(rows: Array, rel: Array, tail: Array, relations: int, forward: Array, edges: Array) -> Array:
    """The triple of each edge."""
    out = np.empty(edges.shape[0], dtype=np.int64)
    for j in range(edges.shape[0]):
        index = edges[j]
        home = _upper(rows, index) - 1
        relation = np.int64(rel[index])
        if relation >= relations:
            source, home = home, np.int64(tail[index])
            start, stop = np.int64(rows[home]), np.int64(rows[home + 1])
            index = first_index(rel, tail, start, stop, relation - relations, source)
        out[j] = forward_before(rows, rel, relations, forward, home) + index - np.int64(rows[home])
    return out


@_jit
def forward_edges(rows: Array, rel: Array, relations: int, forward: Array, wanted: Array) -> Array:
    """The forward edge of each triple."""
    out = np.empty(wanted.shape[0], dtype=np.int64)
    for j in range(wanted.shape[0]):
        block = _upper(forward, wanted[j]) - 1
        row = block * BLOCK
        left = wanted[j] - np.int64(forward[block])
        count = _split(rows, rel, row, relations) - np.int64(rows[row])
        while left >= count:
            left -= count
            row += 1
            count = _split(rows, rel, row, relations) - np.int64(rows[row])
        out[j] = np.int64(rows[row]) + left
    return out


@_jit
def find(rows: Array, rel: Array, tail: Array, source: Array, relation: Array, target: Array) -> Array:
    """The index of each edge (source, relation, target), -1 where there is none."""
    out = np.full(source.shape[0], -1, dtype=np.int64)
    for j in range(source.shape[0]):
        row = source[j]
        if row < 0 or row + 1 >= rows.shape[0]:
            continue
        stop = np.int64(rows[row + 1])
        index = first_index(rel, tail, np.int64(rows[row]), stop, relation[j], target[j])
        if index < stop and np.int64(rel[index]) == relation[j] and np.int64(tail[index]) == target[j]:
            out[j] = index
    return out
