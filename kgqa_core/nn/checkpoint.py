"""A training run's whole state at a step boundary, in one file, so that a kill costs nothing.

Tensors and facts stand in one safetensors file (the facts as JSON in its header) that is replaced atomically: a kill
leaves either the old state or the new one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from kgqa_core.nn.weights import given_back, taken

log = logging.getLogger("kgqa")


@dataclass
class Progress:
    """Where a run is: the next step of an epoch, what was measured and written, and the best epoch so far.

    key: identifies inputs and options; a checkpoint of another key is ignored.
    best: standing of the best epoch, better when greater.  sums: of what the curve's next entry is the mean of.
    curve: rows (step, epoch, split, metric, value).  samples: rows of what a language model wrote.
    """

    key: str
    epoch: int = 0
    step: int = 0
    best: list[float] = field(default_factory=list)
    best_epoch: int = -1
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    curve: list[list[Any]] = field(default_factory=list)
    samples: list[list[Any]] = field(default_factory=list)


def key_of(*facts: Any) -> str:
    """Identifies a run by what decides its bits, as JSON: digests of inputs, `options.decisive()`, the seed."""
    return hashlib.sha256(json.dumps([*facts, torch.__version__], sort_keys=True).encode()).hexdigest()


def store(path: Path, progress: Progress, network: nn.Module, optimizer: Optimizer, best: dict[str, Tensor]) -> None:
    """Writes a run: trained weights, optimizer, random generators, progress and the best weights so far."""
    tensors = {f"now/{name}": value for name, value in taken(network).items()}
    tensors |= {f"best/{name}": value for name, value in best.items()}
    tensors["rng/cpu"] = torch.get_rng_state()
    if (device := _device(network)).type == "cuda":
        tensors["rng/cuda"] = torch.cuda.get_rng_state(device)
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value for name, value in state.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".tmp")
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    save_file(plain, str(scratch), metadata={"progress": json.dumps(asdict(progress))})
    os.replace(scratch, path)


def restore(
    path: Path, key: str, network: nn.Module, optimizer: Optimizer
) -> tuple[Progress, dict[str, Tensor]] | None:
    """Brings network, optimizer and random generators to the stored state; None when there is none for this key."""
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            if progress.key != key:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as fault:
        log.warning("the checkpoint %s is damaged and not used (%s); the training begins anew", path, fault)
        return None
    given_back(network, _under("now/", tensors))
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer/", tensors).items():
        number, what = name.split("/")
        state.setdefault(int(number), {})[what] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(tensors["rng/cpu"])
    if "rng/cuda" in tensors and (device := _device(network)).type == "cuda":
        torch.cuda.set_rng_state(tensors["rng/cuda"], device)
    return progress, _under("best/", tensors)


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
