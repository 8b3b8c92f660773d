"""Train, dev and test with unanswerable questions that miss what training has seen missing, and such that do not.

Questions with the same form go together.  A drop that is chosen for zero-shot is in no training question, neither in
its form nor in what its ideal answers rest on; whoever misses it is in dev or test.  Of what dev and test miss:

    iid        training has questions that each of the missing elements touches
    partial    training has none for some missing element, but other parts of the form, or of what is missing, occur
    full       nothing of the form and of what is missing occurs in training

Shares that a data set does not have room for are filled with what it has: `statistics` says what came of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from kgqa_core.builders.answerability.records import FULL, IID, PARTIAL
from kgqa_core.types import SPLITS

TRAIN, DEV, TEST = SPLITS


@dataclass(frozen=True, slots=True)
class FormGroup:
    """Questions of one form.  members: their places.  kind: of the drop that made them unanswerable, else None.

    missing, touched: steps, as of `labels.Label`.  elements: what the form names, `e1`, `r2`, `t3`.
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


@dataclass(frozen=True, slots=True)
class Shares:
    """splits: of train, dev and test.  zero_shot: of what dev and test cannot answer; full: of those."""

    splits: tuple[float, float, float] = (0.7, 0.1, 0.2)
    zero_shot: float = 0.5
    full: float = 0.25


def split(groups: Sequence[FormGroup], shares: Shares, seed: int) -> list[str]:
    """The split of each group."""
    return _Splitter(groups, shares, seed).run()


def levels(groups: Sequence[FormGroup], where: Sequence[str]) -> list[str | None]:
    """How new each unanswerable group of dev and test is; None for others."""
    train = [group for group, place in zip(groups, where, strict=True) if place == TRAIN]
    touched = frozenset().union(*(group.touched for group in train))
    elements = frozenset().union(*(group.elements for group in train))
    return [
        None if place == TRAIN or group.kind is None else _level(group, touched, elements)
        for group, place in zip(groups, where, strict=True)
    ]


def _level(group: FormGroup, touched: frozenset[int], elements: frozenset[str]) -> str:
    if group.missing <= touched:
        return IID
    return PARTIAL if group.missing & touched or group.elements & elements else FULL


class _Splitter:
    def __init__(self, groups: Sequence[FormGroup], shares: Shares, seed: int) -> None:
        self.groups, self.shares = groups, shares
        self.random = random.Random(f"answerability/{seed}")
        self.where: list[str | None] = [None] * len(groups)
        total = sum(shares.splits)
        self.out = {name: part / total for name, part in zip(SPLITS, shares.splits, strict=True)}
        self.totals = {True: self._size(lambda g: g.kind is None), False: self._size(lambda g: g.kind is not None)}
        self.by_step = self._index(lambda group: group.touched)
        self.by_element = self._index(lambda group: group.elements)
        self.held: set[int] = set()
        self.given: Counter[tuple[str, bool]] = Counter()

    def run(self) -> list[str]:
        wanted = self._held_out(False) * self.shares.zero_shot
        chosen = self._hold_steps(wanted)
        self._make_full(chosen, round(self.shares.full * sum(self.groups[g].size for g in chosen)))
        self._share_out(sorted(self.held))
        self._add_iid()
        self._fill(False)
        self._fill(True)
        return [place or TRAIN for place in self.where]

    def _hold_steps(self, wanted: float) -> set[int]:
        """Groups that miss the steps that are chosen for zero-shot, about `wanted` questions."""
        steps: dict[str, list[int]] = {}
        owner: dict[int, Counter[str]] = {}
        for group in self.groups:
            for step in group.missing:
                owner.setdefault(step, Counter())[group.kind or ""] += group.size
        for step in sorted(owner):
            kind = min(owner[step], key=lambda name: (-owner[step][name], name))
            steps.setdefault(kind, []).append(step)
        sizes = Counter[str | None]()
        for group in self.groups:
            sizes[group.kind] += group.size
        chosen: set[int] = set()
        unseen: set[int] = set()
        for round_ in (0, 1):
            for kind in sorted(steps, key=lambda name: len(steps[name])):
                order = self.random.sample(steps[kind], len(steps[kind]))
                limit = wanted if round_ else sizes[kind] / max(1, self.totals[False]) * wanted
                for step in order:
                    self._hold_step(step, limit, wanted, None if round_ else kind, chosen, unseen)
        return chosen

    def _hold_step(
        self, step: int, limit: float, wanted: float, kind: str | None, chosen: set[int], unseen: set[int]
    ) -> None:
        """Takes a step and all that it touches out of training, if there is room."""
        if step in unseen:
            return
        new = [g for g in self.by_step.get(step, ()) if g not in self.held]
        missing = [g for g in self.by_step.get(step, ()) if step in self.groups[g].missing and g not in chosen]
        grown = self._count(missing)
        of_kind = self._count(g for g in chosen if kind is None or self.groups[g].kind == kind)
        if self._count(chosen) + grown > wanted or of_kind + grown > limit or not self._room(new):
            return
        unseen.add(step)
        self.held.update(new)
        chosen.update(missing)

    def _room(self, new: Collection[int]) -> bool:
        """Whether dev and test have room for what would be held out with these groups."""
        for answerable in (True, False):
            candidates = (g for g in (*self.held, *new) if (self.groups[g].kind is None) == answerable)
            if self._count(candidates) > self._held_out(answerable):
                return False
        return True

    def _make_full(self, chosen: Collection[int], wanted: int) -> None:
        """Holds answerable questions out that share elements with some zero-shot ones, the cheapest first."""

        def rivals(place: int) -> set[int]:
            return {g for e in self.groups[place].elements for g in self.by_element[e] if g not in self.held}

        costs = sorted((self._count(rivals(place)), place) for place in chosen)
        made = 0
        for _, place in costs:
            if made >= wanted:
                return
            against = rivals(place)
            if all(self.groups[g].kind is None for g in against) and self._room(against):
                self.held.update(against)
                made += self.groups[place].size

    def _share_out(self, held: Sequence[int]) -> None:
        """Divides what is held out between dev and test, each kind and label alike."""
        strata: dict[tuple[str, int], list[int]] = {}
        for g in held:
            group = self.groups[g]
            inner = sum(1 for e in group.elements if any(other not in self.held for other in self.by_element[e]))
            strata.setdefault((group.kind or "", min(inner, 1)), []).append(g)
        for name in sorted(strata):
            self._deal(self.random.sample(strata[name], len(strata[name])), self._count(strata[name]))

    def _deal(self, order: Iterable[int], total: float) -> None:
        """Gives groups to dev and test in proportion, until both have their part of `total` questions."""
        parts = {name: self.out[name] / (self.out[DEV] + self.out[TEST]) for name in (DEV, TEST)}
        given = dict.fromkeys(parts, 0.0)
        for g in order:
            name = max(parts, key=lambda split: (parts[split] * total - given[split], split))
            self._put(g, name)
            given[name] += self.groups[g].size

    def _add_iid(self) -> None:
        """Moves unanswerable groups to dev and test as long as training still has one that each step touches."""
        touching: Counter[int] = Counter()
        free = [g for g, group in enumerate(self.groups) if g not in self.held]
        for g in free:
            touching.update(self.groups[g].touched)
        order = [g for g in free if self.groups[g].kind is not None]
        for g in self.random.sample(order, len(order)):
            group = self.groups[g]
            if all(touching[step] > 1 for step in group.missing) and self._give(g):
                touching.subtract(group.touched)

    def _fill(self, answerable: bool) -> None:
        """Fills dev and test with groups that are still free."""
        order = [
            g for g, group in enumerate(self.groups)
            if self.where[g] is None and g not in self.held and (group.kind is None) == answerable
        ]  # fmt: skip
        for g in self.random.sample(order, len(order)):
            self._give(g)

    def _give(self, g: int) -> bool:
        """Gives a group to whichever of dev and test lacks more of its label; False when both are full."""
        answerable = self.groups[g].kind is None
        lack = {name: self.out[name] * self.totals[answerable] - self.given[name, answerable] for name in (DEV, TEST)}
        name = max(lack, key=lambda split: (lack[split] / max(self.out[split], 1e-9), split))
        if lack[name] < self.groups[g].size / 2:
            return False
        self._put(g, name)
        return True

    def _put(self, g: int, name: str) -> None:
        self.where[g] = name
        self.given[name, self.groups[g].kind is None] += self.groups[g].size

    def _held_out(self, answerable: bool) -> float:
        return (self.out[DEV] + self.out[TEST]) * self.totals[answerable]

    def _count(self, places: Iterable[int]) -> int:
        return sum(self.groups[g].size for g in places)

    def _size(self, fits: Callable[[FormGroup], bool]) -> int:
        return sum(group.size for group in self.groups if fits(group))

    def _index(self, of: Callable[[FormGroup], Iterable[object]]) -> dict[object, list[int]]:
        found: dict[object, list[int]] = {}
        for g, group in enumerate(self.groups):
            for one in of(group):
                found.setdefault(one, []).append(g)
        return found
