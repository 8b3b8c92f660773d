"""Candidate forms of a question: operations over what leads from its mentions and types, by the labels that fit best.

Ways are taken from the graph around each mention, those first whose label is likest to the question, so that a
relation need not have been seen in any training.  Each candidate is run, and forms that find nothing are left out
unless they state what the graph has no fact of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import FormError
from kgqa_core.logic.forms import (
    BESTS,
    OPS,
    Aggregate,
    And,
    Arg,
    Class,
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
    Or,
    Qualifier,
    Share,
    children,
    elements,
)
from kgqa_core.logic.measures import measure
from kgqa_core.logic.memory import NONE, TESTS, Ints
from kgqa_core.logic.result import Row
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from kgqa_core.symbolic.operations import KINDS as OPERATIONS
from kgqa_core.symbolic.operations import operation_of

KINDS = (*OPERATIONS, "value")
"""Those of the classifier of operations, and `value`: what has a number or date that compares with one of the text."""

FIRST, SECOND, THIRD = 12, 24, 16
"""Paths of one, two and three relations from a mention that are kept, the likest first."""
WIDE = 8
"""Paths of a length that are made longer."""
TYPED = 0.25
"""What a way gains that leads to things of a type that the question names."""
MEASURES, MEMBERS, SIDES = 6, 12, 8
"""Measures of a set, sets that are ranked, and sets of each mention that are combined."""
LEAST_KIND = math.log(0.004)
MEANINGS = 2
"""Entities of a mention that are compared, or looked for in a set."""
UNSURE = 0.05
"""What a candidate loses for the logarithm of the linker's confidence in such an entity."""
MOST = 320
"""Candidates of a question."""
LONGER = 0.15
"""What a set that is ranked loses for each relation of its path."""
SINGLE = 1.05
"""Mean number of things that a way leads to, up to which nobody asks how many there are."""
TYPED_OUT = 0.5
"""Share of what a type leaves out of a set that must have another type."""
LOOKED_AT = 200
"""Things that a way leads to whose types are looked at."""
OR = re.compile(r"\bor\b|或", re.IGNORECASE)
"""What a question says that wants what either of two conditions holds of."""
LARGE = 50_000
"""Nodes that a set may have."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A mention of a question.  entities: (id, key, rho) of each entity that it may mean, best first.

    mention: its words, where it was linked.  names: of the entities.
    """

    word: str
    entities: tuple[tuple[int, str, float], ...]
    mention: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelQuery:
    """A question as candidates are made for it.

    text: with a slot's word for each mention and `n` for each value.  slots: in order of the text.  types: (place of
    the type in the graph, confidence).  place: of a ranking.  values: numbers and dates of the text.  strange: how many
    of its words are no usual English and in no label.  cut: whether a mention stands beside a word that looks like a
    part of its name, as in `Lake Victoria` where *Victoria* was linked.  dropped: sum of the linker's confidences in
    mentions that this reading takes for plain words; dropped_words: these words.
    """

    text: str
    slots: tuple[Slot, ...] = ()
    types: tuple[tuple[int, float], ...] = ()
    place: int | None = None
    values: tuple[Literal, ...] = ()
    strange: int = 0
    cut: bool = False
    dropped: float = 0.0
    dropped_words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PathSet:
    """What some ways lead to from an entity, or the members of a type.

    nodes: ascending.  score: mean likeness of its ways to the question.  slot: number of its mention, -1 for a type.
    """

    form: Form
    nodes: Ints
    score: float
    slot: int
    rho: float
    ways: tuple[int, ...] = ()


@dataclass(slots=True)
class Candidate:
    """A form with what it finds.

    kind: place in KINDS.  nodes: what it denotes, None for a value.  value: of a count, or of a yes/no.  ways: that it
    uses.  slots: numbers of the mentions that it uses.  types: places of the types that it names or that all of its
    members have.  score: mean likeness of its ways, for the order in which candidates are cut.  missing: it states what
    the graph has no fact of.  road: which part of the system proposed it.
    table: rows of one that is no set.
    """

    form: Form
    kind: int
    nodes: Ints | None
    value: float | bool | None
    ways: tuple[int, ...]
    slots: tuple[int, ...]
    types: tuple[int, ...]
    rho: float
    score: float
    missing: bool = False
    road: str = "labels"
    table: tuple[Row, ...] = ()

    @property
    def finds_nothing(self) -> bool:
        """Whether it is an empty set, or counts none."""
        if self.nodes is not None:
            return not len(self.nodes)
        return self.value == 0 and not isinstance(self.value, bool)


class CandidateMaker:
    """Makes the candidates of questions on one graph.

    hops: longest path.  likeness: of each way to the question [2 * relations], higher is better.
    """

    def __init__(self, graph: LabelGraph, hops: int = 2) -> None:
        self.graph, self.hops = graph, hops

    def make(self, query: LabelQuery, fit: Any, kinds: Sequence[float]) -> list[Candidate]:
        """The candidates of a question, the likest first, each form once.

        kinds: log probability of each of KINDS; the least likely are not made.
        """
        return CandidateGenerator(self, query, fit.likeness, kinds).candidates()


class CandidateGenerator:
    """Makes the candidates of one question."""

    def __init__(
        self, owner: CandidateMaker, query: LabelQuery, likeness: NDArray[np.float64], kinds: Sequence[float]
    ) -> None:
        self.owner, self.graph, self.query, self.likeness = owner, owner.graph, query, likeness
        self.kinds = kinds
        self.found: dict[Form, Candidate] = {}
        self.near: dict[tuple[str, Literal], Ints] = {}
        self.narrow: dict[int, tuple[PathSet, list[PathSet]]] = {}
        self.ranked_by: dict[tuple[bytes, int], list[tuple[int, bool]]] = {}
        self.wanted = {place for place, _ in query.types}
        self.paths = [self._paths_of(number) for number in range(len(query.slots))]
        self.classes = [
            PathSet(Class(self.graph.type_keys[t]), self.graph.members(t), conf, -1, 1.0) for t, conf in query.types
        ]

    def candidates(self) -> list[Candidate]:
        """The candidates, likeliest first."""
        likely = max(self.kinds)
        for number, kind in enumerate(KINDS):
            if self.kinds[number] < LEAST_KIND and self.kinds[number] < likely:
                continue
            for one in getattr(self, f"_{kind.replace('/', '_')}")(number):
                known = self.found.get(one.form)
                if known is None or known.score < one.score:
                    self.found[one.form] = one
        order = sorted(self.found.values(), key=self._order)
        found: list[Candidate] = []
        for _, alike in groupby(order, key=self._order):
            own = list(alike)
            found += own if len(own) == 1 else sorted(own, key=lambda one: str(one.form))
            if len(found) >= MOST:
                break
        return found[:MOST]

    def _order(self, one: Candidate) -> float:
        return -one.score - self.kinds[one.kind] * 0.1

    # -- paths -------------------------------------------------------------------------------------------------

    def _paths_of(self, number: int) -> list[PathSet]:
        """Sets that paths lead to from a mention, of each length the likest."""
        graph, found = self.graph, []
        meanings = self.query.slots[number].entities[:3]
        for entity, key, rho in meanings:
            start, less = graph.nodes_of(entity, key), _doubt(rho / max(meanings[0][2], 1e-3))
            layer: list[tuple[tuple[int, ...], Ints, float]] = [((), start, 0.0)]
            for length, most in zip(range(1, self.owner.hops + 1), (FIRST, SECOND, THIRD), strict=False):
                ahead = []
                for ways, nodes, total in layer[:WIDE]:
                    if not len(nodes) or (ways and not graph.to_entities(ways[-1])):
                        continue
                    for way in graph.directed_relations(nodes, graph.end_type(ways[-1]) if ways else -1).tolist():
                        if self._useless(way) or (ways and self._back(ways[-1], way)):
                            continue
                        own = float(self.likeness[way]) + TYPED * self._wanted_end(nodes, way, length)
                        ahead.append((ways, nodes, way, total + own))
                ahead.sort(key=lambda one: (-one[3], one[0], one[2]))
                layer = []
                for ways, nodes, way, total in ahead[:most]:
                    reached = graph.follow(nodes, way)
                    if length > 1:
                        reached = reached[~among(reached, start)]
                    if 0 < len(reached) <= LARGE:
                        layer.append(((*ways, way), reached, total))
                found += [
                    PathSet(graph.join(ways, graph.named(entity, key)), nodes, total / length + less, number, rho, ways)
                    for ways, nodes, total in layer
                ]
            found += self._missing(number, entity, key, rho)
        return found

    def _wanted_end(self, nodes: Ints, way: int, length: int) -> bool:
        """Whether a way leads to things of a type that the question names; the first of a path is looked at closely."""
        if not self.wanted or self.graph.end_type(way) in self.wanted:
            return bool(self.wanted)
        if length > 1 or not self.graph.to_entities(way):
            return False
        reached = self.graph.follow(nodes, way)[:LOOKED_AT]
        return any(among(reached, self.graph.members(place)).any() for place in self.wanted)

    def _missing(self, number: int, entity: int, key: str, rho: float) -> Iterator[PathSet]:
        """Paths of one relation that things of an entity's types have, and it has not."""
        graph = self.graph
        ways = np.setdiff1d(
            graph.relations_of_types(graph.types_of(entity)), graph.directed_relations(np.array([entity]))
        )
        for way in sorted(ways.tolist(), key=lambda way: (-self.likeness[way], way))[:3]:
            if not self._useless(way):
                yield PathSet(
                    graph.join((way,), graph.named(entity, key)), NONE, float(self.likeness[way]), number, rho, (way,)
                )

    def _useless(self, way: int) -> bool:
        return way >= self.graph.relations and bool(self.graph.is_type[way - self.graph.relations])

    def _back(self, way: int, then: int) -> bool:
        """Whether a way goes back where it came from, to nothing but that."""
        return then == self.graph.inverse(way) and way < self.graph.relations and not self.graph.to_entities(way)

    # -- sets --------------------------------------------------------------------------------------------------

    def _sets(self, most: int = 10_000) -> Iterator[PathSet]:
        """Sets of things: what paths lead to, and the same narrowed to a type of the question."""
        for own in self.paths:
            for one in sorted(own, key=_cost)[:most]:
                yield one
                yield from self._narrowed(one)

    def _has_things(self, one: PathSet) -> bool:
        """Whether a path leads to a set of entities."""
        return bool(one.ways) and self.graph.to_entities(one.ways[-1])

    def _narrowed(self, one: PathSet) -> list[PathSet]:
        """A set narrowed to each type of the question."""
        if not self.classes or not self._has_things(one):
            return []
        known = self.narrow.get(id(one))
        if known is None:  # with the set itself, whose number another would have when it is gone
            known = self.narrow[id(one)] = one, list(self._narrow(one))
        return known[1]

    def _narrow(self, one: PathSet) -> Iterator[PathSet]:
        seen: set[bytes] = set()
        for members in self.classes:
            member = among(one.nodes, members.nodes)
            both, out = one.nodes[member], one.nodes[~member]
            if len(out) and self.graph.typed(out).mean() < TYPED_OUT:
                continue  # what has no type at all may well be one
            less = len(out) > 0 or not self._called(one.ways[-1], members.form)
            if len(both) > 0 and less and both.tobytes() not in seen:
                seen.add(both.tobytes())
                yield PathSet(And((members.form, one.form)), both, one.score + 0.05, one.slot, one.rho, one.ways)

    def _called(self, way: int, of: Form) -> bool:
        """Whether the phrase of what a way leads to names a type as its noun."""
        place = self.graph.type_of_key.get(of.key, -1) if isinstance(of, Class) else -1
        return way >= self.graph.relations and bool(
            self.graph.noun(way - self.graph.relations) == self.graph.type_labels[place]
        )

    def _one(
        self,
        form: Form,
        kind: int,
        nodes: Ints | None,
        parts: Sequence[PathSet],
        ways: Sequence[int] = (),
        value: int | bool | None = None,
        slots: Sequence[int] = (),
    ) -> Candidate:
        used = tuple(way for part in parts for way in part.ways) + tuple(ways)
        own = tuple(dict.fromkeys([*(part.slot for part in parts if part.slot >= 0), *slots]))
        rho = math.prod([part.rho for part in parts if part.slot >= 0] or [1.0])
        scores = [part.score for part in parts if part.ways or part.slot < 0] + [float(self.likeness[w]) for w in ways]
        score = sum(scores) / max(len(scores), 1) + 0.3 * len(own)
        types = types_in_form(form, nodes, self.query, self.graph)
        return Candidate(form, kind, nodes, value, used, own, types, rho, score)

    # -- operations --------------------------------------------------------------------------------------------

    def _none(self, kind: int) -> Iterator[Candidate]:
        for one in self._sets():
            yield self._one(one.form, kind, one.nodes, [one])
        for members in self.classes:
            yield self._one(members.form, kind, members.nodes, [members])
        if OR.search(self.query.text):
            for first, second in combinations(range(len(self.paths)), 2):
                for p, q in self._alike(first, second):
                    if not np.array_equal(p.nodes, q.nodes):
                        yield self._one(Or((p.form, q.form)), kind, np.union1d(p.nodes, q.nodes), [p, q])

    def _count(self, kind: int) -> Iterator[Candidate]:
        graph = self.graph
        for one in self._sets(14):
            if self._has_things(one) and (len(one.nodes) > 1 or graph.fan_out[one.ways[-1]] > SINGLE):
                yield self._one(Count(one.form), kind, None, [one], value=len(one.nodes))
        for members in self.classes:
            yield self._one(Count(members.form), kind, None, [members], value=len(members.nodes))
        for both in self._intersect(kind):
            assert both.nodes is not None
            yield Candidate(
                Count(both.form), kind, None, len(both.nodes), both.ways, both.slots, both.types, both.rho, both.score
            )

    def _ranked_sets(self) -> list[PathSet]:
        things = [one for one in self._sets(MEMBERS) if self._has_things(one) and len(one.nodes) > 1]
        both = [
            PathSet(one.form, one.nodes, one.score, -2, one.rho, one.ways)
            for one in self._pairs(3)
            if len(one.nodes) > 1
        ]
        things.sort(key=_cost)
        return [*things[: 2 * MEMBERS], *self.classes, *both]

    def _measures(self, one: PathSet) -> list[tuple[int, bool]]:
        """(way, whether counted) of what the members of a set can be ranked by, the likest first."""
        end = self.graph.end_type(one.ways[-1]) if one.ways else -1
        key = (one.nodes.tobytes(), end)
        if key not in self.ranked_by:
            self.ranked_by[key] = self._measures_of(one.nodes, end)
        return self.ranked_by[key]

    def _measures_of(self, nodes: Ints, end: int) -> list[tuple[int, bool]]:
        graph = self.graph
        ways, fan_out = graph.directed_relations(nodes, end).tolist(), graph.fan_out
        numbers = [w for w in ways if graph.is_measure(w)]
        things = [
            w for w in ways
            if graph.to_entities(w) and not graph.is_type[w % graph.relations] and fan_out[w] > SINGLE
        ]  # fmt: skip
        numbers.sort(key=lambda w: (-self.likeness[w], w))
        things.sort(key=lambda w: (-self.likeness[w], w))
        return [(w, False) for w in numbers[:MEASURES]] + [(w, True) for w in things[:MEASURES]]

    def _best(self, kind: int) -> Iterator[Candidate]:
        yield from self._ranking(kind, 1)

    def _nth(self, kind: int) -> Iterator[Candidate]:
        if self.query.place is not None and self.query.place > 1:
            yield from self._ranking(kind, self.query.place)

    def _ranking(self, kind: int, place: int) -> Iterator[Candidate]:
        for one in self._ranked_sets():
            for way, counted in self._measures(one):
                ranked, steps = self.graph.values(one.nodes, way, counted), (self.graph.step(way),)
                for best in BESTS:
                    nodes = _at(one.nodes, *ranked, best, place)
                    if not len(nodes):
                        continue
                    form = (
                        Nth(place, best, one.form, steps, counted) if place > 1 else Arg(best, one.form, steps, counted)
                    )
                    own = [] if one.slot >= -1 else range(len(self.query.slots))
                    yield self._one(form, kind, nodes, [one], (way,), slots=own)

    def _compare(self, kind: int) -> Iterator[Candidate]:
        for one, other in combinations(range(len(self.query.slots)), 2):
            sides = (self.query.slots[one].entities[:MEANINGS], self.query.slots[other].entities[:MEANINGS])
            for (a, a_key, a_rho), (b, b_key, b_rho) in product(*sides):
                if a == b or self.graph.memory.literal[[a, b]].any():
                    continue
                both = np.array(sorted((a, b)), dtype=np.int64)
                shared = np.intersect1d(
                    self.graph.directed_relations(np.array([a])), self.graph.directed_relations(np.array([b]))
                )
                part = PathSet(Entity(a_key), both, 0.0, one, 1.0)
                for way, counted in self._measures(part):
                    for best in BESTS if way in shared else ():
                        form = Greater(Entity(a_key), Entity(b_key), (self.graph.step(way),), best, counted)
                        nodes = self.graph.memory.nodes(form)
                        if len(nodes):
                            made = self._one(form, kind, nodes, [], (way,), slots=(one, other))
                            yield _less_sure(made, a_rho * b_rho)

    def _pairs(self, most: int = SIDES) -> Iterator[PathSet]:
        """Sets that two mentions lead to both."""
        for one, other in combinations(range(len(self.paths)), 2):
            sides = product(self._side(one, most), self._side(other, most))
            for p, q in [*sides, *self._alike(one, other)]:
                both = p.nodes[among(p.nodes, q.nodes)]
                if not len(both):
                    continue
                score = (p.score + q.score) / 2 - LONGER * (len(p.ways) + len(q.ways) - 2)
                made = PathSet(And((p.form, q.form)), both, score, one, p.rho * q.rho, (*p.ways, *q.ways))
                yield made
                yield from self._narrowed(made)

    def _alike(self, one: int, other: int) -> Iterator[tuple[PathSet, PathSet]]:
        """Sets that the same ways lead to from two mentions."""
        alone = [p for p in self.paths[other] if len(p.nodes) and len(p.ways) == 1]
        own = {p.ways: p for p in reversed(alone)}  # of the likeliest meaning, which comes first
        for p in self.paths[one]:
            if p.ways in own and len(p.nodes) and self.graph.to_entities(p.ways[-1]):
                yield p, own[p.ways]

    def _side(self, number: int, most: int) -> list[PathSet]:
        things = [p for p in self.paths[number] if self.graph.to_entities(p.ways[-1]) and len(p.nodes)]
        return sorted(things, key=_cost)[:most]

    def _intersect(self, kind: int) -> Iterator[Candidate]:
        for one in self._pairs():
            slots = range(2) if len(self.paths) == 2 else slots_of(one.form, self.query)
            yield self._one(one.form, kind, one.nodes, [one], slots=slots)

    def _difference(self, kind: int) -> Iterator[Candidate]:
        sides = [self._side(number, SIDES) for number in range(len(self.paths))]
        for one, other in permutations(range(len(sides)), 2):
            for p in sides[one]:
                for q in sides[other]:
                    for of in (p, *self._narrowed(p)):
                        left = of.nodes[~among(of.nodes, q.nodes)]
                        if 0 < len(left) < len(of.nodes):
                            yield self._one(Minus(of.form, q.form), kind, left, [of, q])
        for one, other in permutations(range(len(sides)), 2):
            entity, key, _ = self.query.slots[other].entities[0]
            named = PathSet(self.graph.named(entity, key), self.graph.nodes_of(entity, key), 0.0, other, 1.0)
            for p in sides[one]:
                for of in (p, *self._narrowed(p)):
                    if len(of.nodes) > 1 and inside(named.nodes, of.nodes):
                        left = of.nodes[~among(of.nodes, named.nodes)]
                        yield self._one(Minus(of.form, named.form), kind, left, [of], slots=(other,))
        for members in self.classes:
            for number in range(len(sides)):
                for q in sides[number]:
                    left = members.nodes[~among(members.nodes, q.nodes)]
                    if 0 < len(left) < len(members.nodes):
                        yield self._one(Minus(members.form, q.form), kind, left, [members, q])

    def _yes_no(self, kind: int) -> Iterator[Candidate]:
        for compared in self._compare(kind):
            assert compared.nodes is not None and isinstance(compared.form, Greater)
            for form in (compared.form.one, compared.form.other):
                assert isinstance(form, Entity)
                holds = contains(self.graph.memory.know([form.key])[form.key], compared.nodes)
                yield Candidate(
                    Holds(compared.form, form), kind, None, holds, compared.ways, compared.slots, compared.types,
                    compared.rho, compared.score,
                )  # fmt: skip
        for one, other in permutations(range(len(self.paths)), 2):
            for place, p in enumerate(sorted(self.paths[one], key=_cost)):
                if self.graph.to_entities(p.ways[-1]):
                    yield from self._holds(kind, p, other, only_true=place >= 2 * SIDES)
        for number, slot in enumerate(self.query.slots):
            entity, key, rho = slot.entities[0]
            if self.graph.memory.literal[entity]:
                continue
            for members in self.classes:
                holds = contains(entity, members.nodes)
                yield self._one(Holds(members.form, Entity(key)), kind, None, [members], value=holds, slots=(number,))
            for condition in self._conditions(np.array([entity], dtype=np.int64)):
                holds = bool(len(condition.nodes))
                yield self._one(
                    Holds(condition.form, Entity(key)), kind, None, [condition], value=holds, slots=(number,)
                )

    def _holds(self, kind: int, p: PathSet, other: int, *, only_true: bool) -> Iterator[Candidate]:
        """Whether another mention is among what a path leads to; only_true: nothing where it is not."""
        for entity, key, rho in self.query.slots[other].entities[:MEANINGS]:
            holds = contains(entity, p.nodes)
            if self.graph.memory.literal[entity] or not (holds or (not only_true and self._like(p, entity))):
                continue
            made = self._one(Holds(p.form, Entity(key)), kind, None, [p], value=holds, slots=(other,))
            made.missing = not len(p.nodes)
            yield _less_sure(made, rho)

    def _like(self, p: PathSet, entity: int) -> bool:
        """Whether an entity is of a type that what a path leads to has."""
        end = self.graph.end_type(p.ways[-1])
        return end < 0 or end in self.graph.types_of(entity)

    def _value(self, kind: int) -> Iterator[Candidate]:
        if not self.query.values:
            return
        for members in [*self.classes, *filter(self._has_things, self._sets(SIDES))]:
            for condition in self._conditions(members.nodes):
                if len(condition.nodes):
                    form = And((members.form, condition.form))
                    made = self._one(form, kind, condition.nodes, [members, condition])
                    yield made
                    yield Candidate(
                        Count(form), kind, None, len(condition.nodes), made.ways, made.slots, made.types, made.rho,
                        made.score,
                    )  # fmt: skip

    def _conditions(self, nodes: Ints) -> Iterator[PathSet]:
        """Conditions that compare a number or date of the members with one of the text, and who fulfils each."""
        measures = self._measures(PathSet(Entity(""), nodes, 0.0, -1, 1.0)) if self.query.values else []
        relations, hop = self.graph.relations, self.graph.memory.hop
        hops = [hop(nodes, way % relations, backward=way >= relations) for way, _ in measures]
        for literal, ((way, counted), (source, reached)) in product(
            self.query.values, zip(measures, hops, strict=True)
        ):
            steps = (self.graph.step(way),)
            for op in (*OPS, *(() if counted else ("eq",))):
                own = self._fulfil(op, literal, nodes, source, reached, counted)
                if own is None or (op == "eq" and not len(own)) or (counted and len(own) == len(nodes) > 1):
                    continue
                form = Join(steps, literal) if op == "eq" else Compare(op, steps, literal, counted)
                yield PathSet(form, own, float(self.likeness[way]), -1, 1.0, (way,))

    def _fulfil(
        self, op: str, literal: Literal, nodes: Ints, source: Ints, reached: Ints, counted: bool
    ) -> Ints | None:
        """Members with a value, or a number of things, that compares so; None where the literal does not compare."""
        if counted:
            limit = measure(literal)
            if limit is None or limit.dim != "":
                return None
            counts = np.bincount(source, minlength=len(nodes))
            return nodes[(counts > 0) & TESTS[op](counts, limit.lo)]
        if (op, literal) not in self.near:
            try:
                self.near[op, literal] = self.graph.memory.within(op, literal)
            except FormError:
                return None
        fulfils = np.zeros(len(nodes), dtype=np.bool_)
        fulfils[source[among(reached, self.near[op, literal])]] = True
        return nodes[fulfils]


def kind_of(form: Form) -> str:
    """The operation of a form, one of KINDS; that a path does not lead back to where it starts is none."""
    if isinstance(form, Minus) and isinstance(form.without, Entity) and form.without.key in elements(form.of).entities:
        return kind_of(form.of)
    if isinstance(form, (Aggregate, Share)):
        return "count"
    if isinstance(form, Join) and isinstance(form.of, (Join, Minus)):
        return kind_of(form.of)
    return "value" if _compares(form) and not isinstance(form, Holds) else operation_of(form, ()).kind


def computations(form: Form) -> frozenset[str]:
    """What a form computes of a set, as `search.words.AGGREGATES` names it."""
    if isinstance(form, Share):
        return frozenset(("share",))
    if not isinstance(form, Aggregate):
        return frozenset()
    return frozenset((form.how, "group") if form.by or form.how == "values" else (form.how,))


def _compares(form: Form) -> bool:
    own = isinstance(form, Compare) or (isinstance(form, Join) and isinstance(form.of, Literal))
    return own or any(_compares(part) for part in children(form))


def nodes_of(form: Form) -> list[Form]:
    """A form and every form in it, each before those in it."""
    found = [form]
    for part in children(form):
        found += nodes_of(part)
    return found


def has_value(node: Form) -> bool:
    """Whether a node of a form is a value, or compares with one, also on qualifiers."""
    own = isinstance(getattr(node, "value", node), Literal)
    return own or any(where.op not in ("current", "first", "last") for where in getattr(node, "where", ()))


def best_of(form: Form) -> str | None:
    """Whether a form wants the largest or the smallest, None where it ranks nothing."""
    return next((node.best for node in nodes_of(form) if isinstance(node, (Arg, Nth, Greater))), None)


def _less_sure(made: Candidate, rho: float) -> Candidate:
    """A candidate that names a further entity, with the linker's confidence in it."""
    made.rho *= rho
    made.score += _doubt(rho)
    return made


def _doubt(rho: float) -> float:
    """What the order of candidates takes off for a confidence of the linker."""
    return UNSURE * math.log(min(1.0, max(rho, 1e-3)))


def _cost(one: PathSet) -> float:
    """What sets are sorted by: likeness, and shorter paths first."""
    return -one.score + LONGER * len(one.ways)


def among(some: Ints, members: Ints) -> NDArray[np.bool_]:
    """Of some nodes whether each is among members, which are ascending."""
    if not len(members):
        return np.zeros(len(some), dtype=np.bool_)
    places = members.searchsorted(some)
    found: NDArray[np.bool_] = members[np.minimum(places, len(members) - 1)] == some
    return found


def inside(some: Ints, members: Ints) -> bool:
    """Whether all of some nodes are among members, which are ascending."""
    return bool(len(members) and among(some, members).all())


def contains(node: int, members: Ints) -> bool:
    """Whether a node is among members, which are ascending."""
    place = int(members.searchsorted(node))
    return place < len(members) and int(members[place]) == node


def _at(nodes: Ints, places: Ints, x: NDArray[np.float64], best: str, n: int) -> Ints:
    """The members with the n-th best distinct value, each counted by its own best; places are ascending."""
    if not len(places):
        return NONE
    signed = x if best == "max" else -x
    first = np.flatnonzero(np.diff(places, prepend=-1))
    own, members = np.maximum.reduceat(signed, first), nodes[places[first]]
    if n == 1:
        return members[own == own.max()]
    values = np.unique(own)
    return NONE if n > len(values) else members[own == values[-n]]


def types_in_form(form: Form, nodes: Ints | None, query: LabelQuery, graph: LabelGraph) -> tuple[int, ...]:
    """Places of the types that a form names or passes, and of those of the question whose members it finds, ascending.

    nodes: what the form denotes, None for a value.
    """
    found = _types_named(form, graph)
    if nodes is not None and len(nodes):
        found |= {place for place, _ in query.types if inside(nodes[:20], graph.members(place))}
    return tuple(sorted(found))


def _types_named(form: Form, graph: LabelGraph) -> set[int]:
    """Places of the types that a form names or that its relations lead from and to."""
    found: set[int] = set()
    for node in nodes_of(form):
        if isinstance(node, Class) and node.key in graph.type_of_key:
            found.add(graph.type_of_key[node.key])
        for step in getattr(node, "path", ()):
            relation = graph.memory.relation_ids[step.relation]
            found |= {int(graph.head_type[relation]), int(graph.tail_type[relation])}
    return found - {-1}


def ways_of(form: Form, graph: LabelGraph) -> tuple[int, ...]:
    """The ways of a form, of each path those first that are nearest to its mention."""
    found = [way for part in children(form) for way in ways_of(part, graph)]
    own = [graph.directed_relation(step) for step in getattr(form, "path", ())]
    return (*found, *(reversed([graph.inverse(way) for way in own]) if isinstance(form, Join) else own))


def slots_of(form: Form, query: LabelQuery) -> tuple[int, ...]:
    """Numbers of the mentions that a form names an entity of."""
    keys = {node.key for node in nodes_of(form) if isinstance(node, Entity)}
    return tuple(n for n, slot in enumerate(query.slots) if any(key in keys for _, key, _ in slot.entities))


def labels_of(form: Form, graph: LabelGraph) -> list[str]:
    """The labels of the relations and types of a form."""
    found = []
    for node in nodes_of(form):
        if isinstance(node, Class) and node.key in graph.type_of_key:
            found.append(graph.type_labels[graph.type_of_key[node.key]])
        keys = [step.relation for step in getattr(node, "path", ())]
        keys += [where.relation for where in getattr(node, "where", ())]
        keys += [node.relation] if isinstance(node, Qualifier) else []
        found += [graph.labels[graph.memory.relation_ids[key]] for key in keys]
    return found


def by_key(slots: Sequence[Slot]) -> Mapping[str, str]:
    """The word of each entity's slot, by key; an entity that two slots may mean has the first one's."""
    found: dict[str, str] = {}
    for slot in slots:
        for _, key, _ in slot.entities:
            found.setdefault(key, slot.word)
    return found
