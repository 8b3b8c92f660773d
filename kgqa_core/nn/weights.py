"""The weights that a training changes; the frozen ones come back from their source."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def learning(network: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that training changes, by name."""
    return {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}


def taken(network: nn.Module) -> dict[str, Tensor]:
    """Copies of the weights that training changes, on the CPU."""
    return {name: parameter.detach().cpu().clone() for name, parameter in learning(network).items()}


@torch.no_grad()
def given_back(network: nn.Module, weights: dict[str, Tensor]) -> None:
    """Puts copies made by `taken` back in their places."""
    for name, parameter in learning(network).items():
        parameter.copy_(weights[name])
