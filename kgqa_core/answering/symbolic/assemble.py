"""Candidate forms of a question: its likely operations applied to its mentions and the paths of its retriever.

A candidate weighs log P(operation) + the sum of log weights of its paths and mentions.  What is measured is the end of
a path, counted where it leads to entities; a set whose measure no path names takes the numbers that its members have,
those first whose label shares words with the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from kgqa_core.answering.symbolic.arguments import Weighted
from kgqa_core.answering.symbolic.operator import KINDS, Guess
from kgqa_core.answering.symbolic.said import Said
from kgqa_core.datasets.gold_forms import measure
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import BESTS, And, Arg, Count, Entity, Form, Greater, Holds, Minus, Nth, elements
from kgqa_core.logic.paths import from_path
from kgqa_core.logic.schema import Schema
from kgqa_core.logic.typed import typed
from kgqa_core.types import INVERSE

LEAST_KIND = math.log(0.02)
"""Kinds less likely than this are not tried, the likeliest apart."""
UNSAID = math.log(0.02)
"""What a measure costs that no path names; one whose label the question says costs half of it."""
UNLIKE = math.log(0.05)
"""What it costs to ask whether something is among things that are of no type that it has."""
UNUSED = math.log(0.1)
"""What each mention costs that a form leaves out."""
PREFIX = math.log(0.05)
"""What it costs to stop a path before its end."""
MOST_MENTIONS = 3
MOST_CANDIDATES = 400
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A form and its weight, the logarithm of something like a probability; kind: of its operation."""

    form: Form
    weight: float
    kind: str


class Assembler:
    """Assembles forms over a graph of this schema.  labels: of its relations by key."""

    def __init__(self, schema: Schema, labels: Mapping[str, str]) -> None:
        self.schema, self.labels = schema, labels

    def candidates(
        self, said: Said, guess: Guess, paths: Sequence[Weighted], types: Mapping[str, frozenset[str]], text: str
    ) -> Iterator[Candidate]:
        """Well-typed candidates, the heaviest first, each form once; types are checked as they are asked for.

        types: of the entities that are mentioned, from `schema.types_of`; text: the question's.
        """
        found: dict[Form, Candidate] = {}
        known = [(path, weight) for path, weight in paths if all(_relation(r) in self.schema.relations for r in path)]
        for kind, prior in zip(KINDS, guess.kinds, strict=True):
            if prior < LEAST_KIND and kind != guess.kind:
                continue
            for form, weight in self._made(kind, said, guess, known, types, text):
                used = elements(form).entities
                unused = len(said.mentions) - sum(any(key in used for key, _ in m.entities) for m in said.mentions)
                one = Candidate(form, round(prior + weight + unused * UNUSED, 6), kind)
                if form not in found or found[form].weight < one.weight:
                    found[form] = one
        order = sorted(found.values(), key=lambda one: (-one.weight, str(one.form)))
        return (one for one in order[:MOST_CANDIDATES] if self.fits(one.form, types))

    def fits(self, form: Form, types: Mapping[str, frozenset[str]]) -> bool:
        """Whether a form is well-typed."""
        try:
            typed(form, self.schema, types)
        except FormError:
            return False
        return True

    def _made(
        self,
        kind: str,
        said: Said,
        guess: Guess,
        paths: Sequence[Weighted],
        types: Mapping[str, frozenset[str]],
        text: str,
    ) -> Iterator[tuple[Form, float]]:
        starts = [tuple((key, math.log(max(rho, 1e-6))) for key, rho in m.entities) for m in said.mentions]
        logs = [(path, math.log(weight)) for path, weight in _with_prefixes(paths)]
        if kind in ("none", "count"):
            for form, weight in self._sets(starts, logs, types):
                yield (Count(form) if kind == "count" else form), weight
        elif kind == "intersect":
            yield from self._both(starts, logs, types)
        elif kind in ("best", "nth"):
            yield from self._ranked(kind, said, guess, starts, logs, types, text)
        elif kind == "compare":
            yield from self._compared(starts, logs, guess)
        elif kind in ("difference", "yes/no"):
            yield from self._pairs(kind, said, guess, starts, logs, types)

    def _sets(self, starts: _Starts, logs: _Logs, types: Mapping[str, frozenset[str]]) -> Iterator[tuple[Form, float]]:
        """What a path leads to from one mention, or from several at once where there are several."""
        for own in starts:
            for (key, rho), (path, weight) in product(own, logs):
                form = from_path(key, path)
                if self.fits(form, types):
                    yield form, rho + weight
        yield from self._both(starts, logs, types)

    def _both(self, starts: _Starts, logs: _Logs, types: Mapping[str, frozenset[str]]) -> Iterator[tuple[Form, float]]:
        if not 2 <= len(starts) <= MOST_MENTIONS:
            return
        sides = [self._side(own, logs, types) for own in starts]
        for parts in product(*sides):
            form = And(tuple(one for one, _ in parts))
            if self.fits(form, types):
                yield form, sum(weight for _, weight in parts)

    def _side(
        self, own: Sequence[tuple[str, float]], logs: _Logs, types: Mapping[str, frozenset[str]]
    ) -> list[tuple[Form, float]]:
        """What leads from one mention, well-typed, the heaviest few."""
        made = [(from_path(key, path), rho + weight) for (key, rho), (path, weight) in product(own, logs)]
        fit = [(form, weight) for form, weight in made if self.fits(form, types)]
        return sorted(fit, key=lambda pair: (-pair[1], str(pair[0])))[:12]

    def _ranked(
        self,
        kind: str,
        said: Said,
        guess: Guess,
        starts: _Starts,
        logs: _Logs,
        types: Mapping[str, frozenset[str]],
        text: str,
    ) -> Iterator[tuple[Form, float]]:
        place = said.place or 1

        def ranked(best: str, members: Form, last: str, counted: bool) -> Form:
            path = measure((last,))
            return Nth(place, best, members, path, counted) if place > 1 else Arg(best, members, path, counted)

        for best, odds in zip(BESTS, guess.bests, strict=True):
            for own in starts:
                for (key, rho), (path, weight) in product(own, logs):
                    if len(path) > 1:
                        members, last = from_path(key, path[:-1]), path[-1]
                        yield ranked(best, members, last, not self._measured(last)), rho + weight + odds
            for members, weight in self._sets(starts, logs, types):
                for last, cost in self._measures(members, types, text):
                    yield ranked(best, members, last, False), weight + odds + cost

    def _compared(self, starts: _Starts, logs: _Logs, guess: Guess) -> Iterator[tuple[Form, float]]:
        for one, other in _mention_pairs(starts):
            for (x, rho), (y, other_rho), (path, weight) in product(one, other, logs):
                counted = not self._measured(path[-1])
                for best, odds in zip(BESTS, guess.bests, strict=True):
                    form = Greater(Entity(x), Entity(y), measure(path), best, counted)
                    yield form, rho + other_rho + weight + odds

    def _pairs(
        self, kind: str, said: Said, guess: Guess, starts: _Starts, logs: _Logs, types: Mapping[str, frozenset[str]]
    ) -> Iterator[tuple[Form, float]]:
        for one, other in _mention_pairs(starts):
            for turned, odds in enumerate(guess.orders):
                if kind == "difference" and said.turned is not None:
                    odds = 0.0 if bool(turned) == said.turned else UNSAID
                first, second = (other, one) if turned else (one, other)
                if kind == "difference":
                    sides = self._side(first, logs, types), self._side(second, logs, types)
                    for (of, weight), (without, more) in product(*sides):
                        yield Minus(of, without), weight + more + odds
                else:
                    for (of, weight), (key, rho) in product(self._side(first, logs, types), second):
                        if typed(of, self.schema, types).kind != "literals":
                            like = 0.0 if self.fits(And((of, Entity(key))), types) else UNLIKE
                            yield Holds(of, Entity(key)), weight + rho + odds + like

    def _measured(self, relation: str) -> bool:
        """Whether a relation leads to numbers or dates."""
        return not relation.startswith(INVERSE) and bool(self.schema.relations[relation].measured)

    def _measures(self, members: Form, types: Mapping[str, frozenset[str]], text: str) -> Iterator[tuple[str, float]]:
        """Numbers and dates that members of a set have, and what it costs to take each."""
        kinds = typed(members, self.schema, types).types
        words = {_stem(word) for word in _WORD.findall(text.lower())}
        for relation in self.schema.leaving(kinds) if kinds else ():
            if self._measured(relation):
                label = {_stem(word) for word in _WORD.findall(self.labels.get(relation, "").lower())}
                yield relation, UNSAID * (0.5 if label and label <= words else 1.0)


_Starts = Sequence[Sequence[tuple[str, float]]]
"""Of each mention the entities that it may mean, with the logarithms of their confidence."""
_Logs = Sequence[tuple[tuple[str, ...], float]]
"""Relation paths with the logarithms of their weights."""


def _mention_pairs(starts: _Starts) -> Iterator[tuple[Sequence[tuple[str, float]], Sequence[tuple[str, float]]]]:
    """Two mentions in the order of the text, the first two first."""
    for one, other in permutations(range(min(len(starts), MOST_MENTIONS)), 2):
        if one < other:
            yield starts[one], starts[other]


def _with_prefixes(paths: Sequence[Weighted]) -> list[Weighted]:
    """The paths, and what they begin with, which weighs less."""
    found: dict[tuple[str, ...], float] = {}
    for path, weight in paths:
        for length in range(1, len(path) + 1):
            own = weight if length == len(path) else weight * math.exp(PREFIX)
            found[path[:length]] = max(own, found.get(path[:length], 0.0))
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def _relation(key: str) -> str:
    return key.removeprefix(INVERSE)


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word
