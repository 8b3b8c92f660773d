"""Cross-validation over topics: every question is a test question once, and no topic is in two folds."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence

from kgqa_core.datasets.derived.splits import split_by_group
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.errors import QuestionFileError


def topic_folds(groups: Mapping[str, Hashable], folds: int, seed: int) -> dict[str, int]:
    """Question id → fold, 0 to folds - 1, so that questions of one group (their topic) share a fold.

    The largest groups are dealt first, each to the fold that has fewest questions; groups of one size in an order drawn
    with the seed.  So folds differ by no more questions than the largest group has, and the same questions, folds and
    seed give the same folds, whatever their order.  Raises ValueError for fewer groups than folds.
    """
    members: dict[Hashable, list[str]] = {}
    for question in sorted(groups):
        members.setdefault(groups[question], []).append(question)
    if len(members) < folds:
        raise ValueError(f"{len(members)} topics cannot be divided into {folds} folds")
    order = sorted(members, key=lambda group: members[group][0])
    random.Random(f"folds/{seed}").shuffle(order)
    order.sort(key=lambda group: -len(members[group]))
    sizes = [0] * folds
    results: dict[str, int] = {}
    for group in order:
        fold = min(range(folds), key=lambda number: (sizes[number], number))
        sizes[fold] += len(members[group])
        results |= dict.fromkeys(members[group], fold)
    return results


def fold_rows(rows: Sequence[RawQuestion], folds: int, fold: int, held_out: float, seed: int) -> list[RawQuestion]:
    """The questions of all splits: those of one fold test, the others train but for a share of their topics, which is
    dev.

    A question's topic is its first one, as in `split_by_group`.  held_out: the share, in (0, 1).
    Raises QuestionFileError for fewer topics than folds.
    """
    groups = {row["id"]: tuple(row["topic_entities"][:1]) or (row["id"],) for row in rows}
    try:
        chosen = topic_folds(groups, folds, seed)
    except ValueError as fault:
        raise QuestionFileError(f"{fault}; set questions.folds to fewer") from None
    rest = {question: group for question, group in groups.items() if chosen[question] != fold}
    splits = split_by_group(rest, (1 - held_out, held_out, 0.0), seed)
    return [{**row, "split": splits.get(row["id"], "test")} for row in rows]
