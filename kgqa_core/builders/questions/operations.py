"""Forms that compute: counts, best and n-th by a measure, comparisons, bounds, yes or no, existence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10

import numpy as np

from kgqa_core.builders.questions.aggregates import Aggregates
from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.paths import PathHop, WalkedPath, Walker
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.forms import (
    And,
    Arg,
    Class,
    Compare,
    Count,
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
from kgqa_core.logic.measures import TIME, UNITS
from kgqa_core.logic.memory import Ints
from kgqa_core.search.schema_profile import RelationProfile

_PROBED = 24
"""Members of a set whose relations are looked at for a measure."""
_LARGEST = 50_000
"""Members of a type that may be ranked."""
_YEAR = 372 * 86_400
_FEW, _SHORT = 60, 24
"""Texts that a relation has, and letters of each, where people ask for things by them."""
_LEAST = 3
"""Members with a value that a ranking needs."""


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """A measure of the members of a set: its path, whether it counts, and (index of member, dimension, value)."""

    hop: PathHop
    counted: bool
    values: dict[int, float]
    dimension: str

    @property
    def path(self) -> Steps:
        """As forms write it, from what has the value."""
        step = self.hop.step
        return (type(step)(step.relation, not step.inverse),)


class Operations:
    """Makes drafts that compute over sets that `base` draws."""

    def __init__(
        self, walker: Walker, base: Callable[[], tuple[Form, Ints] | None],
        condition: Callable[[int, WalkedPath], WalkedPath | None],
    ) -> None:  # fmt: skip
        self.walker, self.base, self.condition, self.rng = walker, base, condition, walker.rng
        self.graph, self.profile, self.options = walker.graph, walker.profile, walker.options
        self.makers: Mapping[str, Callable[[], Draft | None]] = {
            **Aggregates(self).makers,
            "count": self._count,
            "best_of_path": lambda: self._best("best_of_path", self.base()),
            "best_of_type": lambda: self._best("best_of_type", self.of_type()),
            "best_of_typed_path": lambda: self._best("best_of_typed_path", self.typed_path()),
            "ordinal": self._ordinal,
            "comparative": self._comparative,
            "bounds": self._bounds,
            "yes_no": self._yes_no,
            "existence": self._existence,
            "after_best": self._after_best,
            "absence": self._absence,
            "text_value": self._text_value,
        }
        self.empty = (lambda: self._absence(empty=True), lambda: self._text_value(empty=True))
        """Makers of forms that find nothing."""
        hops = walker.hops(lambda hop: not hop.relation.is_type)
        self._valued = [hop for hop in hops if not hop.backward and hop.relation.dimensions]
        self._countable = [hop for hop in hops if hop.relation.entities and not hop.single]
        self._of_type: dict[int, list[str]] | None = None

    # -- sets and measures ---------------------------------------------------------------------------------------

    def type_of(self, node: int) -> str | None:
        """A type with a label that an entity has; a seeded choice of several."""
        if self._of_type is None:
            rows = self.graph.store.connection.execute(
                "SELECT y.entity, k.key FROM types y JOIN entities k ON k.id = y.type ORDER BY ALL"
            ).fetchall()
            self._of_type = {}
            for entity, key in rows:
                if key in self.profile.types:
                    self._of_type.setdefault(entity, []).append(key)
        keys = self._of_type.get(node, ())
        return self.rng.choice(keys) if keys else None

    def of_type(self) -> tuple[Form, Ints] | None:
        """All members of a type; large and small types alike."""
        keys = [key for key, each in self.profile.types.items() if each.entities >= _LEAST]
        if not keys:
            return None
        key = self.rng.choice(keys)
        members = self.graph.members(key)
        return (Class(key), members) if len(members) <= _LARGEST else None

    def typed_path(self) -> tuple[Form, Ints] | None:
        """The members of a type among what a path leads to."""
        found = self.base()
        if found is None or isinstance(found[0], And):
            return None
        form, nodes = found
        key = self.type_of(int(nodes[self.rng.randrange(len(nodes))]))
        if key is None:
            return None
        both = np.intersect1d(nodes, self.graph.members(key))
        return (And((Class(key), form)), both) if len(both) >= _LEAST else None

    def measure(self, nodes: Ints) -> MeasuredSet | None:
        """A measure of a set: numbers and dates where there are some, else how many of something a member has."""
        probed = [int(nodes[self.rng.randrange(len(nodes))]) for _ in range(min(_PROBED, len(nodes)))]
        hops = dict.fromkeys(hop for node in probed for hop in self.walker.around(node))
        valued = [hop for hop in hops if not hop.backward and hop.relation.dimensions]
        valued = [hop for hop in valued if not hop.relation.is_type]
        counts = [hop for hop in hops if hop.relation.entities and not hop.single and not hop.relation.is_type]
        if not valued and not counts:
            return None
        counted = not valued or bool(counts) and self.rng.random() < 0.2
        hop = self.walker.pick(counts if counted else valued)
        assert hop is not None
        return self.values(nodes, hop, counted)

    def values(self, nodes: Ints, hop: PathHop, counted: bool) -> MeasuredSet | None:
        """The values of one measure; None where members have values of several dimensions, or none."""
        source, reached = self.graph.hop(nodes, hop.relation.id, backward=hop.backward)
        if counted:
            numbers = np.bincount(source, minlength=len(nodes))
            results = {int(node): float(n) for node, n in zip(nodes, numbers, strict=True) if n}
            return MeasuredSet(hop, True, results, "")
        fits = self.graph.dim[reached] >= 0
        source, reached = source[fits], reached[fits]
        dims = np.unique(self.graph.dim[reached])
        if len(dims) != 1:
            return None
        results = {}
        for index, x in zip(source.tolist(), self.graph.x[reached].tolist(), strict=True):
            node = int(nodes[index])
            if results.setdefault(node, x) != x:
                return None  # two values: which of them is meant is not clear
        return MeasuredSet(hop, False, results, self.graph.dimensions[int(dims[0])])

    # -- kinds ---------------------------------------------------------------------------------------------------

    def _count(self) -> Draft | None:
        if self.rng.random() < 0.15 and (found := self.of_type()) is not None:
            return Draft("count", Count(found[0]))
        found = self.base()
        if found is None or (len(found[1]) < 2 and self.rng.random() < 0.8):
            return None
        return Draft("count", Count(found[0]))

    def _ranking(self, drawn: tuple[Form, Ints] | None) -> tuple[Form, MeasuredSet, list[float]] | None:
        """A set, a measure of it, and its distinct values ascending."""
        if drawn is None or len(drawn[1]) < _LEAST:
            return None
        form, nodes = drawn
        measured = self.measure(nodes)
        if measured is None or len(measured.values) < _LEAST:
            return None
        values = sorted(set(measured.values.values()))
        return (form, measured, values) if len(values) > 1 else None

    def _best(self, kind: str, drawn: tuple[Form, Ints] | None) -> Draft | None:
        ranking = self._ranking(drawn)
        if ranking is None:
            return None
        form, measured, values = ranking
        best = "max" if measured.counted or self.rng.random() < 0.65 else "min"
        top = values[-1] if best == "max" else values[0]
        if sum(value == top for value in measured.values.values()) > self.options.max_ties:
            return None
        self._use(measured)
        return Draft(kind, Arg(best, form, measured.path, measured.counted))

    def _ordinal(self) -> Draft | None:
        maker = self.rng.choice((self.base, self.of_type, self.typed_path))
        ranking = self._ranking(maker())
        if ranking is None:
            return None
        form, measured, values = ranking
        n = self.rng.choices((2, 3, 4, 5), (6, 3, 1, 1))[0]
        if n > len(values):
            return None
        best = "max" if measured.counted or self.rng.random() < 0.75 else "min"
        threshold = values[-n] if best == "max" else values[n - 1]
        if sum(value == threshold for value in measured.values.values()) > self.options.max_ties:
            return None
        self._use(measured)
        return Draft("ordinal", Nth(n, best, form, measured.path, measured.counted))

    def _comparative(self) -> Draft | None:
        greater = self.greater()
        return None if greater is None else Draft("comparative", greater)

    def greater(self) -> Greater | None:
        """Which of two entities has more, or less, of something; both have a value, and they differ."""
        counted = not self._valued or self.rng.random() < 0.25
        hops = self._countable if counted else self._valued
        hop = self.walker.pick(hops)
        one = None if hop is None else self.walker.topic(hop)
        if hop is None or one is None:
            return None
        other, wanted = None, self.type_of(one)
        for _ in range(8):
            near = self.walker.topic(hop)
            if near is not None and near != one and (wanted is None or self.type_of(near) == wanted):
                other = near
                break
        if other is None:
            return None
        measured = self.values(np.array(sorted((one, other)), dtype=np.int64), hop, counted)
        if measured is None or len(measured.values) < 2 or len(set(measured.values.values())) < 2:
            return None
        self._use(measured)
        best = "max" if self.rng.random() < 0.7 else "min"
        first, second = (self.walker.entity(node) for node in (one, other))
        return Greater(first, second, measured.path, best, counted)

    def bound(self, measured: MeasuredSet) -> tuple[str, Literal] | None:
        """A comparison with a round value that lies between those of a set, as `Compare` has it."""
        values = sorted(measured.values.values())
        value = values[self.rng.randrange(len(values) // 2, len(values))]
        op = "gt" if self.rng.random() < 0.7 else "lt"
        if op == "lt":
            value = values[self.rng.randrange(0, (len(values) + 1) // 2)]
        if measured.dimension == TIME:
            year = floor(value / _YEAR)
            return (op, Literal(str(year), XSD + "gYear")) if 1000 <= year < 3000 else None
        unit = measured.hop.relation.units[0] if measured.hop.relation.units else None
        if unit in UNITS and not measured.counted:
            value = (value - UNITS[unit].offset) / UNITS[unit].factor
        rounded = _round(value, up=op == "lt")
        if measured.counted:
            rounded = max(1, round(rounded - (op == "gt")))
        text = str(int(rounded)) if float(rounded).is_integer() else f"{rounded:g}"
        kind = XSD + ("integer" if float(rounded).is_integer() else "decimal")
        return op, Literal(text, kind, None if measured.counted else unit)

    def _bounds(self) -> Draft | None:
        found = self.of_type() if self.rng.random() < 0.6 else self.base()
        ranking = self._ranking(found)
        if ranking is None:
            return None
        form, measured, _ = ranking
        bound = self.bound(measured)
        if bound is None:
            return None
        self._use(measured)
        compare = Compare(bound[0], measured.path, bound[1], measured.counted)
        return Draft("bounds", And((form, compare)) if not isinstance(form, And) else And((*form.parts, compare)))

    def _yes_no(self) -> Draft | None:
        kind = self.rng.random()
        if kind < 0.12:
            return self._is_greater()
        if kind < 0.2:
            return self._is_member()
        path = self.walker.walk(1 if self.rng.random() < 0.85 else 2)
        if path is None or not path.hops[-1].relation.entities or path.hops[-1].relation.is_type:
            return None
        right = path.nodes[self.profile.askable[path.nodes]]
        if not len(right):
            return None
        one = int(right[self.rng.randrange(len(right))])
        if self.rng.random() < 0.5:
            wrong = self._wrong(path.hops[-1], path.nodes, one)
            if wrong is None or wrong == path.topic:
                return None
            one = wrong
        if one == path.topic:
            return None
        self.walker.use(path)
        return Draft("yes_no", Holds(self.walker.form(path), self.walker.entity(one)))

    def _wrong(self, hop: PathHop, answers: Ints, like: int) -> int | None:
        """Another entity that the relation leads to elsewhere, of the same type, that is no answer."""
        wanted = self.type_of(like)
        for _ in range(8):
            topic = self.walker.topic(PathHop(hop.relation, not hop.backward))
            if topic is None:
                return None
            if topic not in answers and (wanted is None or self.type_of(topic) == wanted):
                return topic
        return None

    def _is_greater(self) -> Draft | None:
        greater = self.greater()
        if greater is None:
            return None
        return Draft("yes_no", Holds(greater, self.rng.choice((greater.one, greater.other))))

    def _is_member(self) -> Draft | None:
        """Whether an entity is of a type; where it is not, of the type of another."""
        keys = sorted(self.profile.types)
        if len(keys) < 2:
            return None
        key = self.rng.choice(keys)
        other = self.rng.choice(keys) if self.rng.random() < 0.5 else key
        members = self.graph.members(other)
        members = members[self.profile.askable[members]]
        if not len(members):
            return None
        one = int(members[self.rng.randrange(len(members))])
        return Draft("yes_no", Holds(Class(key), self.walker.entity(one)))

    def _existence(self) -> Draft | None:
        """Whether there is anything that two conditions hold of; the second is true of a thing of the same sort."""
        path = self.walker.walk(1, 2)
        if path is None or path.hops[0].relation.is_type:
            return None
        like = self.walker.topic(PathHop(path.hops[0].relation, not path.hops[0].backward))
        node = int(path.nodes[self.rng.randrange(len(path.nodes))]) if self.rng.random() < 0.5 else like
        other = None if node is None else self.condition(node, path)
        if other is None or not self.walker.usable(other.nodes):
            return None
        both = And((self.walker.form(path), self.walker.form(other)))
        return Draft("existence", Holds(both, both)) if len(set(both.parts)) == 2 else None

    def _after_best(self) -> Draft | None:
        """What a relation leads to from the best of a set: the capital of the largest country of a continent."""
        drawn = self.rng.choice((self.base, self.of_type, self.typed_path))()
        best = self._best("after_best", drawn) if self.rng.random() < 0.8 else self._ordinal()
        if best is None:
            return None
        [*nodes] = self.graph.execute(best.form).nodes
        hops = [hop for hop in self.walker.around(nodes[0]) if hop.relation.entities or hop.relation.dimensions]
        hop = self.walker.pick([hop for hop in hops if not hop.relation.is_type])
        if hop is None:
            return None
        form: Form = Join((hop.step,), best.form)
        return Draft("after_best", Count(form) if not hop.single and self.rng.random() < 0.25 else form)

    def _absence(self, *, empty: bool = False) -> Draft | None:
        """Members of a set that have no value, or no thing, of a relation that others, or all (`empty`), have."""
        drawn = self.of_type() if self.rng.random() < 0.6 else self.base()
        if drawn is None or len(drawn[1]) < _LEAST:
            return None
        form, nodes = drawn
        one = int(nodes[self.rng.randrange(len(nodes))])
        hop = self.walker.pick([hop for hop in self.walker.around(one) if not hop.relation.is_type])
        if hop is None:
            return None
        source, _ = self.graph.hop(nodes, hop.relation.id, backward=hop.backward)
        having = len(np.unique(source))
        if not having or (having == len(nodes)) != empty:
            return None
        path = (Step(hop.relation.key, inverse=hop.backward),)
        lacking = Minus(form, Compare("ge", path, Literal("1", XSD + "decimal"), counted=True))
        return Draft("absence", Count(lacking) if self.rng.random() < 0.2 else lacking)

    def _text_value(self, *, empty: bool = False) -> Draft | None:
        """Members of a set whose value is a short text, or true or false; one that others have (`empty`)."""
        relation = self.rng.choice(self._worded) if self._worded else None
        drawn = None if relation is None else self.of_type() if self.rng.random() < 0.7 else self.base()
        if relation is None:
            return None
        if drawn is None or not len(self.graph.hop(drawn[1], relation.id, backward=False)[1]):
            key = relation.domain
            drawn = (Class(key), self.graph.members(key)) if key is not None and key in self.profile.types else None
        if drawn is None or isinstance(drawn[0], And):
            return None
        form, nodes = drawn
        _, reached = self.graph.hop(nodes, relation.id, backward=False)
        if not len(reached):
            return None
        if empty:
            reached = np.setdiff1d(np.array(self._of_relation[relation.id], dtype=np.int64), reached)
            if not len(reached):
                return None
        value = self._texts[int(reached[self.rng.randrange(len(reached))])]
        both = And((form, Join((Step(relation.key),), value)))
        return Draft("text_value", Count(both) if self.rng.random() < 0.2 else both)

    @cached_property
    def _worded(self) -> list[RelationProfile]:
        """Relations to a few short texts without digits, or to true and false."""
        rows = self.graph.store.connection.execute(
            f"""
            SELECT relation, list(DISTINCT tail) FROM triples JOIN entities e ON e.id = tail
            WHERE e.kind = 'literal' GROUP BY relation
            HAVING count(DISTINCT tail) BETWEEN 1 AND {_FEW} AND count(*) > count(DISTINCT tail)
              AND bool_and(e.number IS NULL AND e.time IS NULL AND length(e.key) <= {_SHORT}
                           AND NOT regexp_matches(e.key, '[0-9]'))"""
        ).fetchall()
        self._of_relation = {relation: sorted(some) for relation, some in rows}
        nodes = sorted(node for _, some in rows for node in some)
        found = self.graph.store.connection.execute(
            "SELECT id, key, datatype FROM entities WHERE id IN (SELECT unnest($1::BIGINT[]))", [nodes]
        ).fetchall()
        self._texts = {node: Literal(key, datatype or XSD + "string") for node, key, datatype in found}
        return [self.walker.by_id[relation] for relation, _ in sorted(rows) if relation in self.walker.by_id]

    def _use(self, measured: MeasuredSet) -> None:
        self.walker.used[measured.hop.relation.key, measured.hop.backward] += 1


def _round(value: float, *, up: bool) -> float:
    """A value with one or two digits, not above it, or not below."""
    if value == 0:
        return 0.0
    scale = 10.0 ** (floor(log10(abs(value))) - (1 if abs(value) >= 100 else 0))
    steps = value / scale
    rounded = (-floor(-steps) if up else floor(steps)) * scale
    return float(f"{rounded:.6g}")
