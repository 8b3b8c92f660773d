"""Recall@5 of the relation rankers on QALD-9, LC-QuAD 1 and Atlas; AMR against the pair encoder alone on QALD-9.

One run measures one cell, `--data qald9|lcquad1|atlas --ranker llm|embedding|pair|amr --seed N`, and puts it into the
JSON file beside those that are there; `--compare` sets `amr` against `pair` over the seeds that both have.

recall_at_5: share of gold pairs of an entity and a relation among the first five, over the linked entities that have
a gold relation; a gold relation that is no candidate counts as missed.  Gold pairs of an unlinked entity (a later
hop) are left out and counted.  chance: what five random candidates would have.  Candidates are sorted by name, for
the files have them in the order of an earlier ranking.  The intervals resample questions (2,000 times), over several
seeds the same ones for each.  `most` and `most_test` in a cell are what a small budget left of the training examples
and of the test.

Questions of QALD-9's test set that are in its training set too (8 of 116) are removed from the training examples
(`left_out`), so that the whole test set is measured.  Graphs: the QALD-9-AMR treebank, written by hand, for training
and test (`--amr gold`); or SLING's extended graphs in training where the treebank's are in the test (`--amr sling`:
SLING's file has no test questions).

`llm` queries a server on loopback that stands in for a language model: it ranks by words that the question and a
relation share, and numbers its lines.  Its figure says that the way through prompt, endpoint, cache and parser works,
not how well any language model ranks.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import platform
import random
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.conditions import DATA, RESULTS, conditions
from kgqa_core.config import KgOptions, LlmOptions, QuestionsOptions, RelationRankingOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import load as load_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build
from kgqa_core.llm.factory import load_model
from kgqa_core.monitor import Log
from kgqa_core.nn.sentence_encoder import SentenceEncoder
from kgqa_core.papers.ltgen.relation_ranking import amr
from kgqa_core.papers.ltgen.relation_ranking.amr_source import AmrGraphs, read_graphs
from kgqa_core.papers.ltgen.relation_ranking.llm import LlmRanker
from kgqa_core.papers.ltgen.relation_ranking.ranker import EmbeddingRanker, Ranker, RankingQuery, relation_text
from kgqa_core.papers.ltgen.relation_ranking.train import fit
from kgqa_core.papers.ltgen.relation_ranking.trained import PairRanker
from kgqa_core.papers.ltgen.relation_ranking.training_examples import (
    LinkedEntity,
    RankingExample,
    examples_of_linking,
    examples_of_questions,
    read_linking,
)
from kgqa_core.retrieval.relation_texts import words
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer

FIELDS = (
    "cells/*/*", "cells/*/*/...", "amr_against_pair/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

PROGRESS = Log("dev_", every=20)
TOP = 5
DRAWS = 2_000
OPTIONS: dict[str, Any] = {
    "encoder": "minilm",
    "negatives": 7,
    "batch_size": 8,
    "epochs": 3,
    "patience": 2,
    "learning_rate": 1e-3,
    "encoder_learning_rate": 1e-4,
    "device": "cpu",
}
"""Budget of every training; `--option` changes it."""


@dataclass(frozen=True)
class Task:
    """Examples for training, for early stopping and for measuring, and counts of what was left out.

    test: entities with the same `question_id` are resampled together; of Atlas it is the question itself.
    """

    learning: list[RankingExample]
    developing: list[RankingExample]
    test: list[LinkedEntity]
    counts: dict[str, Any]


def linking_task(folder: Path, name: str, seed: int, most: int | None) -> Task:
    """A relation-linking set.  most: training examples, sampled with the seed."""
    train, test = (read_linking(folder / name / f"{name}_{split}.json") for split in ("train", "test"))
    learning, developing = examples_of_linking(train, seed)
    counts = {"train": train.counts, "test": test.counts}
    return Task(_sample(learning, most, seed), developing, [one for one in test.linked if one.gold], counts)


def atlas_task(seed: int, most: int | None) -> Task:
    """The bundled graph and its questions; the first relations of the gold paths are gold."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        for part in ("kg", "dkg", "questions"):
            (folder / part).mkdir()
        build(Workspace(folder / "kg", folder), options=KgOptions(files=("bundled:atlas",)))
        export(Workspace(folder / "dkg"), kg=folder / "kg")
        load_questions(
            Workspace(folder / "questions"), kg=folder / "kg", options=QuestionsOptions(source="atlas"), seed=seed
        )
        dkg = Dkg.open(folder / "dkg")
        everything = read_questions(folder / "questions")
        examples, counts = {}, {}
        for split in ("train", "dev", "test"):
            own = [question for question in everything if question.split == split]
            examples[split], counts[split] = examples_of_questions(own, dkg, folder / "kg", 200)
    test = [
        LinkedEntity(
            one.question, one.question, one.entity, one.relations, frozenset(one.relations[place] for place in one.gold)
        )
        for one in examples["test"]
    ]
    return Task(_sample(examples["train"], most, seed), examples["dev"], test, counts)


def apart(task: Task) -> tuple[Task, int]:
    """The task without training examples of its test questions, and how many these were."""
    measured = {_same(one.question) for one in task.test}
    learning, developing = ([one for one in part if _same(one.question) not in measured]
                            for part in (task.learning, task.developing))  # fmt: skip
    left_out = len(task.learning) + len(task.developing) - len(learning) - len(developing)
    return replace(task, learning=learning, developing=developing), left_out


def _same(question: str) -> str:
    return " ".join(question.split()).casefold()


def _sample(examples: list[RankingExample], most: int | None, seed: int) -> list[RankingExample]:
    return examples if most is None or len(examples) <= most else random.Random(seed).sample(examples, most)


def amr_graphs(data: Path, source: str) -> AmrGraphs:
    """The treebank's graphs of train and test; with `sling`, SLING's of train in place of the treebank's."""
    treebank = data / "amr" / "qald-9-amr"
    graphs = read_graphs(treebank / "qald-9-amr-train.txt")
    if source == "sling":
        graphs = read_graphs(data / "relation_linking" / "sling" / "qald_9.json")
    return AmrGraphs(read_graphs(treebank / "qald-9-amr-test.txt") | graphs)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One cell: its scores, and its hits pair by pair for the comparison."""
    if args.data == "atlas":
        task = atlas_task(args.seed, args.most)
    else:
        task = linking_task(args.shared / "relation_linking", args.data, args.seed, args.most)
    task, left_out = apart(task)
    if args.most_test is not None and args.most_test < len(task.test):
        task = replace(task, test=random.Random(0).sample(task.test, args.most_test))
    pairs = (option.partition("=") for option in args.option)
    options = RelationRankingOptions(**(OPTIONS | {key: json.loads(value) for key, _, value in pairs}))
    started, cpu = time.perf_counter(), time.process_time()
    more: dict[str, Any] = {}
    if args.layers is not None:
        options = options.model_copy(update={"encoder": shallow(args.layers)})
    with ChatServer(overlap) as server:
        ranker: Ranker
        if args.ranker == "llm":
            llm = LlmOptions(base_url=server.base_url, concurrency=4)
            os.environ.setdefault("OPENAI_API_KEY", "none")
            ranker = LlmRanker(load_model("openai:stand-in", llm), options.max_new_tokens)
        elif args.ranker == "embedding":
            ranker = EmbeddingRanker(SentenceEncoder(options.sentence_encoder, section="relation_ranking"))
        else:
            ranker, more = trained(task, args, options)
        queries = [RankingQuery(one.question, one.entity, one.relations) for one in task.test]
        ranked = ranker.rank(queries, TOP, PROGRESS)
    hits = [
        (one.question_id, one.question, len({one.relations[place] for place, _ in own} & one.gold), len(one.gold))
        for one, own in zip(task.test, ranked, strict=True)
    ]
    return {
        "conditions": conditions(args.seed),
        "recall_at_5": recall(hits),
        "interval": interval(hits),
        "left_out": left_out,
        "chance": round(sum(chance(one) for one in task.test) / sum(len(one.gold) for one in task.test), 4),
        "most": args.most,
        "most_test": args.most_test,
        "most_dev": args.most_dev,
        "pairs": len(task.test),
        "gold": sum(hit[3] for hit in hits),
        "mean_candidates": round(float(np.mean([len(one.relations) for one in task.test])), 1),
        "task": task.counts,
        "counts": ranker.counts,
        **more,
        "options": options.model_dump(mode="json", include=set(OPTIONS))
        | {"encoder": "minilm" if args.layers is None else f"first {args.layers} layers of minilm"},
        "wall_seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "torch": torch.__version__,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} thread(s)",
        "hits": [[question, found, gold] for question, _, found, gold in hits],
    }


def trained(
    task: Task, args: argparse.Namespace, options: RelationRankingOptions
) -> tuple[Ranker, dict[str, Any]]:  # fmt: skip
    """`pair` or `amr`, trained here."""
    source = amr_graphs(args.shared, args.amr) if args.ranker == "amr" else None
    graphs = {}
    learning, developing = task.learning, _sample(task.developing, args.most_dev, 0)
    if source is not None:
        graphs = source.of([example.question for example in (*learning, *developing)])
        learning, developing = ([one for one in part if one.question in graphs] for part in (learning, developing))
    work = args.work / f"{args.data}-{args.ranker}-{args.amr}-{args.seed}" if args.work else None
    key = hashlib.sha256(repr((learning, developing, sorted(graphs.items()))).encode()).hexdigest()
    fitted = fit(
        Workspace(work or Path(), work, monitor=PROGRESS),
        learning,
        developing,
        options,
        args.seed,
        args.ranker,
        graphs=graphs,
        key=key,
    )
    details = {
        "learnt_from": len(learning),
        "best_epoch": fitted.progress.best_epoch,
        "dev_curve": [row for row in fitted.progress.curve if row[2] == "dev"],
    }
    if source is not None:
        details |= {"amr": args.amr, "amr_reader": f"{amr.read_penman.__module__}.{amr.read_penman.__qualname__}"}
    return PairRanker(fitted.trained, source), details


def shallow(layers: int) -> str:
    """A folder with the first layers of the packaged MiniLM, as an encoder."""
    from kgqa_core.nn.encoders import load_pretrained

    model, tokenizer = load_pretrained("minilm", "relation_ranking")
    model.encoder.layer = model.encoder.layer[:layers]
    model.config.num_hidden_layers = layers
    folder = Path(tempfile.gettempdir()) / f"kgqa-minilm-{layers}"
    if not folder.is_dir():  # the same name in every run, for it is part of a checkpoint's key
        scratch = Path(tempfile.mkdtemp(prefix=folder.name))
        model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        with contextlib.suppress(OSError):  # another run was faster
            scratch.rename(folder)
    return str(folder)


def overlap(prompt: str) -> str:
    """The stand-in's answer: five relations by the words that they share with the question, numbered."""
    question = prompt[prompt.index("Question: <<<") + 13 : prompt.index(">>>\nEntity:")]
    names = prompt[prompt.index("Relations: <<<") + 14 : prompt.rindex(">>>")].split(", ")
    question_words = [word for word in re.findall(r"\w+", question.lower()) if len(word) > 3]

    def likeness(name: str) -> float:
        own = relation_text(name).split()
        shared = sum(any(word[:5] == other[:5] for other in question_words) for word in own)
        return shared / max(1, len(own))

    best = sorted(names, key=lambda name: (-likeness(name), words(name)))[:TOP]
    return "\n".join(f"{number}. {name}" for number, name in enumerate(best, start=1))


def recall(hits: Sequence[Sequence[Any]]) -> float:
    """Found of wanted, the last two of each."""
    return round(sum(hit[-2] for hit in hits) / max(1, sum(hit[-1] for hit in hits)), 4)


def chance(one: LinkedEntity) -> float:
    """Gold relations among TOP random candidates, as expected."""
    inside = len(one.gold & set(one.relations))
    return inside * min(1.0, TOP / len(one.relations))


def by_question(hits: Sequence[Sequence[Any]]) -> dict[str, np.ndarray]:
    """(found, wanted) of each question."""
    found: dict[str, np.ndarray] = {}
    for hit in hits:
        found[hit[0]] = found.get(hit[0], np.zeros(2)) + np.array(hit[-2:], dtype=float)
    return found


def interval(hits: Sequence[Sequence[Any]]) -> list[float]:
    """95 % of the recalls of questions resampled with replacement."""
    rows = np.stack(list(by_question(hits).values()))
    resampled = np.random.default_rng(0).integers(0, len(rows), size=(DRAWS, len(rows)))
    sums = rows[resampled].sum(axis=1)
    return [round(float(value), 4) for value in np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975])]


def compare(cells: dict[str, Any], data: str, other: str) -> dict[str, Any]:
    """amr less pair in recall, seed by seed and over all, with an interval over questions resampled alike for both.

    Only of seeds whose two cells had the same options and pairs; `not_alike` names the others.
    """
    there = [key.rsplit("/", 1)[1] for key in cells if key.startswith(f"{data}/{other}/")]
    there = [seed for seed in there if f"{data}/pair/{seed}" in cells]
    if not there:
        return {}
    compared = [cells[f"{data}/{name}/{seed}"] for seed in there for name in ("pair", other)]
    conditions = [conditions_of(cell) for cell in compared]
    common = max(conditions, key=conditions.count)
    seeds = [seed for place, seed in enumerate(there) if conditions[2 * place : 2 * place + 2] == [common] * 2]
    not_alike = [seed for seed in there if seed not in seeds]
    if not seeds:
        return {"seeds": [], "not_alike": not_alike}
    parts = []
    for seed in seeds:
        pair, ours = (by_question(cells[f"{data}/{name}/{seed}"]["hits"]) for name in ("pair", other))
        parts.append(np.stack([np.concatenate([ours[question], pair[question]]) for question in sorted(pair)]))
    rows = np.stack(parts)  # [seed, question, (found, wanted) of ours and of pair]

    def difference(own: np.ndarray) -> np.ndarray:
        sums = own.sum(axis=-2)
        return (sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3]).mean(axis=0)

    generator = np.random.default_rng(0)
    draws = [difference(rows[:, generator.integers(0, rows.shape[1], size=rows.shape[1])]) for _ in range(DRAWS)]
    return {
        "seeds": seeds,
        "by_seed": [round(float(difference(rows[place : place + 1])), 4) for place in range(len(seeds))],
        "difference": round(float(difference(rows)), 4),
        "interval": [round(float(value), 4) for value in np.quantile(draws, [0.025, 0.975])],
        "questions": int(rows.shape[1]),
        "not_alike": not_alike,
    }


def conditions_of(cell: dict[str, Any]) -> list[Any]:
    """What two cells must share to be compared: options, budgets, and the pairs that were measured on."""
    pairs = [[hit[0], hit[-1]] for hit in cell["hits"]]
    return [cell["options"], cell["most"], cell["most_test"], cell["most_dev"], pairs]


def add_cell(path: Path, key: str | None, cell: dict[str, Any]) -> dict[str, Any]:
    """Puts a cell into the file beside the others, and compares anew."""
    path.touch()
    with path.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        record = json.loads(text) if text else {"cells": {}}
        if key is not None:
            record["cells"][key] = cell
        record["cells"] = dict(sorted(record["cells"].items()))
        record["amr_against_pair"] = {
            name: found for name in ("amr-gold", "amr-sling") if (found := compare(record["cells"], "qald9", name))
        }
        file.seek(0)
        file.truncate()
        file.write(re.sub(r'\[\s+("[^"]*"),\s+(\d+),\s+(\d+)\s+\]', r"[\1, \2, \3]",
                          json.dumps(record, indent=1, ensure_ascii=False)) + "\n")  # fmt: skip
    return dict(record["amr_against_pair"])


def main() -> None:
    """Measures a cell, or compares those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--data", choices=("qald9", "lcquad1", "atlas"), default="qald9")
    parser.add_argument("--ranker", choices=("llm", "embedding", "pair", "amr"))
    parser.add_argument("--amr", choices=("gold", "sling"), default="gold", help="graphs of the training questions")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--most", type=int, help="training examples")
    parser.add_argument("--most-dev", type=int, help="dev examples that are measured after each pass")
    parser.add_argument("--layers", type=int, help="of MiniLM that the trained rankers begin with, instead of all six")
    parser.add_argument("--most-test", type=int, help="pairs that are measured on, the same for every ranker and seed")
    parser.add_argument("--work", type=Path, help="folder from which a killed run goes on")
    parser.add_argument("--option", action="append", default=[], help="key=value of relation_ranking, value as JSON")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS / "relation_ranking.json")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    torch.set_num_threads(1)
    cell = None
    if args.ranker:
        cell = run(args)
        name = f"amr-{args.amr}" if args.ranker == "amr" else args.ranker
        print({key: cell[key] for key in ("recall_at_5", "interval", "left_out", "chance", "gold", "wall_seconds")})
        found = add_cell(args.json, f"{args.data}/{name}/{args.seed}", cell)
    else:
        found = add_cell(args.json, None, {})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
