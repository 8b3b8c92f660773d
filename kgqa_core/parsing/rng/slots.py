"""Questions and forms without names: slots `[E1]`, `[E2]` for entities and `[V1]` for a number or date of the text.

How a question is parsed depends on how it is worded, not on whom it is about.  With slots, questions about entities
that training never saw look like those that it saw, and equal wordings are read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from kgqa_core.datasets.masking import mask_names
from kgqa_core.logic.forms import (
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
    Or,
    TimeConstraint,
)
from kgqa_core.logic.syntax import DATE, DECIMAL, INTEGER, YEAR
from kgqa_core.parsing.examples import Topic

ENTITIES = ("[E1]", "[E2]")
VALUE = "[V1]"
PLACEHOLDERS = (*ENTITIES, VALUE)
"""What stands for mentions and values in texts; slots of forms have the same keys."""

MENTIONS = tuple(f"[M{number}]" for number in range(1, 17))
"""Slots of all mentions of a question, in the order of its text: what the generator reads and writes."""

NUMBER, TIME = "number", "time"
"""Datatypes of the slot of a number, and of that of a date."""

_DATE = re.compile(r"(?<![\w.-])\d{4}-\d{2}-\d{2}(?![\w-])")
_NUMBER = re.compile(r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w-]|,\d)")
VALUES = 2
"""Numbers and dates of a text that are tried."""


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A number or date in a text, as it stands there; number, time: as a literal of each kind, where it may be one."""

    text: str
    number: Literal | None = None
    time: Literal | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A question in which one or two of its mentions, or none, and at most one value are slots.

    text: with placeholders.  mentions: numbers of what `[E1]` and `[E2]` stand for, in the order of the text.
    """

    text: str
    mentions: tuple[int, ...] = ()
    value: SlotValue | None = None


def mentions_of(text: str, topics: Sequence[Topic], most: int) -> list[tuple[int, str]]:
    """(number, words) of at most `most` mentions, those with the surest candidates, in the order of the text."""
    best: dict[int, tuple[float, str]] = {}
    for topic in topics:
        rho, words = best.get(topic.number, (-1.0, topic.mention))
        best[topic.number] = (max(rho, topic.rho), words)
    chosen = sorted(best, key=lambda number: (-best[number][0], number))[:most]
    low = text.lower()

    def place(number: int) -> tuple[int, int]:
        found = low.find(best[number][1].lower())
        return (found if found >= 0 else len(low), number)

    return [(number, best[number][1]) for number in sorted(chosen, key=place)]


def views_of(text: str, mentions: Sequence[tuple[int, str]]) -> list[View]:
    """The ways to read a question: about no mention, each one and each two of them, and the same with each value.

    The first is about none.
    """
    text = " ".join(text.split())
    masked = mask_names(text, [([words], " ") for _, words in mentions])
    values = values_in(masked)
    found = []
    for value in (None, *values):
        for size in range(3):
            for own in combinations(mentions, size):
                spots = [([words], slot) for (_, words), slot in zip(own, ENTITIES, strict=False)]
                if value is not None:
                    spots.append(([value.text], VALUE))
                found.append(View(mask_names(text, spots), tuple(number for number, _ in own), value))
    return found


def whole_text(text: str, mentions: Sequence[tuple[int, str]]) -> str:
    """A question in which every mention is the slot of its place among them."""
    spots = [([words], slot) for (_, words), slot in zip(mentions, MENTIONS, strict=False)]
    return mask_names(" ".join(text.split()), spots)


def values_in(text: str) -> list[SlotValue]:
    """The numbers, years and dates that a text names in figures, at most `VALUES`."""
    found = [SlotValue(match[0], time=Literal(match[0], DATE)) for match in _DATE.finditer(text)]
    for match in _NUMBER.finditer(_DATE.sub(" ", text)):
        plain = match[0].replace(",", "")
        year = Literal(plain, YEAR) if re.fullmatch(r"[12]\d{3}", match[0]) else None
        found.append(SlotValue(match[0], Literal(plain, DECIMAL if "." in plain else INTEGER), year))
    return list(dict.fromkeys(found))[:VALUES]


def filled(
    form: Form, entities: Sequence[str], value: SlotValue | None = None, slots: Sequence[str] = ENTITIES
) -> Form:
    """A form with keys in place of its slots, and a literal in place of that of a value, where there is one."""
    names = dict(zip(slots, entities, strict=False))

    def entity(node: Entity) -> Form:
        return Entity(names.get(node.key, node.key))

    def literal(node: Literal) -> Literal:
        own = None if value is None or node.text != VALUE else value.time if node.datatype == TIME else value.number
        return node if own is None else replace(own, unit=node.unit)

    return _changed(form, entity, literal)


def abstract(form: Form, slots: Mapping[str, str], value: SlotValue | None = None) -> Form:
    """A form with slots in place of entities, by key, and of literals that say the value; the inverse of `filled`."""

    def entity(node: Entity) -> Form:
        return Entity(slots.get(node.key, node.key))

    def literal(node: Literal) -> Literal:
        for kind, own in () if value is None else ((NUMBER, value.number), (TIME, value.time)):
            if own is not None and (own.text, own.datatype) == (node.text, node.datatype):
                return Literal(VALUE, kind, node.unit)
        return node

    return _changed(form, entity, literal)


def _changed(form: Form, entity: Callable[[Entity], Form], literal: Callable[[Literal], Literal]) -> Form:
    def inner(node: Form) -> Form:
        match node:
            case Entity():
                return entity(node)
            case Literal():
                return literal(node)
            case And(parts=parts) | Or(parts=parts):
                return replace(node, parts=tuple(map(inner, parts)))
            case Minus(of=of, without=without):
                return Minus(inner(of), inner(without))
            case Greater(one=one, other=other):
                return replace(node, one=inner(one), other=inner(other))
            case Holds(of=of, one=one):
                return Holds(inner(of), inner(one))
            case TimeConstraint(of=of, value=value):
                return replace(node, of=inner(of), value=literal(value))
            case Compare(value=value):
                return replace(node, value=literal(value))
            case Join(of=of) | Count(of=of) | Arg(of=of) | Nth(of=of):
                return replace(node, of=inner(of))
        return node

    return inner(form)
