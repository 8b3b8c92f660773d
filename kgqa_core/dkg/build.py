"""Rows of edges from sorted triples, in two passes over chunks of any size and no copy of the triples.

The first pass counts each row's edges, the second puts every edge in its place; then rows are sorted within.  What has
to fit in memory is 16 bytes an entity and one chunk; the edges may lie in memory-mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.dkg import build_kernels as kernels
from kgqa_core.errors import KgInputError

Array = NDArray[Any]
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
    """Type of row pointers: uint32 while places of edges fit, else int64."""
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
        at = kernels.count(head, relation, tail, self.before, self.bounds, self.out, self.back)
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
        kernels.place(
            head, relation, tail, self.state, self.relations, self.bounds, self.ptr, self.back, self.rel, self.tail
        )

    def sort(self, report: Callable[[int], None] = lambda rows: None) -> tuple[Array, Array, Array]:
        """ptr [E + 1], rel and tail, rows in order of (relation, tail)."""
        if not len(self.ptr):
            self._lay_out()
        for first in range(0, self.entities, ROWS):
            last = min(first + ROWS, self.entities)
            kernels.sort_rows(self.ptr, self.out, self.rel, self.tail, first, last)
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
