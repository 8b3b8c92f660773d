"""The step of the training loop that must not depend on what takes no part in it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kgqa_core.nn.training import clip


def network(zeros: int) -> nn.Module:
    """Seven parts with gradients, and some more whose gradient is 0."""
    generator = torch.Generator().manual_seed(3)
    parts = nn.ParameterList(nn.Parameter(torch.zeros(4 + size, 3)) for size in range(7 + zeros))
    for place, part in enumerate(parts):
        part.grad = torch.randn(part.shape, generator=generator) if place < 7 else torch.zeros_like(part)
    return parts


def test_gradients_are_scaled_to_the_norm_and_smaller_ones_stay() -> None:
    own, same = network(0), network(0)
    given = [part.grad.clone() for part in own.parameters()]
    norm = clip(own, 1.0)
    assert norm == pytest.approx(float(nn.utils.clip_grad_norm_(same.parameters(), 1.0)))
    for one, other in zip(own.parameters(), same.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad)
    assert clip(own, 1.0) == pytest.approx(1.0, abs=1e-5)
    again = network(0)
    assert clip(again, 1e6) == pytest.approx(norm)
    assert all(torch.equal(one.grad, value) for one, value in zip(again.parameters(), given, strict=True))
    assert clip(nn.Linear(2, 2), 1.0) == 0.0


@pytest.mark.parametrize("zeros", [1, 2, 5, 9, 30])
def test_parts_without_gradient_change_no_bit_of_the_others(zeros: int) -> None:
    own, more = network(0), network(zeros)
    assert clip(own, 1.0) == clip(more, 1.0)
    for one, other in zip(own.parameters(), more.parameters(), strict=False):
        assert torch.equal(one.grad, other.grad)
