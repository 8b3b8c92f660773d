"""Questions and forms without names: slots `[E1]`, `[E2]` for entities and `[V1]` for a number or date of the text.

How a question is parsed depends on how it is worded, not on whom it is about.  With slots, questions about entities
that training never saw look like those that it saw, and equal wordings are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from kgqa_core.datasets.derived.form_values import SlotValue, mapped, values_in
from kgqa_core.datasets.files.masking import mask_names
from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form
from kgqa_core.logic.measures import TIME as TIME_DIMENSION
from kgqa_core.logic.measures import measure
from kgqa_core.papers.grailqability.parsing.examples import Topic

ENTITIES = ("[E1]", "[E2]")
VALUE = "[V1]"
PLACEHOLDERS = (*ENTITIES, VALUE)
"""What stands for mentions and values in texts; slots of forms have the same keys."""

MENTIONS = tuple(f"[M{number}]" for number in range(1, 17))
"""Slots of all mentions of a question, in the order of its text: what the generator reads and writes."""

NUMBER, TIME, STRING = "number", "time", "string"
"""Datatypes of the slots of a number, a date and a string."""


@dataclass(frozen=True, slots=True)
class View:
    """A question in which one or two of its mentions, or none, and at most one value are slots.

    text: with placeholders.  mentions: numbers of what `[E1]` and `[E2]` stand for, in the order of the text.
    """

    text: str
    mentions: tuple[int, ...] = ()
    value: SlotValue | None = None


def mentions_of(text: str, topics: Sequence[Topic], most: int) -> list[tuple[int, str]]:
    """(number, words) of at most `most` mentions, those with the surest candidates, in the order of the text.

    Words that are a part of another mention of the same entity (`Ghali` in `Boutros Boutros-Ghali`) are no mention of
    their own.
    """
    best: dict[int, Topic] = {}
    for topic in sorted(topics, key=lambda topic: (-topic.rho, topic.key)):
        best.setdefault(topic.number, topic)
    low = text.lower()

    def part(number: int) -> bool:
        topic_of_mention = best[number]
        return any(
            (-len(other.mention), one) < (-len(topic_of_mention.mention), number)
            and other.key == topic_of_mention.key
            and topic_of_mention.mention.lower() in other.mention.lower()
            for one, other in best.items()
        )

    def place(number: int) -> tuple[int, int]:
        start = low.find(best[number].mention.lower())
        return (start if start >= 0 else len(low), number)

    whole = [number for number in best if not part(number)]
    chosen = sorted(whole, key=lambda number: (-best[number].rho, number))[:most]
    return [(number, best[number].mention) for number in sorted(chosen, key=place)]


def views_of(text: str, mentions: Sequence[tuple[int, str]]) -> list[View]:
    """The ways to read a question: about no mention, each one and each two of them, and the same with each value.

    The first is about none.
    """
    text = " ".join(text.split())
    masked = mask_names(text, [([words], " ") for _, words in mentions])
    values = values_in(masked)
    views = []
    for value in (None, *values):
        for size in range(3):
            for chosen in combinations(mentions, size):
                spots = [([words], slot) for (_, words), slot in zip(chosen, ENTITIES, strict=False)]
                if value is not None:
                    spots.append(([value.text], VALUE))
                views.append(View(mask_names(text, spots), tuple(number for number, _ in chosen), value))
    return views


def whole_text(text: str, mentions: Sequence[tuple[int, str]]) -> str:
    """A question in which every mention is the slot of its place among them."""
    spots = [([words], slot) for (_, words), slot in zip(mentions, MENTIONS, strict=False)]
    return mask_names(" ".join(text.split()), spots)


def filled(
    form: Form, entities: Sequence[str], value: SlotValue | None = None, slots: Sequence[str] = ENTITIES
) -> Form:
    """A form with keys in place of its slots, and a literal in place of that of a value, where there is one."""
    names = dict(zip(slots, entities, strict=False))

    def entity(node: forms.Entity) -> Form:
        return forms.Entity(names.get(node.key, node.key))

    def literal(node: forms.Literal) -> forms.Literal:
        if value is None or node.text != VALUE:
            return node
        slot_literal = {TIME: value.time, STRING: value.string}.get(node.datatype, value.number)
        return node if slot_literal is None else replace(slot_literal, unit=node.unit)

    return _changed(form, entity, literal)


def abstract(form: Form, slots: Mapping[str, str], value: SlotValue | None = None) -> Form:
    """A form with slots in place of entities, by key, and of literals that say the value; the inverse of `filled`."""

    def entity(node: forms.Entity) -> Form:
        return forms.Entity(slots.get(node.key, node.key))

    def literal(node: forms.Literal) -> forms.Literal:
        if value is not None and (kind := _kind_of(node, value)) is not None:
            return forms.Literal(VALUE, kind, node.unit)
        return node

    return _changed(form, entity, literal)


def _kind_of(node: forms.Literal, value: SlotValue) -> str | None:
    """As what a value of the text says a literal: a number whatever its datatype, a date of the same precision."""
    if value.number is not None and (measured := measure(node)) is not None and measured.dim != TIME_DIMENSION:
        measured_value = measure(value.number)
        if node.text == value.number.text or (
            measured_value is not None and measured.lo == measured_value.lo and node.unit is None
        ):
            return NUMBER
    if value.time is not None and (value.time.text, value.time.datatype) == (node.text, node.datatype):
        return TIME
    return STRING if value.string is not None and value.string.text == node.text else None


def _changed(
    form: Form, entity: Callable[[forms.Entity], Form], literal: Callable[[forms.Literal], forms.Literal]
) -> Form:
    def change(node: Form) -> Form | None:
        match node:
            case forms.Entity():
                return entity(node)
            case forms.Literal():
                return literal(node)
            case forms.Compare(value=value):
                return replace(node, value=literal(value))
            case forms.TimeConstraint(of=of, value=value):
                return replace(node, of=mapped(of, change), value=literal(value))
        return None

    return mapped(form, change)
