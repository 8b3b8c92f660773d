"""Seeded splits: groups stay together, shares are met, nothing is lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa_core.datasets.splits import hold_out, split_by_group

SHARES = (0.7, 0.1, 0.2)


@settings(max_examples=80, deadline=None)
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
