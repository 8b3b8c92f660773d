"""A form in the words that the label parser compares with a question: labels, in the order of a noun phrase.

Entities are written as their slots (`x`, `y`, `z`), so that equal phrases of different entities are encoded once.
"""

from __future__ import annotations

import re
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
    Step,
    TimeConstraint,
)
from kgqa_core.symbolic.by_labels.graph import LabelGraph

SLOTS = ("x", "y", "z", "w")
"""Words that stand for the mentions of a question, in the order of its text."""
NUMBER = "n"
"""Word that stands for a number or date of a question."""
_PLACES = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth"}
_ENDS_OPEN = re.compile(r" (of|by|in|at|for|to|from|on|with|after)$")
"""Labels such as *owned by* and *part of*, which are followed by their tail."""
_OPS = {"lt": "less than", "le": "at most", "gt": "more than", "ge": "at least"}


class Phrases:
    """Writes forms of one graph.  slots: entity key → the word that stands for it."""

    def __init__(self, graph: LabelGraph) -> None:
        self.graph = graph

    def write(self, form: Form, slots: Mapping[str, str]) -> str:
        """The phrase of a form; an entity without a slot is written `x`."""
        match form:
            case Count(of=of):
                return f"number of {self._set(of, slots)}"
            case Holds(of=of, one=one):
                return f"whether {self._set(one, slots)} is {self._set(of, slots)}"
        return self._set(form, slots)

    def _set(self, form: Form, slots: Mapping[str, str]) -> str:
        match form:
            case Entity(key=key):
                return slots.get(key, SLOTS[0])
            case Class(key=key):
                return self._type(self.graph.type_of_key.get(key, -1)) or key
            case Literal(text=text):
                return slots.get(text, NUMBER if text[:1].isdigit() else text)
            case Join(path=path, of=of, where=where):
                text = self._path(path, self._set(of, slots))
                return text + (f" in {NUMBER}" if where else "")
            case And(parts=parts):
                return self._both(parts, slots)
            case Or(parts=parts):
                return " or ".join(self._set(part, slots) for part in parts)
            case Minus(of=of, without=without):
                return f"{self._set(of, slots)} but not {self._set(without, slots)}"
            case Arg(best=best, of=of, path=path, counted=counted):
                return f"{self._set(of, slots)} with {_best(best, counted)} {self._measure(path)}"
            case Nth(n=n, best=best, of=of, path=path, counted=counted):
                place = _PLACES.get(n, f"{n}th")
                return f"{self._set(of, slots)} with {place} {_best(best, counted)} {self._measure(path)}"
            case Greater(one=one, other=other, path=path, best=best, counted=counted):
                than = ("more" if best == "max" else "fewer") if counted else ("larger" if best == "max" else "smaller")
                return f"{self._set(one, slots)} or {self._set(other, slots)} with {than} {self._measure(path)}"
            case Compare(op=op, path=path):
                return f"with {self._measure(path)} {_OPS[op]} {NUMBER}"
            case TimeConstraint(of=of):
                return f"{self._set(of, slots)} in {NUMBER}"
            case Count() | Holds():
                return self.write(form, slots)
        raise AssertionError(form)

    def _both(self, parts: tuple[Form, ...], slots: Mapping[str, str]) -> str:
        """Parts of an intersection, a class first as the noun, and the nouns of the others left out."""
        classes = [part for part in parts if isinstance(part, Class)]
        others = [self._set(part, slots) for part in parts if not isinstance(part, Class)]
        named = [self._set(part, slots) for part in classes]
        if named:
            nouns = [self._noun(part) for part in parts if not isinstance(part, Class)]
            others = [
                f": {text}" if noun is None else text.removeprefix(noun).strip()
                for text, noun in zip(others, nouns, strict=True)
            ]
        return " ".join([*named, " and ".join(others)])

    def _noun(self, form: Form) -> str | None:
        """The noun that the phrase of a form begins with, which another may stand for; None where it has none."""
        match form:
            case Compare():
                return ""
            case Class():
                return self._set(form, {})
            case Join(path=(Step(relation=key, inverse=False), *_)):
                return self.graph.noun(self.graph.memory.relation_ids[key])
            case Arg(of=of) | Nth(of=of) | Minus(of=of):
                return self._noun(of)
        return None

    def _path(self, path: tuple[Step, ...], text: str) -> str:
        for step in reversed(path):
            relation = self.graph.memory.relation_ids[step.relation]
            label = self.graph.labels[relation]
            noun = self.graph.noun(relation)
            if _ENDS_OPEN.search(label):
                text = f"what {text} is {label}" if step.inverse else f"{noun} {label} {text}".strip()
            else:
                text = f"{label} of {text}" if step.inverse else f"{noun} with {label} {text}".strip()
        return text

    def _measure(self, path: tuple[Step, ...]) -> str:
        relations = [self.graph.memory.relation_ids[step.relation] for step in path]
        return " ".join(
            self.graph.labels[relation] if not step.inverse else self._inverse(relation)
            for step, relation in zip(reversed(path), reversed(relations), strict=True)
        )

    def _inverse(self, relation: int) -> str:
        return self.graph.noun(relation) or f"things with {self.graph.labels[relation]}"

    def _type(self, place: int) -> str:
        return self.graph.type_labels[place] if place >= 0 else ""


def _best(best: str, counted: bool) -> str:
    if counted:
        return "most" if best == "max" else "fewest"
    return "largest" if best == "max" else "smallest"
