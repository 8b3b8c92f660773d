"""The GRU of both directions at once is torch's up to rounding, with its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kgqa_core.nn.gru import Gru


@pytest.mark.parametrize("lengths", [[4, 1, 6, 6, 3], [1], [2, 2], [1, 5]])
def test_states_and_gradients_are_those_of_torch(lengths: list[int]) -> None:
    torch.manual_seed(1)
    gru, sizes = Gru(5, 3), torch.tensor(lengths)
    given = torch.randn(len(lengths), max(lengths) + 1, 5)
    weight = torch.randn(len(lengths), max(lengths) + 1, 6)
    found: list[list[Tensor]] = []
    for compute in (gru._by_torch, gru.states):
        gru.zero_grad()
        x = given.clone().requires_grad_()
        states = compute(x, sizes)
        (states * weight).sum().backward()
        assert x.grad is not None
        found.append([states.detach(), x.grad, *(p.grad.clone() for p in gru.parameters() if p.grad is not None)])
    assert len(found[0]) == len(found[1]) == 10
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_behind_a_sentence_is_nothing_and_its_padding_changes_nothing() -> None:
    gru, x = Gru(5, 3), torch.randn(2, 4, 5)
    states = gru.states(x, torch.tensor([2, 4]))
    assert not states[0, 2:].any()
    x[0, 2:] = 100.0
    assert torch.equal(gru.states(x, torch.tensor([2, 4])), states)
