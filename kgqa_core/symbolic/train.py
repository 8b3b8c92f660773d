"""Stage `train` of the classifier of operations, which learns the operations of gold forms.

A gold form is the data set's own, or one made of relation paths and type whose result is the annotated answer
(`datasets.derived.gold_forms`).  A question without one is left out and counted.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kgqa_core.config import OperationClassifierOptions
from kgqa_core.datasets.derived.gold_forms import FormCandidate, candidates
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import FormError, FormTimeout, TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import BESTS, Count, Form, Holds
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.checkpoint import key_of
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.encoders import TOPIC, Reader, new_encoder
from kgqa_core.nn.training import CHECKPOINT, TrainingPlan, backward_of, epoch_counts, train_encoder, write_curves
from kgqa_core.symbolic.operations import KINDS, ORDERED, RANKED, Operation, operation_of
from kgqa_core.symbolic.operator import OperatorModel, OperatorNetwork, save
from kgqa_core.symbolic.question_reader import read_question
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

PROGRESS_EVERY = 500
"""Questions between two reports of progress."""


@dataclass(frozen=True, slots=True)
class OperatorExample:
    """A masked question and its operation.  number: of equal questions."""

    text: str
    operation: Operation
    number: int = 1


def training_examples(
    questions: Sequence[Question], graph: MemoryGraph, token: str, monitor: Monitor = QUIET
) -> tuple[list[OperatorExample], int]:
    """Distinct examples in order, and how many questions had no gold form.  token: stands for a mention."""
    topics = sorted({entity for question in questions for entity in question.topic_entities})
    keys, names = graph.store.entity_keys(topics), graph.store.surface_forms(topics)
    graph.know(keys.values())
    examples: Counter[tuple[str, Operation]] = Counter()
    for number, question in enumerate(questions, 1):
        form = gold_form(question, keys, graph)
        if form is not None:
            reading = read_question(question, keys, names, token)
            mentioned = [key for mention in reading.mentions for key, _ in mention.entities]
            examples[reading.masked, operation_of(form, mentioned)] += 1
        if number % PROGRESS_EVERY == 0 or number == len(questions):
            monitor.progress(number, len(questions), "gold operations")
    order = sorted(examples, key=lambda pair: (pair[0], str(pair[1])))
    return [OperatorExample(text, operation, examples[text, operation]) for text, operation in order], len(
        questions
    ) - examples.total()


def gold_form(question: Question, keys: Mapping[int, str], graph: MemoryGraph) -> Form | None:
    """The form of a question, None where it has none; one that must be computed is run, the others are not."""
    try:
        made = candidates(question, [keys[entity] for entity in question.topic_entities if entity in keys])
    except FormError:
        return None
    return next((one.form for one in made if not one.exact or _answers(one, question, graph)), None)


def _answers(candidate: FormCandidate, question: Question, graph: MemoryGraph) -> bool:
    """Whether a form finds, in time, just what is annotated."""
    try:
        result = graph.execute(candidate.form)
    except (FormError, FormTimeout):
        return False
    answer = question.answer_keys[0].casefold() if question.answer_keys else ""
    if isinstance(candidate.form, Holds):
        return answer in (("yes", "true") if result.value else ("no", "false"))
    if isinstance(candidate.form, Count):
        return answer.replace(",", "").removesuffix(".0") == str(result.value)
    return bool(result.nodes) and set(result.nodes) == set(question.answers)


IGNORED = -100
"""Class of a head that an example has no label for."""


def train(
    workspace: Workspace, *, kg: Path, questions: Path, options: OperationClassifierOptions, seed: int
) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json and curves.parquet; returns counts.

    Raises TrainingError when no training question has a gold form, ModelError when the encoder is not one.
    """
    everything = read_questions(questions)
    own = {split: [question for question in everything if question.split == split] for split in ("train", "dev")}
    with KgStore.open(kg) as store:
        graph = MemoryGraph(store)
        (learning, without), (developing, _) = (
            training_examples(own[split], graph, TOPIC, workspace.monitor) for split in own
        )
    if not learning:
        raise TrainingError(
            f"none of the {len(own['train'])} training questions has a gold form to learn operations from; give "
            "s_expression, or relation_path and complexity, in the question file"
        )
    device = pick_device(options.device, "operation_classifier")
    with seeded(device, seed):
        encoder, reader, description = new_encoder(options, lambda token: _texts(learning, token), "operator")
        network = OperatorNetwork(encoder, reader.tokenizer.get_vocab_size()).to(device)
        training, tests = (_EncodedOperatorExamples(some, network, reader, device) for some in (learning, developing))
        plan = TrainingPlan(
            per_epoch=math.ceil(len(learning) / options.batch_size),
            epochs=options.epochs,
            patience=options.patience,
            batches=lambda epoch: training.order(options.batch_size, seed, epoch),
            backward=backward_of(training.loss),
            measure=tests.measure,
            score=lambda measured: [measured["accuracy"], -measured["loss"]],
            section="operation_classifier",
        )
        sha = hashlib.sha256(repr((learning, developing)).encode()).hexdigest()
        key = key_of(sha, options.decisive(), seed)
        progress, weights = train_encoder(network, plan, options, key, workspace.monitor, workspace.work)
    network.load_state_dict(weights, strict=False)
    save(workspace.out, OperatorModel(network, reader), description)
    write_curves(workspace.out, progress)
    if workspace.work is not None:
        (workspace.work / CHECKPOINT).unlink(missing_ok=True)
    kinds = {kind: sum(example.number for example in learning if example.operation.kind == kind) for kind in KINDS}
    return {
        "questions": {split: len(some) for split, some in own.items()},
        "distinct": {"train": len(learning), "dev": len(developing)},
        "without_form": without,
        "kinds": {kind: number for kind, number in kinds.items() if number},
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        **epoch_counts(progress),
    }


def _texts(learning: Sequence[OperatorExample], token: str) -> list[str]:
    return [example.text.replace(TOPIC, token) for example in learning]


class _EncodedOperatorExamples:
    """Examples as token ids and the classes of the three heads."""

    def __init__(
        self, some: Sequence[OperatorExample], network: OperatorNetwork, reader: Reader, device: torch.device
    ) -> None:
        self.network, self.reader, self.device = network, reader, device
        self.rows = reader.read(_texts(some, reader.topic_token)) if some else []
        self.numbers = torch.tensor([example.number for example in some], dtype=torch.float32)
        self.classes = torch.tensor(
            [
                (
                    KINDS.index(example.operation.kind),
                    BESTS.index(example.operation.best) if example.operation.kind in RANKED else IGNORED,
                    int(example.operation.turned) if example.operation.kind in ORDERED else IGNORED,
                )
                for example in some
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
            labelled = own != IGNORED
            if labelled.any():
                total = total + torch.nn.functional.cross_entropy(head[labelled], own[labelled], weights)
            right.append((head.argmax(1) == own) | ~labelled)
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
