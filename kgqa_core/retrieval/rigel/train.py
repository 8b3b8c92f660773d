"""Stage `train`: a Rigel retriever from questions and answers alone; no gold relation path is read.

The loop is `nn.training.train_encoder`, with early stopping on dev hits@1.  The batches of an epoch follow from the
seed and the epoch's number.  Several question sets over one graph may be learnt from together (`rigel.mix`), and
relation paths that a language model's right answers speak for may be a further signal (`feedback`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kgqa_core.config import RigelOptions, TransferNetOptions
from kgqa_core.datasets.files.masking import topic_names
from kgqa_core.datasets.files.question import FILE as QUESTIONS_FILE
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.nn.checkpoint import key_of
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.encoders import Reader, keep_lower_states, new_encoder, note_unknown_tokens
from kgqa_core.nn.training import CHECKPOINT, TrainingPlan, backward_of, epoch_counts, train_encoder, write_curves
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.retrieval.epoch_batches import epoch_batches
from kgqa_core.retrieval.hops import choose_hops, needed_hops
from kgqa_core.retrieval.linked_candidates import LINKS
from kgqa_core.retrieval.relation_texts import relation_texts, unlabelled_note
from kgqa_core.retrieval.rigel.feedback import FILE as FEEDBACK_FILE
from kgqa_core.retrieval.rigel.feedback import read_feedback
from kgqa_core.retrieval.rigel.loss import LOSSES, WALK_LOSSES, answer_overlap, path_loss
from kgqa_core.retrieval.rigel.network import Extension, LabelRigel, PlanningNetwork, Rigel, describe, plan_batch, save
from kgqa_core.retrieval.rigel.questions import (
    EncodedQuestions,
    QuestionSet,
    WeightedPath,
    entity_descriptions,
    epoch_size,
    leg_texts,
    legs_of,
    prepare,
    read_sets,
    sample_epoch,
)
from kgqa_core.retrieval.rigel.walk import QueryBatch, WalkOptions, propagate
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

EPSILON = 1e-4
"""Relations that weigh less are not followed in training."""
EDGE_BUDGET = 200_000
"""Edges followed per question and hop in training, so that a hub does not stop it; a very large last hop is not
followed at all, and not cut (`loss.normalised_walk`, `loss.bce_walk`)."""
GROUP = 4
"""Questions of one wording that stay together in a batch: encoding them is what a pretrained encoder's step costs."""
EVALUATION_BATCH = 128


@dataclass(frozen=True)
class TrainingData:
    """What a training learns from and is measured by.

    learning: the training questions of all sets, one set after the other.  sizes, weights: of the sets.
    developing: dev questions by set.
    """

    learning: EncodedQuestions
    sizes: list[int]
    weights: list[float]
    developing: dict[str, EncodedQuestions]


def train(workspace: Workspace, inputs: TrainingInputs) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json and curves.parquet, and returns counts.

    Topics are masked under the names that the graph store has, or else under their keys.
    Questions without a topic or an answer in the graph are left out and counted.
    Raises TrainingError when none is left or the loss is not finite; ModelError when the encoder is not one.
    """
    options: RigelOptions = inputs.options
    graph = Dkg.open(inputs.dkg)
    sets = read_sets(inputs.questions, inputs.further_sets or {}, options)
    learn = [question for part in sets for question in part.learn]
    hops = options.hops or choose_hops(needed_hops(learn, graph))
    options = options.model_copy(update={"hops": hops})
    develop = [question for part in sets for question in part.develop]
    extension = Extension.wanted(options)
    names = topic_names(inputs.kg, learn + develop)
    texts = entity_descriptions(inputs.kg, learn + develop) if extension.soft_start else None
    device = pick_device(options.device, "rigel")
    with seeded(device, inputs.seed):
        by_label = options.decoder == "label"
        labels = relation_texts(graph) if by_label else []
        labels += sorted(set((texts or {}).values()))
        encoder, reader, description = new_encoder(
            options,
            lambda token: [text for item in learn for text in leg_texts(item, extension.apart, token, names)] + labels,
            "retriever",
        )
        network: PlanningNetwork = (
            LabelRigel(encoder, hops, extension) if by_label else Rigel(encoder, 2 * graph.relations, hops, extension)
        )
        if by_label and (note := unlabelled_note(graph)):
            workspace.monitor.note(note)
        network.open(graph, reader).to(device)
        learning, read_texts = prepare(learn, reader, names, graph, extension.apart, texts)
        unknown = reader.unknown_share(read_texts)
        if inputs.feedback is not None:
            held_out = [question for part in sets for question in part.held_out]
            feedback_paths = read_feedback(inputs.feedback, graph, sets[0].learn, held_out)
            learning = replace(learning, paths=_by_leg(feedback_paths, learn, extension.apart))
            workspace.monitor.note(f"{len(learning.paths)} of {len(learn)} training questions have paths from feedback")
        data = TrainingData(
            learning,
            [len(part.learn) for part in sets],
            [part.weight for part in sets],
            {part.name: prepare(part.develop, reader, names, graph, extension.apart, texts)[0] for part in sets},
        )
        note_unknown_tokens(unknown, "questions'", options.encoder, "rigel", workspace.monitor)
        rows = [row for encoded in (learning, *data.developing.values()) for row in encoded.rows]
        keep_lower_states(encoder, options, rows, device)
        folders = [inputs.questions, *(inputs.further_sets or {}).values()]
        key = _key(graph, folders, inputs.feedback, options, inputs.seed, names, texts)
        trainer = _RigelTrainer(network, reader, graph, options, device)
        plan = training_plan(
            data, options, inputs.seed, lambda batch: trainer.loss(learning, batch), trainer.measure, options.max_steps
        )
        progress, weights = train_encoder(network, plan, options, key, workspace.monitor, workspace.work)
    network.load_state_dict(weights, strict=False)
    masks = bool(names) and options.mask_topic
    config = describe(network, description, graph, options.exclude_topic) | {"masks_names": masks}
    save(workspace.out, network.state_dict(), reader, config | extension.config())
    write_curves(workspace.out, progress)
    if workspace.work is not None:
        (workspace.work / CHECKPOINT).unlink(missing_ok=True)
    counts: dict[str, Any] = {
        **_question_counts(sets),
        "hops": hops,
        "wordings": len(learning.rows),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "unknown_token_share": round(unknown, 4),
        **epoch_counts(progress),
    }
    if len(sets) > 1:
        counts["sets"] = {
            part.name: {
                "train": len(part.learn),
                "dev": len(part.develop),
                "weight": part.weight,
                "leaked": part.leaked,
            }
            for part in sets
        }
    if inputs.feedback is not None:
        counts["with_feedback"] = len(learning.paths)
    return counts


def _question_counts(sets: Sequence[QuestionSet]) -> dict[str, Any]:
    """Questions of each split that are learnt from or measured, and those that are not."""
    left_out = [name for part in sets for name in part.left_out]
    return {
        "questions": {"train": sum(len(part.learn) for part in sets), "dev": sum(len(part.develop) for part in sets)},
        "left_out": {
            "train": len(left_out),
            "dev": sum(len(part.dev_left_out) for part in sets),
            "examples": left_out[:20],
        },
    }


def _by_leg(
    feedback_paths: Mapping[int, Sequence[WeightedPath]], questions: Sequence[Question], apart: bool
) -> dict[int, list[WeightedPath]]:
    """Paths by the leg that begins at their topic, in place of the topic; a question's only leg takes them all."""
    by_leg: dict[int, list[WeightedPath]] = {}
    for number, paths in feedback_paths.items():
        question = questions[number]
        legs = [
            {question.topic_entities[index] for mention in leg for index in mention} for leg in legs_of(question, apart)
        ]
        for topic, path, weight in paths:
            starting = [0] if len(legs) == 1 else [leg for leg, entities in enumerate(legs) if topic in entities]
            if starting:
                by_leg.setdefault(number, []).append((starting[0], path, weight))
    return by_leg


class _RigelTrainer:
    """The loss and the dev metrics of a network over a graph."""

    def __init__(
        self, network: PlanningNetwork, reader: Reader, graph: Dkg, options: RigelOptions, device: torch.device
    ) -> None:
        self.network, self.reader, self.graph, self.options, self.device = network, reader, graph, options, device
        self.walk = WalkOptions(options.exclude_topic, EPSILON, EDGE_BUDGET)

    def loss(self, questions: EncodedQuestions, batch: Tensor) -> Tensor:
        """The mean over a batch of question numbers, and what the paths of feedback add to it."""
        queries, answers = self._queries(questions, batch)
        if queries.ptr is None:
            per_question = WALK_LOSSES[self.options.loss](self.graph, queries.topics, queries.plan, answers, self.walk)
        else:
            per_question = LOSSES[self.options.loss](self._scores(queries), answers)
        loss = per_question.mean()
        return loss + self._feedback_loss(queries, questions, batch) if questions.paths else loss

    def measure(self, developing: Mapping[str, EncodedQuestions]) -> dict[str, float]:
        """The metrics of `evaluate`, each the mean over the sets; of several sets hits_at_1 of each too."""
        parts = {name: self.evaluate(questions) for name, questions in developing.items() if len(questions)}
        if len(developing) == 1 or not parts:
            return next(iter(parts.values()), {})
        means = {name: sum(part[name] for part in parts.values()) / len(parts) for name in next(iter(parts.values()))}
        return means | {f"hits_at_1/{name}": part["hits_at_1"] for name, part in parts.items()}

    def evaluate(self, questions: EncodedQuestions) -> dict[str, float]:
        """hits_at_1, missed (share of answers not reached) and loss, each a mean over questions in their order."""
        self.network.eval()
        hits = missed = loss = 0.0
        with torch.no_grad():
            for start in range(0, len(questions), EVALUATION_BATCH):
                batch = torch.arange(start, min(start + EVALUATION_BATCH, len(questions)))
                queries, answers = self._queries(questions, batch)
                scores = self._scores(queries)
                for best, gold in zip(scores.top(1), answers, strict=True):
                    hits += bool(best) and best[0][0] in gold
                overlap = answer_overlap(scores, answers)
                missed += float((overlap.missed / overlap.answers).sum())
                loss += float(LOSSES[self.options.loss](scores, answers).sum())
        count = len(questions)
        return {"hits_at_1": hits / count, "missed": missed / count, "loss": loss / count}

    def _queries(self, questions: EncodedQuestions, batch: Tensor) -> tuple[QueryBatch, list[tuple[int, ...]]]:
        """Plans and topics of a batch, and its answers."""
        queries = plan_batch(self.network, self.reader, questions, batch, self.device)
        return queries, [questions.answers[number] for number in batch.tolist()]

    def _scores(self, queries: QueryBatch) -> EntityWeights:
        """The entity scores of a batch's questions, by the walk of their plans."""
        return propagate(self.graph, queries, self.options.intersect, self.walk)[1]

    def _feedback_loss(self, queries: QueryBatch, questions: EncodedQuestions, batch: Tensor) -> Tensor:
        """What the paths of feedback add to a batch's loss."""
        paths = {
            index: questions.paths[number] for index, number in enumerate(batch.tolist()) if number in questions.paths
        }
        first = queries.ptr.tolist() if queries.ptr is not None else range(len(batch))
        loss = path_loss(queries.plan, paths, lambda question, leg: first[question] + leg)
        return self.options.feedback_weight * loss / len(batch)


def training_plan(
    data: TrainingData,
    options: RigelOptions | TransferNetOptions,
    seed: int,
    loss: Callable[[Tensor], Tensor],
    measure: Callable[[dict[str, EncodedQuestions]], dict[str, float]],
    max_steps: int | None = None,
) -> TrainingPlan[Tensor]:
    """The plan of a retriever's training; small sets are passed over more often.

    loss: of a batch of question numbers.  measure: dev metrics of questions by set.
    """
    learning, sizes, weights, section = data.learning, data.sizes, data.weights, options.trained[0]
    per_epoch = math.ceil(epoch_size(sizes, weights) / options.batch_size)
    epochs = options.epochs if max_steps else max(options.epochs, math.ceil(options.min_steps / per_epoch))
    together = 1 if options.encoder == "scratch" else GROUP

    def batches(epoch: int) -> list[Tensor]:
        sample = sample_epoch(sizes, weights, seed, epoch)
        return epoch_batches(learning.rows, learning.text, options.batch_size, together, seed, epoch, sample)

    return TrainingPlan(
        per_epoch=per_epoch,
        epochs=epochs,
        patience=math.ceil(options.patience * epochs / options.epochs),
        batches=batches,
        backward=backward_of(loss),
        measure=lambda: measure(data.developing),
        score=lambda measured: [measured["hits_at_1"], -measured["loss"]],
        section=section,
        max_steps=max_steps,
    )


def _key(
    graph: Dkg,
    questions: Sequence[Path],
    feedback: Path | None,
    options: RigelOptions,
    seed: int,
    names: dict[int, list[str]],
    texts: dict[int, str] | None,
) -> str:
    files = [folder / QUESTIONS_FILE for folder in questions] + [folder / LINKS for folder in questions]
    files += [feedback / FEEDBACK_FILE] if feedback is not None else []
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
    labels = graph.relation_names if options.decoder == "label" else []
    descriptions = sorted((texts or {}).items())
    return key_of(graph.digest, digests, options.decisive(), seed, sorted(names.items()), labels, descriptions)
