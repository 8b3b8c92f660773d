"""Both losses against values worked out by hand, their gradients, and what they must not reward."""

from __future__ import annotations

import math

import pytest
import torch

from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.retrieval.rigel.loss import CEILING, FLOOR, answer_overlap, bce, normalised


def scores_of(*rows: dict[int, float]) -> EntityWeights:
    return EntityWeights.from_rows(list(rows))


def with_gradient(scores: EntityWeights) -> EntityWeights:
    return scores.with_weight(scores.weight.clone().requires_grad_())


def test_meeting_answers_counts_the_missed_ones() -> None:
    overlap = answer_overlap(scores_of({1: 0.5, 4: 2.0}, {2: 1.0}), [(4, 9), (2,)])
    assert overlap.is_answer.tolist() == [False, True, True]
    assert overlap.missed.tolist() == [1.0, 0.0]
    assert overlap.answers.tolist() == [2.0, 1.0]


def test_bce_equals_the_hand_computed_value() -> None:
    value = bce(scores_of({1: 0.5, 2: 0.25, 3: 3.0}), [(1, 3)])
    expected = (-math.log(0.5) - math.log(1.0) - math.log(1 - CEILING * 0.25)) / 2
    assert value.tolist() == pytest.approx([expected], rel=1e-5)


def test_bce_counts_an_answer_that_cannot_be_reached() -> None:
    value = bce(scores_of({1: 1.0}, {}), [(1, 7), (7,)])
    assert value.tolist() == pytest.approx([-math.log(FLOOR) / 2, -math.log(FLOOR)], rel=1e-5)


def test_bce_gradient_goes_through_clipped_path_counts() -> None:
    scores = with_gradient(scores_of({1: 0.5, 2: 4.0}))
    bce(scores, [(1, 2)]).sum().backward()
    # d/dx of -log(x / 4) with 4 detached is -1/4 at x = 4; halved for two answers.
    assert scores.weight.grad is not None
    assert scores.weight.grad.tolist() == pytest.approx([-1.0, -0.125], rel=1e-5)


def test_bce_gradient_of_a_wrong_entity_is_bounded() -> None:
    scores = with_gradient(scores_of({5: 1.0}))
    bce(scores, [(6,)]).sum().backward()
    assert scores.weight.grad is not None
    assert scores.weight.grad.tolist() == pytest.approx([CEILING / (1 - CEILING)], rel=1e-3)


def test_normalised_equals_the_hand_computed_value() -> None:
    value = normalised(scores_of({1: 3.0, 2: 1.0}, {1: 0.25}), [(1,), (1,)])
    assert value.tolist() == pytest.approx([-math.log(0.75), -math.log(0.25)], rel=1e-5)


@pytest.mark.parametrize("loss", [bce, normalised])
def test_losing_mass_is_worse_than_reaching_and_perfect_is_zero(loss) -> None:  # type: ignore[no-untyped-def]
    perfect, part, wrong, nothing = loss(scores_of({1: 1.0}, {1: 0.3}, {1: 0.3, 2: 0.7}, {}), [(1,)] * 4).tolist()
    assert perfect == pytest.approx(0, abs=1e-6)
    assert perfect < part <= wrong < nothing


@pytest.mark.parametrize("loss", [bce, normalised])
def test_more_mass_on_the_answer_is_always_better(loss) -> None:  # type: ignore[no-untyped-def]
    scores = with_gradient(scores_of({1: 0.2, 2: 0.1}))
    loss(scores, [(1,)]).sum().backward()
    assert scores.weight.grad is not None
    assert scores.weight.grad[0] < 0 <= scores.weight.grad[1]


@pytest.mark.parametrize("loss", [bce, normalised])
def test_no_reachable_answer_gives_no_infinite_gradient(loss) -> None:  # type: ignore[no-untyped-def]
    scores = with_gradient(scores_of({1: 1.0, 2: 50.0}, {}))
    value = loss(scores, [(9,), (9,)])
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert scores.weight.grad is not None and torch.isfinite(scores.weight.grad).all()
