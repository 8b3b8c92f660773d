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
from functools import cached_property


@dataclass(frozen=True)
class FormGroup:
    """Questions of one form.  members: their indices.  kind: of the drop that made them unanswerable, else None.

    missing, touched: steps, as of `build.GraphOutcome`.  elements: what the form names, `e1`, `r2`, `t3`.
    """

    members: tuple[int, ...]
    kind: str | None
    missing: frozenset[int] = frozenset()
    touched: frozenset[int] = frozenset()
    elements: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Questions in it."""
        return len(self.members)

    @cached_property
    def schema(self) -> frozenset[str]:
        """The relations and types among its elements."""
        return frozenset(element for element in self.elements if element[0] != "e")


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
    """The choice.  Afterwards `held` are the groups that training does without, `zero_shot` and `full` those that are
    zero-shot by it and fully so, `unseen` the steps, and `elements` the relations and types, that it does without.

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
        self.full: set[int] = set()
        self._sizes = {True: 0, False: 0}
        self._zero_size = self._full_size = 0
        self._free: dict[frozenset[str], Counter[bool]] = {}
        for group in groups:
            self._free.setdefault(group.schema, Counter())[group.kind is None] += group.size
        self._left = {step: len(of) for step, of in by_step.items()}
        self._missing: dict[int, list[int]] = {}
        for g, group in enumerate(groups):
            for step in group.missing:
                self._missing.setdefault(step, []).append(g)

    def choose(self, wanted: int) -> tuple[set[int], Obstacle | None]:
        """Groups that are kept out of training for about `wanted` questions, and what stood in the way of more."""
        schemas = sorted({group.schema for group in self.groups if group.kind is not None and group.schema}, key=sorted)
        refused: frozenset[str] | None = None
        while self._full_size < wanted:
            best: tuple[tuple[float, float], frozenset[str], set[int]] | None = None
            refused, least = None, 0
            for schema in schemas:
                added = schema - self.elements
                if not added:
                    continue
                answerable, unanswerable = self._sizes_with(added)
                new: set[int] = set()
                fits = answerable <= self.room[0] and unanswerable <= self.room[1]
                if fits:
                    new = self._having(added)
                    fits = self._fits(self._cost(new))
                if not fits:
                    if refused is None or answerable + unanswerable < least:
                        refused, least = schema, answerable + unanswerable
                    continue
                more, possible = self._gain(new, added, wanted)
                if not possible:
                    continue
                over = max(0.0, self._full_size + more - OVERSHOOT * wanted)
                rank = (-over, possible / max(1, self._count(new)))
                if best is None or rank > best[0]:
                    best = rank, schema, new
            if best is None:
                break
            self.elements |= best[1]
            self._hold(best[2])
            self.full = {g for g in self.zero_shot if self._is_full(g, self.elements, self.unseen)}
            self._full_size = self._count(self.full)
            self._complete(wanted)
        if self._full_size >= wanted or refused is None:
            return self.held, None
        return self.held, Obstacle(frozenset(self.elements | refused), *self._cost(self._having(refused)))

    def _having(self, elements: frozenset[str]) -> set[int]:
        """Groups beside those held whose form has one of some elements."""
        return {g for element in elements for g in self.by_schema[element]} - self.held

    def _sizes_with(self, elements: frozenset[str]) -> tuple[int, int]:
        """Answerable and unanswerable questions that would be held with the forms that have one of some elements."""
        more = [sizes for schema, sizes in self._free.items() if schema & elements]
        answerable, unanswerable = (sum(sizes[kept] for sizes in more) for kept in (True, False))
        return self._sizes[True] + answerable, self._sizes[False] + unanswerable

    def able(self) -> set[int]:
        """Steps that questions miss whose relations and types are all kept out of training."""
        return {
            step
            for group in self.groups
            if group.kind is not None and group.schema and group.schema <= self.elements
            for step in group.missing
        }

    def _is_full(self, g: int, elements: set[str], unseen: set[int]) -> bool:
        group = self.groups[g]
        return bool(group.missing) and group.schema <= elements and group.missing <= unseen

    def _complete(self, wanted: int) -> None:
        """Keeps out what else touches the things that questions of these elements miss, the cheapest first."""
        inner = {g for element in self.elements for g in self.by_schema[element]}
        able = [g for g in sorted(inner) if self.groups[g].kind is not None and self.groups[g].schema <= self.elements]
        costs = sorted((self._count(self._touching(g)), g) for g in able if not self.groups[g].missing <= self.unseen)
        for _, g in costs:
            if self._full_size >= wanted:
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
        able = {
            g
            for element in added
            for g in self.by_schema[element]
            if self.groups[g].kind is not None and self.groups[g].schema <= elements
        }
        at_once = self._count(g for g in able if self._is_full(g, elements, gone))
        return at_once, min(self._count(able), wanted - self._full_size)

    def _cost(self, new: set[int]) -> tuple[int, int, int]:
        """Answerable and unanswerable questions that would be held, and zero-shot ones."""
        sizes = dict(self._sizes)
        for g in new:
            sizes[self.groups[g].kind is None] += self.groups[g].size
        more = self._zero(self._emptied(new)) - self.zero_shot
        return sizes[True], sizes[False], self._zero_size + self._count(more)

    def _fits(self, cost: tuple[int, int, int]) -> bool:
        return all(one <= most for one, most in zip(cost, self.room, strict=True))

    def _emptied(self, new: set[int]) -> set[int]:
        """Steps that touch nothing in training once `new` is held too."""
        less = Counter(step for g in new for step in self.groups[g].touched)
        return {step for step, number in less.items() if number == self._left[step]}

    def _zero(self, steps: Iterable[int]) -> set[int]:
        return {g for step in steps for g in self._missing.get(step, ())}

    def _hold(self, new: set[int]) -> None:
        self._sizes[True], self._sizes[False], self._zero_size = self._cost(new)
        emptied = self._emptied(new)
        for g in new:
            group = self.groups[g]
            self._free[group.schema][group.kind is None] -= group.size
            for step in group.touched:
                self._left[step] -= 1
        self.held |= new
        self.unseen |= emptied
        self.zero_shot |= self._zero(emptied)
        new_full = {g for g in self._zero(emptied) if self._is_full(g, self.elements, self.unseen)} - self.full
        self.full |= new_full
        self._full_size += self._count(new_full)

    def _count(self, indices: Iterable[int]) -> int:
        return sum(self.groups[g].size for g in indices)
