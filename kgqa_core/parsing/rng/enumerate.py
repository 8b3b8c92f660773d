"""Candidate forms of a question, from the entities found in it (Ye et al. 2022, section 3.1): made, never run.

What may follow what is read off the graph once: two relations meet where some entity has both.  A topic starts with the
relations that things of its types have, so that forms whose facts are missing are candidates too; a topic without types
starts with its own and with those that occur beside them.  Forms have slots, and topics that start alike share a pool.

Pools hold, in this order: paths of one relation, their counts, the best and the n-th of them by a number or date, paths
of two relations and their counts; of two topics comparisons, yes/no, differences and intersections; and with a number
or date in the text what equals it or compares with it.  What is over the cap is cut from the end, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kgqa_core.config import RngOptions
from kgqa_core.datasets.gold_forms import PLACES
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import (
    BESTS,
    OPS,
    And,
    Arg,
    Compare,
    Count,
    Entity,
    Form,
    Greater,
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    Step,
    Steps,
)
from kgqa_core.logic.measures import TIME as TIME_DIMENSION
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.schema import UNTYPED, Schema, types_of
from kgqa_core.parsing.rng.slots import ENTITIES, NUMBER, TIME, VALUE, View

Starts = tuple[int, ...]
"""Directed relations, ascending, that a topic may start with."""

Way = tuple[int, ...]
"""Directed relations from a topic to the answer."""

NO_FORM = 0
"""Number of the candidate that stands for "the graph has no form"."""


@dataclass
class Forms:
    """Every form with slots that was met, normalised and numbered; `None`, which is first, stands for "no form"."""

    forms: list[Form | None] = field(default_factory=lambda: [None])
    numbers: dict[Form, int] = field(default_factory=dict)

    def number(self, form: Form) -> int:
        """The number of a form; a new form gets the next one."""
        form = normalise(form)
        if form not in self.numbers:
            self.numbers[form] = len(self.forms)
            self.forms.append(form)
        return self.numbers[form]


@dataclass(frozen=True)
class Pool:
    """Numbers of candidate forms in their order, and how many more were cut."""

    numbers: NDArray[np.int64]
    cut: int = 0


class Enumerator:
    """Makes candidate forms over one graph.  A directed relation is its id, plus `relations` when inverse."""

    def __init__(self, store: KgStore, graph: MemoryGraph, options: RngOptions) -> None:
        self.store, self.graph, self.options = store, graph, options
        self.forms = Forms()
        self.relations = graph.relations
        self.schema = Schema.read(store)
        keys = {i: key for key, i in graph.relation_ids.items()}
        self.keys = [keys.get(i, "") for i in range(self.relations)]
        self._read_meetings()
        self._read_types()
        self._starts: dict[str, Starts] = {}
        self._pools: dict[tuple[tuple[Starts, ...], bool, bool], Pool] = {}

    def _read_meetings(self) -> None:
        """_beside: for each directed relation those that some entity has with it; many[a]: whether some has several."""
        graph, size = self.graph, self.relations
        backward = ~graph.literal[graph.tail]
        forward = graph.head * 2 * size + graph.relation
        inverse = graph.tail[backward] * 2 * size + graph.relation[backward] + size
        both = np.unique(np.concatenate((forward, inverse)))
        have = csr_array(
            (np.ones(len(both), dtype=np.int32), (both // (2 * size), both % (2 * size))),
            shape=(graph.entities, 2 * size),
        )
        beside = (have.T @ have).tocsr()
        beside.sort_indices()
        self._beside = [
            frozenset(beside.indices[first:last].tolist()) for first, last in pairwise(beside.indptr.tolist())
        ]
        self.many = np.zeros(2 * size, dtype=np.bool_)
        for keys in (forward, inverse):
            distinct, counts = np.unique(keys, return_counts=True)
            self.many[np.unique(distinct[counts > 1] % (2 * size))] = True
        self.triples = np.tile(np.bincount(graph.relation, minlength=size), 2)

    def _read_types(self) -> None:
        self._of_type: dict[str, set[int]] = {}
        self.measured: dict[int, tuple[str, ...]] = {}
        self.to_things = np.zeros(2 * self.relations, dtype=np.bool_)
        for key, number in self.graph.relation_ids.items():
            relation = self.schema.relations[key]
            for kind in relation.domain:
                self._of_type.setdefault(kind, set()).add(number)
            for kind in relation.range:
                self._of_type.setdefault(kind, set()).add(number + self.relations)
            if relation.measured:
                self.measured[number] = tuple(sorted(relation.measured))
            self.to_things[number] = bool(relation.range)
            self.to_things[number + self.relations] = True

    # -- topics ------------------------------------------------------------------------------------------------

    def know(self, keys: Sequence[str]) -> None:
        """Reads what these topics may start with, all at once."""
        new = sorted(set(keys) - self._starts.keys())
        ids = self.graph.know(new)
        types = types_of(self.store, list(ids))
        for key in new:
            self._starts[key] = self._start(ids[key], types[key]) if key in ids else ()

    def starts(self, key: str) -> Starts:
        """What a topic may start with, those with most triples first; nothing for what is not in the graph."""
        if key not in self._starts:
            self.know([key])
        return self._starts[key]

    def _start(self, entity: int, types: frozenset[str]) -> Starts:
        leaving, reaching = self.graph.around(entity)
        own = {*leaving.tolist(), *(reaching + self.relations).tolist()}
        if self.options.starts == "schema":
            known = types - {UNTYPED}
            if known:
                own |= set().union(*(self._of_type.get(kind, set()) for kind in known))
            else:
                own |= set().union(*(self._beside[way] for way in own))
        return tuple(sorted(own, key=lambda way: (-int(self.triples[way]), way)))

    # -- pools -------------------------------------------------------------------------------------------------

    def pool(self, starts: tuple[Starts, ...], view: View) -> Pool:
        """The candidates of a view whose mentions are topics that start so."""
        kinds = (starts, view.value is not None and view.value.number is not None,
                 view.value is not None and view.value.time is not None)  # fmt: skip
        if kinds not in self._pools:
            made: dict[int, None] = {}
            cut = 0
            for form in self._forms_of(starts, view):
                if len(made) < self.options.most_forms:
                    made.setdefault(self.forms.number(form))
                else:
                    cut += 1
            self._pools[kinds] = Pool(np.array(list(made), dtype=np.int64), cut)
        return self._pools[kinds]

    def _forms_of(self, starts: tuple[Starts, ...], view: View) -> Iterator[Form]:
        if view.value is not None:
            yield from self._with_value(starts, view)
        elif len(starts) == 1:
            yield from self._of_one(starts[0])
        elif len(starts) == 2:
            yield from self._of_two(*starts)

    def _of_one(self, starts: Starts) -> Iterator[Form]:
        ways: list[Way] = [(way,) for way in starts]
        yield from (self._join(way) for way in ways)
        sets = [way for way in ways if self.to_things[way[-1]] and self.many[way[-1]]]
        yield from (Count(self._join(way)) for way in sets)
        ranks = [(self._join(way), self._path((by,))) for way in sets for by in self._values(way)]
        yield from (Arg(best, members, by) for members, by in ranks for best in BESTS)
        yield from (Nth(n, best, members, by) for members, by in ranks for best in BESTS for n in PLACES)
        for _ in range(self.options.hops - 1):
            ways = [longer for way in ways for longer in self._longer(way)]
            yield from (self._join(way) for way in ways)
            yield from (Count(self._join(way)) for way in ways if self.to_things[way[-1]])

    def _of_two(self, one: Starts, other: Starts) -> Iterator[Form]:
        first, second = Entity(ENTITIES[0]), Entity(ENTITIES[1])
        shared = [way for way in one if way in set(other)]
        for by in shared:
            if by in self.measured:
                yield from (Greater(first, second, self._path((by,)), best) for best in BESTS)
        for by in shared:
            if self.to_things[by] and self.many[by]:
                yield from (Greater(first, second, self._path((by,)), best, True) for best in BESTS)
        sides = [self._sets(starts) for starts in (one, other)]
        for own, slot, entity, entity_starts in ((0, 0, second, other), (1, 1, first, one)):
            for way in sides[own]:
                if self._may_be(way[-1], entity_starts):
                    yield Holds(self._join(way, slot), entity)
        single: list[list[Way]] = [[way for way in side if len(way) == 1] for side in sides]
        for way in single[0]:
            for beside in single[1]:
                if self._meet(way, beside):
                    yield Minus(self._join(way, 0), self._join(beside, 1))
                    yield Minus(self._join(beside, 1), self._join(way, 0))
        for way in sides[0]:
            for beside in sides[1]:
                if len(way) + len(beside) <= self.options.hops + 1 and self._meet(way, beside):
                    yield And((self._join(way, 0), self._join(beside, 1)))

    def _with_value(self, starts: tuple[Starts, ...], view: View) -> Iterator[Form]:
        """What equals a value or compares with it: everything that does, or those of what a topic leads to."""
        assert view.value is not None
        for by in self.measured:
            for literal in self._literals(by, view):
                path = self._path((by,))
                if not starts:
                    yield Join(path, literal)
                    yield from (Compare(op, path, literal) for op in OPS)
                elif len(starts) == 1:
                    for way in starts[0]:
                        if self.to_things[way] and by in self._after(way):
                            members = self._join((way,))
                            yield And((members, Join(path, literal)))
                            yield from (And((members, Compare(op, path, literal))) for op in OPS)

    def _literals(self, by: int, view: View) -> list[Literal]:
        """The slots that a measured relation may have for a value."""
        assert view.value is not None
        found = []
        for dimension in self.measured[by]:
            if dimension == TIME_DIMENSION and view.value.time is not None:
                found.append(Literal(VALUE, TIME))
            elif dimension != TIME_DIMENSION and view.value.number is not None:
                found.append(Literal(VALUE, NUMBER, dimension or None))
        return found

    # -- paths -------------------------------------------------------------------------------------------------

    def _sets(self, starts: Starts) -> list[Way]:
        """The ways to things, of one relation and of two."""
        ways: list[Way] = [(way,) for way in starts if self.to_things[way]]
        more = [longer for way in ways for longer in self._longer(way)] if self.options.hops > 1 else []
        return [*ways, *(way for way in more if self.to_things[way[-1]])]

    def _longer(self, way: Way) -> Iterator[Way]:
        """A way with one more relation; back the way it came only where that may lead to another."""
        if self.to_things[way[-1]]:
            back = self._turned(way[-1])
            yield from ((*way, then) for then in self._after(way[-1]) if then != back or self.many[then])

    def _after(self, way: int) -> list[int]:
        """The directed relations of what a relation leads to, those with most triples first."""
        return sorted(self._beside[self._turned(way)], key=lambda then: (-int(self.triples[then]), then))

    def _values(self, way: Way) -> list[int]:
        """What the things that a way leads to can be ranked by."""
        return [then for then in self._after(way[-1]) if then in self.measured]

    def _may_be(self, way: int, starts: Starts) -> bool:
        """Whether a topic is like what a relation leads to: it starts with that, or mostly as such things do."""
        near = self._beside[self._turned(way)]
        return self._turned(way) in starts or sum(start in near for start in starts) * 2 > len(starts)

    def _meet(self, way: Way, beside: Way) -> bool:
        return self._turned(beside[-1]) in self._beside[self._turned(way[-1])]

    def _turned(self, way: int) -> int:
        return way + self.relations if way < self.relations else way - self.relations

    def _path(self, way: Way) -> Steps:
        """A way as what is measured of the things at its start."""
        return tuple(Step(self.keys[step % self.relations], step >= self.relations) for step in way)

    def _join(self, way: Way, slot: int = 0) -> Form:
        """What a way leads to from the topic in a slot."""
        steps = self._path(tuple(self._turned(step) for step in reversed(way)))
        return Join(steps, Entity(ENTITIES[slot]))
