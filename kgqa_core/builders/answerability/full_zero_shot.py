"""Which relations and types are kept out of training, so that some questions are full zero-shot.

An unanswerable question is full zero-shot where no relation or type of its form, and nothing of what it misses, occurs
in a training question.  So every question whose form has one of these relations or types, and every one that what is
missing touches, has to be in dev or test.  Those have room for three tenths of all questions, and a relation that is in
more cannot be kept out: on a graph of few relations hardly anything is full zero-shot, however it is drawn.

Greedy: of the sets of relations and types of unanswerable forms, the one whose questions make most full zero-shot for
the room that they take comes first, ties by name.  Then, question by question, what else touches what it misses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.builders.answerability.groups import FormGroup

OVERSHOOT = 1.25
"""Full zero-shot questions that are taken at most, times what was requested, while any choice stays below it."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why no further question was made full zero-shot: the elements that would cost least to keep out of training.

    answerable, unanswerable: questions that dev and test would have to take, with those that they had taken already.
    zero_shot: questions that would then be zero-shot.
    """

    elements: frozenset[str]
    answerable: int
    unanswerable: int
    zero_shot: int


class FullZeroShot:
    """The choice; afterwards `zero_shot` are the groups that are zero-shot by it, and `unseen` steps not in training.

    by_step, by_schema: groups that a step touches, and whose form has a relation or type.  room: answerable and
    unanswerable questions that dev and test hold, and zero-shot ones at most.
    """

    def __init__(
        self,
        groups: Sequence[FormGroup],
        by_step: Mapping[object, Sequence[int]],
        by_schema: Mapping[object, Sequence[int]],
        room: tuple[int, int, int],
    ) -> None:
        self.groups, self.by_step, self.by_schema, self.room = groups, by_step, by_schema, room
        self.held: set[int] = set()
        self.unseen: set[int] = set()
        self.zero_shot: set[int] = set()
        self.elements: set[str] = set()
        self._left = {step: len(of) for step, of in by_step.items()}
        self._missing: dict[int, list[int]] = {}
        for g, group in enumerate(groups):
            for step in group.missing:
                self._missing.setdefault(step, []).append(g)

    def choose(self, wanted: int) -> tuple[set[int], Obstacle | None]:
        """Groups that are kept out of training for about `wanted` questions, and what stood in the way of more."""
        schemas = sorted({group.schema for group in self.groups if group.kind is not None and group.schema}, key=sorted)
        obstacle: Obstacle | None = None
        while self.made() < wanted:
            best: tuple[tuple[float, float], frozenset[str], set[int]] | None = None
            obstacle = None
            for schema in schemas:
                added = schema - self.elements
                if not added:
                    continue
                new = {g for element in added for g in self.by_schema[element]} - self.held
                cost = self._cost(new)
                if not self._fits(cost):
                    obstacle = _cheaper(obstacle, self._obstacle(schema, cost))
                    continue
                more, possible = self._gain(new, added, wanted)
                if not possible:
                    continue
                over = max(0.0, self.made() + more - OVERSHOOT * wanted)
                rank = (-over, possible / max(1, self._count(new)))
                if best is None or rank > best[0]:
                    best = rank, schema, new
            if best is None:
                break
            self.elements |= best[1]
            self._hold(best[2])
            self._complete(wanted)
        return self.held, None if self.made() >= wanted else obstacle

    def made(self) -> int:
        """Full zero-shot questions so far."""
        return self._count(g for g in self.zero_shot if self._full(g, self.elements, self.unseen))

    def able(self) -> set[int]:
        """Steps that questions miss whose relations and types are all kept out of training."""
        return {
            step
            for group in self.groups
            if group.kind is not None and group.schema and group.schema <= self.elements
            for step in group.missing
        }

    def _full(self, g: int, elements: set[str], unseen: set[int]) -> bool:
        group = self.groups[g]
        return bool(group.missing) and group.schema <= elements and group.missing <= unseen

    def _complete(self, wanted: int) -> None:
        """Keeps out what else touches the things that questions of these elements miss, the cheapest first."""
        inner = {g for element in self.elements for g in self.by_schema[element]}
        able = [g for g in sorted(inner) if self.groups[g].kind is not None and self.groups[g].schema <= self.elements]
        costs = sorted((self._count(self._touching(g)), g) for g in able if not self.groups[g].missing <= self.unseen)
        for _, g in costs:
            if self.made() >= wanted:
                return
            new = self._touching(g)
            if self._fits(self._cost(new)):
                self._hold(new)

    def _touching(self, g: int) -> set[int]:
        """Groups beside those held that something touches which a group misses."""
        return {other for step in self.groups[g].missing for other in self.by_step.get(step, ())} - self.held

    def _gain(self, new: set[int], added: frozenset[str], wanted: int) -> tuple[int, int]:
        """Full zero-shot questions that holding `new` makes at once, and those that it makes possible, as needed."""
        elements = self.elements | added
        gone = self.unseen | self._emptied(new)
        able = [
            g
            for g in (*new, *self.held)
            if self.groups[g].kind is not None and self.groups[g].schema <= elements and self.groups[g].schema & added
        ]
        at_once = self._count(g for g in able if self._full(g, elements, gone))
        return at_once, min(self._count(able), wanted - self.made())

    def _cost(self, new: set[int]) -> tuple[int, int, int]:
        """Answerable and unanswerable questions that would be held, and zero-shot ones."""
        sizes: Counter[bool] = Counter()
        for g in (*self.held, *new):
            sizes[self.groups[g].kind is None] += self.groups[g].size
        return sizes[True], sizes[False], self._count(self.zero_shot | self._zero(self._emptied(new)))

    def _fits(self, cost: tuple[int, int, int]) -> bool:
        return all(one <= most for one, most in zip(cost, self.room, strict=True))

    def _emptied(self, new: set[int]) -> set[int]:
        """Steps that touch nothing in training once `new` is held too."""
        less = Counter(step for g in new for step in self.groups[g].touched)
        return {step for step, number in less.items() if number == self._left[step]}

    def _zero(self, steps: Iterable[int]) -> set[int]:
        return {g for step in steps for g in self._missing.get(step, ())}

    def _hold(self, new: set[int]) -> None:
        emptied = self._emptied(new)
        for g in new:
            for step in self.groups[g].touched:
                self._left[step] -= 1
        self.held |= new
        self.unseen |= emptied
        self.zero_shot |= self._zero(emptied)

    def _obstacle(self, schema: frozenset[str], cost: tuple[int, int, int]) -> Obstacle:
        return Obstacle(frozenset(self.elements | schema), *cost)

    def _count(self, places: Iterable[int]) -> int:
        return sum(self.groups[g].size for g in places)


def _cheaper(one: Obstacle | None, other: Obstacle) -> Obstacle:
    """The obstacle of fewer questions; the first of equals."""
    if one is None:
        return other
    return min(one, other, key=lambda each: each.answerable + each.unanswerable)
