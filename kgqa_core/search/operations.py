"""The operations that a question may need, and which one a form does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa_core.logic.forms import And, Arg, Count, Entity, Form, Greater, Holds, Minus, Nth, children

KINDS = ("none", "count", "best", "nth", "compare", "intersect", "difference", "yes/no")
"""none: a relation path.  best: argmax and argmin.  nth: a place further down.  compare: the one of two with more."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of a question.  best: `max` or `min`.  turned: the operand named second comes first."""

    kind: str
    best: str = "max"
    turned: bool = False


def operation_of(form: Form, mentions: Sequence[str]) -> Operation:
    """The operation that a form does, that of its outermost part that does any.

    mentions: keys of the question's topics in the order of its text, by which operands are turned or not.
    """
    match form:
        case Holds(of=of, one=one):
            return Operation("yes/no", turned=_turned(of, one, mentions))
        case Count():
            return Operation("count")
        case Arg(best=best):
            return Operation("best", best)
        case Nth(best=best):
            return Operation("nth", best)
        case Greater(best=best):
            return Operation("compare", best)
        case Minus(of=of, without=without):
            return Operation("difference", turned=_turned(of, without, mentions))
        case And(parts=parts) if sum(bool(_named(part)) for part in parts) > 1:
            return Operation("intersect")
    inner = [value for part in children(form) if (value := operation_of(part, mentions)).kind != "none"]
    return inner[0] if inner else Operation("none")


def _turned(first: Form, second: Form, mentions: Sequence[str]) -> bool:
    indices = [
        min((mentions.index(key) for key in _named(form) if key in mentions), default=0) for form in (first, second)
    ]
    return indices[0] > indices[1]


def _named(form: Form) -> list[str]:
    own = [form.key] if isinstance(form, Entity) else []
    return own + [key for part in children(form) for key in _named(part)]
