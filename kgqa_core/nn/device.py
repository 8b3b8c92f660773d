"""The device and the random state that a training runs with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

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
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
