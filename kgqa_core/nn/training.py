"""The training loop of every network: AdamW, warm-up, cosine decay, early stopping, checkpoints, curves.

A checkpoint stands at a step boundary, and what an epoch does follows from its number, so that a killed run that goes
on from its checkpoint ends with the same bits as one that was left alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import polars as pl
import torch
from torch import Tensor, nn

from kgqa_core.errors import TrainingError
from kgqa_core.monitor import Monitor
from kgqa_core.nn import checkpoint
from kgqa_core.nn.checkpoint import TrainingState, trainable_weights

Batch = TypeVar("Batch")

WARM_UP = 0.06
"""Share of all steps in which the learning rate of an encoder rises."""
WEIGHT_DECAY = 0.01
CLIP = 1.0
"""Largest norm of a step's gradient."""
CHECKPOINT = "checkpoint.safetensors"
"""File of a run's state in its work folder."""


class Rates(Protocol):
    """Options that an encoder's training reads learning rates and seconds between checkpoints from."""

    @property
    def encoder(self) -> str:
        """`scratch`, or a pretrained one, which has a learning rate of its own."""

    @property
    def learning_rate(self) -> float:
        """Peak rate of the weights that begin at random."""

    @property
    def encoder_learning_rate(self) -> float:
        """Peak rate of a pretrained encoder."""

    @property
    def checkpoint_seconds(self) -> float:
        """Seconds between checkpoints."""


@dataclass(frozen=True)
class ModelRates:
    """Rates of a network whose pretrained part is a whole model, named by `encoder`."""

    encoder: str
    learning_rate: float
    encoder_learning_rate: float
    checkpoint_seconds: float


def clip(network: nn.Module, most: float) -> float:
    """Scales the gradients down to a common norm of `most` where it is greater; returns the norm that they had.

    Squares are added exactly: a part of the network whose gradient is 0 changes no bit of the others.
    """
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    if not gradients:
        return 0.0
    norms: list[float] = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]).tolist()
    norm = math.sqrt(math.fsum(value * value for value in norms))
    if norm > most:
        for gradient in gradients:
            gradient.mul_(most / (norm + 1e-6))
    return norm


def warm_up_cosine(step: int, total: int) -> float:
    """Share of the peak learning rate at a step: a linear rise over `WARM_UP` of all steps, then half a cosine."""
    warm = max(1, round(WARM_UP * total))
    if step < warm:
        return (step + 1) / warm
    return cosine(step, warm, total)


def cosine(step: int, warm: int, total: int) -> float:
    """Half a cosine from 1 at step `warm` to 0 at step `total`."""
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


@dataclass(frozen=True)
class TrainingPlan(Generic[Batch]):
    """What is trained on, measured and written down.

    per_epoch: steps of an epoch.  batches: of an epoch, by its number, `per_epoch` of them.
    backward: of a batch and the number of its step, leaves gradients in the network; returns the loss and its weight in
    the mean of the training curve.  `backward_of` makes one of a loss.
    measure: dev metrics of the network as it stands, empty without dev questions.
    score: of dev metrics, better when greater; without dev metrics the last epoch is best.
    section: of the profile, for messages.  patience: epochs without a better score before the training ends.
    max_steps: steps in place of those of `epochs`.
    measure_steps: steps between measurements within an epoch, 0 for none.  log_steps: between entries of the curve.
    sample: what the network writes at the end of an epoch, as rows.
    main: whether this process stores checkpoints.
    """

    per_epoch: int
    epochs: int
    batches: Callable[[int], Sequence[Batch]]
    backward: Callable[[Batch, int], tuple[float, float]]
    measure: Callable[[], dict[str, float]]
    score: Callable[[dict[str, float]], list[float]]
    section: str
    patience: float = math.inf
    schedule: Callable[[int, int], float] = warm_up_cosine
    clip: Callable[[nn.Module, float], object] = clip
    measure_steps: int = 0
    log_steps: int = 20
    sample: Callable[[int], list[list[Any]]] | None = None
    main: bool = True
    max_steps: int | None = None

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.max_steps or self.per_epoch * self.epochs


def backward_of(loss: Callable[[Batch], Tensor]) -> Callable[[Batch, int], tuple[float, float]]:
    """A plan's `backward` of a scalar loss per batch, all batches alike in weight."""

    def backward(batch: Batch, _: int) -> tuple[float, float]:
        value = loss(batch)
        value.backward()  # type: ignore[no-untyped-call]
        return value.item(), 1.0

    return backward


def train_encoder(
    network: nn.Module, plan: TrainingPlan[Batch], rates: Rates, key: str, monitor: Monitor, work: Path | None
) -> tuple[TrainingState, dict[str, Tensor]]:
    """Trains a network whose parts named `…encoder` have a learning rate of their own; see `run`."""
    optimizer = _encoder_optimizer(network, rates)
    return run(network, plan, optimizer, key, monitor, work, checkpoint_seconds=rates.checkpoint_seconds)


def run(
    network: nn.Module,
    plan: TrainingPlan[Batch],
    optimizer: torch.optim.Optimizer,
    key: str,
    monitor: Monitor,
    work: Path | None,
    *,
    checkpoint_seconds: float,
) -> tuple[TrainingState, dict[str, Tensor]]:
    """Trains a network; returns what was measured and the weights of the best epoch.

    key: of inputs and options; a checkpoint in `work` with the same key is gone on from.
    Raises TrainingError when the loss is not finite.
    """
    peaks = [group["lr"] for group in optimizer.param_groups]
    per_epoch, total = plan.per_epoch, plan.steps
    state, best = TrainingState(key), dict[str, Tensor]()
    restored = checkpoint.restore(work / CHECKPOINT, key, network, optimizer) if work is not None else None
    if restored is not None:
        state, best = restored
        monitor.note(f"training goes on from its checkpoint: epoch {state.epoch + 1}, step {state.step} of {per_epoch}")
    saved = time.monotonic()

    def store() -> float:
        if work is not None and plan.main:
            checkpoint.store(work / CHECKPOINT, state, network, optimizer, best)
        return time.monotonic()

    def measure(step: int) -> dict[str, float]:
        measured = plan.measure()
        for name, value in measured.items():
            state.curve.append([step, state.epoch, "dev", name, value])
            monitor.metric(f"dev_{name}", value, step)
        return measured

    while state.epoch * per_epoch < total and state.epoch - state.best_epoch <= plan.patience:
        batches = plan.batches(state.epoch)
        network.train()
        end = min(per_epoch, total - state.epoch * per_epoch)
        while state.step < end:
            step = state.epoch * per_epoch + state.step
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * plan.schedule(step, total)
            optimizer.zero_grad(set_to_none=True)
            loss, weight = plan.backward(batches[state.step], step)
            if not math.isfinite(loss):
                raise TrainingError(f"the loss is not finite at step {step}; lower {plan.section}.learning_rate")
            plan.clip(network, CLIP)
            optimizer.step()
            state.step += 1
            state.sums = [state.sums[0] + loss * weight, state.sums[1] + weight]
            if state.step % plan.log_steps == 0 or state.step == end:
                mean = state.sums[0] / state.sums[1]
                state.curve.append([step + 1, state.epoch, "train", "loss", mean])
                state.sums = [0.0, 0.0]
                monitor.metric("loss", mean, step + 1)
            if plan.measure_steps and (step + 1) % plan.measure_steps == 0 and state.step < end:
                measure(step + 1)
                network.train()
            monitor.progress(step + 1, total, "training steps")
            if time.monotonic() - saved >= checkpoint_seconds:
                saved = store()
        measured = measure(state.epoch * per_epoch + end)
        if plan.sample is not None:
            state.samples += plan.sample(state.epoch)
        score = plan.score(measured) if measured else [float(state.epoch)]
        if not state.best or score > state.best:
            state.best, state.best_epoch, best = score, state.epoch, trainable_weights(network)
        state.epoch, state.step = state.epoch + 1, 0
        saved = store()
    monitor.progress(total, total, "training steps")
    return state, best


def _encoder_optimizer(network: nn.Module, rates: Rates) -> torch.optim.AdamW:
    bodies = [module for name, module in network.named_children() if name.endswith("encoder")]
    encoder = [parameter for body in bodies for parameter in body.parameters() if parameter.requires_grad]
    inside = {id(parameter) for parameter in encoder}
    decoder = [
        parameter for parameter in network.parameters() if parameter.requires_grad and id(parameter) not in inside
    ]
    rate = rates.learning_rate if rates.encoder == "scratch" else rates.encoder_learning_rate
    groups = [{"params": encoder, "lr": rate}, {"params": decoder, "lr": rates.learning_rate}]
    return torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)


def write_curves(out: Path, *states: TrainingState) -> None:
    """Writes curves.parquet: step, epoch, split, metric, value; of several trainings one after the other."""
    rows: list[list[Any]] = []
    for state in states:
        step = max((row[0] for row in rows), default=0)
        epoch = max((row[1] for row in rows), default=-1) + 1
        rows += [[row[0] + step, row[1] + epoch, *row[2:]] for row in state.curve]
    schema = {"step": pl.Int64, "epoch": pl.Int32, "split": pl.String, "metric": pl.String, "value": pl.Float64}
    curve = pl.DataFrame(rows, schema=schema, orient="row")
    curve.write_parquet(out / "curves.parquet", compression="zstd", statistics=False)


def dev_of_best(state: TrainingState) -> dict[str, float]:
    """`dev_` metrics at the end of the best epoch, to six decimals."""
    rows = [row for row in state.curve if row[2] == "dev" and row[1] == state.best_epoch]
    return {f"dev_{row[3]}": round(row[4], 6) for row in rows}


def epoch_counts(state: TrainingState) -> dict[str, float]:
    """epochs and best_epoch, and the `dev_` metrics of the best epoch."""
    return {"epochs": state.epoch, "best_epoch": state.best_epoch, **dev_of_best(state)}
