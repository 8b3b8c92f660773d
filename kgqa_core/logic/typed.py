"""Types of a form, inferred from the schema; a form that cannot have an answer is refused in words.

What a form denotes may have any of the types that the schema shows at the end of its relations, and must have one of
those that it names.  Types are observed, so nothing with an answer in the graph that the schema was read from is
refused (unless a part without an answer stands in an OR or a MINUS); what passes may still have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgqa_core.errors import FormError, nearest
from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, Step, Steps
from kgqa_core.logic.measures import TIME, measure
from kgqa_core.logic.schema import TEXT, UNTYPED, RelationSchema, Schema

_Tag = tuple[str, str]
"""What a node may be: ("type", key) or ("literal", dimension)."""

_SHOWN = 4
"""Types that an error names."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What a form denotes.

    kind: `entities`, `literals`, `either`, `number`, `yes/no` or `table`.  types: those that the entities may have,
    sorted; None where nothing is known.  dimensions: those of literals, as `RelationSchema`'s; None likewise.
    """

    kind: str
    types: tuple[str, ...] | None = None
    dimensions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _NodeKinds:
    """may: every tag that a node can have, None for any.  must: of each of these a node has one."""

    may: frozenset[_Tag] | None = None
    must: tuple[frozenset[_Tag], ...] = ()

    def possible(self) -> bool:
        return self.may is None or bool(self.may) and all(self.may & wanted for wanted in self.must)

    def meets(self, other: _NodeKinds) -> _NodeKinds:
        may = other.may if self.may is None else self.may if other.may is None else self.may & other.may
        return _NodeKinds(may, tuple(dict.fromkeys(self.must + other.must)))

    def shown(self) -> str:
        """For an error: what there may be."""
        tags = self.must[0] if self.must else self.may
        names = sorted(_name(tag) for tag in tags or ())
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return (", ".join(names[:_SHOWN]) + more) if names else "nothing" if tags is not None else "anything"


def typed(form: Form, schema: Schema, entities: Mapping[str, frozenset[str]] | None = None) -> Typed:
    """The types of a form.

    entities: types of the entities that the form names, from `schema.types_of`; one that is left out may be anything.
    Raises FormError that names the part, what is wrong with it and the way out: an unknown relation or type, parts that
    nothing can be at once, ranked or compared values that are no numbers or dates or of other units.
    """
    checker = _Checker(schema, entities or {})
    if isinstance(form, forms.Aggregate):
        return checker.aggregate(form)
    if isinstance(form, (forms.Count, forms.Holds, forms.Share)):
        checker.value(form)
        return Typed("yes/no" if isinstance(form, forms.Holds) else "number")
    result = checker.kind(form)
    if result.may is None:
        named = sorted({key for wanted in result.must for kind, key in wanted if kind == "type"})
        return Typed("entities", tuple(named)) if named else Typed("either")
    types = sorted(key for kind, key in result.may if kind == "type")
    dimensions = sorted(key for kind, key in result.may if kind == "literal")
    kind = "either" if types and dimensions else "literals" if dimensions else "entities"
    return Typed(kind, tuple(types), tuple(dimensions))


class _Checker:
    def __init__(self, schema: Schema, entities: Mapping[str, frozenset[str]]) -> None:
        self.schema, self.entities = schema, entities

    def value(self, form: forms.Count | forms.Holds | forms.Share) -> None:
        self.kind(form.of)
        if not isinstance(form, forms.Count):
            self.kind(form.one)

    def aggregate(self, form: forms.Aggregate) -> Typed:
        of = self.kind(form.of)
        self.along(form, of, form.by)
        if form.how in (*forms.REDUCTIONS, *forms.BEST_MEMBERS):
            self.measured(form, of, form.path, form.counted)
        ends = {key for kind, key in self.along(form, of, form.path).may or () if kind == "literal"} - {TEXT}
        if form.how in forms.ARITHMETIC and not forms.is_computed(form) and ends == {TIME}:
            raise FormError(
                f"values of {form.path[-1]} are dates, which are not added; MAX and MIN give last and first"
            )
        if form.by or form.how == "values":
            return Typed("either" if form.pick else "table")
        literals = form.how in ("max", "min") and not forms.is_computed(form)
        return Typed("literals", (), tuple(sorted(ends))) if literals else Typed("number")

    def kind(self, form: Form) -> _NodeKinds:
        match form:
            case forms.Entity(key=key):
                return _NodeKinds(None if key not in self.entities else _types(self.entities[key]))
            case forms.Literal():
                measured = measure(form)
                return _NodeKinds(frozenset({("literal", TEXT if measured is None else measured.dim)}))
            case forms.Class(key=key):
                if not self.schema.has_type(key):
                    raise FormError(
                        f"nothing has the type {key!r} in this graph ({len(self.schema.types):,} types)"
                        f"{nearest(key, self.schema.types)}"
                    )
                return _NodeKinds(None, (_types(self.schema.below(key)),))
            case forms.Join(path=path, of=of, where=where):
                self.conditions(where)
                result = self.kind(of)
                for step in reversed(path):
                    result = self.back(step, result, form)
                return result
            case forms.Qualifier():
                return _NodeKinds(None)
            case forms.And(parts=parts):
                return self.both(parts)
            case forms.Or(parts=parts):
                return self.either([self.kind(part) for part in parts])
            case forms.Minus(of=of, without=without):
                self.kind(without)
                return self.kind(of)
            case forms.Arg(of=of, path=path, counted=counted) | forms.Nth(of=of, path=path, counted=counted):
                return self.measured(form, self.kind(of), path, counted)
            case forms.Greater(one=one, other=other, path=path, counted=counted):
                both = self.either([self.kind(one), self.kind(other)])
                return self.measured(form, both, path, counted)
            case forms.Compare(path=path, value=value, counted=counted):
                return self.measured(form, _NodeKinds(), path, counted, value)
            case forms.CompareTo(path=path, one=forms.Aggregate() as one, counted=counted):
                self.aggregate(one)
                return self.measured(form, _NodeKinds(), path, counted)
            case forms.CompareTo(path=path, one=one, counted=counted):
                self.measured(form, self.kind(one), path, counted)
                return self.measured(form, _NodeKinds(), path, counted)
            case forms.TimeConstraint(of=of, path=path, value=value):
                date = measure(value)
                if date is None or date.dim != TIME:
                    raise FormError(f"TC takes a date, and {value} is none; write its datatype: 2010^^xsd:gYear")
                return self.measured(form, self.kind(of), path, False, value)
        raise FormError(f"{form} is a value or a table; these stand outermost")

    def relation(self, key: str) -> RelationSchema:
        if key not in self.schema.relations:
            known = self.schema.relations
            raise FormError(f"relation {key!r} is not in this graph ({len(known):,} relations){nearest(key, known)}")
        return self.schema.relations[key]

    def ends(self, step: Step) -> tuple[_NodeKinds, _NodeKinds]:
        """What a step comes from and what it leads to."""
        relation = self.relation(step.relation)
        head = _NodeKinds(_types(relation.domain))
        tail = _NodeKinds(_types(relation.range) | {("literal", dimension) for dimension in relation.dimensions})
        return (tail, head) if step.inverse else (head, tail)

    def back(self, step: Step, of: _NodeKinds, form: Form) -> _NodeKinds:
        near, far = self.ends(step)
        if not far.meets(of).possible():
            raise FormError(f"{step} leads to {far.shown()}, and in {form} it is to lead to {of.shown()}")
        return near

    def both(self, parts: tuple[Form, ...]) -> _NodeKinds:
        result = self.kind(parts[0])
        for part in parts[1:]:
            other = self.kind(part)
            if not result.meets(other).possible():
                raise FormError(f"{parts[0]} is {result.shown()} and {part} is {other.shown()}; nothing is both")
            result = result.meets(other)
        return result

    @staticmethod
    def either(kinds: list[_NodeKinds]) -> _NodeKinds:
        if any(kind.may is None for kind in kinds):
            return _NodeKinds()
        return _NodeKinds(frozenset().union(*[kind.may or frozenset() for kind in kinds]))

    def along(self, form: Form, at: _NodeKinds, path: Steps) -> _NodeKinds:
        """What a path leads members to."""
        for step in path:
            near, far = self.ends(step)
            if not near.meets(at).possible():
                raise FormError(f"in {form}, {step} is of {near.shown()}, but applied to {at.shown()}")
            at = far
        return at

    def measured(
        self, form: Form, members: _NodeKinds, path: Steps, counted: bool, value: forms.Literal | None = None
    ) -> _NodeKinds:
        """The members that have the path; its values must be numbers or dates, of the dimension of `value`."""
        first, at = self.ends(path[0])[0], self.along(form, members, path)
        dimensions = {key for kind, key in at.may or () if kind == "literal"} - {TEXT}
        if span := forms.span_of(path):
            self.along(form, members, (forms.Step(span.until),))
        if counted or span:
            dimensions = {""}
        elif not dimensions:
            raise FormError(
                f"values of {path[-1]} are {at.shown()}; only numbers and dates compare (to count them, write "
                f"(COUNT {path[-1]}))"
            )
        if value is not None:
            expected = measure(value)
            if expected is None:
                raise FormError(f"{value} in {form} is no number and no date; write its datatype: 2010^^xsd:gYear")
            if expected.dim not in dimensions:
                names = ", ".join(sorted(_name(("literal", dimension)) for dimension in dimensions))
                raise FormError(f"{value} is {_name(('literal', expected.dim))}, and values of {path[-1]} are {names}")
        return members if isinstance(form, forms.TimeConstraint) else members.meets(first)

    def conditions(self, where: tuple[forms.Where, ...]) -> None:
        known = self.schema.qualifiers
        for relation, op, value in where:
            if relation not in known:
                raise FormError(f"no statement has the qualifier {relation!r} in this graph{nearest(relation, known)}")
            result = None if isinstance(value, forms.Entity) else measure(value)
            expected = "entity" if isinstance(value, forms.Entity) else TEXT if result is None else result.dim
            if expected not in known[relation] and op not in ("at", "current", "first", "last"):
                names = ", ".join(sorted(_name(("literal", dimension)) for dimension in known[relation]))
                raise FormError(f"values of the qualifier {relation} are {names}, and {value} is none of these")


def _types(keys: frozenset[str]) -> frozenset[_Tag]:
    return frozenset(("type", key) for key in keys)


def _name(tag: _Tag) -> str:
    kind, key = tag
    if kind == "type":
        return "a thing without type" if key == UNTYPED else key
    names = {TIME: "a date", TEXT: "text", "": "a bare number", "entity": "entities"}
    return names.get(key, f"a number in {key}")
