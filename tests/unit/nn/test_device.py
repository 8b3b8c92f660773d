"""The device that a training asks for, and the way back from it."""

from __future__ import annotations

import pytest
import torch

from kgqa_core.errors import ConfigError
from kgqa_core.nn import device
from kgqa_core.nn.device import pick_device, to_cpu
from tests.support.device import DEVICE


@pytest.mark.parametrize("section", ["retriever", "rewriter"])
def test_device_that_is_not_there_is_named(section: str) -> None:
    assert pick_device("cpu", section).type == "cpu"
    with pytest.raises(ConfigError, match=f"{section}.device 'tpux' is unknown"):
        pick_device("tpux", section)
    with pytest.raises(ConfigError, match=f"{section}.device 'cuda:63' is not on this machine"):
        pick_device("cuda:63", section)


def test_tensors_on_the_cpu_stay_the_ones_that_they_are() -> None:
    first, second = torch.zeros(2, requires_grad=True), torch.zeros(3)
    assert [id(tensor) for tensor in to_cpu(first, second)] == [id(first), id(second)]


def test_the_copies_give_their_gradients_back_in_one_step_and_only_where_there_are_some() -> None:
    first, second, unused = (torch.tensor([2.0, 3.0], device=DEVICE, requires_grad=True) for _ in range(3))
    one, two, three = device._ToCpu.apply(first * 1, second, unused)
    assert {tensor.device.type for tensor in (one, two, three)} == {"cpu"}
    assert one.grad_fn is two.grad_fn is three.grad_fn
    (one * two * two).sum().backward()
    assert first.grad is not None and second.grad is not None and unused.grad is None
    assert (first.grad.tolist(), second.grad.tolist()) == ([4.0, 9.0], [8.0, 18.0])
    assert first.grad.device == first.device
