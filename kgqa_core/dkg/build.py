"""Rows of edges from sorted triples, in two passes over chunks of any size and no copy of the triples.

The first pass counts each row's edges, the second writes every edge at its index; then rows are sorted within.  What
has to fit in memory is 16 bytes an entity and one chunk; the edges may lie in memory-mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.errors import KgInputError

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
_SHORT = 32


@_jit
def _is_literal(bounds: Array, entity: int) -> bool:
    """Whether an entity lies in one of the ranges whose starts and stops alternate in `bounds`."""
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] <= entity:
            low = middle + 1
        else:
            high = middle
    return low % 2 == 1


@_jit
def count_edges(
    head: Array, relation: Array, tail: Array, before: Array, bounds: Array, out: Array, back: Array
) -> int:
    """Adds a chunk to the numbers of edges along (out [E]) and against (back [E]) triples, none out of literals.

    before [3]: the last triple of the chunk before, and then of this one.  Returns -1, or the index of a triple that is
    not after the one before it.
    """
    h, r, t = before[0], before[1], before[2]
    for i in range(head.shape[0]):
        h1, r1, t1 = np.int64(head[i]), np.int64(relation[i]), np.int64(tail[i])
        if not (h1 > h or (h1 == h and (r1 > r or (r1 == r and t1 > t)))):
            return i
        h, r, t = h1, r1, t1
        out[h] += 1
        if not _is_literal(bounds, t):
            back[t] += 1
    before[0], before[1], before[2] = h, r, t
    return -1


@_jit
def place_edges(
    head: Array,
    relation: Array,
    tail: Array,
    state: Array,
    relations: int,
    bounds: Array,
    ptr: Array,
    back: Array,
    rel_out: Array,
    tail_out: Array,
) -> None:
    """Writes the edges of a chunk.  state [2]: the head at work and its next index.  back counts down to 0.

    Edges against triples land in order of heads, so that a row's still have to be sorted by relation.
    """
    h, at = state[0], state[1]
    for i in range(head.shape[0]):
        if head[i] != h:
            h = np.int64(head[i])
            at = np.int64(ptr[h])
        t = np.int64(tail[i])
        rel_out[at] = relation[i]
        tail_out[at] = t
        at += 1
        if not _is_literal(bounds, t):
            to = np.int64(ptr[t + 1]) - np.int64(back[t])
            back[t] -= 1
            rel_out[to] = relation[i] + relations
            tail_out[to] = h
    state[0], state[1] = h, at


@_jit
def sort_rows(ptr: Array, out: Array, rel: Array, tail: Array, first: int, last: int) -> None:
    """Puts the edges against triples of rows [first, last) in order of (relation, tail)."""
    for row in range(first, last):
        start, stop = np.int64(ptr[row]) + np.int64(out[row]), np.int64(ptr[row + 1])
        n = stop - start
        if n < 2:
            continue
        at = start + 1
        while at < stop and (rel[at - 1] < rel[at] or (rel[at - 1] == rel[at] and tail[at - 1] <= tail[at])):
            at += 1
        if at == stop:
            continue
        if n <= _SHORT:
            for i in range(at, stop):
                q, t = rel[i], tail[i]
                j = i
                while j > start and (rel[j - 1] > q or (rel[j - 1] == q and tail[j - 1] > t)):
                    rel[j], tail[j] = rel[j - 1], tail[j - 1]
                    j -= 1
                rel[j], tail[j] = q, t
        else:
            keys = np.empty(n, dtype=np.int64)
            for i in range(n):
                keys[i] = (np.int64(rel[start + i]) << 31) | np.int64(tail[start + i])
            keys.sort()
            for i in range(n):
                rel[start + i] = keys[i] >> 31
                tail[start + i] = keys[i] & 0x7FFFFFFF


Ranges = Sequence[Sequence[int]]
MOST_ENTITIES = 2**31 - 1
ROWS = 1 << 20
"""Rows that are sorted between two reports."""


class Unsorted(KgInputError):
    """A triple is not after the one before it in (head, relation, tail) order."""


def relation_dtype(relations: int) -> np.dtype[Any]:
    """Type of the relation column: uint16 while ids of both directions fit, else uint32."""
    return np.dtype(np.uint16) if 2 * relations <= 65_535 else np.dtype(np.uint32)


def row_dtype(edges: int) -> np.dtype[Any]:
    """Type of row pointers: uint32 while indices of edges fit, else int64."""
    return np.dtype(np.uint32) if edges <= 2**32 - 1 else np.dtype(np.int64)


class Builder:
    """Call `count` with every chunk in order, then `place` with the same chunks, then `sort`.

    literals: ranges [start, stop) of ids out of which no edge leads, unless literal_inverses.
    empty: makes an array of a name ("rel" or "tail"), length and type.
    """

    def __init__(
        self, entities: int, relations: int, literals: Ranges, literal_inverses: bool,
        empty: Callable[[str, int, np.dtype[Any]], Array] = lambda name, length, dtype: np.empty(length, dtype),
    ) -> None:  # fmt: skip
        if entities > MOST_ENTITIES:
            raise KgInputError(f"the graph has {entities} entities, but a DKG holds at most {MOST_ENTITIES}")
        self.entities, self.relations, self.empty = entities, relations, empty
        bounds = (
            [] if literal_inverses else [bound for start, stop in literals if stop > start for bound in (start, stop)]
        )
        self.bounds: Array = np.array(bounds, dtype=np.int64)
        self.out, self.back = np.zeros(entities, dtype=np.uint32), np.zeros(entities, dtype=np.uint32)
        self.before: Array = np.full(3, -1, dtype=np.int64)
        self.state: Array = np.full(2, -1, dtype=np.int64)
        self.triples = 0
        self.ptr: Array = np.empty(0, dtype=np.int64)
        self.rel: Array = np.empty(0, dtype=relation_dtype(relations))
        self.tail: Array = np.empty(0, dtype=np.int32)

    def count(self, head: Array, relation: Array, tail: Array) -> None:
        """Takes note of a chunk.  Raises KgInputError when ids are out of range, Unsorted when order is broken."""
        limits = (("head", head, self.entities), ("relation", relation, self.relations), ("tail", tail, self.entities))
        for name, column, limit in limits:
            if len(column) and (int(column.min()) < 0 or int(column.max()) >= limit):
                raise KgInputError(
                    f"{name} ids run from {column.min()} to {column.max()}, but the graph has {limit} of them"
                )
        at = count_edges(head, relation, tail, self.before, self.bounds, self.out, self.back)
        if at >= 0:
            triple = (int(head[at]), int(relation[at]), int(tail[at]))
            raise Unsorted(
                f"triple {triple} is doubled or out of (head, relation, tail) order; sort and deduplicate triples"
            )
        self.triples += len(head)

    def place(self, head: Array, relation: Array, tail: Array) -> None:
        """Puts the edges of a chunk into their rows."""
        if not len(self.ptr):
            self._lay_out()
        place_edges(
            head, relation, tail, self.state, self.relations, self.bounds, self.ptr, self.back, self.rel, self.tail
        )

    def sort(self, report: Callable[[int], None] = lambda rows: None) -> tuple[Array, Array, Array]:
        """ptr [E + 1], rel and tail, rows in order of (relation, tail)."""
        if not len(self.ptr):
            self._lay_out()
        for first in range(0, self.entities, ROWS):
            last = min(first + ROWS, self.entities)
            sort_rows(self.ptr, self.out, self.rel, self.tail, first, last)
            report(last)
        return self.ptr, self.rel, self.tail

    def _lay_out(self) -> None:
        ptr = np.zeros(self.entities + 1, dtype=np.int64)
        np.cumsum(self.out, out=ptr[1:])
        ptr[1:] += np.cumsum(self.back, dtype=np.int64)
        edges = int(ptr[-1])
        self.ptr = ptr.astype(row_dtype(edges))
        self.rel = self.empty("rel", edges, relation_dtype(self.relations))
        self.tail = self.empty("tail", edges, np.dtype(np.int32))
