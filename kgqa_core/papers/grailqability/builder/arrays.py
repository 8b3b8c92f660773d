"""The ideal graph in memory, without what is dropped so far: its triples, its types, and forms over both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import KgInputError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import MemoryGraph

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


class Members:
    """The rows (entity, type) of a graph, those with something dropped left out; `there` [entities] says what is left.

    A type stays below another one when a type between them is dropped.
    """

    def __init__(self, store: KgStore, there: NDArray[np.bool_]) -> None:
        self.there = there
        rows = store.connection.execute("SELECT DISTINCT entity, type FROM types ORDER BY type, entity").fetchnumpy()
        self.entity, self.type = (np.asarray(rows[name], dtype=np.int64) for name in ("entity", "type"))
        self._below: dict[int, set[int]] = {}
        self._above: dict[int, set[int]] = {}
        for type_, super_ in store.connection.execute("SELECT type, super FROM supertypes").fetchall():
            self._below.setdefault(super_, set()).add(type_)
            self._above.setdefault(type_, set()).add(super_)
        self._types = np.unique(self.type)

    def of(self, type_: int) -> Ints:
        """Entities of a type, or of one below it, ascending."""
        runs = [self._run(each) for each in sorted({type_, *self.below(type_)}) if self.there[each]]
        found = np.unique(np.concatenate([self.entity[run] for run in runs])) if runs else NONE
        return found[self.there[found]]

    def below(self, type_: int) -> set[int]:
        """Types below one, dropped ones too."""
        return self._below.get(type_, set())

    def classes_of(self, dropped: Collection[int]) -> set[int]:
        """Types whose members are fewer when these entities, or types, are dropped."""
        gone = np.asarray(sorted(dropped), dtype=np.int64)
        direct = {*np.intersect1d(gone, self._types).tolist(), *self.type[np.isin(self.entity, gone)].tolist()}
        return direct | {above for type_ in direct for above in self._above.get(type_, ())}

    def alone(self) -> dict[int, Ints]:
        """Type → entities that are of no other type any more, ascending."""
        left = self.there[self.entity] & self.there[self.type]
        entity, type_ = self.entity[left], self.type[left]
        single = np.bincount(entity, minlength=len(self.there))[entity] == 1
        entity, type_ = entity[single], type_[single]
        types, starts = np.unique(type_, return_index=True)
        return dict(zip(types.tolist(), np.split(entity, starts[1:]), strict=False))

    def _run(self, type_: int) -> slice:
        return slice(*np.searchsorted(self.type, [type_, type_ + 1]))


class Living(MemoryGraph):
    """What `logic.memory` finds in a graph from which things are dropped; qualifiers and TC are those of the whole.

    whole: the graph before anything was dropped, whose arrays are shared.
    """

    def __init__(self, whole: MemoryGraph, graph: Graph, members: Members) -> None:
        self.__dict__.update(whole.__dict__)
        self._graph, self._of_class = graph, members

    def edges(self, nodes: Ints, relation: int, *, backward: bool) -> tuple[Ints, Ints]:
        """As that of the whole graph, without dropped triples."""
        source, triples = super().edges(nodes, relation, backward=backward)
        alive = self._graph.alive[triples]
        return source[alive], triples[alive]

    def members(self, key: str) -> Ints:
        """As those of the whole graph, without what was dropped."""
        return self._of_class.of(self.know([key])[key])


def _joined(starts: Any, stops: Any) -> Ints:
    """The integers of all half-open ranges, one after the other."""
    lengths = stops - starts
    total = int(lengths.sum())
    if not total:
        return NONE
    first = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return np.asarray(first + np.arange(total), dtype=np.int64)
