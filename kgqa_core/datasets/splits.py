"""Train, dev and test where a data set does not give them, and which questions of a split are asked."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence

from kgqa_core.errors import QuestionFileError
from kgqa_core.types import SPLITS, Question


def split_by_group(groups: Mapping[str, Hashable], shares: tuple[float, float, float], seed: int) -> dict[str, str]:
    """Question id → split, so that questions of one group (their topic entity) share a split.

    shares: of train, dev and test; they are scaled to sum to 1.  With fewer than three groups the questions
    themselves are divided.  Every split with a share gets a question where there are enough.
    """
    members: dict[Hashable, list[str]] = {}
    for question in sorted(groups):
        members.setdefault(groups[question], []).append(question)
    if len(members) < 3:
        members = {question: [question] for question in groups}
    order = sorted(members, key=lambda group: members[group][0])
    random.Random(seed).shuffle(order)
    total = sum(shares) or 1.0
    target = {split: share / total * len(groups) for split, share in zip(SPLITS, shares, strict=True) if share > 0}
    size = dict.fromkeys(target, 0)
    chosen: dict[Hashable, str] = {}
    small = min(target.values(), default=0.0)
    largest = max(target, key=lambda split: target[split], default="test")
    for group in order:
        count = len(members[group])
        deficit = {split: (target[split] - size[split]) / target[split] for split in target}
        split = largest if count > max(small, 1.0) else max(target, key=lambda name: deficit[name], default="test")
        chosen[group] = split
        size[split] = size.get(split, 0) + count
    _fill_empty(chosen, members, tuple(target))
    return {question: split for group, split in chosen.items() for question in members[group]}


def check_splits(sizes: Mapping[str, int], needs: Mapping[str, str], source: str) -> None:
    """Raise QuestionFileError when a split that a run needs has no question.

    sizes: questions by split.  needs: what each split is needed for, in words.  source: file or data set, for the
    message.
    """
    total = sum(sizes.values())
    empty = [split for split in needs if not sizes.get(split)]
    if not empty:
        return
    have = ", ".join(f"{sizes.get(split, 0):,} {split}" for split in SPLITS)
    reasons = "; ".join(f"{split}: {needs[split]}" for split in empty)
    if total < len(needs):
        way_out = f"give at least {len(needs)} questions"
    else:
        way_out = "give some questions that split, or leave the field out everywhere for a seeded split by topic entity"
    raise QuestionFileError(
        f"{source}: no question is in {' or '.join(empty)} ({have}), which this run needs ({reasons}); {way_out}"
    )


def hold_out(ids: Sequence[str], share: float, seed: int) -> set[str]:
    """A seeded share of `ids`, at least one of two or more."""
    pool = sorted(ids)
    count = max(round(len(pool) * share), 1 if len(pool) > 1 else 0)
    return set(random.Random(seed).sample(pool, count))


def choose(questions: Sequence[Question], split: str, limit: int | None, seed: int) -> list[Question]:
    """The questions of a split, sorted by id; a seeded sample of `limit` of them where there are more.

    Raises QuestionFileError when the split has none.
    """
    there = sorted((question for question in questions if question.split == split), key=lambda each: each.id)
    if not there:
        splits = sorted({question.split for question in questions})
        raise QuestionFileError(f"no questions in split '{split}' to answer; the file has {splits or 'no questions'}")
    if limit is not None and limit < len(there):
        there = sorted(random.Random(f"answering/{seed}").sample(there, limit), key=lambda each: each.id)
    return there


def _fill_empty(chosen: dict[Hashable, str], members: Mapping[Hashable, list[str]], splits: Sequence[str]) -> None:
    """Gives an empty split the smallest group of the split that has most groups."""
    for split in reversed(splits):
        if split in chosen.values():
            continue
        groups = {name: [group for group, found in chosen.items() if found == name] for name in splits}
        giver = max(splits, key=lambda name: len(groups[name]))
        if len(groups[giver]) > 1:
            chosen[min(groups[giver], key=lambda group: (len(members[group]), members[group][0]))] = split
