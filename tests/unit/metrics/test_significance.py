"""Intervals and the test of a difference."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from kgqa_core.metrics.significance import bootstrap_interval, mcnemar


def test_interval_holds_the_mean_and_is_that_of_a_binomial() -> None:
    found = bootstrap_interval([1.0] * 300 + [0.0] * 700, samples=4000, seed=1)
    assert found.value == pytest.approx(0.3)
    half = 1.96 * (0.3 * 0.7 / 1000) ** 0.5
    assert found.low == pytest.approx(0.3 - half, abs=0.004)
    assert found.high == pytest.approx(0.3 + half, abs=0.004)
    assert found.n == 1000


def test_ninety_five_percent_intervals_cover_the_truth_about_that_often() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for trial in range(300):
        found = bootstrap_interval(generator.random(80) < 0.4, samples=300, seed=trial)
        covered += found.low <= 0.4 <= found.high
    assert 0.90 <= covered / 300 <= 0.99


def test_interval_depends_on_values_and_seed_not_on_order() -> None:
    values = list(np.random.default_rng(2).random(50))
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values[::-1], seed=3)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


def test_no_values_say_nothing_and_equal_values_leave_no_width() -> None:
    assert bootstrap_interval([]).rounded() == {"value": 0.0, "low": 0.0, "high": 1.0, "n": 0}
    assert bootstrap_interval([1, 1, 1]).rounded() == {"value": 1.0, "low": 1.0, "high": 1.0, "n": 3}
    assert bootstrap_interval([0]).rounded() == {"value": 0.0, "low": 0.0, "high": 0.0, "n": 1}


def test_chunks_do_not_change_the_size_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(200) / 200
    whole = bootstrap_interval(values, samples=500, seed=1)
    monkeypatch.setattr("kgqa_core.metrics.significance._CELLS", 1000)
    parts = bootstrap_interval(values, samples=500, seed=1)
    assert parts == whole


@pytest.mark.parametrize(
    ("helpful", "harmful", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),  # one toss: either side is as far from the middle
        (5, 0, 2 / 32),
        (6, 0, 2 / 64),
        (8, 2, 2 * (1 + 10 + 45) / 1024),
        (4, 4, 1.0),
        (5, 4, 1.0),
        (7, 3, 2 * (1 + 10 + 45 + 120) / 1024),
    ],
)
def test_mcnemar_by_hand(helpful: int, harmful: int, p: float) -> None:
    assert mcnemar(helpful, harmful) == pytest.approx(p, rel=1e-12)
    assert mcnemar(harmful, helpful) == mcnemar(helpful, harmful)


def test_mcnemar_is_the_sum_of_binomial_coefficients() -> None:
    draw = np.random.default_rng(4)
    pairs = [(459, 119), (2_000, 1_900), *map(tuple, draw.integers(0, 400, size=(200, 2)).tolist())]
    for helpful, harmful in pairs:
        n, few = helpful + harmful, min(helpful, harmful)
        exact = min(Fraction(1), Fraction(2 * sum(comb(n, k) for k in range(few + 1)), 2**n))
        assert mcnemar(helpful, harmful) == pytest.approx(float(exact), rel=1e-9)


def test_mcnemar_falls_with_the_difference_and_with_the_evidence() -> None:
    by_difference = [mcnemar(50 + extra, 50) for extra in range(2, 40, 4)]
    assert by_difference == sorted(by_difference, reverse=True) and len(set(by_difference)) == len(by_difference)
    assert 0 <= mcnemar(100_000, 10) < mcnemar(60, 40) < mcnemar(6, 4) <= 1
