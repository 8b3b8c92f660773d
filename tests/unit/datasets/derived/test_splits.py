"""Seeded splits: groups stay together, shares are met, nothing is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.datasets.derived.splits import check_splits, hold_out, split_by_group
from kgqa_core.errors import QuestionFileError
from tests.support.examples import examples

NEEDS = {"train": "models learn from it", "dev": "it chooses", "test": "it is scored"}
SHARES = (0.7, 0.1, 0.2)


@examples(80)
@given(st.lists(st.integers(0, 30), min_size=3, max_size=120), st.integers(0, 5))
def test_every_question_is_in_one_split_and_groups_stay_together(groups: list[int], seed: int) -> None:
    chosen = split_by_group({f"q{n}": group for n, group in enumerate(groups)}, SHARES, seed)
    assert len(chosen) == len(groups)
    assert set(chosen.values()) == {"train", "dev", "test"}
    if len(set(groups)) >= 3:
        for group in set(groups):
            assert len({chosen[f"q{n}"] for n, found in enumerate(groups) if found == group}) == 1


def test_shares_are_met_for_many_groups() -> None:
    sizes = Counter(split_by_group({f"q{n}": n // 3 for n in range(3000)}, SHARES, 7).values())
    assert abs(sizes["train"] - 2100) <= 10 and abs(sizes["dev"] - 300) <= 10 and abs(sizes["test"] - 600) <= 10


def test_a_share_of_nothing_gets_nothing() -> None:
    assert set(split_by_group({f"q{n}": n for n in range(30)}, (0.0, 0.0, 1.0), 7).values()) == {"test"}


def test_the_seed_decides() -> None:
    groups = {f"q{n}": n for n in range(100)}
    assert split_by_group(groups, SHARES, 1) == split_by_group(dict(reversed(groups.items())), SHARES, 1)
    assert split_by_group(groups, SHARES, 1) != split_by_group(groups, SHARES, 2)


def test_a_held_out_share_does_not_depend_on_order() -> None:
    ids = [f"q{n}" for n in range(101)]
    assert len(hold_out(ids, 0.1, 7)) == 10
    assert hold_out(ids, 0.1, 7) == hold_out(ids[::-1], 0.1, 7)
    assert len(hold_out(["a", "b"], 0.1, 7)) == 1 and hold_out(["a"], 0.1, 7) == set()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"train": 5, "test": 2}, ["in dev (5 train, 0 dev, 2 test)", "dev: it chooses", "give some questions"]),
        ({"dev": 5}, ["in train or test (0 train, 5 dev, 0 test)", "models learn from it", "it is scored"]),
        ({"test": 1}, ["in train or dev", "give at least 3 questions"]),
    ],
)
def test_a_split_that_is_needed_and_empty_is_named_with_the_way_out(sizes: dict[str, int], words: list[str]) -> None:
    with pytest.raises(QuestionFileError) as fault:
        check_splits(sizes, NEEDS, "own.jsonl")
    for word in ["own.jsonl", *words]:
        assert word in str(fault.value)


def test_splits_that_nothing_needs_may_be_empty() -> None:
    check_splits({"test": 1}, {"test": "it is scored"}, "own.jsonl")
    check_splits({"train": 1, "dev": 1, "test": 1}, NEEDS, "own.jsonl")
