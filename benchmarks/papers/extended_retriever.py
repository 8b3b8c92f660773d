"""Rigel with each of its extensions against the plain one, on the same questions and seeds.

    python -m benchmarks.papers.extended_retriever --data atlas zjqa metaqa --what linked intersect mix feedback \
        --seeds 7 8 --home /tmp/extended --json /tmp/extended.json
    python -m benchmarks.papers.extended_retriever --table /tmp/extended.json \
        --record benchmarks/results/extended_retriever.json
    python -m benchmarks.papers.extended_retriever --table benchmarks/results/extended_retriever.json

A run measures cells (data set, comparison, condition, variant, seed) and puts each into the JSON file as soon as it is
done, with the score of every test question; cells that are there are not measured again.  The table pairs variants by
question: scores are averaged over the seeds that both have, and the interval is a bootstrap over questions.  A record
has the cells without the scores of single questions, and the rows of the table.

linked     trained on gold topics and tested on linked ones (`plain`: the best entities, all weight 1; `rho`: weighted
           by ρ; `candidates`: all candidates by ρ; `gold`: tested on gold topics) against `soft`, trained end to end on
           the linked questions, and `soft+product`, which intersects them too.  Condition `tagger`: kgqa_core.linking.
           Condition `noise`: in place of a tagger, three candidates for each topic, wrong ones being topics of other
           questions; the right one has the greatest ρ in 7 of 10.
intersect  `plain` against `product` and `min`; groups are complexity types.
mix        a small set alone (`alone`) against the same set with the others (`mix`; `mix_long` with LONGER times the
           passes); tested on the small set.
feedback   `plain`, whose answers by the builtin model to training questions speak for paths, against `feedback`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from benchmarks import results_file
from benchmarks.conditions import DATA
from kgqa_core.answering.answer import answer
from kgqa_core.config import (
    AnsweringOptions,
    KgOptions,
    LinkingOptions,
    LlmOptions,
    QuestionsOptions,
    RetrievalOptions,
    RigelOptions,
)
from kgqa_core.datasets.load import load as load_questions
from kgqa_core.datasets.question import read_questions, write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.evaluation.paired import difference
from kgqa_core.kg.build import build
from kgqa_core.kg.verbalise import write_knowledge
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.linked_candidates import LINKS, with_linked_candidates
from kgqa_core.retrieval.rigel.feedback import gather
from kgqa_core.retrieval.rigel.network import load
from kgqa_core.retrieval.rigel.retriever import RigelRetriever
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.types import SPLITS, Question

FIELDS = (
    "conditions/torch", "conditions/threads", "conditions/common/...", "conditions/options/...",
    "conditions/sizes/...", "cells/*/*", "cells/*/options/...", "?cells/*/sets/...", "cells/*/train/...",
    "differences/*/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SAMPLE = 0
"""Seed of the samples of questions, the same for all seeds of training."""
CANDIDATES = 3
LONGER = 4
"""Passes of `mix_long` for each of `mix`: a small set alone is passed over more often, for a run has least steps."""
RIGHT_FIRST = 0.7
"""Share of topics whose right candidate has the greatest ρ, in the condition `noise`."""
COMMON: dict[str, Any] = {"encoder": "scratch", "scratch_width": 128, "learning_rate": 2e-3, "device": "cpu"}


@dataclass(frozen=True)
class DataSet:
    """Graph and questions below the data folder; training options; questions of each split; the small set of `mix`.

    small: tells its questions; few: training questions that are left of it.
    """

    kg: dict[str, Any]
    files: tuple[str, ...]
    questions: dict[str, Any]
    folder: str
    options: dict[str, Any]
    sizes: tuple[int, int, int]
    small: Callable[[Question], bool]
    few: int
    linking: dict[str, Any]


DATA_SETS = {
    "atlas": DataSet(
        {"name": "atlas"},
        ("bundled:atlas",),
        {"source": "atlas"},
        "",
        {"hops": 2, "loss": "normalised", "epochs": 8, "patience": 3},
        (2000, 300, 2000),
        lambda question: question.complexity == "multi-hop",
        300,
        {},
    ),
    "zjqa": DataSet(
        {"name": "zjqa", "format": "delimited", "delimiter": "\t", "languages": ("zh", "", "en")},
        ("zjqa/indexes/triple.txt",),
        {"source": "zjqa", "language": "zh"},
        "zjqa",
        {"hops": 2, "loss": "normalised", "epochs": 8, "patience": 3},
        (2000, 300, 2000),
        lambda question: question.hops == 2,
        300,
        {},
    ),
    "metaqa": DataSet(
        {"name": "metaqa", "format": "delimited", "delimiter": "|"},
        ("metaqa/kb_reconstructed.txt",),
        {"source": "metaqa", "hops": (1, 2, 3), "train_from": "dev"},
        "metaqa",
        {"hops": 3, "loss": "bce", "exclude_topic": True, "epochs": 6, "patience": 2},
        (2000, 300, 2000),
        lambda question: question.hops == 3,
        300,
        {},
    ),
}


def prepare(name: str, data: Path, home: Path) -> Path:
    """Folder with graph, DKG, sampled questions and their linked copies of a data set; made once."""
    folder, what = home / name, DATA_SETS[name]
    with locked(folder / "lock"):
        if not (folder / "ready").is_file():
            _prepare(name, what, data, folder)
    return folder


def _prepare(name: str, what: DataSet, data: Path, folder: Path) -> None:
    for part in ("kg", "dkg", "all", "questions", "mentions", "tagger", "noise", "work"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    files = tuple(file if file.startswith("bundled:") else str(data / file) for file in what.files)
    build(folder / "kg", options=KgOptions(files=files, **what.kg), work=folder / "work")
    export(folder / "dkg", kg=folder / "kg")
    options = QuestionsOptions(path=str(data / what.folder) if what.folder else None, name=name, **what.questions)
    load_questions(folder / "all", kg=folder / "kg", options=options, seed=7)
    questions = sample(read_questions(folder / "all"), what.sizes)
    write_questions(folder / "questions", questions)
    from kgqa_core.linking.dictionary import build as build_mentions
    from kgqa_core.linking.questions import link_questions

    build_mentions(folder / "mentions", kg=folder / "kg")
    link_questions(
        folder / "tagger",
        kg=folder / "kg",
        mentions=folder / "mentions",
        questions=folder / "questions",
        options=LinkingOptions(**what.linking),
    )
    write_noise(folder / "noise", questions, Dkg.open(folder / "dkg"))
    (folder / "ready").touch()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock, which other runs over the same home or results file wait for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sample(questions: Sequence[Question], sizes: tuple[int, int, int]) -> list[Question]:
    """A seeded sample of each split."""
    chosen: list[Question] = []
    for split, size in zip(SPLITS, sizes, strict=True):
        own = [question for question in questions if question.split == split]
        chosen += random.Random(SAMPLE).sample(own, min(size, len(own)))
    return chosen


def write_noise(folder: Path, questions: Sequence[Question], dkg: Dkg) -> None:
    """Questions whose topics are the best of three candidates, and their links, as the linked stage writes them.

    The two wrong candidates of a topic are topics of other questions.  The greatest ρ, from 0.4 to 0.8, goes to the
    right one in RIGHT_FIRST of all; the others have less.
    """
    draw = random.Random(SAMPLE)
    pool = sorted({entity for question in questions for entity in question.topic_entities})
    rows: list[tuple[Any, ...]] = []
    linked: list[Question] = []
    for question in sorted(questions, key=lambda own: own.id):
        topics: list[tuple[int, float, str]] = []
        for number, right in enumerate(question.topic_entities):
            wrong = [entity for entity in draw.sample(pool, CANDIDATES) if entity != right][: CANDIDATES - 1]
            order = [right, *wrong] if draw.random() < RIGHT_FIRST else [wrong[0], right, *wrong[1:]]
            rho = draw.uniform(0.4, 0.8)
            paired = len(question.topic_keys) == len(question.topic_entities)
            word = question.topic_keys[number] if paired else question.topic_keys[0]
            for rank, entity in enumerate(order):
                rows.append((question.id, 0, number, number + 1, word, entity, round(rho * 0.8**rank, 6), rank))
            topics.append((order[0], round(rho, 6), word))
        linked.append(
            replace(
                question,
                topic_entities=tuple(entity for entity, _, _ in topics),
                topic_weights=tuple(rho for _, rho, _ in topics),
                topic_keys=tuple(word for _, _, word in topics),
            )
        )
    write_questions(folder, linked)
    names = ("question", "turn", "start", "end", "mention", "entity", "rho", "rank")
    pl.DataFrame(rows, schema=list(names), orient="row").write_parquet(folder / LINKS)


class Bench:
    """Cells of one data set and seed."""

    def __init__(
        self, name: str, seed: int, folder: Path, put: Callable[[dict[str, Any]], None], done: set[Any]
    ) -> None:
        self.name, self.seed, self.folder, self.put, self.done = name, seed, folder, put, done
        self.what = DATA_SETS[name]
        self.dkg = Dkg.open(folder / "dkg")
        self.trained: dict[str, tuple[Path, dict[str, Any]]] = {}

    def missing(self, comparison: str, condition: str, variants: Sequence[str]) -> bool:
        """Whether some cell is still to be measured."""
        return any((self.name, comparison, condition, variant, self.seed) not in self.done for variant in variants)

    def train(self, key: str, questions: Path, more: dict[str, Path] | None = None, **given: Any) -> Path:
        """A retriever trained with the data set's options and the given ones; cached under its key."""
        feedback = given.pop("feedback_folder", None)
        out = self.folder / "trained" / f"{key}-{self.seed}"
        if not (out / "counts.json").is_file():
            out.mkdir(parents=True, exist_ok=True)
            options = RigelOptions(**{**COMMON, **self.what.options, **given})
            started = time.process_time()
            counts = train(
                out,
                dkg=self.folder / "dkg",
                questions=questions,
                options=options,
                seed=self.seed,
                kg=self.folder / "kg",
                more=more,
                feedback=feedback,
                work=self.folder / "work" / f"{key}-{self.seed}",
            )
            counts["cpu_seconds"] = round(time.process_time() - started, 1)
            counts["options"] = options.decisive()
            (out / "counts.json").write_text(json.dumps(counts))
        return out

    def cell(
        self, comparison: str, condition: str, variant: str, retriever: Path, questions: Sequence[Question]
    ) -> None:
        """Measures a retriever on test questions and puts the cell; `questions` may have linked topics."""
        test = sorted((own for own in questions if own.split == "test"), key=lambda own: own.id)
        trained = load(retriever, self.dkg)
        options = RetrievalOptions(edge_budget=2_000_000)
        found = RigelRetriever(self.dkg, trained, options, kg=self.folder / "kg").retrieve(test)
        hits = [
            float(bool(own.entities) and own.entities[0][0] in question.answers)
            for own, question in zip(found, test, strict=True)
        ]
        reached: list[float] = []
        share: list[float] = []
        for own, question in zip(found, test, strict=True):
            heads, _, tails = self.dkg.edges(np.array([fact.triple for fact in own.facts], dtype=np.int64))
            reached.append(float(bool({*heads.tolist(), *tails.tolist()} & set(question.answers))))
            total = sum(score for _, score in own.entities)
            gold = sum(score for entity, score in own.entities if entity in question.answers)
            share.append(round(gold / total, 4) if total else 0.0)
        groups = [own.complexity or f"{own.hops} hops" for own in test]
        counts = json.loads((retriever / "counts.json").read_text())
        self.put(
            {
                "data": self.name,
                "comparison": comparison,
                "condition": condition,
                "variant": variant,
                "seed": self.seed,
                "hits_at_1": round(sum(hits) / len(hits), 4),
                "answer_in_facts": round(sum(reached) / len(reached), 4),
                "answer_share": round(sum(share) / len(share), 4),
                "n": len(test),
                "train": {name: counts[name] for name in ("questions", "epochs", "best_epoch", "cpu_seconds")},
                "options": counts.get("options"),
                "dev_hits_at_1": counts.get("dev_hits_at_1"),
                "sets": counts.get("sets"),
                "with_feedback": counts.get("with_feedback"),
                "groups": groups,
                "questions": [own.id for own in test],
                "scores": {
                    "hits_at_1": [int(hit) for hit in hits],
                    "answer_in_facts": [int(hit) for hit in reached],
                    "answer_share": share,
                },
            }
        )

    def linked(self) -> None:
        """End-to-end training with linked entities."""
        questions = read_questions(self.folder / "questions")
        for condition in ("tagger", "noise"):
            together = condition == "tagger" and self.name != "metaqa"  # MetaQA's questions have one topic each
            variants = ("gold", "plain", "rho", "candidates", "soft", *(["soft+product"] if together else []))
            if not self.missing("linked", condition, variants):
                continue
            folder = self.folder / condition
            best = read_questions(folder)
            wide = with_linked_candidates(best, folder, CANDIDATES)
            plain = self.train("plain", self.folder / "questions")
            self.cell("linked", condition, "gold", plain, questions)
            self.cell("linked", condition, "plain", plain, [replace(own, topic_weights=()) for own in best])
            self.cell("linked", condition, "rho", plain, best)
            self.cell("linked", condition, "candidates", plain, wide)
            soft = self.train(f"soft-{condition}", folder, soft_start=True, candidates=CANDIDATES)
            self.cell("linked", condition, "soft", soft, wide)
            if together:
                given = {"soft_start": True, "candidates": CANDIDATES, "intersect": "product"}
                self.cell("linked", condition, "soft+product", self.train("both-tagger", folder, **given), wide)

    def intersect(self) -> None:
        """Topics followed apart and intersected."""
        if self.name == "metaqa":
            return  # its questions have one topic each: the same retriever to the bit
        questions = read_questions(self.folder / "questions")
        for variant in ("plain", "product", "min"):
            if self.missing("intersect", "-", (variant,)):
                given = {} if variant == "plain" else {"intersect": variant}
                self.cell("intersect", "-", variant, self.train(variant, self.folder / "questions", **given), questions)

    def mix(self) -> None:
        """A small question set alone and with others over the same graph."""
        if not self.missing("mix", "-", ("alone", "mix", "mix_long")):
            return
        questions = read_questions(self.folder / "questions")
        small = [own for own in questions if self.what.small(own)]
        chosen = {
            own.id
            for own in random.Random(SAMPLE).sample(
                sorted((own for own in small if own.split == "train"), key=lambda own: own.id),
                min(self.what.few, sum(own.split == "train" for own in small)),
            )
        }
        small = [own for own in small if own.split != "train" or own.id in chosen]
        others = [own for own in questions if not self.what.small(own)]
        for part, own in (("small", small), ("others", others)):
            (self.folder / part).mkdir(exist_ok=True)
            write_questions(self.folder / part, own)
        alone = self.train("alone", self.folder / "small")
        self.cell("mix", "-", "alone", alone, small)
        mixed = self.train("mix", self.folder / "small", {"others": self.folder / "others"})
        self.cell("mix", "-", "mix", mixed, small)
        passes = LONGER * self.what.options["epochs"]
        longer = self.train("mix-long", self.folder / "small", {"others": self.folder / "others"}, epochs=passes)
        self.cell("mix", "-", "mix_long", longer, small)

    def feedback(self) -> None:
        """Paths that the builtin model's right answers to training questions speak for."""
        if not self.missing("feedback", "-", ("plain", "feedback")):
            return
        questions = read_questions(self.folder / "questions")
        learnt = [own for own in questions if own.split == "train"]
        chosen = {own.id for own in random.Random(SAMPLE).sample(learnt, min(1000, len(learnt)))}
        few = [own for own in questions if own.split != "train" or own.id in chosen]
        scratch = self.folder / f"feedback-{self.seed}"
        for part in ("questions", "facts", "knowledge", "answers", "bare", "feedback"):
            (scratch / part).mkdir(parents=True, exist_ok=True)
        write_questions(scratch / "questions", few)
        plain = self.train("few", scratch / "questions")
        common = {"kg": self.folder / "kg", "questions": scratch / "questions"}
        if not (scratch / "feedback" / "feedback.parquet").is_file():
            options = RetrievalOptions(training=True, edge_budget=2_000_000)
            collect(
                scratch / "facts",
                dkg=self.folder / "dkg",
                name="rigel",
                options=options,
                seed=self.seed,
                retriever=plain,
                **common,
            )
            write_knowledge(scratch / "knowledge", facts=scratch / "facts", retriever="rigel", **common)
            reader = AnsweringOptions(answerer="builtin", split="train")
            ask: dict[str, Any] = {
                "questions": scratch / "questions",
                "options": reader,
                "llm": LlmOptions(),
                "seed": self.seed,
            }
            answer(scratch / "answers", knowledge=scratch / "knowledge", name="rigel/triples", work=scratch, **ask)
            answer(scratch / "bare", knowledge=None, name="none/none", work=scratch, **ask)
            counts = gather(
                scratch / "feedback",
                dkg=self.folder / "dkg",
                questions=scratch / "questions",
                facts=scratch / "facts",
                answers=scratch / "answers",
                bare=scratch / "bare",
            )
            print(self.name, self.seed, "feedback", counts, flush=True)
        self.cell("feedback", "-", "plain", plain, few)
        taught = self.train("feedback", scratch / "questions", feedback_folder=scratch / "feedback")
        self.cell("feedback", "-", "feedback", taught, few)


METRICS = ("hits_at_1", "answer_in_facts", "answer_share")
"""The best entity is an answer; an answer stands in a fact; share of the answers in the weight of the 50 best."""
WHAT = ("linked", "intersect", "mix", "feedback")
PLACE = ("data", "comparison", "condition", "variant", "seed")
SINGLE = ("groups", "questions", "scores")
"""What a cell has of every test question."""
BASES = {"linked": "plain", "intersect": "plain", "mix": "alone", "feedback": "plain"}


def read_cells(path: Path | None) -> list[dict[str, Any]]:
    """Cells that are there."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"] if path is not None and path.is_file() else []


def put(path: Path | None, cell: dict[str, Any]) -> None:
    """Puts a cell into the file, in place of an earlier one, and says it."""
    shown = {name: value for name, value in cell.items() if name not in SINGLE}
    print(json.dumps(shown), flush=True)
    if path is None:
        return
    with locked(path.with_suffix(".lock")):
        cells = [old for old in read_cells(path) if any(old[name] != cell[name] for name in PLACE)] + [cell]
        cells.sort(key=lambda own: tuple(str(own[name]) for name in PLACE))
        scratch = path.with_suffix(".tmp")
        scratch.write_text(json.dumps({"conditions": conditions(), "cells": cells}) + "\n", encoding="utf-8")
        os.replace(scratch, path)


def conditions() -> dict[str, Any]:
    """What all cells have in common."""
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "common": COMMON,
        "options": {name: what.options for name, what in DATA_SETS.items()},
        "sizes": {name: what.sizes for name, what in DATA_SETS.items()},
    }


HEADS = {
    "data": "data", "comparison": "comparison", "condition": "condition", "group": "group", "n": "n", "seeds": "seeds",
    "base": "base", "variant": "variant", "base_score": "base", "variant_score": "variant", "difference": "difference",
}  # fmt: skip
"""Columns of the table and their heads."""


def differences(cells: Sequence[dict[str, Any]], metric: str = "hits_at_1") -> list[dict[str, str]]:
    """Each variant against the base of its comparison, by group, over the seeds that both have."""
    rows: list[dict[str, str]] = []
    found: dict[tuple[str, str, str], dict[str, dict[int, dict[str, Any]]]] = {}
    for cell in cells:
        place = (cell["data"], cell["comparison"], cell["condition"])
        found.setdefault(place, {}).setdefault(cell["variant"], {})[cell["seed"]] = cell
    for (data, comparison, condition), variants in sorted(found.items()):
        base = BASES[comparison]
        for variant, seeds in sorted(variants.items()):
            shared = sorted(set(seeds) & set(variants.get(base, {})))
            if variant == base or not shared:
                continue
            before, after = ([one[seed] for seed in shared] for one in (variants[base], seeds))
            names = before[0]["questions"]
            if any(cell["questions"] != names for cell in (*before, *after)):
                raise SystemExit(f"{data} {comparison} {condition}: questions of `{base}` and `{variant}` differ")
            groups = before[0]["groups"]
            means = [np.mean([cell["scores"][metric] for cell in own], axis=0) for own in (before, after)]
            for group in ["all", *sorted(set(groups))]:
                chosen = [place for place, own in enumerate(groups) if group in ("all", own)]
                if group != "all" and (len(set(groups)) < 2 or comparison == "mix"):
                    continue
                pairs = pl.DataFrame(
                    {
                        "question": [names[place] for place in chosen],
                        "before": means[0][chosen],
                        "after": means[1][chosen],
                    }
                )
                change = difference(pairs)
                values = (
                    data, comparison, condition, group, str(change.n), str(len(shared)), base, variant,
                    f"{change.before:.3f}", f"{change.after:.3f}",
                    f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]",
                )  # fmt: skip
                rows.append(dict(zip(HEADS, values, strict=True)))
    return rows


def table(rows: Sequence[dict[str, str]]) -> str:
    """Rows of `differences` in Markdown."""
    lines = [f"| {' | '.join(HEADS.values())} |", "|" + "---|" * len(HEADS)]
    for row in rows:
        shown = [f"`{row[name]}`" if name in ("base", "variant") else row[name] for name in HEADS]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def of_file(path: Path, metric: str) -> list[dict[str, str]]:
    """The rows of a results file, or those that a record has."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    if "differences" not in whole:
        return differences(whole["cells"], metric)
    if metric != "hits_at_1":
        raise SystemExit(f"{path} is a record, without the scores of single questions: it has hits_at_1 only")
    rows: list[dict[str, str]] = whole["differences"]
    return rows


def record(path: Path, out: Path) -> None:
    """Writes what a results file says without the scores of single questions."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    rows = of_file(path, "hits_at_1")
    cells = [{name: own for name, own in cell.items() if name not in SINGLE} for cell in whole["cells"]]
    document = {"conditions": whole["conditions"], "cells": cells, "differences": rows}
    results_file.write(out, document, FIELDS)


def main() -> None:
    """Measures cells, or prints the table of those that there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=sorted(DATA_SETS), default=sorted(DATA_SETS))
    parser.add_argument("--what", nargs="+", choices=WHAT, default=list(WHAT))
    parser.add_argument("--seeds", nargs="+", type=int, default=[7])
    parser.add_argument("--home", type=Path, default=Path("extended"), help="folder of graphs, links and retrievers")
    parser.add_argument("--source", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--json", type=Path, help="results file that cells are put into")
    parser.add_argument("--table", type=Path, help="results file whose table is printed; nothing is measured")
    parser.add_argument("--metric", default="hits_at_1", choices=list(METRICS))
    parser.add_argument("--record", type=Path, help="file for what --table has without the scores of single questions")
    given = parser.parse_args()
    if given.table:
        print(table(of_file(given.table, given.metric)))
        if given.record:
            record(given.table, given.record)
        return
    torch.set_num_threads(1)
    for seed in given.seeds:
        for what in given.what:
            for name in given.data:
                done = {tuple(cell[place] for place in PLACE) for cell in read_cells(given.json)}
                bench = Bench(
                    name, seed, prepare(name, given.source, given.home), lambda cell: put(given.json, cell), done
                )
                getattr(bench, what)()


if __name__ == "__main__":
    main()
