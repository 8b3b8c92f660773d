"""Candidate forms of a question: its likely operations applied to its mentions and the paths of its retriever.

A candidate weighs log P(operation) + the sum of log weights of its paths and mentions, less what it leaves out or adds:
a mention that it does not use, a path cut short, a relation that no path names.  One relation at least is of some
path: where the retriever predicts nothing, nothing is computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from kgqa_core.datasets.derived.gold_forms import measure
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import BESTS, And, Arg, Count, Entity, Form, Greater, Holds, Minus, Nth, elements
from kgqa_core.logic.paths import from_path
from kgqa_core.logic.schema import Schema
from kgqa_core.logic.typed import Typed, typed
from kgqa_core.symbolic.arguments import Weighted
from kgqa_core.symbolic.operations import KINDS, OperationScores
from kgqa_core.symbolic.question_reader import QuestionReading, TopicMention
from kgqa_core.types import INVERSE

LEAST_KIND = math.log(0.02)
"""Kinds less likely than this are not tried, the likeliest apart."""
NAMED = math.log(0.3)
"""Least log probability of `nth` where the words name a place, and of `difference` where they take something away."""
UNNAMED_MEASURE, UNNAMED_STEP = math.log(1e-3), math.log(1e-4)
"""What a measure and a first relation cost that no path names; half of it where the question contains their label."""
CUT = math.log(0.05)
"""What it costs to take only the beginning of a path, or of what is compared only the end."""
UNUSED = math.log(1e-3)
"""What it costs to leave out a mention that is certain; less for one that is not."""
UNLIKE = math.log(0.05)
"""What it costs to ask whether something is among things that are of no type that it has."""
MOST_MENTIONS, MOST_SIDES, MOST_STEPS, MOST_CANDIDATES = 3, 12, 12, 400
_WORD = re.compile(r"\w+")

_Sets = list[tuple[Form, float]]
"""Forms of sets with their weights."""


@dataclass(frozen=True, slots=True)
class WeightedForm:
    """A form and its weight, the logarithm of something like a probability; kind: of its operation."""

    form: Form
    weight: float
    kind: str


@dataclass
class Assembler:
    """Assembles the forms of one question.

    labels: of the relations, by key.  types: of the entities that are mentioned, from `schema.types_of`.  paths: of the
    retriever, with their weights.  text: the question's.
    """

    schema: Schema
    labels: Mapping[str, str]
    types: Mapping[str, frozenset[str]]
    reading: QuestionReading
    guess: OperationScores
    paths: Sequence[Weighted]
    text: str
    _typed: dict[Form, Typed | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [(p, w) for p, w in self.paths if all(_relation(r) in self.schema.relations for r in p)]
        self._logs = _with_prefixes(known)
        self._relations = {_relation(relation) for path, _ in known for relation in path}
        self._words = {_stem(word) for word in _WORD.findall(self.text.lower())}
        self._mentions = self.reading.mentions[:MOST_MENTIONS]
        self._sides = [self._side(mention) for mention in self._mentions]

    def candidates(self) -> Iterator[WeightedForm]:
        """Well-typed candidates, the heaviest first, each form once; types are checked lazily."""
        found: dict[Form, WeightedForm] = {}
        for kind, prior in zip(KINDS, self.guess.kinds, strict=True):
            if (kind == "nth" and (self.reading.place or 1) > 1) or (
                kind == "difference" and self.reading.turned is not None
            ):
                prior = max(prior, NAMED)
            if prior < LEAST_KIND and kind != self.guess.kind:
                continue
            for form, weight in self._of_kind(kind):
                if self._relations.isdisjoint(elements(form).relations):
                    continue
                one = WeightedForm(form, round(prior + weight + self._unused(form), 6), kind)
                if form not in found or found[form].weight < one.weight:
                    found[form] = one
        order = sorted(found.values(), key=lambda one: (-one.weight, str(one.form)))
        return (one for one in order[:MOST_CANDIDATES] if self.fits(one.form))

    def fits(self, form: Form) -> bool:
        """Whether a form is well-typed."""
        return self._kind(form) is not None

    def _kind(self, form: Form) -> Typed | None:
        if form not in self._typed:
            try:
                self._typed[form] = typed(form, self.schema, self.types)
            except FormError:
                self._typed[form] = None
        return self._typed[form]

    def _unused(self, form: Form) -> float:
        """What the mentions cost that a form does not name."""
        used = elements(form).entities
        left = [m for m in self.reading.mentions if not any(key in used for key, _ in m.entities)]
        return sum(max(rho for _, rho in mention.entities) * UNUSED for mention in left)

    def _of_kind(self, kind: str) -> Iterator[tuple[Form, float]]:
        if kind in ("none", "count"):
            for form, weight in self._sets():
                yield (Count(form) if kind == "count" else form), weight
        elif kind == "intersect":
            yield from self._both()
        elif kind == "best" or (kind == "nth" and self.reading.place is not None):
            yield from self._ranked()
        elif kind == "compare":
            yield from self._compared()
        elif kind == "difference":
            yield from self._differences()
        elif kind == "yes/no":
            yield from self._holds()

    def _side(self, mention: TopicMention) -> _Sets:
        """What leads from one mention, well-typed, the heaviest few: along paths, or along a relation that it has."""
        made: dict[Form, float] = {}
        for key, rho in mention.entities:
            steps = [((step,), cost) for step, cost in self._steps(key)]
            for path, weight in (*self._logs, *steps):
                form = from_path(key, path)
                made[form] = max(math.log(max(rho, 1e-6)) + weight, made.get(form, -math.inf))
        fit = [(form, weight) for form, weight in made.items() if self.fits(form)]
        return sorted(fit, key=lambda pair: (-pair[1], str(pair[0])))[:MOST_SIDES]

    def _steps(self, key: str) -> Iterator[tuple[str, float]]:
        """Relations that lead from things like an entity, and the cost of each where the question does not name it."""
        types = self.types.get(key, frozenset())
        for relation in self.schema.leaving(types)[:MOST_STEPS]:
            yield relation, self._unnamed(relation, UNNAMED_STEP)
        for relation in self.schema.reaching(types)[:MOST_STEPS]:
            yield INVERSE + relation, self._unnamed(relation, UNNAMED_STEP)

    def _unnamed(self, relation: str, cost: float) -> float:
        label = {_stem(word) for word in _WORD.findall(self.labels.get(relation, "").lower())}
        return cost * (0.5 if label and label <= self._words else 1.0)

    def _sets(self) -> Iterator[tuple[Form, float]]:
        """What a path leads to from one mention, or from all at once where there are several."""
        for side in self._sides:
            yield from side
        yield from self._both()

    def _both(self) -> Iterator[tuple[Form, float]]:
        for parts in product(*self._sides) if len(self._sides) > 1 else ():
            form = And(tuple(one for one, _ in parts))
            if self.fits(form):
                yield form, sum(weight for _, weight in parts)

    def _ranked(self) -> Iterator[tuple[Form, float]]:
        """Members of a set by what is measured: the end of a path, or what all of them have."""
        place = self.reading.place or 1
        members = [(form, weight, self._measures(form)) for form, weight in self._sets()]
        for mention in self._mentions:
            for (key, rho), (path, weight) in product(mention.entities, self._logs):
                if len(path) > 1:
                    whole = math.log(max(rho, 1e-6)) + weight
                    members.append((from_path(key, path[:-1]), 0.0, [(path[-1], whole)]))
        for best, odds in zip(BESTS, self.guess.bests, strict=True):
            for form, weight, measures in members:
                for last, more in measures:
                    steps, counted = measure((last,)), not self._measured(last)
                    ranked = Nth(place, best, form, steps, counted) if place > 1 else Arg(best, form, steps, counted)
                    yield ranked, weight + more + odds

    def _measures(self, members: Form) -> list[tuple[str, float]]:
        """Numbers and dates that members of a set have, and what it costs to take each: less where a path ends so."""
        found = self._kind(members)
        ends: dict[str, float] = {}
        for path, weight in self._logs:
            ends[path[-1]] = max(weight, ends.get(path[-1], -math.inf))
        numbers = [r for r in self.schema.leaving(found.types if found and found.types else ()) if self._measured(r)]
        return [(r, max(self._unnamed(r, UNNAMED_MEASURE), ends.get(r, -math.inf))) for r in numbers]

    def _compared(self) -> Iterator[tuple[Form, float]]:
        ends = [(path[-1:], weight + CUT) for path, weight in self._logs if len(path) > 1]
        for one, other in combinations(self._mentions, 2):
            for (x, rho), (y, sigma), (path, weight) in product(one.entities, other.entities, [*self._logs, *ends]):
                counted = not self._measured(path[-1])
                sure = math.log(max(rho, 1e-6)) + math.log(max(sigma, 1e-6))
                for best, odds in zip(BESTS, self.guess.bests, strict=True):
                    yield Greater(Entity(x), Entity(y), measure(path), best, counted), sure + weight + odds

    def _differences(self) -> Iterator[tuple[Form, float]]:
        """What one mention leads to without what the other does; the words say which, else the classifier."""
        for one, other in combinations(self._sides, 2):
            for turned, odds in enumerate(self.guess.orders):
                if self.reading.turned is not None:
                    if bool(turned) != self.reading.turned:
                        continue
                    odds = 0.0
                for (of, weight), (without, more) in product(*((other, one) if turned else (one, other))):
                    if self.fits(And((of, without))):
                        yield Minus(of, without), weight + more + odds

    def _holds(self) -> Iterator[tuple[Form, float]]:
        for places in combinations(range(len(self._sides)), 2):
            for turned, odds in enumerate(self.guess.orders):
                first, second = places[::-1] if turned else places
                for (of, weight), (key, rho) in product(self._sides[first], self._mentions[second].entities):
                    kind = self._kind(of)
                    if kind is not None and kind.kind != "literals":
                        like = 0.0 if self.fits(And((of, Entity(key)))) else UNLIKE
                        yield Holds(of, Entity(key)), weight + math.log(max(rho, 1e-6)) + odds + like

    def _measured(self, relation: str) -> bool:
        """Whether a relation leads to numbers or dates."""
        return not relation.startswith(INVERSE) and bool(self.schema.relations[relation].measured)


def _with_prefixes(paths: Sequence[Weighted]) -> list[Weighted]:
    """The paths with the logarithms of their weights, and what they begin with, which weighs less."""
    found: dict[tuple[str, ...], float] = {}
    for path, weight in paths:
        for length in range(1, len(path) + 1):
            own = math.log(weight) + (0.0 if length == len(path) else CUT)
            found[path[:length]] = max(own, found.get(path[:length], -math.inf))
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def _relation(key: str) -> str:
    return key.removeprefix(INVERSE)


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word
