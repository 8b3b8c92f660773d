"""Stage `train` of the path retriever: the classifiers of hops and relations learn gold paths.

Gold paths come from the question file where it has them, else from a search in the graph
(`datasets.derived.gold_paths`); which they were is recorded in gold_paths.parquet.  Questions without a topic or
a gold path are left out and counted.

The loss of a question is the negative log-likelihood of its gold path: cross-entropy of the number of hops plus that of
each step, teacher-forced.  Where a question has several gold paths it is their weighted mean.  `fit` needs no graph.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from kgqa_core.config import HopPathOptions
from kgqa_core.datasets.derived.gold_paths import GoldPath, all_gold_paths
from kgqa_core.datasets.files.masking import mask_topic, topic_names
from kgqa_core.datasets.files.question import FILE as QUESTIONS_FILE
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import TrainingError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.checkpoint import TrainingState, key_of
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.encoders import Scratch, keep_lower_states, new_encoder, note_unknown_tokens
from kgqa_core.nn.saved_model import save_model
from kgqa_core.nn.training import CHECKPOINT, TrainingPlan, backward_of, epoch_counts, train_encoder, write_curves
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.retrieval.epoch_batches import epoch_batches
from kgqa_core.retrieval.hop_path.classifier import RETRIEVAL_OPTIONS, SEPARATOR, PathClassifier, PathModel, describe
from kgqa_core.retrieval.hops import choose_hops, needed_hops
from kgqa_core.retrieval.relation_texts import relation_texts
from kgqa_core.types import INVERSE, Question
from kgqa_core.workspace import Workspace

GOLD_FILE = "gold_paths.parquet"
GROUP = 4
"""Questions of one wording that stay together in a batch, where the encoder is a pretrained one."""
MEASURED = 5
"""`path_at_5` counts a gold path among so many."""
CHUNK = 1024
"""Questions that are predicted at once when measuring."""
EVALUATION_BATCH = 64


@dataclass(frozen=True)
class PathExample:
    """A question to learn from or to be measured on.

    text: with `topic_token` in place of the topic's mention, unless it is left there.
    paths: distinct gold paths as relation keys, of at most `max_hops`.
    weights: of the paths, summing to 1.  hops: the annotated number of hops, for `gold_hops`.
    """

    text: str
    paths: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...]
    hops: int | None = None


@dataclass(frozen=True)
class FittedPaths:
    """A trained model, the config it is stored with, its curve, and the share of tokens that its reader lacks."""

    model: PathModel
    config: dict[str, Any]
    progress: TrainingState
    unknown: float


def train(workspace: Workspace, inputs: TrainingInputs) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json, curves.parquet and gold_paths.parquet; returns counts.

    Topics are masked under the names that the graph store has, or else under their keys.
    Raises TrainingError when no training question has a gold path or the loss is not finite; ModelError when the
    encoder is not one.
    """
    options: HopPathOptions = inputs.options
    graph = Dkg.open(inputs.dkg)
    everything = read_questions(inputs.questions)
    hops = options.max_hops or choose_hops(needed_hops(everything, graph))
    options = options.model_copy(update={"max_hops": hops})
    splits = {
        split: _with_paths(
            [q for q in everything if q.split == split], graph, options.searched_paths, hops, workspace.monitor
        )
        for split in ("train", "dev")
    }
    if not splits["train"].questions:
        raise TrainingError(
            f"none of the {splits['train'].counts['questions']} training questions has a topic entity and a gold "
            f"relation path of at most {hops} hops in this graph; give relation_path in the question file, "
            "or answers that are entities of the graph with hop_path.searched_paths above 0"
        )
    _write_gold(workspace.out, splits)
    names = topic_names(inputs.kg, splits["train"].questions + splits["dev"].questions)
    labels = directed_labels(graph)

    def rows(token: str | None) -> tuple[list[PathExample], list[PathExample]]:
        learning, developing = (
            [as_row(mask_topic(question, token, names), paths, question.hops)
             for question, paths in zip(split.questions, split.paths, strict=True)]
            for split in splits.values()
        )  # fmt: skip
        return learning, developing

    sha = hashlib.sha256(graph.digest.encode())
    sha.update((inputs.questions / QUESTIONS_FILE).read_bytes())
    sha.update(f"{sorted(names.items())} {list(labels.items())}".encode())
    fitted = fit(
        rows, labels, options, inputs.seed, key=sha.hexdigest(), monitor=workspace.monitor, work=workspace.work
    )
    retrieval = options.model_dump(include=RETRIEVAL_OPTIONS)
    config = fitted.config | {"retrieval": retrieval}
    save_model(workspace.out, fitted.model.network.state_dict(), fitted.model.reader.tokenizer, config)
    write_curves(workspace.out, fitted.progress)
    if workspace.work is not None:
        (workspace.work / CHECKPOINT).unlink(missing_ok=True)
    return {
        "questions": {name: len(split.questions) for name, split in splits.items()},
        "left_out": {name: len(split.left_out) for name, split in splits.items()}
        | {"examples": splits["train"].left_out[:20]},
        "gold_paths": {name: split.counts for name, split in splits.items()},
        "hops": hops,
        "relations": len(fitted.model.keys),
        "parameters": sum(parameter.numel() for parameter in fitted.model.network.parameters()),
        "unknown_token_share": round(fitted.unknown, 4),
        **epoch_counts(fitted.progress),
    }


def directed_labels(dkg: Dkg) -> dict[str, str]:
    """Directed relation key → its words, in order of relation id."""
    words = relation_texts(dkg)
    return {key: direction_label(words[number % dkg.relations], key) for number, key in enumerate(dkg.relation_keys)}


def as_row(text: str, paths: Sequence[GoldPath], hops: int | None) -> PathExample:
    """A question's text and gold paths as the classifiers learn them.

    Annotated paths count alike, searched ones by their F1.  A path from several topics is one path.
    """
    weights: dict[tuple[str, ...], float] = {}
    for path in paths:
        weight_of = 1.0 if path.origin == "annotated" else path.f1 or 0.0
        weights[path.relations] = max(weight_of, weights.get(path.relations, 0.0))
    total = sum(weights.values())
    return PathExample(text, tuple(weights), tuple(weight / total for weight in weights.values()), hops)


class _Split:
    """Questions of a split with their gold paths, and what was left out."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.paths: list[list[GoldPath]] = []
        self.left_out: list[str] = []
        self.counts: dict[str, int] = {}


def _with_paths(questions: Sequence[Question], dkg: Dkg, searched: int, hops: int, monitor: Monitor) -> _Split:
    gold, counts = all_gold_paths(questions, dkg, searched=searched, hops=hops, monitor=monitor)
    split = _Split()
    too_long = 0
    for question, paths in zip(questions, gold, strict=True):
        fit_paths = [path for path in paths if len(path.relations) <= hops]
        too_long += len(paths) - len(fit_paths)
        if fit_paths:
            split.questions.append(question)
            split.paths.append(fit_paths)
        else:
            split.left_out.append(question.id)
    split.counts = {"questions": len(questions), **counts, "too_long": too_long}
    return split


def _write_gold(out: Path, splits: dict[str, _Split]) -> None:
    rows = [
        (question.id, name, rank, path.topic, list(path.relations), path.origin, path.f1)
        for name, split in splits.items()
        for question, paths in zip(split.questions, split.paths, strict=True)
        for rank, path in enumerate(paths)
    ]
    schema: dict[str, Any] = {
        "question": pl.String,
        "split": pl.String,
        "rank": pl.Int32,
        "topic": pl.Int64,
        "path": pl.List(pl.String),
        "origin": pl.String,
        "f1": pl.Float64,
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row").sort("question", "rank")
    frame.write_parquet(out / GOLD_FILE, compression="zstd", statistics=False)


def fit(
    rows: Callable[[str | None], tuple[Sequence[PathExample], Sequence[PathExample]]],
    labels: Mapping[str, str],
    options: HopPathOptions,
    seed: int,
    *,
    key: str = "",
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> FittedPaths:
    """Classifiers trained with early stopping on dev path accuracy; `work` keeps a killed run's state.

    rows: training and dev questions, from the token that stands for the topic, None where it is left there.
    labels: the words of each directed relation key, in the order that breaks ties; the classes are those on gold paths
    of training.  key: identifies rows and labels for the checkpoint.
    Raises TrainingError when no training question has a gold path; ModelError when the encoder is not one.
    """
    device = pick_device(options.device, "hop_path")
    with seeded(device, seed):
        encoder, reader, description = new_encoder(
            options, lambda token: _vocabulary_texts(rows(token)[0], labels), "hop_path"
        )
        learning, developing = rows(reader.topic_token)
        if not learning:
            raise TrainingError("no training question has a gold relation path; hop_path has nothing to learn from")
        seen = {relation for row in learning for path in row.paths for relation in path}
        keys = tuple(relation for relation in labels if relation in seen)
        hops = options.max_hops or max(len(path) for row in learning for path in row.paths)
        network = PathClassifier(encoder, len(keys), hops, options.shared_encoder).to(device)
        model = PathModel(network, reader, keys, tuple(labels[relation] for relation in keys))
        unknown = reader.unknown_share([row.text for row in learning])
        note_unknown_tokens(unknown, "questions'", options.encoder, "hop_path", monitor)
        train_data, dev_data = _EncodedExamples(model, learning, device), _EncodedExamples(model, developing, device)
        for part in network.encoders:
            keep_lower_states(part, options, train_data.rows + dev_data.rows, device)
        wordings = train_data.wordings()
        together = 1 if options.encoder == "scratch" else GROUP
        plan = TrainingPlan(
            per_epoch=math.ceil(len(learning) / options.batch_size),
            epochs=options.epochs,
            patience=options.patience,
            batches=lambda epoch: epoch_batches(*wordings, options.batch_size, together, seed, epoch),
            backward=backward_of(lambda batch: train_data.loss(batch.tolist())),
            measure=lambda: measure(model, developing, options) | dev_data.mean_loss() if developing else {},
            score=lambda measured: [measured["path_at_1"], -measured["loss"]],
            section="hop_path",
            max_steps=options.max_steps,
        )
        progress, weights = train_encoder(network, plan, options, key_of(key, options.decisive(), seed), monitor, work)
    network.load_state_dict(weights, strict=False)
    return FittedPaths(model, describe(model, description), progress, unknown)


def measure(model: PathModel, rows: Sequence[PathExample], options: HopPathOptions) -> dict[str, float]:
    """hop_accuracy, path_at_1 and path_at_5 of questions with gold paths: shares in [0, 1], higher is better.

    A path counts when it is one of the question's gold paths, a number of hops when a gold path has it.
    """
    right: Counter[str] = Counter()
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        hops = [row.hops if options.gold_hops else None for row in chunk]
        predicted = model.predict([row.text for row in chunk], beam=options.beam, hops=hops)
        for row, prediction in zip(chunk, predicted, strict=True):
            best = [path for path, _ in prediction.paths[:MEASURED]]
            right["hop_accuracy"] += prediction.hops in {len(path) for path in row.paths}
            right["path_at_1"] += best[:1] != [] and best[0] in row.paths
            right["path_at_5"] += any(path in row.paths for path in best)
    return {name: right[name] / max(1, len(rows)) for name in ("hop_accuracy", "path_at_1", "path_at_5")}


class _EncodedExamples:
    """Questions as token ids and targets, each distinct text with its prefix of a path once."""

    def __init__(self, model: PathModel, rows: Sequence[PathExample], device: torch.device) -> None:
        self.model, self.device = model, device
        number = {key: index for index, key in enumerate(model.keys)}
        self.texts = [row.text for row in rows]
        # Of each question: (text with prefix, class, weight) and (hops - 1, weight).
        steps: list[list[tuple[tuple[str, tuple[int, ...]], int, float]]] = []
        self.hops: list[list[tuple[int, float]]] = []
        for row in rows:
            own: list[tuple[tuple[str, tuple[int, ...]], int, float]] = []
            for path, weight in zip(row.paths, row.weights, strict=True):
                prefix: tuple[int, ...] = ()
                for key in path:
                    if key not in number:  # a dev path that training never showed
                        break
                    own.append(((row.text, prefix), number[key], weight))
                    prefix = (*prefix, number[key])
            steps.append(own)
            self.hops.append([(len(path) - 1, weight) for path, weight in zip(row.paths, row.weights, strict=True)])
        distinct = sorted({(text, ()) for text in self.texts} | {text for own in steps for text, _, _ in own})
        index_of = {text: index for index, text in enumerate(distinct)}
        self.rows = model.rows(distinct)
        self.first = [index_of[text, ()] for text in self.texts]
        self.bare = frozenset(self.first)
        self.steps = [[(index_of[text], target, weight) for text, target, weight in own] for own in steps]

    def wordings(self) -> tuple[list[list[int]], Tensor]:
        """Token ids of the distinct texts, and the text of each question, for the order of an epoch."""
        distinct = sorted(set(self.first))
        index_of = {row: index for index, row in enumerate(distinct)}
        text_of = torch.tensor([index_of[row] for row in self.first], dtype=torch.int64)
        return [self.rows[row] for row in distinct], text_of

    def loss(self, questions: Sequence[int]) -> Tensor:
        """Mean negative log-likelihood of hops and gold paths of some question numbers."""
        used = sorted(
            {self.first[question] for question in questions}
            | {row for question in questions for row, _, _ in self.steps[question]}
        )
        hop_logits, relation_logits, index = self._logits(used)
        hops = [(index[self.first[q]], hop, weight) for q in questions for hop, weight in self.hops[q]]
        steps = [(index[row], target, weight) for q in questions for row, target, weight in self.steps[q]]
        return (_likelihood(hop_logits, hops) + _likelihood(relation_logits, steps)) / -len(questions)

    def _logits(self, rows: Sequence[int]) -> tuple[Tensor, Tensor, dict[int, int]]:
        """Logits of hops and relations, and the index of each row; long texts are not padded with short ones.

        A scratch encoder computes nothing for padding, so that it reads all of them at once.
        """
        split = ([row for row in rows if row in self.bare], [row for row in rows if row not in self.bare])
        split = (list(rows), []) if isinstance(self.model.network.encoder, Scratch) else split
        parts = [part for part in split if part]
        logits = []
        for part in parts:
            ids, mask = self.model.reader.batch([self.rows[row] for row in part])
            logits.append(self.model.network(ids.to(self.device), mask.to(self.device)))
        hops, relations = (torch.cat(found) for found in zip(*logits, strict=True))
        return hops, relations, {row: index for index, row in enumerate(row for part in parts for row in part)}

    def mean_loss(self) -> dict[str, float]:
        """The loss of all questions, without gradient and dropout."""
        self.model.network.eval()
        total = 0.0
        order = sorted(range(len(self.texts)), key=lambda question: (len(self.rows[self.first[question]]), question))
        with torch.no_grad():
            for start in range(0, len(order), EVALUATION_BATCH):
                batch = order[start : start + EVALUATION_BATCH]
                total += float(self.loss(batch)) * len(batch)
        return {"loss": total / max(1, len(order))}


def _likelihood(logits: Tensor, targets: Sequence[tuple[int, int, float]]) -> Tensor:
    """Weighted sum of log probabilities of (row, class, weight)."""
    if not targets:
        return logits.sum() * 0
    rows, classes, weights = zip(*targets, strict=True)
    logs = torch.log_softmax(logits, dim=-1)[list(rows), list(classes)]
    return (logs * torch.tensor(weights, dtype=logs.dtype, device=logs.device)).sum()


def _vocabulary_texts(rows: Sequence[PathExample], labels: Mapping[str, str]) -> list[str]:
    """What is read in training: the questions, and each with the words of its gold paths."""
    return [row.text for row in rows] + [
        row.text + "".join(SEPARATOR + labels[key] for key in path[:-1])
        for row in rows
        for path in row.paths
        if len(path) > 1
    ]


def direction_label(words: str, key: str) -> str:
    """The words of a directed relation: an inverse one says so."""
    return f"{INVERSE}{words}" if key.startswith(INVERSE) else words
