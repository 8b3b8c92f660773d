"""What may follow what in a graph, read off it once: directed relations that meet, what they lead to, and its types.

A directed relation ("way") is the id of a relation, plus the number of relations where it goes from tail to head.  Two
meet where some entity has both.  All of it is products of sparse matrices over entities; nothing is made per triple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import RDF_TYPE, RDFS
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.schema import TEXT, UNTYPED, Schema, types_of

Starts = tuple[int, ...]
"""Directed relations that a topic may start with, those with most triples first."""


TYPE_RELATIONS = frozenset((RDF_TYPE, RDFS + "subClassOf", "P31", "P279", "type.object.type"))
"""Relations that say what type a thing has; where forms have conditions on types, paths do not go along them."""
FACTS = 0.4
"""Likeness that a step of a path has because the graph has it from the topic."""
FOLLOWED = 500
"""Entities beside a topic from which the second step of a path is looked for."""
NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


SINGLE = 0.25
"""Share of the paths that are of one relation, where there are so many."""


@dataclass(frozen=True)
class Routes:
    """The paths from a topic that candidates are made of, by length, from one relation on.

    liked: the ways that may follow, where not all are tried because the schema is large; None for all.
    """

    starts: Starts
    paths: tuple[list[tuple[int, ...]], ...]
    liked: frozenset[int] | None = None

    def sets(self, ways: Ways, most: int) -> list[tuple[int, ...]]:
        """The paths of one relation and of two that lead to things; where not all are tried, `most` of each length."""
        lengths = [[path for path in own if ways.to_things[path[-1]]] for own in self.paths[:2]]
        return [path for own in lengths for path in (own if self.liked is None else own[:most])]

    def longer(self, ways: Ways, path: tuple[int, ...]) -> list[tuple[int, ...]]:
        """A path with one more way."""
        return [longer for longer in ways.longer(path) if self.liked is None or longer[-1] in self.liked]


class Ways:
    """The directed relations of a graph.

    beside: for each those that some entity has with it.  many: whether some entity has several of it.  triples: how
    many.  to_things: whether it leads to entities.  measured: of a relation the dimensions of its numbers and dates.
    texts: the relations that lead to strings.  classes: keys of all types.  at_end: for each way the types of what it
    leads to, as places in `classes`, those of most of it first and of those the smallest.  members: of each type.
    """

    def __init__(self, store: KgStore, graph: MemoryGraph, starts: str, *, types: bool) -> None:
        self.store, self.graph, self.starts_by = store, graph, starts
        self.relations = graph.relations
        self.schema = Schema.read(store)
        self._left_out = np.array(
            sorted(i for key, i in graph.relation_ids.items() if types and key in TYPE_RELATIONS), dtype=np.int64
        )
        keys = {i: key for key, i in graph.relation_ids.items()}
        self.keys = [keys.get(i, "") for i in range(self.relations)]
        have = self._read_meetings()
        self._read_ends()
        self.classes: tuple[str, ...] = ()
        self.at_end: list[tuple[int, ...]] = [()] * (2 * self.relations)
        self.having: list[tuple[int, ...]] = []
        if types:
            self._read_classes(have)
        self._after: dict[int, tuple[int, ...]] = {}
        self._facts: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._counts: dict[Starts, int] = {}
        self._read_following()
        self._values: dict[int, tuple[int, ...]] = {}
        self._starts: dict[str, Starts] = {}

    def _read_meetings(self) -> Any:
        graph, size = self.graph, self.relations
        used = ~np.isin(graph.relation, self._left_out)
        backward = ~graph.literal[graph.tail] & used
        forward = graph.head[used] * 2 * size + graph.relation[used]
        inverse = graph.tail[backward] * 2 * size + graph.relation[backward] + size
        both = np.unique(np.concatenate((forward, inverse)))
        have = csr_array(
            (np.ones(len(both), dtype=np.int32), (both // (2 * size), both % (2 * size))),
            shape=(graph.entities, 2 * size),
        )
        beside = (have.T @ have).tocsr()
        beside.sort_indices()
        self.beside = [
            frozenset(beside.indices[first:last].tolist()) for first, last in pairwise(beside.indptr.tolist())
        ]
        self.many: NDArray[np.bool_] = np.zeros(2 * size, dtype=np.bool_)
        for keys in (forward, inverse):
            distinct, counts = np.unique(keys, return_counts=True)
            self.many[np.unique(distinct[counts > 1] % (2 * size))] = True
        self.triples = np.tile(np.bincount(graph.relation, minlength=size), 2)
        return have

    def _read_ends(self) -> None:
        self._of_type: dict[str, set[int]] = {}
        self.measured: dict[int, tuple[str, ...]] = {}
        self.texts: set[int] = set()
        self.to_things = np.zeros(2 * self.relations, dtype=np.bool_)
        for key, number in self.graph.relation_ids.items():
            relation = self.schema.relations[key]
            if number in self._left_out:
                continue
            for kind in relation.domain:
                self._of_type.setdefault(kind, set()).add(number)
            for kind in relation.range:
                self._of_type.setdefault(kind, set()).add(number + self.relations)
            if relation.measured:
                self.measured[number] = tuple(sorted(relation.measured))
            if TEXT in relation.dimensions:
                self.texts.add(number)
            self.to_things[number] = bool(relation.range)
            self.to_things[number + self.relations] = True

    def _read_classes(self, have: Any) -> None:
        """Types at the ends of ways, those above them among them: entities with the way times types of entities."""
        rows = self.store.connection.execute(
            "SELECT y.entity, y.type FROM types y UNION SELECT y.entity, s.super FROM types y "
            "JOIN supertypes s ON s.type = y.type"
        ).fetchnumpy()
        entity, kind = (np.asarray(rows[name], dtype=np.int64) for name in ("entity", "type"))
        ids = np.unique(kind)
        named = self.store.entity_keys(ids.tolist())
        order = sorted((named[i], i) for i in ids.tolist() if i in named)
        self.classes = tuple(key for key, _ in order)
        column = np.full(self.graph.entities, -1, dtype=np.int64)
        column[[i for _, i in order]] = np.arange(len(order))
        fine = column[kind] >= 0
        ones = np.ones(int(fine.sum()), dtype=np.int32)
        typed = csr_array((ones, (entity[fine], column[kind[fine]])), shape=(self.graph.entities, len(order)))
        self.members = np.asarray(typed.sum(0)).ravel()
        counts = (have.T @ typed).tocsr()
        found = []
        for first, last in pairwise(counts.indptr.tolist()):
            own, shares = counts.indices[first:last], counts.data[first:last]
            found.append(tuple(own[np.lexsort((own, self.members[own], -shares))].tolist()))
        self.at_end = [found[self.turned(way)] for way in range(2 * self.relations)]
        self.having = [tuple(sorted(own)) for own in self._transposed(found, len(order))]

    @staticmethod
    def _transposed(found: Sequence[Sequence[int]], size: int) -> list[list[int]]:
        """For each type the ways that things of it have."""
        having: list[list[int]] = [[] for _ in range(size)]
        for way, own in enumerate(found):
            for kind in own:
                having[kind].append(way)
        return having

    def _read_following(self) -> None:
        """CSR of what follows each way: that of `after`, without what `longer` leaves out."""
        follows = [
            [then for then in self.beside[self.turned(way)] if then != self.turned(way) or self.many[then]]
            if self.to_things[way]
            else []
            for way in range(2 * self.relations)
        ]
        self._follow_ptr = np.concatenate(([0], np.cumsum([len(own) for own in follows]))).astype(np.int64)
        self._follow = np.array([then for own in follows for then in sorted(own)], dtype=np.int64)

    # -- topics ------------------------------------------------------------------------------------------------

    def know(self, keys: Sequence[str]) -> None:
        """Reads what these topics may start with, all at once."""
        new = sorted(set(keys) - self._starts.keys())
        ids = self.graph.know(new)
        types = types_of(self.store, list(ids))
        for key in new:
            self._starts[key] = self._start(ids[key], types[key]) if key in ids else ()

    def starts(self, key: str) -> Starts:
        """What a topic may start with; nothing for what is not in the graph."""
        if key not in self._starts:
            self.know([key])
        return self._starts[key]

    def _start(self, entity: int, types: frozenset[str]) -> Starts:
        leaving, reaching = self.graph.around(entity)
        leaving, reaching = (np.setdiff1d(one, self._left_out) for one in (leaving, reaching))
        own = {*leaving.tolist(), *(reaching + self.relations).tolist()}
        if self.starts_by == "schema":
            known = types - {UNTYPED}
            if known:
                own |= set().union(*(self._of_type.get(kind, set()) for kind in known))
            else:
                own |= set().union(*(self.beside[way] for way in own))
        return self._ordered(own)

    # -- paths -------------------------------------------------------------------------------------------------

    def turned(self, way: int) -> int:
        """A way in the other direction."""
        return way + self.relations if way < self.relations else way - self.relations

    def after(self, way: int) -> tuple[int, ...]:
        """The ways of what a way leads to, those with most triples first."""
        if way not in self._after:
            self._after[way] = self._ordered(self.beside[self.turned(way)])
        return self._after[way]

    def longer(self, path: tuple[int, ...]) -> list[tuple[int, ...]]:
        """A path with one more way; back the way it came only where that may lead to another."""
        last = path[-1]
        if not self.to_things[last]:
            return []
        back = self.turned(last)
        return [(*path, then) for then in self.after(last) if then != back or self.many[then]]

    def paths(self, starts: Starts) -> int:
        """How many paths of one relation and of two start so."""
        if starts not in self._counts:
            own = np.array(starts, dtype=np.int64)
            self._counts[starts] = len(own) + int((self._follow_ptr[own + 1] - self._follow_ptr[own]).sum())
        return self._counts[starts]

    def facts(self, key: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What the graph has from a topic: ways, and paths of two as first · 2 relations + second; each ascending."""
        if key not in self._facts:
            ids = self.graph.know([key])
            self._facts[key] = self._paths_from(ids[key]) if key in ids else (NONE, NONE)
        return self._facts[key]

    def _paths_from(self, entity: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        leaving, reaching = (np.setdiff1d(one, self._left_out) for one in self.graph.around(entity))
        first = np.concatenate((leaving, reaching + self.relations))
        found = [NONE]
        for way in first.tolist():
            node = np.array([entity], dtype=np.int64)
            backward = way >= self.relations
            near = np.unique(self.graph.hop(node, way % self.relations, backward=backward)[1])
            out, into = self.graph.around_all(near[~self.graph.literal[near]][:FOLLOWED])
            found.append(way * 2 * self.relations + np.concatenate((out, into + self.relations)))
        return np.sort(first), np.sort(np.concatenate(found))

    def likeliest(
        self, starts: Starts, likeness: NDArray[np.float64], most: int, key: str
    ) -> list[list[tuple[int, ...]]]:
        """The paths of one relation and of two whose relations are most like a question, at most `most` in all.

        likeness: [relations].  key: of the topic, what the graph has from it being `FACTS` more like.
        Of equal ones those of relations with more triples come first.
        """
        own = np.array(starts, dtype=np.int64)
        there, paths = self.facts(key)
        score = likeness[own % self.relations] + FACTS * np.isin(own, there)
        lengths = self._follow_ptr[own + 1] - self._follow_ptr[own]
        first = np.repeat(np.arange(len(own)), lengths)
        ends = np.cumsum(lengths)
        places = np.arange(len(first)) + np.repeat(self._follow_ptr[own] - np.concatenate(([0], ends[:-1])), lengths)
        second = self._follow[places] if len(first) else np.zeros(0, dtype=np.int64)
        further = likeness[second % self.relations] + FACTS * np.isin(own[first] * 2 * self.relations + second, paths)
        both = np.concatenate((score, score[first] + further))
        common = np.log1p(self.triples)
        both = both + 1e-3 * np.concatenate((common[own], np.minimum(common[own[first]], common[second])))
        single = np.argsort(-both[: len(own)], kind="stable")[: round(most * SINGLE)]
        double = np.argsort(-both[len(own) :], kind="stable")[: most - len(single)]
        pairs = zip(own[first[double]].tolist(), second[double].tolist(), strict=True)
        return [[(way,) for way in own[single].tolist()], [*pairs]]

    def values(self, way: int) -> tuple[int, ...]:
        """The relations by whose numbers and dates the things that a way leads to can be ranked."""
        if way not in self._values:
            self._values[way] = tuple(then for then in self.after(way) if then in self.measured)
        return self._values[way]

    def values_of(self, kind: int) -> tuple[int, ...]:
        """The same for the things of a type."""
        return self._ordered(way for way in self.having[kind] if way in self.measured)

    def meet(self, one: int, other: int) -> bool:
        """Whether two ways may lead to one entity."""
        return self.turned(other) in self.beside[self.turned(one)]

    def may_be(self, way: int, starts: Starts) -> bool:
        """Whether a topic is like what a way leads to: it starts with that, or mostly as such things do."""
        near = self.beside[self.turned(way)]
        return self.turned(way) in starts or sum(start in near for start in starts) * 2 > len(starts)

    def _ordered(self, ways: Any) -> tuple[int, ...]:
        return tuple(sorted(ways, key=lambda way: (-int(self.triples[way]), way)))
