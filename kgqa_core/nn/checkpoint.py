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

from kgqa_core.nn.device import device_of

log = logging.getLogger("kgqa")


@dataclass
class TrainingState:
    """Where a run is: the next step of an epoch, what was measured and written, and the best epoch so far.

    key: identifies inputs and options; a checkpoint of another key is ignored.
    best: score of the best epoch, better when greater.  sums: of what the curve's next entry is the mean of.
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


def trainable(network: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that training changes, by name; the frozen ones come back from their source."""
    return {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}


def trainable_weights(network: nn.Module) -> dict[str, Tensor]:
    """Copies of the weights that training changes, on the CPU."""
    return {name: parameter.detach().cpu().clone() for name, parameter in trainable(network).items()}


@torch.no_grad()
def restore_weights(network: nn.Module, weights: dict[str, Tensor]) -> None:
    """Restores the copies that `trainable_weights` made."""
    for name, parameter in trainable(network).items():
        parameter.copy_(weights[name])


def key_of(*facts: Any) -> str:
    """Identifies a run by what decides its bits, as JSON: digests of inputs, `options.decisive()`, the seed."""
    return hashlib.sha256(json.dumps([*facts, torch.__version__], sort_keys=True).encode()).hexdigest()


def store(path: Path, state: TrainingState, network: nn.Module, optimizer: Optimizer, best: dict[str, Tensor]) -> None:
    """Writes a run: trained weights, optimizer, random generators, progress and the best weights so far."""
    tensors = {f"now/{name}": value for name, value in trainable_weights(network).items()}
    tensors |= {f"best/{name}": value for name, value in best.items()}
    tensors["rng/cpu"] = torch.get_rng_state()
    if (device := device_of(network)).type == "cuda":
        tensors["rng/cuda"] = torch.cuda.get_rng_state(device)
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value for name, value in moments.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".tmp")
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    save_file(plain, str(scratch), metadata={"progress": json.dumps(asdict(state))})
    os.replace(scratch, path)


def restore(
    path: Path, key: str, network: nn.Module, optimizer: Optimizer
) -> tuple[TrainingState, dict[str, Tensor]] | None:
    """Brings network, optimizer and random generators to the stored state; None when there is none for this key."""
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), framework="pt") as file:
            state = TrainingState(**json.loads(file.metadata()["progress"]))
            if state.key != key:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as fault:
        log.warning("the checkpoint %s is damaged and not used (%s); the training begins anew", path, fault)
        return None
    restore_weights(network, _under("now/", tensors))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer/", tensors).items():
        number, what = name.split("/")
        moments.setdefault(int(number), {})[what] = value
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(tensors["rng/cpu"])
    if "rng/cuda" in tensors and (device := device_of(network)).type == "cuda":
        torch.cuda.set_rng_state(tensors["rng/cuda"], device)
    return state, _under("best/", tensors)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
