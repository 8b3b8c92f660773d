"""The training loop of every encoder: AdamW, linear warm-up, cosine decay, early stopping, checkpoints.

A checkpoint stands at a step boundary, and what an epoch does follows from its number, so that a killed run that goes
on from its checkpoint ends with the same bits as one that was left alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from kgqa_core.errors import TrainingError
from kgqa_core.monitor import Monitor
from kgqa_core.nn import checkpoint
from kgqa_core.nn.weights import taken

WARM_UP = 0.06
"""Share of all steps in which the learning rate rises."""
CLIP = 1.0
"""Largest norm of a step's gradient."""
LOG_EVERY = 20
CHECKPOINT = "checkpoint.safetensors"
"""File of a run's state in `work`."""


class Rates(Protocol):
    """Options that the loop reads learning rates and seconds between checkpoints from."""

    @property
    def encoder(self) -> str:
        """`scratch`, or a pretrained one, which has a learning rate of its own."""

    @property
    def learning_rate(self) -> float:
        """Peak rate of what is learnt from nothing."""

    @property
    def encoder_learning_rate(self) -> float:
        """Peak rate of a pretrained encoder."""

    @property
    def checkpoint_seconds(self) -> float:
        """Seconds between checkpoints."""


@dataclass(frozen=True)
class Course:
    """What is trained on and measured.

    order: an epoch's batches of question numbers, all epochs alike in number.  loss: of a batch, a scalar.
    measure: dev metrics of the network as it stands, empty without dev questions.
    standing: of dev metrics, better when greater.  section: of the profile, for messages.
    """

    per_epoch: int
    epochs: int
    patience: int
    order: Callable[[int], list[Tensor]]
    loss: Callable[[Tensor], Tensor]
    measure: Callable[[], dict[str, float]]
    standing: Callable[[dict[str, float]], list[float]]
    section: str


def run(
    network: nn.Module,
    course: Course,
    rates: Rates,
    key: str,
    monitor: Monitor,
    work: Path | None,
) -> tuple[checkpoint.Progress, dict[str, Tensor]]:
    """Trains a network with a part `encoder`; returns what was measured and the weights of the best epoch.

    key: of inputs and options; a checkpoint in `work` with the same key is gone on from.
    Raises TrainingError when the loss is not finite.
    """
    optimizer = _optimizer(network, rates)
    peaks = [group["lr"] for group in optimizer.param_groups]
    per_epoch, total = course.per_epoch, course.per_epoch * course.epochs
    progress, best = checkpoint.Progress(key), dict[str, Tensor]()
    restored = checkpoint.restore(work / CHECKPOINT, key, network, optimizer) if work is not None else None
    if restored is not None:
        progress, best = restored
        monitor.note(
            f"training goes on from its checkpoint: epoch {progress.epoch + 1}, step {progress.step} of {per_epoch}"
        )
    saved = time.monotonic()
    while progress.epoch < course.epochs and progress.epoch - progress.best_epoch <= course.patience:
        order = course.order(progress.epoch)
        network.train()
        while progress.step < per_epoch:
            done = progress.epoch * per_epoch + progress.step
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * _schedule(done, total)
            loss = course.loss(order[progress.step])
            value = loss.item()
            if not math.isfinite(value):
                raise TrainingError(f"the loss is not finite at step {done}; lower {course.section}.learning_rate")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            clip(network, CLIP)
            optimizer.step()
            progress.step += 1
            progress.sums = [progress.sums[0] + value, progress.sums[1] + 1]
            if progress.step % LOG_EVERY == 0 or progress.step == per_epoch:
                mean = progress.sums[0] / progress.sums[1]
                progress.curve.append([done + 1, progress.epoch, "train", "loss", mean])
                progress.sums = [0.0, 0.0]
                monitor.metric("loss", mean, done + 1)
            monitor.progress(done + 1, total, "training steps")
            if work is not None and time.monotonic() - saved >= rates.checkpoint_seconds:
                checkpoint.store(work / CHECKPOINT, progress, network, optimizer, best)
                saved = time.monotonic()
        step = (progress.epoch + 1) * per_epoch
        measured = course.measure()
        for name, value in measured.items():
            progress.curve.append([step, progress.epoch, "dev", name, value])
            monitor.metric(f"dev_{name}", value, step)
        standing = course.standing(measured) if measured else [float(progress.epoch)]
        if not progress.best or standing > progress.best:
            progress.best, progress.best_epoch, best = standing, progress.epoch, taken(network)
        progress.epoch, progress.step = progress.epoch + 1, 0
        if work is not None:
            checkpoint.store(work / CHECKPOINT, progress, network, optimizer, best)
            saved = time.monotonic()
    monitor.progress(total, total, "training steps")
    return progress, best


def _optimizer(network: nn.Module, rates: Rates) -> torch.optim.AdamW:
    body: nn.Module = network.encoder  # type: ignore[assignment]
    encoder = [parameter for parameter in body.parameters() if parameter.requires_grad]
    inside = {id(parameter) for parameter in encoder}
    decoder = [
        parameter for parameter in network.parameters() if parameter.requires_grad and id(parameter) not in inside
    ]
    rate = rates.learning_rate if rates.encoder == "scratch" else rates.encoder_learning_rate
    groups = [{"params": encoder, "lr": rate}, {"params": decoder, "lr": rates.learning_rate}]
    return torch.optim.AdamW(groups, weight_decay=0.01)


def clip(network: nn.Module, most: float) -> float:
    """Scales the gradients down to a common norm of `most` where it is greater; returns the norm that they had.

    Squares are added exactly: a part of the network whose gradient is 0 changes no bit of the others.
    """
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    if not gradients:
        return 0.0
    norms: list[float] = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]).tolist()
    norm = math.sqrt(math.fsum(own * own for own in norms))
    if norm > most:
        for gradient in gradients:
            gradient.mul_(most / (norm + 1e-6))
    return norm


def _schedule(step: int, total: int) -> float:
    warm = max(1, round(WARM_UP * total))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))
