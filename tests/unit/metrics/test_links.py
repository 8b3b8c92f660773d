"""Metrics of linked topics: best, worst, and a case by hand."""

from __future__ import annotations

import pytest

from kgqa_core.metrics.links import link_f1, link_precision, link_recall, link_recall_at_5


def test_best_and_worst() -> None:
    for metric in (link_precision, link_recall, link_f1):
        assert metric([1, 2], [2, 1]) == 1.0
        assert metric([3], [1, 2]) == metric([], [1]) == 0.0


def test_by_hand() -> None:
    assert link_precision([1, 7, 8], [1, 2]) == pytest.approx(1 / 3)
    assert link_recall([1, 7, 8], [1, 2]) == 0.5
    assert link_f1([1, 7, 8], [1, 2]) == pytest.approx(0.4)


def test_only_the_first_five_candidates_count() -> None:
    assert link_recall_at_5([9, 8, 7, 6, 1, 2], [1, 2]) == 0.5


def test_f1_is_the_same_both_ways_round() -> None:
    assert link_f1([1, 2, 3], [3, 4]) == link_f1([3, 4], [1, 2, 3])
