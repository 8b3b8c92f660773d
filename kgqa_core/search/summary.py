"""A graph in short, for what may be asked of it: all things with the same types and relations are one.

These are the characteristic sets of Neumann and Moerkotte (2011).  A search over it finds every form that is possible,
whatever facts are missing, for a thing may be all that things like it are.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import RDF_TYPE, RDFS
from kgqa_core.logic.memory import Ints, MemoryGraph, joined_ranges
from kgqa_core.search.graph import LabelGraph

TYPE_RELATIONS = frozenset((RDF_TYPE, RDFS + "subClassOf", "P31", "P279", "type.object.type"))
"""Relations that say what type a thing has; where forms have conditions on types, paths do not go along them."""


class SummaryGraph(LabelGraph):
    """The same relations and types over nodes that stand for many things, or for all values of one dimension.

    node_of [entities]: the node of each thing.  many [2 * relations]: whether some thing has several of it.  valued:
    relations that lead to values.  types: whether what states types is left out.
    """

    def __init__(self, store: KgStore, whole: MemoryGraph, *, types: bool) -> None:
        super().__init__(store, whole)
        size = self.relations
        self.many: NDArray[np.bool_] = np.zeros(2 * size, dtype=np.bool_)
        for shift, keys in ((0, whole._forward), (size, whole._backward)):
            self.many[keys[1:][keys[1:] == keys[:-1]] % size + shift] = True
        own = ~np.isin(whole.relation, [i for key, i in whole.relation_ids.items() if types and key in TYPE_RELATIONS])
        head, relation, tail = whole.head[own], whole.relation[own], whole.tail[own]
        has = np.unique(np.concatenate((head * 2 * size + relation, tail * 2 * size + relation + size)))
        draw = np.random.default_rng(0).integers(2**63, size=2 * size + len(self.type_ids), dtype=np.uint64)
        alike: NDArray[np.uint64] = np.zeros(whole.entities, dtype=np.uint64)
        np.add.at(alike, has // (2 * size), draw[has % (2 * size)])
        np.add.at(alike, np.repeat(np.arange(whole.entities), np.diff(self._type_rows)), draw[2 * size + self._types])
        alike[whole.literal] = whole.dim[whole.literal].astype(np.int64) + 2
        _, first, self.node_of, sizes = np.unique(alike, return_index=True, return_inverse=True, return_counts=True)
        self.memory = copy(whole)
        self.memory.entities, self.memory.literal, self.memory.dim = len(first), whole.literal[first], whole.dim[first]
        nodes = len(first)
        triples = np.unique((self.node_of[head] * size + relation) * nodes + self.node_of[tail])
        self.memory.index(triples // nodes // size, triples // nodes % size, triples % nodes)
        counts = np.diff(self._type_rows)[first]
        self._types = self._types[joined_ranges(self._type_rows[first], counts)]
        self._type_rows = np.concatenate(([0], np.cumsum(counts)))
        self.triples = np.bincount(self.memory.relation, minlength=size)
        self._read_ends()
        self.measured, self.entity_tails = np.ceil(self.measured), np.ceil(self.entity_tails)
        self.is_type[:] = False
        self.valued = np.unique(self.memory.relation[self.memory.literal[self.memory.tail]])
        rows = [self.types_of(node) for node in range(nodes)]
        ends = np.cumsum([0, *map(len, rows)])
        self._sizes, places = sizes, np.array([t for own in rows for t in own], dtype=np.int64)
        self._typed = csr_array((np.ones(len(places)), places, ends), shape=(nodes, len(self.type_ids)))
        self._by_type = self._typed.tocsc()
        self._end_types: dict[bytes, list[int]] = {}
        self._beside: dict[int, Ints] = {}
        self._long: dict[int, list[tuple[int, ...]]] = {}

    def _relations_of_set(self, nodes: Ints, end_type: int) -> Ints:
        leaving, reaching = self.memory.around_all(nodes)
        return np.concatenate((leaving, reaching + self.relations))

    def members(self, type_index: int) -> Ints:
        """Nodes of things of a type or of one below it, ascending."""
        first, last = self._by_type.indptr[type_index : type_index + 2]
        return self._by_type.indices[first:last].astype(np.int64)

    @cached_property
    def truths(self) -> dict[int, bool]:
        """None, as a node stands for all values of a dimension."""
        return {}

    @cached_property
    def to_blank(self) -> NDArray[np.bool_]:
        """No relation, for the same reason as `is_nameless`."""
        return np.zeros(self.relations, dtype=np.bool_)

    def is_nameless(self, type_index: int) -> bool:
        """False, as nodes that stand for many things have no names."""
        return False

    def end_types(self, nodes: Ints) -> list[int]:
        """Types of what some nodes stand for, those of most of it first and of those the smallest."""
        key = nodes.tobytes()
        if key not in self._end_types:
            counts = self._sizes[nodes] @ self._typed[nodes]
            order = np.lexsort((self._sizes @ self._typed, -counts))
            self._end_types[key] = order[: np.count_nonzero(counts)].tolist()
        return self._end_types[key]

    def beside(self, way: int) -> Ints:
        """Directed relations of what a directed relation leads to."""
        if way not in self._beside:
            ends = self.memory.head if way >= self.relations else self.memory.tail
            self._beside[way] = self.directed_relations(np.unique(ends[self.memory.relation == way % self.relations]))
        return self._beside[way]

    def long_measures(self, way: int) -> list[tuple[int, ...]]:
        """Numbers and dates two relations away from what a directed relation leads to."""
        if way not in self._long:
            measures, steps = np.flatnonzero(self.measured), filter(self.to_entities, self.beside(way).tolist())
            pairs = ((step, np.intersect1d(self.beside(step), measures).tolist()) for step in steps)
            self._long[way] = [(step, by) for step, found in pairs for by in found]
        return self._long[way]

    def like(self, entity: int, *, facts: bool) -> Ints:
        """Nodes of the things that have a type of an entity's; of one without, of those that have a relation of its.

        facts: its own node alone.
        """
        node = int(self.node_of[entity])
        if facts:
            return np.array([node])
        first, last = self._type_rows[node : node + 2]
        if last > first:
            direct = np.isin(self._types, self._types[first:last])
            return np.unique(np.repeat(np.arange(len(self._sizes)), np.diff(self._type_rows))[direct])
        memory, own = self.memory, self.directed_relations(np.array([node]))
        leaving = memory.head[np.isin(memory.relation, own)]
        return np.union1d(leaving, memory.tail[np.isin(memory.relation + self.relations, own)])
