"""Confidence: who is told apart, and what the first answers are worth."""

import itertools

import numpy as np
import pytest

from kgqa_core.metrics.selective import area_under_risk, auroc, best_area, best_threshold, risk_coverage


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
