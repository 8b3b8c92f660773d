"""The ideal graph in memory, with what is dropped so far taken out: one hop costs the edges that it follows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import KgInputError
from kgqa_core.kg.store import KgStore

Ints = NDArray[np.int64]
NONE: Ints = np.empty(0, dtype=np.int64)


class Graph:
    """Triples by id, [triples] each, in (head, relation, tail) order; `alive` is False for what is dropped.

    24 bytes a triple, and 16 more for the way back.
    """

    def __init__(self, head: Ints, relation: Ints, tail: Ints, relations: int, entities: int) -> None:
        self.head, self.relation, self.tail = head, relation, tail
        self.relations, self.entities = max(relations, 1), entities
        self.alive: NDArray[np.bool_] = np.ones(len(head), dtype=np.bool_)
        self.there: NDArray[np.bool_] = np.ones(entities, dtype=np.bool_)
        self._forward = head * self.relations + relation
        self.back: Ints = np.lexsort((head, relation, tail))
        self._backward = (tail * self.relations + relation)[self.back]

    @classmethod
    def read(cls, store: KgStore) -> Graph:
        """The triples of a store.  Raises KgInputError when they are not numbered from 0 in their order."""
        columns = store.connection.execute("SELECT id, head, relation, tail FROM triples ORDER BY id").fetchnumpy()
        ids, head, relation, tail = (np.asarray(columns[name], dtype=np.int64) for name in columns)
        [(relations, entities)] = store.connection.execute(
            "SELECT (SELECT coalesce(max(id), -1) + 1 FROM relations), (SELECT coalesce(max(id), -1) + 1 FROM entities)"
        ).fetchall()
        graph = cls(head, relation, tail, relations, entities)
        if not np.array_equal(ids, np.arange(len(ids))) or (np.diff(graph._forward) < 0).any():
            raise KgInputError(f"the triples of {store.path} are not numbered in order; build the graph again")
        return graph

    def hop(self, nodes: Ints, relation: int, *, backward: bool) -> tuple[Ints, Ints, Ints]:
        """(triples, from, to) of a relation's living triples out of `nodes`, or backward into them."""
        keys = nodes * self.relations + relation
        index = self._backward if backward else self._forward
        starts, stops = np.searchsorted(index, keys, "left"), np.searchsorted(index, keys, "right")
        places = _joined(starts, stops)
        triples = self.back[places] if backward else places
        triples = triples[self.alive[triples]]
        ends = (self.tail[triples], self.head[triples])
        return (triples, *ends) if backward else (triples, *ends[::-1])

    def around(self, nodes: Ints) -> Ints:
        """Living triples whose head or tail is among `nodes`, ascending."""
        keys = nodes * self.relations
        runs = []
        for index, order in ((self._forward, None), (self._backward, self.back)):
            starts = np.searchsorted(index, keys, "left")
            places = _joined(starts, np.searchsorted(index, keys + self.relations, "left"))
            runs.append(places if order is None else order[places])
        found = np.unique(np.concatenate(runs))
        return found[self.alive[found]]

    def of_relations(self, relations: Sequence[int]) -> Ints:
        """Living triples of some relations, ascending."""
        return np.flatnonzero(np.isin(self.relation, np.asarray(relations, dtype=np.int64)) & self.alive)

    @cached_property
    def popularity(self) -> Ints:
        """[relations]: triples of each, dropped ones too."""
        return np.bincount(self.relation, minlength=self.relations).astype(np.int64)


def _joined(starts: Any, stops: Any) -> Ints:
    """The integers of all half-open ranges, one after the other."""
    lengths = stops - starts
    total = int(lengths.sum())
    if not total:
        return NONE
    first = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return np.asarray(first + np.arange(total), dtype=np.int64)
