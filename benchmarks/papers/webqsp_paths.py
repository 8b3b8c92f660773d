"""The path classifiers on WebQSP's inferential chains, official train to official test: hops and relation paths.

There is no Freebase here, so nothing is grounded: texts, chains and nothing else.  The gold path is the chain of the
first parse (Wu et al. 2023).  Nine tenths of train are learnt from, a seeded tenth stops the training early, test is
only measured.  Questions whose first parse has no chain are counted and left out.  The topic's mention is masked, by
the words that the parse names or by the topic's name.

hop_accuracy: the predicted number of hops is the chain's.  path_at_1, path_at_5: the chain is the first, or among the
first five, of the beam at the predicted number of hops.  Every question with a chain counts, also those whose chain has
a relation that no training chain has (`unseen_paths`), which cannot be predicted.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import results_file
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import HopPathOptions
from kgqa_core.datasets.load import HELD_OUT
from kgqa_core.datasets.masking import mask_topic
from kgqa_core.datasets.splits import hold_out
from kgqa_core.datasets.webqsp import ParsedQuestion, read_parsed
from kgqa_core.monitor import Log
from kgqa_core.nn.training import CHECKPOINT
from kgqa_core.retrieval.hop_path.classifier import PathModel
from kgqa_core.retrieval.hop_path.train import PathExample, fit, measure
from kgqa_core.retrieval.relation_texts import words
from kgqa_core.types import Question

FIELDS = (
    *CONDITIONS, "questions/*", "without_chain/*", "used/*", "relations/*", "dev/*", "test/*", "test_by_hops/...",
    "epochs", "best_epoch", "dev_curve/...", "resumed", "train_wall_seconds", "train_cpu_seconds", "options/...",
    "seed", "torch", "threads", "machine",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

PROGRESS = Log("dev_", every=10)
OPTIONS: dict[str, Any] = {
    "encoder": "minilm",
    "max_hops": 2,
    "beam": 5,
    "epochs": 8,
    "patience": 3,
    "batch_size": 64,
    "learning_rate": 3e-3,
    "encoder_learning_rate": 1e-4,
    "max_tokens": 64,
    "device": "cpu",
}


def splits(questions: Sequence[ParsedQuestion], seed: int) -> dict[str, list[ParsedQuestion]]:
    """Questions with a chain by split; dev is a seeded tenth of train."""
    held = hold_out([question.id for question in questions if question.split == "train"], HELD_OUT, seed)
    found: dict[str, list[ParsedQuestion]] = {"train": [], "dev": [], "test": []}
    for question in questions:
        if question.chain:
            found["dev" if question.id in held else question.split].append(question)
    return found


def row(question: ParsedQuestion, token: str) -> PathExample:
    """The masked text and the chain."""
    mention = question.mention or question.topic_name
    known = Question(
        question.id, question.text, topic_keys=(mention,) if mention else (), topic_entities=(0,) if mention else ()
    )
    names = {0: [question.topic_name]} if question.topic_name else {}
    return PathExample(mask_topic(known, token, names), (question.chain,), (1.0,), len(question.chain))


def run(data: Path, seed: int, work: Path | None, overrides: dict[str, Any]) -> dict[str, Any]:
    """Trains, measures test, and returns the record of both."""
    questions = list(read_parsed(data))
    parts = splits(questions, seed)
    options = HopPathOptions(**(OPTIONS | overrides))
    relations = sorted({relation for question in questions for relation in question.chain})
    resumed = work is not None and (work / CHECKPOINT).is_file()
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = fit(
        lambda token: ([row(one, token) for one in parts["train"]], [row(one, token) for one in parts["dev"]]),
        {relation: words(relation) for relation in relations},
        options,
        seed,
        key="webqsp",
        monitor=PROGRESS,
        work=work,
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    model = fitted.model
    counted = Counter(question.split for question in questions)
    return {
        "questions": dict(sorted(counted.items())),
        "without_chain": {
            split: sum(not question.chain for question in questions if question.split == split)
            for split in ("train", "test")
        },
        "used": {name: len(own) for name, own in parts.items()},
        "relations": {"train_and_test": len(relations), "classes": len(model.keys)},
        "dev": scores(model, parts["dev"], options),
        "test": scores(model, parts["test"], options),
        "test_by_hops": {
            str(hops): scores(model, [one for one in parts["test"] if len(one.chain) == hops], options)
            for hops in (1, 2)
        },
        "epochs": fitted.progress.epoch,
        "best_epoch": fitted.progress.best_epoch,
        "dev_curve": [line for line in fitted.progress.curve if line[2] == "dev"],
        "resumed": resumed,  # then the seconds are those of the last try alone
        "train_wall_seconds": round(wall, 1),
        "train_cpu_seconds": round(cpu, 1),
        "options": options.model_dump(mode="json", include=set(OPTIONS) | set(overrides)),
        "seed": seed,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
    }


def scores(model: PathModel, questions: Sequence[ParsedQuestion], options: HopPathOptions) -> dict[str, Any]:
    """Accuracies of questions with a chain, and how many have a relation that is no class."""
    rows = [row(question, model.reader.topic_token) for question in questions]
    known = set(model.keys)
    return {
        "n": len(rows),
        "unseen_paths": sum(not known.issuperset(question.chain) for question in questions),
        **{name: round(value, 4) for name, value in measure(model, rows, options).items()},
    }


def main() -> None:
    """Runs it and prints the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA / "webqsp", help="folder of WebQSP")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, help="folder from which a killed run goes on")
    parser.add_argument("--option", action="append", default=[], help="key=value of hop_path, value as JSON")
    parser.add_argument("--json", type=Path, help="file that the record is written to")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(given.threads)
    pairs = (option.partition("=") for option in given.option)
    record = run(given.data, given.seed, given.work, {key: json.loads(value) for key, _, value in pairs})
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    if given.json:
        results_file.write(given.json, {"conditions": conditions(given.seed), **record}, FIELDS)
    print(text, end="")


if __name__ == "__main__":
    main()
