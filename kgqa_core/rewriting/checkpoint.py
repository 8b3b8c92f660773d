"""A rewriter's training at a step boundary, in one file that is replaced atomically: a kill costs nothing.

No random state is kept: the dropout of a micro batch is seeded by its place in the run, so it comes back by itself.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

FILE = "rewriter.safetensors"


@dataclass
class Progress:
    """Where a run is: the next step of an epoch, what was measured and written, and the best epoch so far.

    key: identifies inputs and options; a checkpoint of another key is ignored.
    sums: loss and target tokens since the last entry of the curve.  curve: rows (step, epoch, split, metric, value).
    samples: rows (epoch, pair, instruction, reference, text).
    """

    key: str
    epoch: int = 0
    step: int = 0
    best: float | None = None
    best_epoch: int = -1
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    curve: list[list[Any]] = field(default_factory=list)
    samples: list[list[Any]] = field(default_factory=list)


def store(
    work: Path, progress: Progress, now: dict[str, Tensor], best: dict[str, Tensor], optimizer: Optimizer
) -> None:
    """Writes a run: weights, the best so far, the optimizer, and progress as JSON in the header."""
    tensors = {f"now/{name}": value for name, value in now.items()}
    tensors |= {f"best/{name}": value for name, value in best.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value for name, value in state.items()}
    work.mkdir(parents=True, exist_ok=True)
    scratch = work / (FILE + ".tmp")
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    save_file(plain, str(scratch), metadata={"progress": json.dumps(asdict(progress))})
    os.replace(scratch, work / FILE)


def restore(work: Path, key: str, optimizer: Optimizer) -> tuple[Progress, dict[str, Tensor], dict[str, Tensor]] | None:
    """Progress, weights and best weights of the stored run, its optimizer put back; None when there is none."""
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
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer/"):
            _, number, what = name.split("/")
            state.setdefault(int(number), {})[what] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return progress, _under("now/", tensors), _under("best/", tensors)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
