"""Stage `train` of the path retriever: gold paths are taken or searched, and the classifiers learn them.

Gold paths come from the question file where it has them, else from a search in the graph (`datasets.gold_paths`); which
they were is recorded in gold_paths.parquet.  Questions without a topic or a gold path are left out and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import HopPathOptions
from kgqa_core.datasets.gold_paths import GoldPath, all_gold_paths
from kgqa_core.datasets.masking import mask_topic, topic_names
from kgqa_core.datasets.question import FILE as QUESTIONS_FILE
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import TrainingError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.saved_model import save_model
from kgqa_core.nn.training import CHECKPOINT, dev_of_best, write_curves
from kgqa_core.retrieval.hop_path.fit import PathExample, direction_label, fit
from kgqa_core.retrieval.hops import choose_hops, needed_hops
from kgqa_core.retrieval.relation_texts import relation_texts
from kgqa_core.types import Question

GOLD_FILE = "gold_paths.parquet"


def train(
    out: Path,
    *,
    dkg: Path,
    questions: Path,
    options: HopPathOptions,
    seed: int,
    kg: Path | None = None,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json, curves.parquet and gold_paths.parquet; returns counts.

    kg: the graph store, for the names under which topics are mentioned; topic keys alone serve without it.
    Raises TrainingError when no training question has a gold path or the loss is not finite; ModelError when the
    encoder is not one.
    """
    graph = Dkg.open(dkg)
    everything = read_questions(questions)
    hops = options.max_hops or choose_hops(needed_hops(everything, graph))
    options = options.model_copy(update={"max_hops": hops})
    splits = {
        split: _with_paths([q for q in everything if q.split == split], graph, options.searched_paths, hops, monitor)
        for split in ("train", "dev")
    }
    if not splits["train"].questions:
        raise TrainingError(
            f"none of the {splits['train'].counts['questions']} training questions has a topic entity and a gold "
            f"relation path of at most {hops} hops in this graph; give relation_path in the question file, "
            "or answers that are entities of the graph with hop_path.searched_paths above 0"
        )
    _write_gold(out, splits)
    names = topic_names(kg, splits["train"].questions + splits["dev"].questions)
    labels = directed_labels(graph)

    def rows(token: str) -> tuple[list[PathExample], list[PathExample]]:
        learning, developing = (
            [as_row(mask_topic(question, token, names), own, question.hops)
             for question, own in zip(split.questions, split.paths, strict=True)]
            for split in splits.values()
        )  # fmt: skip
        return learning, developing

    sha = hashlib.sha256(graph.digest.encode())
    sha.update((questions / QUESTIONS_FILE).read_bytes())
    sha.update(f"{sorted(names.items())} {list(labels.items())}".encode())
    fitted = fit(rows, labels, options, seed, key=sha.hexdigest(), monitor=monitor, work=work)
    retrieval = options.model_dump(include={"beam", "reasoning_paths", "gold_hops"})
    config = fitted.config | {"retrieval": retrieval}
    save_model(out, fitted.model.network.state_dict(), fitted.model.reader.tokenizer, config)
    write_curves(out, fitted.progress)
    if work is not None:
        (work / CHECKPOINT).unlink(missing_ok=True)
    return {
        "questions": {name: len(split.questions) for name, split in splits.items()},
        "left_out": {name: len(split.left_out) for name, split in splits.items()}
        | {"examples": splits["train"].left_out[:20]},
        "gold_paths": {name: split.counts for name, split in splits.items()},
        "hops": hops,
        "relations": len(fitted.model.keys),
        "parameters": sum(parameter.numel() for parameter in fitted.model.network.parameters()),
        "unknown_token_share": round(fitted.unknown, 4),
        "epochs": fitted.progress.epoch,
        "best_epoch": fitted.progress.best_epoch,
        **dev_of_best(fitted.progress),
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
        own = 1.0 if path.origin == "annotated" else path.f1 or 0.0
        weights[path.relations] = max(own, weights.get(path.relations, 0.0))
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
    found, counts = all_gold_paths(questions, dkg, searched=searched, hops=hops, monitor=monitor)
    split = _Split()
    too_long = 0
    for question, paths in zip(questions, found, strict=True):
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
