"""Candidate forms of a question, from the entities found in it (Ye et al. 2022, section 3.1): made, never run.

What may follow what is read off the graph once (`ways`): two relations meet where some entity has both.  A topic starts
with the relations that things of its types have, so that forms whose facts are missing are candidates too; a topic
without types starts with its own and with those that occur beside them.  Forms have slots, and topics that start alike
share a pool.

Pools hold, in this order: paths of one relation, their counts, the best and the n-th of them by a number or date, paths
of two relations and their counts; of two topics comparisons, yes/no, differences and intersections; and with a value in
the text what equals it or compares with it.  Where conditions on types are tried, `typed_forms` says what is held.
What is over the cap is cut from the end, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import RngOptions
from kgqa_core.datasets.derived.form_values import datatypes
from kgqa_core.datasets.derived.gold_forms import PLACES
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import BESTS, OPS, Form, Literal
from kgqa_core.logic.measures import TIME as TIME_DIMENSION
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.normalise import normalise
from kgqa_core.papers.grailqability.parsing.rng.form_specs import FormSpec, Path, SpecForms
from kgqa_core.papers.grailqability.parsing.rng.retrieved_items import RetrievedItems
from kgqa_core.papers.grailqability.parsing.rng.slots import NUMBER, STRING, TIME, VALUE, View
from kgqa_core.papers.grailqability.parsing.rng.typed_forms import PAIRED, Named, TypedForms
from kgqa_core.papers.grailqability.parsing.rng.ways import Routes, Starts, Ways
from kgqa_core.papers.grailqability.parsing.word_overlap import RelationLikeness
from kgqa_core.papers.grailqability.parsing.words import key_words, stems

NO_FORM = 0
"""Number of the candidate that stands for "the graph has no form"."""

COUNTED = 10
"""Forms over the cap are counted up to so many times the cap."""

LIKED = 12
"""Relations most like a question that a set may be followed along, where a schema is too large for all."""

NOTHING: Named = frozenset()


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
    """Makes candidate forms over one graph.

    types: whether forms with conditions on types are candidates.  datatypes: of the numbers of each relation.
    retrieved: what a retriever finds a question to speak of, where there is one.
    """

    retrieved: RetrievedItems | None = None

    def __init__(self, store: KgStore, graph: MemoryGraph, options: RngOptions, *, types: bool = False) -> None:
        self.store, self.graph, self.options, self.types = store, graph, options, types
        self.forms = Forms()
        self.ways = Ways(store, graph, options.starts, types=types)
        self.specs = SpecForms(self.ways)
        self.typed = TypedForms(self.ways, options)
        self.datatypes = datatypes(store)
        labels = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
        self.likeness = RelationLikeness([labels.get(key, key) for key in self.ways.keys])
        self.class_words = self._class_words()
        self._heads: dict[str, list[int]] = {}
        for number, key in enumerate(self.ways.classes):
            own = stems(self.class_words[key])
            if own:
                self._heads.setdefault(own[-1], []).append(number)
        self._numbers: dict[FormSpec, int] = {}
        self._pools: dict[tuple[object, ...], Pool] = {}
        self.know, self.starts = self.ways.know, self.ways.starts

    def _class_words(self) -> dict[str, str]:
        """What is read of each type: its label, else the end of its key."""
        rows = self.store.connection.execute(
            "SELECT id, key FROM entities WHERE kind = 'entity' AND key IN (SELECT unnest($1::VARCHAR[]))",
            [list(self.ways.classes)],
        ).fetchall()
        names = self.store.names([i for i, _ in rows])
        return {key: key_words(names.get(i, key)) for i, key in rows}

    def named(self, text: str, whole: str) -> Named:
        """The types that a text names: by the last word of a label, or in a script without spaces by all of it.

        whole: the question with all its mentions as slots.
        """
        if not self.types:
            return NOTHING
        found = {number for stem in set(stems(text)) for number in self._heads.get(stem, ())}
        if re.search(r"[\u3040-\u9fff]", text):
            found |= {n for n, key in enumerate(self.ways.classes) if self.class_words[key] in text}
        if self.retrieved is not None:
            found |= self.retrieved.types(whole)
        return frozenset(found)

    # -- pools -------------------------------------------------------------------------------------------------

    def pool(
        self, starts: tuple[Starts, ...], view: View, named: Named = NOTHING, alone: bool = False,
        keys: tuple[str, ...] = (), whole: str = "",
    ) -> Pool:  # fmt: skip
        """The candidates of a view whose mentions are topics that start so.

        named: types that the question names.  alone: whether it has no mention at all.  keys: of the topics.  whole:
        the question with all its mentions as slots.
        """
        value = view.value
        kinds: tuple[object, ...] = (
            starts, tuple(one is not None for one in (value.number, value.time, value.string)) if value else None,
            named, alone and not starts,
        )  # fmt: skip
        if any(map(self.wide, starts)):
            kinds = (*kinds, view.text, keys, whole)
        if kinds not in self._pools:
            made: dict[int, None] = {}
            specs = self._specs(starts, view, named, alone, keys, whole)
            for spec in specs:
                number = self._numbers.get(spec)
                if number is None:
                    number = self._numbers[spec] = self.forms.number(self.specs.form(spec))
                made[number] = None
                if len(made) >= self.options.max_forms:
                    break
            cut = sum(1 for _ in islice(specs, COUNTED * self.options.max_forms))
            self._pools[kinds] = Pool(np.array(list(made), dtype=np.int64), cut)
        return self._pools[kinds]

    def _specs(
        self, starts: tuple[Starts, ...], view: View, named: Named, alone: bool, keys: tuple[str, ...], whole: str
    ) -> Iterator[FormSpec]:
        keys = keys or ("",) * len(starts)
        routes = [self._routes(own, view, key, whole) for own, key in zip(starts, keys, strict=True)]
        if view.value is not None:
            if len(starts) < 2:
                literals = [(by, literal) for by in self._valued() for literal in self._literals(by, view)]
                of_topic = routes[0] if starts else None
                if self.types:
                    yield from self.typed.of_values(literals, of_topic, named)
                yield from self._with_value(literals, of_topic)
        elif not starts:
            if self.types:
                yield from self.typed.of_types(named, alone)
        elif len(starts) == 1:
            yield from self.typed.of_one(routes[0], named) if self.types else self._of_one(routes[0])
        elif len(starts) == 2:
            if self.types:
                yield from self.typed.of_two(routes[0], routes[1], named)
            yield from self._of_two(routes[0], routes[1])

    def wide(self, starts: Starts) -> bool:
        """Whether a topic has too many paths for all to be tried."""
        return self.options.hops > 1 and self.ways.paths(starts) > self.options.max_paths

    def _routes(self, starts: Starts, view: View, key: str, whole: str) -> Routes:
        """The paths from a topic that are tried: all, or of too many those that the question's words are of."""
        if self.wide(starts):
            likeness = self.likeness.of(view.text)
            if self.retrieved is not None:
                places, likely = self.retrieved.relations(whole)
                likeness[places] = np.maximum(likeness[places], likely)
            one, two = self.ways.likeliest(starts, likeness, self.options.likely_paths, key)
            liked = np.argsort(-likeness, kind="stable")[:LIKED]
            liked = liked[likeness[liked] > 0]
            return Routes(starts, (one, two), frozenset((*liked.tolist(), *(liked + self.ways.relations).tolist())))
        paths: list[list[Path]] = [[(way,) for way in starts]]
        for _ in range(self.options.hops - 1):
            paths.append([longer for path in paths[-1] for longer in self.ways.longer(path)])
        return Routes(starts, tuple(paths))

    def _of_one(self, routes: Routes) -> Iterator[FormSpec]:
        ways, paths = self.ways, routes.paths[0]
        yield from (("join", path) for path in paths)
        sets = [path for path in paths if ways.to_things[path[-1]] and ways.many[path[-1]]]
        yield from (("count", ("join", path)) for path in sets)
        ranks = [(("join", path), (by,)) for path in sets for by in ways.values(path[-1])]
        yield from (("best", best, members, by) for members, by in ranks for best in BESTS)
        yield from (("nth", n, best, members, by) for members, by in ranks for best in BESTS for n in PLACES)
        for paths in routes.paths[1:]:
            yield from (("join", path) for path in paths)
            yield from (("count", ("join", path)) for path in paths if ways.to_things[path[-1]])

    def _of_two(self, one: Routes, other: Routes) -> Iterator[FormSpec]:
        ways = self.ways
        both = set(other.starts)
        shared = [way for way in one.starts if way in both]
        for by in shared:
            if by in ways.measured:
                yield from (("greater", (by,), best, False) for best in BESTS)
        for by in shared:
            if ways.to_things[by] and ways.many[by]:
                yield from (("greater", (by,), best, True) for best in BESTS)
        sides = [routes.sets(ways, PAIRED) for routes in (one, other)]
        for slot, entity, near in ((0, 1, other), (1, 0, one)):
            for path in sides[slot]:
                if ways.may_be(path[-1], near.starts):
                    yield ("holds", ("join", path, slot), entity)
        single: list[list[Path]] = [[path for path in side if len(path) == 1] for side in sides]
        for a in single[0]:
            for b in single[1]:
                if ways.meet(a[-1], b[-1]):
                    yield ("minus", ("join", a, 0), ("join", b, 1))
                    yield ("minus", ("join", b, 1), ("join", a, 0))
        for a in sides[0]:
            for b in sides[1]:
                if len(a) + len(b) <= self.options.hops + 1 and ways.meet(a[-1], b[-1]):
                    yield ("both", ("join", a, 0), ("join", b, 1))

    def _with_value(self, literals: Sequence[tuple[int, Literal]], routes: Routes | None) -> Iterator[FormSpec]:
        """What equals a value or compares with it: everything that does, or those of what a topic leads to."""
        ways = self.ways
        for by, literal in literals:
            compared = OPS if literal.datatype != STRING else ()
            if routes is None:
                yield ("equal", (by,), literal)
                yield from (("compare", op, (by,), literal) for op in compared)
                continue
            for (way,) in routes.paths[0]:
                if ways.to_things[way] and by in ways.beside[ways.turned(way)]:
                    members = ("join", (way,))
                    yield ("both", members, ("equal", (by,), literal))
                    yield from (("both", members, ("compare", op, (by,), literal)) for op in compared)

    def _valued(self) -> list[int]:
        """The relations that lead to literals."""
        return [*self.ways.measured, *sorted(self.ways.texts - self.ways.measured.keys())]

    def _literals(self, by: int, view: View) -> list[Literal]:
        """The slots that a relation may have for a value."""
        assert view.value is not None
        found = []
        for dimension in self.ways.measured.get(by, ()):
            if dimension == TIME_DIMENSION and view.value.time is not None:
                found.append(Literal(VALUE, TIME))
            elif dimension != TIME_DIMENSION and view.value.number is not None:
                found.append(Literal(VALUE, NUMBER, dimension or None))
        if by in self.ways.texts and view.value.string is not None:
            found.append(Literal(VALUE, STRING))
        return found
