"""The device and the random state that a training runs with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.errors import ConfigError


def pick_device(name: str, section: str) -> torch.device:
    """The device of an option `auto`, `cpu`, `cuda` or `cuda:N`.  section: of the profile, for messages.

    Raises ConfigError when it is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"{section}.device {name!r} is unknown; use 'auto', 'cpu', 'cuda' or 'cuda:N'") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"{section}.device {name!r} is not on this machine; use 'auto' or 'cpu'")
    return device


def device_of(network: nn.Module) -> torch.device:
    """Where a network's weights are."""
    return next(network.parameters()).device


def to_cpu(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Copies on the CPU of a batch's tensors, as one step of the backward pass; themselves where they are there.

    Backward passes on the CPU and on a GPU run in threads of their own.  With one step for each tensor, the GPU's part
    would begin with whatever gradient comes first, and the last bits of sums of gradients would depend on that.
    """
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return tensors
    copies: tuple[Tensor, ...] = _ToCpu.apply(*tensors)  # type: ignore[no-untyped-call]
    return copies


class _ToCpu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        ctx.set_materialize_grads(False)  # a tensor that no loss depends on has no gradient, not one of zeros
        ctx.devices = [tensor.device for tensor in tensors]
        return tuple(tensor.to("cpu", copy=True) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        pairs = zip(gradients, ctx.devices, strict=True)
        return tuple(None if gradient is None else gradient.to(device) for gradient, device in pairs)


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seeds torch's generators of the CPU and the device for a block, and restores their states after it.

    On a GPU the block runs with torch's deterministic algorithms, where an operation has one.
    """
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), _deterministic(device):
        torch.manual_seed(seed)
        yield


@contextmanager
def _deterministic(device: torch.device) -> Iterator[None]:
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs for it, read when it starts
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic")
            # the GPU's thread of a backward pass says so when a matrix product is the first thing it does
            warnings.filterwarnings("ignore", message="Attempting to run cuBLAS, but there was no current CUDA context")
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
