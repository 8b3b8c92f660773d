"""Logical forms as GrailQA writes them (Gu et al. 2021, appendix; after λ-DCS), and what each of them denotes.

A form denotes a set of nodes, entities or literals; `Count`, `Holds`, `Share` and `Aggregate` stand outermost and
denote a value or a table.  A path reads from the answer: in `(JOIN r (JOIN s X))` an answer has the relation r to
something that has the relation s to a member of X.  Forms are compared, hashed and printed as trees; a join of a join
is one join with a longer path, and an AND in an AND (or an OR in an OR) is one with more parts, so that each tree is
written in one way.

    Entity, Literal          themselves
    Class                    (TYPE c), or bare `film.film`: everything of that type or of one below it
    Join                     (JOIN r X) = {e : e r x}; (JOIN (R r) X) = {o : x r o}, with x in X
    And, Or, Minus           (AND X Y), (OR X Y), (MINUS X Y): in all, in any, in the first and not in the second
    Count                    (COUNT X): how many; 0 when there are none
    Arg                      (ARGMAX X r), (ARGMIN X (JOIN r s)): those with the best value of the path, with all ties
    Nth                      (NTHMAX n X r), (NTHMIN n X r): those with the n-th best value; equal values are one place
                             (FIRSTMAX n X r), (FIRSTMIN n X r): the first n, and what is equal to the last of them
    Compare                  (lt r v), le, gt, ge: what has a value of the path that compares so
    CompareTo                (gt r X), …: what has a value that compares so with that of every member of X
    TimeConstraint           (TC X r v): members for which the time v is not before r, nor after the end of r
    Greater                  (GREATER X Y r), (LESS X Y r): of two, the one with more (or less); both when equal
    Holds                    (HOLDS X Y): whether every member of Y, of which there is one, is in X
    Share                    (SHARE X Y): percent of the members of X that are in Y
    Aggregate                (SUM X r), (AVG X r), (MAX X r), (MIN X r), (RANGE X r): of the values of the path of all
                             members
                             (VALUES X r): members and their values; (GROUP X r), (GROUP X r (SUM s)): how many
                             members have each value of r, or the sum of their values of s
                             (GROUP X r (ARGMAX s)): of each value of r the members with the largest s
                             (TOPMAX (GROUP …)), (TOPMIN (GROUP …)): the values of r with the largest or smallest
    Qualifier                (QUALIFIER q (JOIN r X) Y): values of q on the statements that join Y to X

`Or`, `Minus`, `Nth`, `CompareTo`, `Greater`, `Holds`, `Share`, `Aggregate`, conditions on qualifiers, counted paths and
spans of time are extensions.  A counted path, `(ARGMAX X (COUNT r))`, stands for how many nodes it reaches;
`(DAYS r s)` and `(YEARS r s)`, where a path stands that measures, for the time from the date of r to that of s.  A
condition on qualifiers is written after the join that it is about: `(JOIN (R P39) Q76 (eq P642 Q30))`; `at` selects
statements that have a time and hold at it, `current` those that do not say that they ended before a date, `first` and
`last` those with the n-th value from an end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from kgqa_core.errors import FormError
from kgqa_core.logic import syntax

BESTS = ("max", "min")
OPS = ("lt", "le", "gt", "ge")
ARITHMETIC = ("sum", "avg", "median", "range")
"""Aggregates that compute with numbers, which dates are none of."""
EVERY_WAY = ("sum", "avg", "median")
"""Aggregates that count a value once for each way that leads to it."""
REDUCTIONS = (*ARITHMETIC, *BESTS)
BEST_MEMBERS = ("argmax", "argmin")
"""Aggregates by group that denote members."""
UNITS_OF_TIME = ("days", "years")
WHERE_OPS = ("eq", *OPS, "at", "current", "first", "last")


@dataclass(frozen=True, slots=True)
class Step:
    """One relation of a path; inverse: from its tail to its head, `(R r)`."""

    relation: str
    inverse: bool = False

    def __str__(self) -> str:
        text = syntax.relation_text(self.relation)
        return f"(R {text})" if self.inverse else text


@dataclass(frozen=True, slots=True)
class TimeSpan(Step):
    """The time from a date to the date of another relation of the same thing: days, or completed years as of ages.

    It stands alone where a path measures.  Days need dates to the day; a date before the first one gives nothing.
    Raises FormError for an unknown unit.
    """

    until: str = ""
    unit: str = "days"

    def __post_init__(self) -> None:
        _check("unit of time", self.unit, UNITS_OF_TIME)

    def __str__(self) -> str:
        return f"({self.unit.upper()} {syntax.relation_text(self.relation)} {syntax.relation_text(self.until)})"


Steps = tuple[Step, ...]


class Form:
    """A logical form; `str` prints it so that `parser.parse` reads the same tree."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Entity(Form):
    """An entity by its key in the graph."""

    key: str

    def __str__(self) -> str:
        return syntax.entity_text(self.key)


@dataclass(frozen=True, slots=True)
class Literal(Form):
    """A literal; datatype: its IRI, or `@` and the language of a string; unit: the key of a quantity's unit."""

    text: str
    datatype: str
    unit: str | None = None

    def __str__(self) -> str:
        return syntax.literal_text(self.text, self.datatype, self.unit)


@dataclass(frozen=True, slots=True)
class Class(Form):
    """The entities of a type, or of a type below it."""

    key: str

    def __str__(self) -> str:
        return syntax.class_text(self.key)


class Where(NamedTuple):
    """A condition on a qualifier of a statement: its relation's key, one of WHERE_OPS, and the value."""

    relation: str
    op: str
    value: Entity | Literal

    def __str__(self) -> str:
        return f"({self.op} {syntax.relation_text(self.relation)} {self.value})"


@dataclass(frozen=True, slots=True)
class Join(Form):
    """What a path leads from to a member of `of`.  where: conditions that one statement fulfils; the path is one step.

    A join of a plain join is made one join.  Raises FormError for an empty path, and for conditions on a longer one.
    """

    path: Steps
    of: Form
    where: tuple[Where, ...] = ()

    def __post_init__(self) -> None:
        _check_path("JOIN", self.path)
        if span_of(self.path):
            raise FormError(f"{self.path[-1]} measures, as in (AVG X {self.path[-1]}); nothing is joined by it")
        if self.where and len(self.path) > 1:
            raise FormError(f"conditions on qualifiers need a path of one relation, and {_path(self.path)} has more")
        for condition in self.where:
            _check("condition", condition.op, WHERE_OPS)
        if not self.where and isinstance(self.of, Join) and not self.of.where:
            object.__setattr__(self, "path", self.path + self.of.path)
            object.__setattr__(self, "of", self.of.of)

    def __str__(self) -> str:
        text = str(self.of)
        for step in reversed(self.path):
            text = f"(JOIN {step} {text}" + "".join(f" {Where(*w)}" for w in self.where) + ")"
        return text


@dataclass(frozen=True, slots=True)
class And(Form):
    """What is in every part; at least two, nested ANDs flattened."""

    parts: tuple[Form, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat("AND", And, self.parts))

    def __str__(self) -> str:
        return _nested("AND", self.parts)


@dataclass(frozen=True, slots=True)
class Or(Form):
    """What is in any part; at least two, nested ORs flattened."""

    parts: tuple[Form, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat("OR", Or, self.parts))

    def __str__(self) -> str:
        return _nested("OR", self.parts)


@dataclass(frozen=True, slots=True)
class Minus(Form):
    """What is in `of` and not in `without`."""

    of: Form
    without: Form

    def __str__(self) -> str:
        return f"(MINUS {self.of} {self.without})"


@dataclass(frozen=True, slots=True)
class Count(Form):
    """How many members there are; a value."""

    of: Form

    def __str__(self) -> str:
        return f"(COUNT {self.of})"


@dataclass(frozen=True, slots=True)
class Arg(Form):
    """Members with the largest or smallest value at the end of a path, all of those that are equal.

    Members without a value are left out.  counted: the value is how many nodes the path reaches.
    """

    best: str
    of: Form
    path: Steps
    counted: bool = False

    def __post_init__(self) -> None:
        _check("best", self.best, BESTS)
        _check_path("ARG", self.path)

    def __str__(self) -> str:
        return f"(ARG{self.best.upper()} {self.of} {_measure(self.path, self.counted)})"


@dataclass(frozen=True, slots=True)
class Nth(Form):
    """Members with the n-th largest or smallest distinct value at the end of a path; n from 1, as in `Arg`.

    first: all that fewer than n members are better than.
    """

    n: int
    best: str
    of: Form
    path: Steps
    counted: bool = False
    first: bool = False

    def __post_init__(self) -> None:
        _check("best", self.best, BESTS)
        _check_path("NTH", self.path)
        if not 1 <= self.n < 10**9:
            raise FormError(f"places count from 1 to {10**9 - 1:,}; {self.n} is none")

    def __str__(self) -> str:
        name = "FIRST" if self.first else "NTH"
        return f"({name}{self.best.upper()} {self.n} {self.of} {_measure(self.path, self.counted)})"


@dataclass(frozen=True, slots=True)
class Compare(Form):
    """What has a value of a path that is less, at most, more or at least `value`.

    Dates compare with their precision: `lt` ends before the value begins, `le` ends no later than it; units must be of
    one kind.
    counted: the value is how many nodes the path reaches, of what has it at all.
    """

    op: str
    path: Steps
    value: Literal
    counted: bool = False

    def __post_init__(self) -> None:
        _check("comparison", self.op, OPS)
        _check_path(self.op, self.path)

    def __str__(self) -> str:
        return f"({self.op} {_measure(self.path, self.counted)} {self.value})"


@dataclass(frozen=True, slots=True)
class CompareTo(Form):
    """What has a value of a path that is less, at most, more or at least that of every member of `one` that has any.

    Dates compare by their beginnings.  counted: as of `Compare`.
    """

    op: str
    path: Steps
    one: Form
    counted: bool = False

    def __post_init__(self) -> None:
        _check("comparison", self.op, OPS)
        _check_path(self.op, self.path)
        if isinstance(self.one, Literal):
            raise FormError(f"values are compared with the literal {self.one} by Compare")

    def __str__(self) -> str:
        return f"({self.op} {_measure(self.path, self.counted)} {self.one})"

    @property
    def best(self) -> str:
        """The end of the scale that it wants."""
        return "max" if self.op in ("gt", "ge") else "min"


@dataclass(frozen=True, slots=True)
class TimeConstraint(Form):
    """Members for which `value` is not before the time that the path gives, nor after the one that ends it.

    The last relation of the path is the beginning; the end is `lookup.ending` of it.  A time that is missing is open.
    """

    of: Form
    path: Steps
    value: Literal

    def __post_init__(self) -> None:
        _check_path("TC", self.path)

    def __str__(self) -> str:
        return f"(TC {self.of} {_path(self.path)} {self.value})"


@dataclass(frozen=True, slots=True)
class Greater(Form):
    """Of two, the one with the larger (`best` is `min`: smaller) value; both when equal, none when one has no value."""

    one: Form
    other: Form
    path: Steps
    best: str = "max"
    counted: bool = False

    def __post_init__(self) -> None:
        _check("best", self.best, BESTS)
        _check_path("GREATER", self.path)

    def __str__(self) -> str:
        name = "GREATER" if self.best == "max" else "LESS"
        return f"({name} {self.one} {self.other} {_measure(self.path, self.counted)})"


@dataclass(frozen=True, slots=True)
class Holds(Form):
    """Whether `one` has members and all are in `of`; a value."""

    of: Form
    one: Form

    def __str__(self) -> str:
        return f"(HOLDS {self.of} {self.one})"


@dataclass(frozen=True, slots=True)
class Share(Form):
    """Percent of the members of `of` that are in `one`, a value; none where `of` has no member."""

    of: Form
    one: Form

    def __str__(self) -> str:
        return f"(SHARE {self.of} {self.one})"


@dataclass(frozen=True, slots=True)
class Aggregate(Form):
    """What is computed of the values at the end of a path from members; `by`: for each node that this path leads to.

    sum, avg, median: of the numbers of every way along the path, in the unit that all have, else in the base unit; none
    without a number, but the sum over no member is 0 where others of the kind have the measure.  max, min: the
    literals of the largest or smallest number or date.  range: the difference between the largest and the smallest
    number.  argmax, argmin, by `by`: the members with the best value.  count: how many members there are, by `by` and
    without a path.  values: rows of members and values.  counted: the values are how many nodes the path reaches.
    pick: the groups with the largest (`max`) or smallest value, a set, as in (TOPMAX (GROUP X r (AVG s))).
    """

    how: str
    of: Form
    path: Steps = ()
    by: Steps = ()
    counted: bool = False
    pick: str = ""

    def __post_init__(self) -> None:
        _check("aggregate", self.how, ("count", "values", *REDUCTIONS, *BEST_MEMBERS))
        if (
            not self.by
            and self.how in BEST_MEMBERS
            or bool(self.path) == (self.how == "count")
            or bool(self.by) < (self.how == "count")
            or self.by
            and self.how == "values"
        ):
            raise FormError(f"{self.how} of {self.of} is not written so: (VALUES X r), (GROUP X r) or (SUM X r)")
        if self.pick and (not self.by or self.how in (*BESTS, *BEST_MEMBERS) or self.pick not in BESTS):
            raise FormError(f"groups with the best {self.how} are written (TOPMAX (GROUP X r (AVG s))) or TOPMIN")

    def __str__(self) -> str:
        if not self.by:
            return f"({self.how.upper()} {self.of} {_measure(self.path, self.counted)})"
        of_each = f" ({self.how.upper()} {_measure(self.path, self.counted)})" if self.path else ""
        group = f"(GROUP {self.of} {_path(self.by)}{of_each})"
        return f"(TOP{self.pick.upper()} {group})" if self.pick else group

    @property
    def best(self) -> str:
        """The end of the scale that a set of groups or of members of groups has; "" of a value."""
        return self.pick or (self.how[3:] if self.how in BEST_MEMBERS else "")


@dataclass(frozen=True, slots=True)
class Qualifier(Form):
    """Values of a qualifier on the statements of a join of one relation by which members of `one` are in it.

    one: all members where it is None.
    """

    relation: str
    of: Form
    one: Form | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.of, Join) or len(self.of.path) > 1:
            raise FormError(f"QUALIFIER takes a JOIN of one relation, not {self.of}")

    def __str__(self) -> str:
        one = "" if self.one is None else f" {self.one}"
        return f"(QUALIFIER {syntax.relation_text(self.relation)} {self.of}{one})"


def span_of(path: Steps) -> TimeSpan | None:
    """The span of time that a path is, None where it is another."""
    last = path[-1] if path else None
    return last if isinstance(last, TimeSpan) else None


def is_computed(form: Arg | Nth | Compare | CompareTo | Greater | Aggregate) -> bool:
    """Whether a form measures by numbers that no triple states: counts, or spans of time."""
    return form.counted or span_of(form.path) is not None


def is_table(form: Form) -> bool:
    """Whether a form denotes rows of two columns."""
    return isinstance(form, Aggregate) and (bool(form.by) or form.how == "values") and not form.pick


def rewritten(form: Form, where: Callable[[str], Where | None]) -> Form | None:
    """The form with a condition on its first step, outermost first, whose relation has one; None where none has."""
    if isinstance(form, Join) and not form.where:
        for place, step in enumerate(form.path):
            if (condition := where(step.relation)) is not None:
                after = form.path[place + 1 :]
                made = Join((step,), Join(after, form.of) if after else form.of, (condition,))
                return Join(form.path[:place], made) if place else made
    for name in ("of", "one", "parts"):
        parts = getattr(form, name, None)
        for place, part in enumerate(parts if isinstance(parts, tuple) else () if parts is None else (parts,)):
            if (inner := rewritten(part, where)) is not None:
                own = (*parts[:place], inner, *parts[place + 1 :]) if isinstance(parts, tuple) else inner
                return replace(form, **{name: own})  # type: ignore[type-var]
    return None


_BELOW = ("of", "without", "one", "other")
"""Fields that hold a form, in the order in which they are written."""


def children(form: Form) -> tuple[Form, ...]:
    """The forms directly below, in the order in which they are written; values of conditions are not among them."""
    if isinstance(form, (And, Or)):
        return form.parts
    names = _below(type(form))  # type: ignore[arg-type]
    return tuple([part for name in names if (part := getattr(form, name)) is not None])


@cache
def _below(kind: type) -> tuple[str, ...]:
    """The fields of `_BELOW` that a kind of form has."""
    return tuple(name for name in _BELOW if hasattr(kind, name))


def with_children(form: Form, change: Callable[[Form], Form]) -> Form:
    """The form in which every form of `children` is changed."""
    if isinstance(form, (And, Or)):
        return replace(form, parts=tuple(map(change, form.parts)))
    parts = {name: change(part) for name in _BELOW if (part := getattr(form, name, None)) is not None}
    return replace(form, **parts) if parts else form  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Elements:
    """What a form uses, each sorted and once; relations by key, without direction."""

    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    literals: tuple[Literal, ...] = ()


def elements(form: Form) -> Elements:
    """The entities, relations, classes and literals of a form, those of its conditions on qualifiers included."""
    results: dict[str, set[str]] = {"entities": set(), "relations": set(), "classes": set()}
    literals: set[Literal] = set()
    todo: list[Form] = [form]
    while todo:
        node = todo.pop()
        todo.extend(children(node))
        match node:
            case Entity(key=key):
                results["entities"].add(key)
            case Class(key=key):
                results["classes"].add(key)
            case Literal():
                literals.add(node)
            case Compare(value=value) | TimeConstraint(value=value):
                literals.add(value)
            case Qualifier(relation=relation):
                results["relations"].add(relation)
        path = (*getattr(node, "path", ()), *getattr(node, "by", ()))
        results["relations"].update(step.relation for step in path)
        results["relations"].update(step.until for step in path if isinstance(step, TimeSpan))
        for relation, _, operand in node.where if isinstance(node, Join) else ():
            results["relations"].add(relation)
            todo.append(operand)
    order = sorted(literals, key=lambda v: (v.text, v.datatype, v.unit or ""))
    return Elements(**{kind: tuple(sorted(keys)) for kind, keys in results.items()}, literals=tuple(order))


_NESTED = 20
"""Parts of an AND or OR that are written as brackets in brackets."""


def _path(path: Steps) -> str:
    """Steps as nested joins of relations: `(JOIN r (JOIN s t))`."""
    text = str(path[-1])
    for step in reversed(path[:-1]):
        text = f"(JOIN {step} {text})"
    return text


def _measure(path: Steps, counted: bool) -> str:
    return f"(COUNT {_path(path)})" if counted else _path(path)


def _nested(name: str, parts: tuple[Form, ...]) -> str:
    """Two in a bracket, as GrailQA writes them; many in one, so that brackets are never too deep to be read."""
    if len(parts) > _NESTED:
        return f"({name} {' '.join(map(str, parts))})"
    text = str(parts[-1])
    for part in reversed(parts[:-1]):
        text = f"({name} {part} {text})"
    return text


def _flat(name: str, kind: type[And] | type[Or], parts: tuple[Form, ...]) -> tuple[Form, ...]:
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))
    if len(flat) < 2:
        raise FormError(f"{name} takes two forms or more, not {len(flat)}")
    return flat


def _check(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise FormError(f"{what} {value!r} is none of {', '.join(known)}")


def _check_path(name: str, path: Steps) -> None:
    if not path:
        raise FormError(f"{name} needs a relation, and the path is empty")
    if len(path) > 1 and any(isinstance(step, TimeSpan) for step in path):
        raise FormError(f"{name} takes a span of time alone, and {_path(path)} is a path of several relations")
