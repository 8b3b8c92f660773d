"""Both decoders of Rigel on questions whose relation training never saw: relation accuracy and Hits@1.

One run measures one cell: `--dataset simplequestions|zjqa --decoder layer|label --holdout 0|0.1`.  It puts its cell
into the JSON file beside those that are there.

A share `holdout` of the relations of the questions is sampled with the seed.  Training and dev questions with such
a relation on their gold path are left out.  `label` is trained on the graph without those relations and opened on the
whole one: they are new to it in every way.  `layer` cannot be opened on a graph with other relations, so it is trained
on the whole one: an unseen relation has an output, which no training question uses.

Test questions are those of the benchmark, all of them, and counted apart by whether their gold path has an unseen
relation.  relation_accuracy: the heaviest relation of hop 1, with its direction, begins a gold path.
relation_accuracy_at_topic: the same among the relations that the topic has.  hits_at_1: the best entity is gold
(SimpleQuestions: any object of the gold relation; hits_at_1_annotated: the one that the annotation names).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import logging
import os
import platform
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results_file
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import fields_below
from kgqa_core.config import KgOptions, QuestionsOptions, RigelOptions
from kgqa_core.datasets.load import load as load_questions
from kgqa_core.datasets.masking import mask_topic, topic_names
from kgqa_core.datasets.question import read_questions, write_questions
from kgqa_core.datasets.simplequestions import annotated
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import Log
from kgqa_core.retrieval.rigel.network import Trained, load
from kgqa_core.retrieval.rigel.retriever import EPSILON
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.retrieval.rigel.walk import walk
from kgqa_core.types import INVERSE, Question

FIELDS = (
    *fields_below("cells/*"), "cells/*/dataset", "cells/*/decoder", "cells/*/holdout", "cells/*/seed",
    "cells/*/relations", "cells/*/held_out/...", "cells/*/train_questions", "cells/*/dev_questions",
    "cells/*/test/...", "cells/*/dev_hits_at_1", "cells/*/epochs", "cells/*/best_epoch", "cells/*/parameters",
    "cells/*/train_wall_seconds", "cells/*/train_cpu_seconds", "cells/*/options/...", "cells/*/torch",
    "cells/*/threads", "cells/*/machine",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

PROGRESS = Log("dev_", every=10)


@dataclass(frozen=True)
class DataSet:
    """Where a benchmark's graph and questions lie below the data folder, and the budget of its trainings."""

    kg: dict[str, Any]
    files: tuple[str, ...]
    questions: dict[str, Any]
    folder: str
    budget: dict[str, Any]


DATA_SETS = {
    "simplequestions": DataSet(
        {"name": "wikidata-mini"},
        ("wikidata_mini/triples.tsv", "wikidata_mini/labels.en.tsv"),
        {"source": "simplequestions"},
        "simplequestions_wikidata",
        {
            "encoder": "minilm",
            "hops": 1,
            "loss": "bce",
            "epochs": 1,
            "min_steps": 200,
            "batch_size": 64,
            "learning_rate": 3e-3,
            "encoder_learning_rate": 1e-4,
            "max_tokens": 32,
        },
    ),
    "zjqa": DataSet(
        {"name": "zjqa", "format": "delimited", "delimiter": "\t", "languages": ("zh", "", "en")},
        ("zjqa/indexes/triple.txt",),
        {"source": "zjqa", "language": "zh"},
        "zjqa",
        {"encoder": "scratch", "hops": 2, "loss": "normalised", "epochs": 8, "patience": 3},
    ),
}
"""Budgets are those of the shipped profiles, and the same for every cell of a data set."""


BATCH = 128
EDGE_BUDGET = 2_000_000
"""Edges followed per question in the test, the default of `retrieval.edge_budget`."""


def prepare(name: str, data: Path, home: Path, seed: int) -> None:
    """Graph, DKG and questions of a data set in folders below `home`."""
    what = DATA_SETS[name]
    for part in ("kg", "dkg", "questions"):
        (home / part).mkdir(parents=True, exist_ok=True)
    kg = KgOptions(files=tuple(str(data / file) for file in what.files), **what.kg)
    build(home / "kg", options=kg, monitor=PROGRESS, work=home)
    export(home / "dkg", kg=home / "kg")
    questions = QuestionsOptions(path=str(data / what.folder), **what.questions)
    load_questions(home / "questions", kg=home / "kg", options=questions, seed=seed, monitor=PROGRESS)


def draw(questions: Sequence[Question], share: float, seed: int) -> list[str]:
    """Held-out relations, both directions of each: a share of those that gold paths use, sorted."""
    used = sorted({key.removeprefix(INVERSE) for q in questions for path in q.relation_paths for key in path})
    return sorted(random.Random(seed).sample(used, round(share * len(used))))


def unseen(question: Question, held: Sequence[str]) -> bool:
    """Whether a gold path of the question has a held-out relation."""
    return any(key.removeprefix(INVERSE) in held for path in question.relation_paths for key in path)


def without(dkg: Dkg, held: Sequence[str], folder: Path) -> None:
    """Writes the DKG without some relations: no key, no name, no triple; entities keep their ids."""
    heads, relations, tails = dkg.edges(np.arange(dkg.triples))
    remaining = [number for number in range(dkg.relations) if dkg.relation_keys[number] not in held]
    place = np.full(dkg.relations, -1)
    place[remaining] = np.arange(len(remaining))
    stay = place[relations] >= 0
    small = Dkg.from_triples(
        heads[stay],
        place[relations[stay]],
        tails[stay],
        dkg.entities,
        len(remaining),
        relation_keys=[dkg.relation_keys[number] for number in remaining],
        relation_names=[dkg.relation_names[number] for number in remaining],
    )
    folder.mkdir()
    small.save(folder)


def measure(
    trained: Trained,
    dkg: Dkg,
    names: dict[int, list[str]],
    questions: Sequence[Question],
    held: Sequence[str],
    named: dict[str, int],
) -> dict[str, dict[str, Any]]:
    """Scores of the test questions: all, and with seen and with unseen relations alone.

    named: entity that the annotation names, by question, where it names one of many.
    """
    rows: list[dict[str, float]] = []
    for start in range(0, len(questions), BATCH):
        own = questions[start : start + BATCH]
        plan = trained.plan([mask_topic(question, trained.reader.topic_token, names) for question in own])
        topics = EntityWeights.one_hot([question.topic_entities for question in own])
        with torch.inference_mode():
            led = walk(dkg, topics, plan, exclude_topic=trained.exclude_topic, epsilon=EPSILON, edge_budget=EDGE_BUDGET)
        PROGRESS.progress(len(rows), len(questions), "questions")
        for question, weights, ranked in zip(own, plan.relations[0], led.scores.top(1), strict=True):
            gold = {dkg.relation_ids[path[0]] for path in question.relation_paths}
            here = torch.tensor(relations_at(dkg, question))
            best = ranked[0][0] if ranked else None
            row = {
                "relation_accuracy": float(int(weights.argmax()) in gold),
                "relation_accuracy_at_topic": float(len(here) > 0 and int(here[weights[here].argmax()]) in gold),
                "hits_at_1": float(best in question.answers),
            }
            if question.id in named:
                row["hits_at_1_annotated"] = float(best == named[question.id])
            rows.append(row | {"unseen": float(unseen(question, held))})
    groups = {"all": rows, "seen": [r for r in rows if not r["unseen"]], "unseen": [r for r in rows if r["unseen"]]}
    return {name: _means(own) for name, own in groups.items()}


def relations_at(dkg: Dkg, question: Question) -> list[int]:
    """Directed relations that lead out of the topics."""
    found: set[int] = set()
    for entity in question.topic_entities:
        found.update(np.unique(dkg.rel[dkg.ptr[entity] : dkg.ptr[entity + 1]]).tolist())
    return sorted(found)


def _means(rows: list[dict[str, float]]) -> dict[str, Any]:
    names = [name for name in rows[0] if name != "unseen"] if rows else []
    return {"n": len(rows)} | {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in names}


def run(name: str, decoder: str, holdout: float, seed: int, data: Path, home: Path) -> dict[str, Any]:
    """One cell."""
    prepare(name, data, home, seed)
    dkg = Dkg.open(home / "dkg")
    questions = read_questions(home / "questions")
    held = draw(questions, holdout, seed) if holdout else []
    train_on = home / "dkg"
    if held and decoder == "label":
        train_on = home / "dkg-seen"
        without(dkg, held, train_on)
    learn = [question for question in questions if question.split == "test" or not unseen(question, held)]
    (home / "learn").mkdir()
    write_questions(home / "learn", learn)
    options = RigelOptions(decoder=decoder, device="cpu", **DATA_SETS[name].budget)  # type: ignore[arg-type]
    (home / "retriever").mkdir()
    wall, cpu = time.perf_counter(), time.process_time()
    counts = train(
        home / "retriever",
        dkg=train_on,
        questions=home / "learn",
        options=options,
        seed=seed,
        kg=home / "kg",
        monitor=PROGRESS,
        work=home / "work",
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    test = [question for question in questions if question.split == "test"]
    trained = load(home / "retriever", dkg)
    return {
        "dataset": name,
        "decoder": decoder,
        "holdout": holdout,
        "seed": seed,
        "relations": dkg.relations,
        "held_out": held,
        "train_questions": counts["questions"]["train"],
        "dev_questions": counts["questions"]["dev"],
        "test": measure(trained, dkg, topic_names(home / "kg", test), test, held, annotated_of(name, test, home)),
        "dev_hits_at_1": counts["dev_hits_at_1"],
        "epochs": counts["epochs"],
        "best_epoch": counts["best_epoch"],
        "parameters": counts["parameters"],
        "train_wall_seconds": round(wall, 1),
        "train_cpu_seconds": round(cpu, 1),
        "options": DATA_SETS[name].budget,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
    }


def annotated_of(name: str, questions: Sequence[Question], home: Path) -> dict[str, int]:
    """The entity that SimpleQuestions' annotation names for each question; nothing for other data sets."""
    if name != "simplequestions":
        return {}
    with KgStore.open(home / "kg") as store:
        found = store.resolve(sorted({annotated(question) for question in questions}))
    return {question.id: found[annotated(question)][0] for question in questions}


def put(path: Path, cell: dict[str, Any]) -> None:
    """Puts a cell into the results file in place of an earlier one, whatever else writes to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # let go when the folder is closed
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.is_file() else []
        place = ("dataset", "holdout", "decoder", "seed")
        cells = [old for old in cells if any(old[name] != cell[name] for name in place)] + [cell]
        cells.sort(key=lambda own: tuple(str(own[name]) for name in place))
        results_file.write(path, {"cells": cells}, FIELDS)
    finally:
        os.close(folder)


def main() -> None:
    """Measures one cell and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=sorted(DATA_SETS), required=True)
    parser.add_argument("--decoder", choices=["layer", "label"], required=True)
    parser.add_argument("--holdout", type=float, default=0.0, help="share of the questions' relations, 0.1 say")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="results file that the cell is put into")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as home:
        cell = run(given.dataset, given.decoder, given.holdout, given.seed, given.data, Path(home))
    if given.json:
        put(given.json, cell | {"conditions": conditions(given.seed)})
    print(json.dumps(cell, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
