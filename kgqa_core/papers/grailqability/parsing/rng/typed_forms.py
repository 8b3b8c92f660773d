"""Candidate forms with conditions on types, as GrailQA writes them: `(AND class …)` around what a path leads to.

The types of an answer are those that the question names by the last word of their labels, of all that are observed at
the end of the path, and the most common ones there.  Sets that are counted or ranked, and those of two conditions, get
fewer of the latter.  With and without a type the sets are the same: paths of one and two relations (three, where
`parsing.rng.hops` says so), two conditions on an answer or on what a relation leads to it from, and conditions on
values.  A question without mentions is about a type alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgqa_core.config import RngOptions
from kgqa_core.datasets.derived.gold_forms import PLACES
from kgqa_core.logic.forms import BESTS, OPS, Literal
from kgqa_core.papers.grailqability.parsing.rng.form_specs import FormSpec, Path
from kgqa_core.papers.grailqability.parsing.rng.slots import STRING
from kgqa_core.papers.grailqability.parsing.rng.ways import Routes, Ways

FEW = 2
"""Types at the end of a path that are tried in sets which are counted, ranked or of two conditions."""

COMPUTED = 40
"""Paths of each length that are counted and ranked, where the schema is too large for all."""
PAIRED = 12
"""Paths of each length that are combined with those of another topic, or with a value, where it is."""

Named = frozenset[int]
"""Types that a question names."""


class TypedForms:
    """Yields specs of forms with and without types over the ways of one graph."""

    def __init__(self, ways: Ways, options: RngOptions) -> None:
        self.ways, self.options = ways, options
        self._at_end = [frozenset(own) for own in ways.at_end]
        self._long: dict[int, list[Path]] = {}

    def of_one(self, routes: Routes, named: Named) -> Iterator[FormSpec]:
        """Of one topic."""
        ways, many, paths = self.ways, self.ways.many, routes.paths
        for length, own in enumerate(paths):
            most = self.options.types_tried if routes.liked is None or not length else FEW
            yield from (("join", path) for path in own)
            for path in own:
                yield from self._typed(("join", path), path[-1], named, most)
        sets = routes.sets(ways, COMPUTED)
        several = [path for path in sets if len(path) > 1 or many[path[-1]]]
        for path in several:
            yield from (("count", of) for of in self._few(("join", path), path[-1], named))
        for path in several:
            for of in self._few(("join", path), path[-1], named):
                yield from (("best", best, of, (by,)) for by in ways.values(path[-1]) for best in BESTS)
        for path in several:
            if len(path) == 1:
                for of in self._few(("join", path), path[-1], named):
                    for by in ways.values(path[-1]):
                        yield from (("nth", n, best, of, (by,)) for best in BESTS for n in PLACES)
        for path in several:
            for of in self._few(("join", path), path[-1], named, plain=False):
                yield from (("best", best, of, by) for by in self._long_values(path[-1]) for best in BESTS)

    def of_two(self, one: Routes, other: Routes, named: Named) -> Iterator[FormSpec]:
        """Intersections and differences of two topics: of the answer, and of what a relation leads to it from."""
        sides = [routes.sets(self.ways, PAIRED) for routes in (one, other)]
        single: list[list[Path]] = [[path for path in side if len(path) == 1] for side in sides]
        meeting = [(a, b) for a in single[0] for b in single[1] if self.ways.meet(a[-1], b[-1])]
        for a, b in meeting:
            yield from self._of_pair(a, b, named)
        for a in sides[0]:
            for b in sides[1]:
                if 2 < len(a) + len(b) <= self.options.hops + 1 and self.ways.meet(a[-1], b[-1]):
                    yield from self._of_pair(a, b, named)
        for a, b in meeting:
            pair = ("both", ("join", a, 0), ("join", b, 1))
            for path in one.longer(self.ways, (a[-1],)):
                yield from self._few(("further", path[1:], pair), path[-1], named)
        for a, b in meeting:
            for first, second in ((("join", a, 0), ("join", b, 1)), (("join", b, 1), ("join", a, 0))):
                yield from self._few(("minus", first, second), a[-1], named, plain=False)

    def of_values(
        self, literals: Sequence[tuple[int, Literal]], routes: Routes | None, named: Named
    ) -> Iterator[FormSpec]:
        """What equals a value or compares with it, alone (routes: None) or with what a topic leads to.

        literals: (relation, slot) of what the value may be of.
        """
        for by, literal in literals:
            heads = self.ways.turned(by)
            if routes is None:
                for condition in self._conditions(by, literal):
                    yield from self._typed(condition, heads, named, self.options.types_tried)
            else:
                for (way,) in routes.paths[0]:
                    if self.ways.to_things[way] and self.ways.meet(way, heads):
                        for condition in self._conditions(by, literal):
                            yield from self._few(("both", ("join", (way,)), condition), way, named, plain=False)
        for by, literal in literals:
            heads = self.ways.turned(by)
            if routes is None:
                for condition in self._conditions(by, literal):
                    for path in self.ways.longer((heads,)):
                        yield from self._few(("further", path[1:], condition), path[-1], named)
            else:
                yield from self._further(by, literal, routes, named)

    def of_types(self, named: Named, alone: bool) -> Iterator[FormSpec]:
        """Of types that are named; of all, the largest first, where a question has no mention and names none."""
        ways = self.ways
        every = sorted(range(len(ways.classes)), key=lambda kind: (-ways.members[kind], kind))
        kinds = sorted(named) or (every if alone else [])
        yield from (("kind", kind) for kind in kinds)
        yield from (("count", ("kind", kind)) for kind in kinds)
        for kind in kinds:
            values = ways.values_of(kind)
            yield from (("best", best, ("kind", kind), (by,)) for by in values for best in BESTS)
        for kind in kinds if named else ():
            values = ways.values_of(kind)
            yield from (("nth", n, best, ("kind", kind), (by,)) for by in values for best in BESTS for n in PLACES)

    # -- parts -------------------------------------------------------------------------------------------------

    def _kinds(self, way: int, named: Named, most: int) -> list[int]:
        """The types that are tried of what a way leads to."""
        own = sorted(named & self._at_end[way])
        return own + [kind for kind in self.ways.at_end[way][:most] if kind not in named]

    def _typed(self, of: FormSpec, way: int, named: Named, most: int) -> Iterator[FormSpec]:
        yield from (("typed", kind, of) for kind in self._kinds(way, named, most))

    def _few(self, of: FormSpec, way: int, named: Named, plain: bool = True) -> Iterator[FormSpec]:
        """A set with few types and without any."""
        yield from self._typed(of, way, named, FEW)
        if plain:
            yield of

    def _of_pair(self, a: Path, b: Path, named: Named) -> Iterator[FormSpec]:
        pair = ("both", ("join", a, 0), ("join", b, 1))
        kinds = [kind for kind in self._kinds(a[-1], named, FEW) if kind in self._at_end[b[-1]]]
        typed: list[FormSpec] = [("typed", kind, pair) for kind in kinds]
        yield from typed
        yield from (("count", of) for of in typed)

    def _conditions(self, by: int, literal: Literal) -> Iterator[FormSpec]:
        yield ("equal", (by,), literal)
        if literal.datatype != STRING:
            yield from (("compare", op, (by,), literal) for op in OPS)

    def _further(self, by: int, literal: Literal, routes: Routes, named: Named) -> Iterator[FormSpec]:
        """What a relation leads to from what a topic and a value are of, and two relations with a value."""
        ways, heads = self.ways, self.ways.turned(by)
        for path in routes.sets(ways, PAIRED):
            if not ways.meet(path[-1], heads):
                continue
            for condition in self._conditions(by, literal):
                pair = ("both", ("join", path), condition)
                if len(path) > 1:
                    yield from self._few(pair, path[-1], named, plain=False)
                    continue
                for longer in routes.longer(ways, path):
                    yield from self._few(("further", longer[1:], pair), longer[-1], named, plain=False)

    def _long_values(self, way: int) -> list[Path]:
        """Measures two relations away."""
        if way not in self._long:
            ways = self.ways
            steps = [step for step in ways.after(way) if ways.to_things[step]]
            self._long[way] = [(step, by) for step in steps for by in ways.values(step)]
        return self._long[way]
