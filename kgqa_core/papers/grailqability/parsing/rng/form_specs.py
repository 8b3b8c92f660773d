"""Candidate forms before they are made: tuples of an operation and what it is of, so that each form is made once.

A pool of candidates names thousands of forms, most of which other pools have named before.  A `FormSpec` is hashed
instead of a tree, and `SpecForms.form` makes the tree of a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, Step, Steps
from kgqa_core.papers.grailqability.parsing.rng.slots import ENTITIES
from kgqa_core.papers.grailqability.parsing.rng.ways import Ways

FormSpec = tuple[Any, ...]
"""An operation, the name of a method of `SpecForms`, and its arguments; forms below it are specs too."""

Path = tuple[int, ...]
"""Directed relations from a topic to the answer."""


class SpecForms:
    """Makes forms of specs over the ways of one graph."""

    def __init__(self, ways: Ways) -> None:
        self.ways = ways

    def form(self, spec: FormSpec) -> Form:
        """The form of a spec."""
        made: Form = getattr(self, spec[0])(*spec[1:])
        return made

    def join(self, path: Path, slot: int = 0) -> Form:
        """What a path leads to from the topic in a slot."""
        return forms.Join(self.back(path), forms.Entity(ENTITIES[slot]))

    def further(self, path: Path, of: FormSpec) -> Form:
        """What a path leads to from a set."""
        return forms.Join(self.back(path), self.form(of))

    def kind(self, number: int) -> Form:
        """Everything of a type."""
        return forms.Class(self.ways.classes[number])

    def typed(self, number: int, of: FormSpec) -> Form:
        """Members of a type among a set."""
        inner = self.form(of)
        parts = inner.parts if isinstance(inner, forms.And) else (inner,)
        return forms.And((self.kind(number), *parts))

    def count(self, of: FormSpec) -> Form:
        """How many."""
        return forms.Count(self.form(of))

    def best(self, best: str, of: FormSpec, by: Path) -> Form:
        """Those with the best value of a measure."""
        return forms.Arg(best, self.form(of), self.steps(by))

    def nth(self, n: int, best: str, of: FormSpec, by: Path) -> Form:
        """Those with the n-th best value."""
        return forms.Nth(n, best, self.form(of), self.steps(by))

    def both(self, one: FormSpec, other: FormSpec) -> Form:
        """What is in two sets."""
        return forms.And((self.form(one), self.form(other)))

    def minus(self, one: FormSpec, other: FormSpec) -> Form:
        """What is in the first and not in the second."""
        return forms.Minus(self.form(one), self.form(other))

    def holds(self, of: FormSpec, slot: int) -> Form:
        """Whether a topic is in a set."""
        return forms.Holds(self.form(of), forms.Entity(ENTITIES[slot]))

    def greater(self, by: Path, best: str, counted: bool) -> Form:
        """Which of the two topics has more."""
        return forms.Greater(forms.Entity(ENTITIES[0]), forms.Entity(ENTITIES[1]), self.steps(by), best, counted)

    def equal(self, by: Path, literal: forms.Literal) -> Form:
        """What has a value."""
        return forms.Join(self.steps(by), literal)

    def compare(self, op: str, by: Path, literal: forms.Literal) -> Form:
        """What has a value that compares so."""
        return forms.Compare(op, self.steps(by), literal)

    def steps(self, path: Sequence[int]) -> Steps:
        """A path as what is measured of the things at its start."""
        size = self.ways.relations
        return tuple(Step(self.ways.keys[way % size], way >= size) for way in path)

    def back(self, path: Path) -> Steps:
        """A path as a join reads it: from the answer to the topic."""
        return self.steps([self.ways.turned(way) for way in reversed(path)])
