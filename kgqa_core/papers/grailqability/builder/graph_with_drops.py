"""The ideal graph in memory, without what is dropped so far: its triples, its types, and forms over both."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import KgInputError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import NONE, Ints, MemoryGraph


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
        entities = np.unique(np.concatenate([self.entity[run] for run in runs])) if runs else NONE
        return entities[self.there[entities]]

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


class GraphWithDrops(MemoryGraph):
    """What `logic.memory` finds in a graph from which things are dropped; qualifiers and TC are those of the whole.

    alive [triples], there [entities]: False for what is dropped.  whole: the graph before anything was dropped, whose
    arrays are shared; a triple's place in them is its id.  Raises KgInputError when the triples are not numbered in
    their order.
    """

    def __init__(self, store: KgStore) -> None:
        self.whole = MemoryGraph(store)
        self.__dict__.update(self.whole.__dict__)
        columns = store.connection.execute("SELECT id, head, relation FROM triples ORDER BY id").fetchnumpy()
        stored = (np.arange(len(self.head)), self.head, self.relation)
        if not all(map(np.array_equal, columns.values(), stored)):
            raise KgInputError(f"the triples of {store.path} are not numbered in order; build the graph again")
        self.alive: NDArray[np.bool_] = np.ones(len(self.head), dtype=np.bool_)
        self.there: NDArray[np.bool_] = np.ones(self.entities, dtype=np.bool_)
        self.of_class = Members(store, self.there)

    def edges(self, nodes: Ints, relation: int, *, backward: bool) -> tuple[Ints, Ints]:
        """As those of the whole graph, without dropped triples."""
        source, triples = super().edges(nodes, relation, backward=backward)
        alive = self.alive[triples]
        return source[alive], triples[alive]

    def members(self, key: str) -> Ints:
        """As those of the whole graph, without what was dropped."""
        return self.of_class.of(self.know([key])[key])

    def follow(self, nodes: Ints, relation: int, *, backward: bool) -> tuple[Ints, Ints, Ints]:
        """(triples, from, to) of a relation's living triples out of `nodes`, or backward into them."""
        source, triples = self.edges(nodes, relation, backward=backward)
        return triples, nodes[source], (self.head if backward else self.tail)[triples]

    def touching(self, nodes: Ints) -> Ints:
        """As those of the whole graph, without dropped triples."""
        triples = super().touching(nodes)
        return triples[self.alive[triples]]

    def of_relations(self, relations: Sequence[int]) -> Ints:
        """Living triples of some relations, ascending."""
        return np.flatnonzero(np.isin(self.relation, np.asarray(relations, dtype=np.int64)) & self.alive)
