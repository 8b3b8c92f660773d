"""The device and the random state that a training runs with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

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


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seeds torch's generators of the CPU and the device for a block, and restores their states after it."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
