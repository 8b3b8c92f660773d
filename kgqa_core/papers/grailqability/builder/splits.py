"""Train, dev and test with unanswerable questions that miss what training has seen missing, and such that do not.

Questions with the same form go together.  A drop that is chosen for zero-shot is in no training question, neither in
its form nor in what its ideal answers rest on; whoever misses it is in dev or test.  Of what dev and test miss:

    iid        training has questions that each of the missing elements touches
    partial    training has none for some missing element, but other parts of the schema of the form, or of what is
               missing, occur
    full       no relation or type of the form, and nothing of what is missing, occurs in training

Full zero-shot comes first, for it costs most: all questions with the relations and types of a form are kept out of
training, as long as dev and test have room for them (`full_zero_shot`).  Shares that a data set does not have room for
are filled with what it has, and `FullShare` says what stood in the way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from kgqa_core.papers.grailqability.builder.full_zero_shot import FormGroup, FullZeroShot, Obstacle
from kgqa_core.papers.grailqability.builder.records import FULL, IID, PARTIAL
from kgqa_core.types import SPLITS

TRAIN, DEV, TEST = SPLITS


@dataclass(frozen=True, slots=True)
class Shares:
    """splits: of train, dev and test.  zero_shot: of what dev and test cannot answer; full: of those."""

    splits: tuple[float, float, float] = (0.7, 0.1, 0.2)
    zero_shot: float = 0.5
    full: float = 0.25


@dataclass(frozen=True, slots=True)
class SplitResult:
    """where: the split of each group.

    wanted: full zero-shot questions that were requested.  room: answerable and unanswerable questions that dev and test
    hold, and zero-shot ones that were requested.  obstacle: None where nothing stood in the way.
    """

    where: list[str]
    wanted: int
    room: tuple[int, int, int]
    obstacle: Obstacle | None


def split(groups: Sequence[FormGroup], shares: Shares, seed: int) -> SplitResult:
    """The split of each group, and what came of the share of full zero-shot questions."""
    return _Splitter(groups, shares, seed).run()


def levels(groups: Sequence[FormGroup], where: Sequence[str]) -> list[str | None]:
    """How new each unanswerable group of dev and test is; None for others."""
    train = [group for group, index in zip(groups, where, strict=True) if index == TRAIN]
    touched = frozenset().union(*(group.touched for group in train))
    schema = frozenset().union(*(group.schema for group in train))
    return [
        None if index == TRAIN or group.kind is None else _level(group, touched, schema)
        for group, index in zip(groups, where, strict=True)
    ]


def _level(group: FormGroup, touched: frozenset[int], schema: frozenset[str]) -> str:
    if group.missing <= touched:
        return IID
    return PARTIAL if group.missing & touched or group.schema & schema else FULL


class _Splitter:
    def __init__(self, groups: Sequence[FormGroup], shares: Shares, seed: int) -> None:
        self.groups, self.shares = groups, shares
        self.random = random.Random(f"answerability/{seed}")
        self.where: list[str | None] = [None] * len(groups)
        total = sum(shares.splits)
        self.out = {name: part / total for name, part in zip(SPLITS, shares.splits, strict=True)}
        self.totals = {True: self._size(lambda g: g.kind is None), False: self._size(lambda g: g.kind is not None)}
        self.by_step = self._index(lambda group: group.touched)
        self.by_schema = self._index(lambda group: group.schema)
        self.held: set[int] = set()
        self.held_sizes: Counter[bool] = Counter()
        self.chosen_sizes: Counter[str | None] = Counter()
        self.given: Counter[tuple[str, bool]] = Counter()

    def run(self) -> SplitResult:
        wanted = self._held_out(False) * self.shares.zero_shot
        full = round(self.shares.full * wanted)
        room = (int(self._held_out(True)), int(self._held_out(False)), int(wanted))
        chooser = FullZeroShot(self.groups, self.by_step, self.by_schema, room)
        held, obstacle = chooser.choose(full)
        self._hold(held)
        self._choose(chooser.zero_shot)
        self._hold_steps(wanted, set(chooser.zero_shot), chooser.unseen | chooser.able())
        self._share_out(sorted(self.held))
        self._add_iid()
        self._fill(False)
        self._fill(True)
        return SplitResult([index or TRAIN for index in self.where], full, room, obstacle)

    def _hold_steps(self, wanted: float, chosen: set[int], unseen: set[int]) -> None:
        """Chooses further steps for zero-shot, until about `wanted` questions miss them.

        chosen: groups that are zero-shot already.  unseen: steps that training does not touch, or that are not to be
        chosen, for more questions would be full zero-shot than requested.
        """
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
        for round_ in (0, 1):
            for kind in sorted(steps, key=lambda name: len(steps[name])):
                order = self.random.sample(steps[kind], len(steps[kind]))
                limit = wanted if round_ else sizes[kind] / max(1, self.totals[False]) * wanted
                for step in order:
                    self._hold_step(step, limit, wanted, None if round_ else kind, chosen, unseen)

    def _hold_step(
        self, step: int, limit: float, wanted: float, kind: str | None, chosen: set[int], unseen: set[int]
    ) -> None:
        """Takes a step and all that it touches out of training, if there is room."""
        if step in unseen:
            return
        new = [g for g in self.by_step.get(step, ()) if g not in self.held]
        missing = [g for g in self.by_step.get(step, ()) if step in self.groups[g].missing and g not in chosen]
        grown = self._count(missing)
        all_chosen = sum(self.chosen_sizes.values())
        of_kind = all_chosen if kind is None else self.chosen_sizes[kind]
        if all_chosen + grown > wanted or of_kind + grown > limit or not self._room(new):
            return
        unseen.add(step)
        self._hold(new)
        self._choose(missing)
        chosen.update(missing)

    def _hold(self, new: Iterable[int]) -> None:
        for g in new:
            self.held_sizes[self.groups[g].kind is None] += self.groups[g].size
            self.held.add(g)

    def _choose(self, indices: Iterable[int]) -> None:
        for g in indices:
            self.chosen_sizes[self.groups[g].kind] += self.groups[g].size

    def _room(self, new: Collection[int]) -> bool:
        """Whether dev and test have room for what would be held out with these groups, none of which is held."""
        more = Counter(self.held_sizes)
        for g in new:
            more[self.groups[g].kind is None] += self.groups[g].size
        return all(more[answerable] <= self._held_out(answerable) for answerable in (True, False))

    def _share_out(self, held: Sequence[int]) -> None:
        """Divides what is held out between dev and test, each kind and label alike."""
        strata: dict[tuple[str, int], list[int]] = {}
        for g in held:
            group = self.groups[g]
            inner = sum(1 for e in group.schema if any(other not in self.held for other in self.by_schema[e]))
            strata.setdefault((group.kind or "", min(inner, 1)), []).append(g)
        for name in sorted(strata):
            self._deal(self.random.sample(strata[name], len(strata[name])), self._count(strata[name]))

    def _deal(self, order: Iterable[int], total: float) -> None:
        """Gives groups to dev and test in proportion, until both have their part of `total` questions."""
        parts = {name: self.out[name] / (self.out[DEV] + self.out[TEST]) for name in (DEV, TEST)}
        dealt = dict.fromkeys(parts, 0.0)
        for g in order:
            name = max(parts, key=lambda split: (parts[split] * total - dealt[split], split))
            self._put(g, name)
            dealt[name] += self.groups[g].size

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

    def _count(self, indices: Iterable[int]) -> int:
        return sum(self.groups[g].size for g in indices)

    def _size(self, fits: Callable[[FormGroup], bool]) -> int:
        return sum(group.size for group in self.groups if fits(group))

    def _index(self, of: Callable[[FormGroup], Iterable[object]]) -> dict[object, list[int]]:
        index: dict[object, list[int]] = {}
        for g, group in enumerate(self.groups):
            for key in of(group):
                index.setdefault(key, []).append(g)
        return index
