"""Matrix products by oneDNN are those of torch up to rounding, with their gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from kgqa_core.nn.products import Linear, has_onednn, linear, product, speed_up


def _given(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (1, 8), (0, 8)])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_torch(shape: tuple[int, ...], bias: bool) -> None:
    weight, add = _given(4, 8), _given(4) if bias else None
    found = []
    for compute in (functional.linear, linear):
        own = [one.clone().requires_grad_() if one is not None else None for one in (_given(*shape), weight, add)]
        value = compute(*own)
        (value * _given(*value.shape)).sum().backward()
        found.append([value.detach(), *(one.grad for one in own if one is not None)])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_product_reads_transposed_matrices() -> None:
    x, weight = _given(6, 3), _given(3, 5)
    assert torch.allclose(product(x, weight.t()), x @ weight, atol=1e-5)


def test_sped_up_network_has_the_same_weights_and_values() -> None:
    network = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    before, names = network(_given(5, 8)), list(network.state_dict())
    speed_up(network)
    assert all(isinstance(layer, Linear) for layer in network if isinstance(layer, nn.Linear))
    assert list(network.state_dict()) == names
    assert torch.allclose(network(_given(5, 8)), before, atol=1e-5)


def test_other_types_and_machines_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = _given(2, 8).double(), _given(4, 8).double()
    assert torch.equal(product(x, weight), functional.linear(x, weight))
    monkeypatch.setattr("kgqa_core.nn.products.has_onednn", lambda: False)
    assert torch.equal(linear(_given(2, 8), _given(4, 8)), functional.linear(_given(2, 8), _given(4, 8)))
    assert isinstance(has_onednn(), bool)
