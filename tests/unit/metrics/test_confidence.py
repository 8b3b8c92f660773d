"""Calibration of probabilities, and which answers to give first."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import rankdata

from kgqa_core.metrics.confidence import (
    COLDEST,
    HOTTEST,
    area_under_risk,
    auroc,
    best_area,
    best_threshold,
    coverage_threshold,
    expected_calibration_error,
    fit_temperature,
    log_loss,
    reliability,
    risk_coverage,
    sigmoid,
)


def test_a_sigmoid_is_symmetric_and_never_overflows() -> None:
    assert sigmoid([0.0, 1e4, -1e4]).tolist() == [0.5, 1.0, 0.0]
    logits = np.linspace(-30, 30, 7)
    assert sigmoid(logits) + sigmoid(-logits) == pytest.approx(1.0)


def test_the_loss_of_a_toss_is_one_bit() -> None:
    assert log_loss([0.0, 0.0], [1, 0]) == pytest.approx(math.log(2))
    assert log_loss([math.log(3)], [1]) == pytest.approx(math.log(4 / 3))
    assert log_loss([], []) == 0.0


def test_the_temperature_turns_a_logit_into_the_share_that_happens() -> None:
    # 3 of 4 happen at logit 4: sigmoid(4 / T) = 3/4, so T = 4 / log 3.
    assert fit_temperature([4.0] * 4, [1, 1, 1, 0]) == pytest.approx(4 / math.log(3), abs=1e-4)
    # and the same mirrored: 3 of 4 do not at −4
    assert fit_temperature([-4.0] * 4, [0, 0, 0, 1]) == pytest.approx(4 / math.log(3), abs=1e-4)


def test_a_temperature_undoes_what_sharpened_calibrated_logits() -> None:
    generator = np.random.default_rng(3)
    honest = generator.normal(0, 2, 20_000)
    happened = generator.random(honest.size) < sigmoid(honest)
    assert fit_temperature(3 * honest, happened) == pytest.approx(3.0, rel=0.05)
    scaled = fit_temperature(3 * honest, happened)
    assert log_loss(3 * honest / scaled, happened) <= log_loss(3 * honest, happened)


def test_temperatures_end_where_nothing_can_be_learnt() -> None:
    assert fit_temperature([], []) == fit_temperature([0.0, 0.0], [1, 0]) == 1.0
    assert fit_temperature([2.0, -2.0], [1, 0]) == COLDEST
    assert fit_temperature([2.0, -2.0], [0, 1]) == HOTTEST


def test_bins_hold_their_lower_end_and_the_last_one_holds_one() -> None:
    found = reliability([0.0, 0.1, 0.19, 1.0], [0, 1, 0, 1])
    assert [(one.low, one.n) for one in found] == [(0.0, 1), (0.1, 2), (0.9, 1)]
    assert found[1].mean == pytest.approx(0.145) and found[1].share == 0.5


def test_the_calibration_error_is_the_mean_gap_of_the_bins() -> None:
    # bin 0.8: mean 0.8, all of 2 happened, gap 0.2; bin 0.3: mean 0.3, 1 of 2, gap 0.2
    assert expected_calibration_error([0.8, 0.8, 0.3, 0.3], [1, 1, 1, 0]) == pytest.approx(0.2)
    # weights count: 3 predictions with gap 0, 1 with gap 1
    assert expected_calibration_error([1.0, 1.0, 1.0, 0.0], [1, 1, 1, 1]) == pytest.approx(0.25)


def test_certain_and_right_is_best_certain_and_wrong_is_worst() -> None:
    assert expected_calibration_error([1.0, 0.0], [1, 0]) == 0.0
    assert expected_calibration_error([1.0, 0.0], [0, 1]) == 1.0
    assert expected_calibration_error([], []) == 0.0


def test_as_many_outcomes_as_predictions_are_needed() -> None:
    with pytest.raises(ValueError, match="2 predictions, but 1 outcomes"):
        log_loss([0.1, 0.2], [1])


def test_auroc_by_hand() -> None:
    # positives 0.9 and 0.4, negatives 0.5 and 0.1: three of four pairs are in order
    assert auroc([0.9, 0.4, 0.5, 0.1], [1, 1, 0, 0]) == 0.75
    # a tie is half a pair
    assert auroc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]) == 0.875


def test_auroc_best_worst_and_nothing_to_tell() -> None:
    assert auroc([3, 2, 1], [1, 1, 0]) == 1.0
    assert auroc([1, 2, 3], [1, 1, 0]) == 0.0
    assert auroc([1, 1, 1], [1, 0, 1]) == auroc([1, 2], [1, 1]) == auroc([], []) == 0.5


def test_auroc_is_symmetric_and_sees_only_the_order() -> None:
    generator = np.random.default_rng(1)
    scores, kinds = generator.integers(0, 9, 60), generator.integers(0, 2, 60)
    assert auroc(scores, kinds) == pytest.approx(1 - auroc(-scores, kinds))
    assert auroc(scores, kinds) == pytest.approx(auroc(-scores, 1 - kinds))
    assert auroc(scores, kinds) == auroc(np.exp(scores), kinds)


def test_auroc_is_the_mean_over_all_pairs() -> None:
    generator = np.random.default_rng(2)
    scores, kinds = generator.integers(0, 5, 40), generator.integers(0, 2, 40)
    pairs = list(itertools.product(scores[kinds == 1], scores[kinds == 0]))
    wanted = np.mean([(a > b) + (a == b) / 2 for a, b in pairs])
    assert auroc(scores, kinds) == pytest.approx(wanted)


def test_auroc_is_that_of_the_ranks_of_scipy() -> None:
    generator = np.random.default_rng(4)
    for size in (2, 7, 400):
        scores, wanted = generator.integers(0, 1 + size // 3, size) / 7, generator.integers(0, 2, size) > 0
        ones = int(wanted.sum())
        if 0 < ones < size:
            above = float(rankdata(scores)[wanted].sum()) - ones * (ones + 1) / 2
            assert auroc(scores, wanted) == above / (ones * (size - ones))


def test_the_curve_gives_equal_confidences_together() -> None:
    found = risk_coverage([0.9, 0.5, 0.5, 0.2], [0, 1, 0, 1])
    assert [(point.confidence, point.coverage) for point in found] == [(0.9, 0.25), (0.5, 0.75), (0.2, 1.0)]
    assert [point.risk for point in found] == pytest.approx([0.0, 1 / 3, 0.5])
    assert risk_coverage([], []) == []


def test_the_area_by_hand_best_and_worst() -> None:
    # right, right, wrong: risks 0, 0, 1/3
    assert area_under_risk([3, 2, 1], [0, 0, 1]) == pytest.approx(1 / 9) == best_area([1, 0, 0])
    # wrong, right, right: risks 1, 1/2, 1/3
    assert area_under_risk([3, 2, 1], [1, 0, 0]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert area_under_risk([1, 2], [0, 0]) == area_under_risk([], []) == 0.0
    assert area_under_risk([1, 2], [1, 1]) == 1.0


def test_equal_confidences_are_worth_the_mean_of_all_their_orders() -> None:
    wrong = [1, 0, 0, 1]
    orders = [area_under_risk([4, 3, 2, 1], order) for order in itertools.permutations(wrong)]
    assert area_under_risk([7, 7, 7, 7], wrong) == pytest.approx(np.mean(orders)) == pytest.approx(0.5)


def test_the_threshold_decides_most_rightly() -> None:
    assert best_threshold([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0]) == pytest.approx(0.55)
    # at 0.25 three of four are right, and so they are at 0.6: the smaller one is taken
    assert best_threshold([0.8, 0.4, 0.3, 0.2], [1, 0, 1, 0]) == pytest.approx(0.25)


def test_the_threshold_answers_all_or_none_where_that_is_best() -> None:
    assert best_threshold([0.2, 0.9], [1, 1]) == 0.0
    assert best_threshold([1.0, 0.9], [0, 0]) > 1.0
    assert best_threshold([], []) == 0.5


@pytest.mark.parametrize(("n", "coverage"), [(9, 0.9), (19, 0.8), (50, 0.9), (200, 0.5)])
def test_a_threshold_of_coverage_covers_as_much_as_it_says_and_hardly_more(n: int, coverage: float) -> None:
    """Over draws of n + 1 exchangeable values the last one reaches the threshold of the others so often."""
    draws = np.random.default_rng(3).random((4_000, n + 1))
    reached = np.mean([row[-1] >= coverage_threshold(row[:-1], coverage) for row in draws])
    error = 3 * (coverage * (1 - coverage) / len(draws)) ** 0.5
    assert coverage - error <= reached <= coverage + 1 / (n + 1) + error


def test_too_few_values_for_a_coverage_give_the_threshold_that_everything_reaches() -> None:
    assert coverage_threshold([], 0.9) == 0.0 and coverage_threshold([0.7] * 8, 0.9) == 0.0
    assert coverage_threshold([0.7] * 9, 0.9) == 0.7
