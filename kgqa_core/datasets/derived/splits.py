"""Splits of question sets, and leakage: test questions that training has seen.

They have the same text, or the same topic entities and relation path.  `leakage.json` holds, for test against train
and dev against train, the ids with a count each; `leaked` is the union for the test split, without which scores are
given a second time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import Options
from kgqa_core.errors import ArtifactError, QuestionFileError
from kgqa_core.metrics.normalise import tokens
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


class QuestionSample(Options):
    """Which questions are answered: those of a split, or as many of them as `limit`, drawn by the seed."""

    split: str
    limit: int | None
    seed: int

    def of(self, questions: Sequence[Question]) -> list[Question]:
        """The questions of the sample, as of `choose`."""
        return choose(questions, self.split, self.limit, self.seed)


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


FILE = "leakage.json"


def leakage(questions: Sequence[Question]) -> dict[str, Any]:
    """Leaked ids, sorted: {"leaked": ids of test, "counts": {…}, "test": {"same_text": ids, …}, "dev": {…}}."""
    train = [question for question in questions if question.split == "train"]
    tables: dict[str, dict[str, list[str]]] = {}
    for split in ("test", "dev"):
        held = [question for question in questions if question.split == split]
        tables[split] = {
            "same_text": _shared(held, train, same_text),
            "same_topic_and_path": _shared(held, train, same_topic_and_path),
        }
    leaked = sorted({question for ids in tables["test"].values() for question in ids})
    counts = {f"{split}_{name}": len(ids) for split, table in tables.items() for name, ids in table.items()}
    return {"leaked": leaked, "counts": {"leaked": len(leaked), **counts}, **tables}


def write_leakage(folder: Path, table: dict[str, Any]) -> None:
    """Writes `leakage.json`."""
    text = json.dumps(table, ensure_ascii=False, sort_keys=True, indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


def read_leakage(folder: Path) -> dict[str, Any]:
    """The table of a `questions` artifact.  Raises ArtifactError when it is missing or damaged."""
    try:
        table: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"{folder / FILE} cannot be read ({fault}); run the questions stage again") from None
    return table


def same_text(question: Question) -> Hashable | None:
    """What two questions share when their texts are the same but for spaces."""
    return " ".join(question.text.split())


def same_topic_and_path(question: Question) -> Hashable | None:
    """What two questions share when they start at the same entities along the same paths; None without a path."""
    topics: tuple[int | str, ...] = tuple(sorted(question.topic_entities)) or tuple(sorted(question.topic_keys))
    return (topics, tuple(sorted(question.relation_paths))) if question.relation_paths else None


def near_duplicate(question: Question, other: Question) -> bool:
    """Whether two questions have the same words, or share a topic and half of their words, or a topic and all answers.

    Questions of which neither has a topic count as sharing one.
    """
    first, second = tokens(question.text), tokens(other.text)
    if first == second:
        return True
    topics, others = _topics(question), _topics(other)
    if topics.isdisjoint(others) and (topics or others):
        return False
    shared, every = len({*first} & {*second}), len({*first, *second})
    return 2 * shared >= every or _answers(question) == _answers(other) != set()


def near_duplicates(held: Iterable[Question], learnt: Iterable[Question]) -> set[str]:
    """Ids of the questions of `held` that are near-duplicates of some of `learnt`, of which there are few."""
    different = {(question.text, question.topic_keys, question.answer_keys): question for question in learnt}.values()
    return {question.id for question in held if any(near_duplicate(question, other) for other in different)}


def _topics(question: Question) -> set[int | str]:
    return set(question.topic_entities or question.topic_keys)


def _answers(question: Question) -> set[int | str]:
    return set(question.answers or question.answer_keys)


def _shared(
    held: Iterable[Question], train: Iterable[Question], sign: Callable[[Question], Hashable | None]
) -> list[str]:
    seen = {sign(question) for question in train} - {None}
    return sorted(question.id for question in held if sign(question) in seen)
