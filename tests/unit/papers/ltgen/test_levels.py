"""Levels by fixed bounds are those of the paper; by quantiles they are quarters without empty ones."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.errors import InputError
from kgqa_core.papers.ltgen.sample import absolute, quantiles
from kgqa_core.types import LEVELS

PAPER = (10, 100, 1_000, 10_000, 100_000)


@pytest.mark.parametrize(
    ("views", "level"),
    [(0, None), (9.99, None), (10, "IV"), (99.9, "IV"), (100, "III"), (999, "III"), (1_000, "II"), (9_999, "II"),
     (10_000, "I"), (99_999, "I"), (100_000, None), (5e6, None)],
)  # fmt: skip
def test_absolute_levels_are_the_papers(views: float, level: str | None) -> None:
    assert absolute(PAPER).level(views) == level


def test_bounds_are_told_best_level_first() -> None:
    assert absolute(PAPER).as_text() == {
        "I": "10,000 ≤ x < 100,000", "II": "1,000 ≤ x < 10,000", "III": "100 ≤ x < 1,000", "IV": "10 ≤ x < 100"
    }  # fmt: skip


@pytest.mark.parametrize("bad", [(10, 100, 1000, 10000), (10, 100, 100, 1000, 10000), (5, 4, 3, 2, 1)])
def test_bounds_that_do_not_rise_are_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="five rising numbers"):
        absolute(bad)


def test_quantiles_of_distinct_values_are_quarters() -> None:
    bounds = quantiles(range(1, 101))
    assert bounds.lower == (1, 26, 51, 76)
    assert Counter(bounds.level(value) for value in range(1, 101)) == dict.fromkeys(LEVELS, 25)


@given(st.lists(st.integers(0, 12), min_size=4, max_size=200).filter(lambda values: len(set(values)) >= 4))
def test_quantile_levels_keep_equal_values_together_and_none_is_empty(values: list[int]) -> None:
    bounds = quantiles(values)
    levels = {value: bounds.level(value) for value in values}
    assert set(levels.values()) == set(LEVELS)
    ordered = [LEVELS.index(str(levels[value])) for value in sorted(set(values))]
    assert ordered == sorted(ordered, reverse=True)


def test_too_few_values_for_quantiles_are_said() -> None:
    with pytest.raises(InputError, match="only 3 different values"):
        quantiles([1, 2, 3, 3, 3])
