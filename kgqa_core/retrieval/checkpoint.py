"""A training run's whole state at a step boundary, in one file, so that a kill costs nothing.

Tensors and facts stand in one safetensors file (the facts as JSON in its header) that is replaced atomically: a kill
leaves either the old state or the new one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

FILE = "checkpoint.safetensors"


@dataclass
class Progress:
    """Where a run is: the next step of an epoch, what was measured, and the best epoch so far.

    key: identifies inputs and options; a checkpoint of another key is ignored.
    sums: loss sums of the epoch under way.  curve: rows (step, epoch, split, metric, value).
    """

    key: str
    epoch: int = 0
    step: int = 0
    best: list[float] = field(default_factory=list)
    best_epoch: int = -1
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    curve: list[list[Any]] = field(default_factory=list)


def store(work: Path, progress: Progress, network: nn.Module, optimizer: Optimizer, best: dict[str, Tensor]) -> None:
    """Writes a run: trained weights, optimizer, random generators, progress and the best weights so far."""
    tensors = {f"now/{name}": value for name, value in trainable(network).items()}
    tensors |= {f"best/{name}": value for name, value in best.items()}
    tensors["rng/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["rng/cuda"] = torch.cuda.get_rng_state()
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value for name, value in state.items()}
    work.mkdir(parents=True, exist_ok=True)
    scratch = work / (FILE + ".tmp")
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    save_file(plain, str(scratch), metadata={"progress": json.dumps(asdict(progress))})
    os.replace(scratch, work / FILE)


def restore(
    work: Path, key: str, network: nn.Module, optimizer: Optimizer, device: torch.device
) -> tuple[Progress, dict[str, Tensor]] | None:
    """Brings network, optimizer and random generators to the stored state; None when there is none for this key."""
    path = work / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            if progress.key != key:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        return None
    own = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[f"now/{name}"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer/"):
            _, number, what = name.split("/")
            state.setdefault(int(number), {})[what] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(tensors["rng/cpu"])
    if "rng/cuda" in tensors and device.type == "cuda":
        torch.cuda.set_rng_state(tensors["rng/cuda"], device)
    best = {name.removeprefix("best/"): value for name, value in tensors.items() if name.startswith("best/")}
    return progress, best


def trainable(network: nn.Module) -> dict[str, Tensor]:
    """Copies of the weights that training changes; the frozen ones come back from the encoder's source."""
    return {
        name: parameter.detach().cpu().clone()
        for name, parameter in network.named_parameters()
        if parameter.requires_grad
    }
