"""Stage `train` of the classifier of operations: gold forms are read, and the classifier learns their operations."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kgqa_core.config import OperationClassifierOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.errors import TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import BESTS
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn import loop
from kgqa_core.nn.checkpoint import key_of
from kgqa_core.nn.curves import dev_of_best, write_curves
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.encoders import TOPIC, Reader, new_encoder
from kgqa_core.symbolic.lessons import Lesson, lessons
from kgqa_core.symbolic.operator import KINDS, ORDERED, RANKED, OperatorModel, OperatorNetwork, save

IGNORED = -100
"""Class of a head that a lesson says nothing of."""


def train(
    out: Path,
    *,
    kg: Path,
    questions: Path,
    options: OperationClassifierOptions,
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json and curves.parquet; returns counts.

    Raises TrainingError when no training question has a gold form, ModelError when the encoder is not one.
    """
    everything = read_questions(questions)
    own = {split: [question for question in everything if question.split == split] for split in ("train", "dev")}
    with KgStore.open(kg) as store:
        graph = MemoryGraph(store)
        (learning, without), (developing, _) = (lessons(own[split], graph, TOPIC, monitor) for split in own)
    if not learning:
        raise TrainingError(
            f"none of the {len(own['train'])} training questions has a gold form to learn operations from; give "
            "s_expression, or relation_path and complexity, in the question file"
        )
    device = pick_device(options.device, "operation_classifier")
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        encoder, reader, description = new_encoder(
            options, lambda token: _texts(learning, token), "operation_classifier"
        )
        network = OperatorNetwork(encoder, reader.tokenizer.get_vocab_size()).to(device)
        lessons_, tests = (_Lessons(some, network, reader, device) for some in (learning, developing))
        course = loop.Course(
            per_epoch=math.ceil(len(learning) / options.batch_size),
            epochs=options.epochs,
            patience=options.patience,
            order=lambda epoch: lessons_.order(options.batch_size, seed, epoch),
            loss=lessons_.loss,
            measure=tests.measure,
            standing=lambda measured: [measured["accuracy"], -measured["loss"]],
            section="operation_classifier",
        )
        sha = hashlib.sha256(repr((learning, developing)).encode()).hexdigest()
        key = key_of(sha, options.decisive(), seed)
        progress, weights = loop.run(network, course, options, key, monitor, work)
    network.load_state_dict(weights, strict=False)
    save(out, OperatorModel(network, reader), description)
    write_curves(out, progress)
    if work is not None:
        (work / loop.CHECKPOINT).unlink(missing_ok=True)
    kinds = {kind: sum(lesson.number for lesson in learning if lesson.operation.kind == kind) for kind in KINDS}
    return {
        "questions": {split: len(some) for split, some in own.items()},
        "distinct": {"train": len(learning), "dev": len(developing)},
        "without_form": without,
        "kinds": {kind: number for kind, number in kinds.items() if number},
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        **dev_of_best(progress),
    }


def _texts(learning: Sequence[Lesson], token: str) -> list[str]:
    return [lesson.text.replace(TOPIC, token) for lesson in learning]


class _Lessons:
    """Lessons as token ids and the classes of the three heads."""

    def __init__(self, some: Sequence[Lesson], network: OperatorNetwork, reader: Reader, device: torch.device) -> None:
        self.network, self.reader, self.device = network, reader, device
        self.rows = reader.read(_texts(some, reader.topic_token)) if some else []
        self.numbers = torch.tensor([lesson.number for lesson in some], dtype=torch.float32)
        self.classes = torch.tensor(
            [
                (
                    KINDS.index(lesson.operation.kind),
                    BESTS.index(lesson.operation.best) if lesson.operation.kind in RANKED else IGNORED,
                    int(lesson.operation.turned) if lesson.operation.kind in ORDERED else IGNORED,
                )
                for lesson in some
            ],
            dtype=torch.int64,
        ).reshape(-1, 3)
        often = torch.bincount(self.classes[:, 0], minlength=len(KINDS)).clamp(min=1).float()
        self.weights = (often.max() / often).sqrt().to(device)

    def order(self, size: int, seed: int, epoch: int) -> list[Tensor]:
        """Batches of an epoch."""
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        return list(torch.randperm(len(self.rows), generator=generator).split(size))

    def loss(self, batch: Tensor) -> Tensor:
        """Sum of the heads' cross-entropies, rare kinds weighing more."""
        return self._losses(batch)[0]

    def _losses(self, batch: Tensor) -> tuple[Tensor, list[Tensor]]:
        ids, mask = self.reader.batch([self.rows[number] for number in batch.tolist()])
        logits = self.network(ids.to(self.device), mask.to(self.device))
        wanted = self.classes[batch].to(self.device)
        total = logits[0].sum() * 0
        right = []
        for head, own, weights in zip(logits, wanted.T, (self.weights, None, None), strict=True):
            said = own != IGNORED
            if said.any():
                total = total + torch.nn.functional.cross_entropy(head[said], own[said], weights)
            right.append((head.argmax(1) == own) | ~said)
        return total, right

    def measure(self) -> dict[str, float]:
        """accuracy: share of questions with all three heads right, higher is better; loss: mean of the batches."""
        if not self.rows:
            return {}
        self.network.eval()
        hits = loss = 0.0
        with torch.no_grad():
            for batch in torch.arange(len(self.rows)).split(256):
                own, right = self._losses(batch)
                hits += float((torch.stack(right).all(0).cpu() * self.numbers[batch]).sum())
                loss += float(own) * len(batch)
        return {"accuracy": hits / float(self.numbers.sum()), "loss": loss / len(self.rows)}
