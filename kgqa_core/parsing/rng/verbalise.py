"""A form in words, as the ranker reads it: relations by their labels, slots as they are."""

from __future__ import annotations

from collections.abc import Mapping

from kgqa_core.logic.forms import (
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
    Steps,
    TimeConstraint,
)

_OPS = {"lt": "less than", "le": "at most", "gt": "more than", "ge": "at least"}
_PLACES = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def in_words(form: Form, labels: Mapping[str, str]) -> str:
    """The words of a form.  labels: words of relations (and types) by key; a key without words stands as it is.

    >>> from kgqa_core.logic.parser import parse
    >>> in_words(parse("(COUNT (JOIN (R borders) fr))"), {})
    'number of borders of fr'
    """

    def path(steps: Steps) -> str:
        return " ".join(
            f"{'inverse ' if step.inverse else ''}{labels.get(step.relation, step.relation)}" for step in steps
        )

    def measure(node: Arg | Nth | Greater | Compare) -> str:
        return f"count of {path(node.path)}" if node.counted else path(node.path)

    def words(node: Form) -> str:
        match node:
            case Entity(key=key) | Class(key=key):
                return labels.get(key, key)
            case Literal(text=text):
                return text
            case Join(path=steps, of=of, where=where):
                text = words(of)
                for step in reversed(steps):
                    label = labels.get(step.relation, step.relation)
                    text = f"{label} of {text}" if step.inverse else f"whose {label} is {text}"
                return text + "".join(
                    f" at {labels.get(one.relation, one.relation)} {words(one.value)}" for one in where
                )
            case And(parts=parts):
                return " and ".join(map(words, parts))
            case Or(parts=parts):
                return " or ".join(map(words, parts))
            case Minus(of=of, without=without):
                return f"{words(of)} but not {words(without)}"
            case Count(of=of):
                return f"number of {words(of)}"
            case Arg(best=best, of=of):
                return f"{_best(best)} {measure(node)} among {words(of)}"
            case Nth(n=n, best=best, of=of):
                return f"{_PLACES.get(n, str(n))} {_best(best)} {measure(node)} among {words(of)}"
            case Greater(one=one, other=other, best=best):
                return f"{'larger' if best == 'max' else 'smaller'} {measure(node)} {words(one)} or {words(other)}"
            case Compare(op=op, value=value):
                return f"whose {measure(node)} is {_OPS[op]} {words(value)}"
            case TimeConstraint(of=of, path=steps, value=value):
                return f"{words(of)} during {path(steps)} {words(value)}"
            case Holds(of=of, one=one):
                return f"is {words(one)} among {words(of)}"
        raise AssertionError(node)

    return words(form)


def _best(best: str) -> str:
    return "largest" if best == "max" else "smallest"
