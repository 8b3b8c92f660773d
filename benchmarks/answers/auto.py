"""Measures the answerer `auto`, one experiment at a time; each puts its figures into one JSON file.

    python -m benchmarks.answers.auto --work DIR --shared ../shared --only NAME [--only …] [--steps N] [--generated N]
        [--examples N] [--most N] [--people-set dev] [--json benchmarks/results/auto.json]
    python -m benchmarks.answers.auto --table [--json benchmarks/results/auto.json]

Experiments: atlas, atlas_no_questions, metaqa, simplequestions, zjqa, few, ablation, mintaka, people; their docstrings
in auto_experiments.py say what is learnt from and what is measured.  DIR keeps graphs, questions and trained parsers:
what is there and was made with the same options, code and head start is not made again, and a killed training goes on.
A part of an experiment that is measured is in the JSON at once, in place of what stood there under its name.

exact: the whole answer is the gold one, numbers by value.  hits_at_1: the first answer listed is a gold one.  declined
questions count as wrong; never_declining: the same with `--min-confidence 0`.  ece: of the confidence that the answer
is exact, over what is answered.  random_candidate: exact of a candidate drawn from those that are scored, of 200
questions.  milliseconds: of 100 questions, one at a time, linking included, phrases encoded before.  Intervals are the
normal approximation of the binomial, 95 %.
--steps, --generated, --examples: in place of the profile's label_parser, for trials.  --most: questions of each test at
most; without it 1,000 of metaqa by hop, simplequestions, zjqa and few, and all of the others.  --table prints the
markdown table of the JSON.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.auto_experiments import EXPERIMENTS
from benchmarks.answers.auto_figures import table
from benchmarks.answers.auto_work import Work
from benchmarks.conditions import RESULTS, ROOT, conditions

FIELDS = (
    "benchmark", "results/*/seed", "results/*/commit", "results/*/date", "results/*/cores", "results/*/threads",
    "results/*/settings/...", "results/*/seconds/...", "results/*/parts/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
log = logging.getLogger("kgqa")


def seconds_of(work: Work, parts: dict[str, Any]) -> dict[str, float]:
    """How long preparing, training and answering took; what was cached counts with the time of when it was made."""
    training = sum(value for name, value in work.seconds.items() if name.startswith("parser/"))
    answering = sum(part.get("answering_seconds", 0.0) for part in parts.values())
    preparing = sum(work.seconds.values()) - training
    return {"preparing": round(preparing, 1), "training": round(training, 1), "answering": round(answering, 1)}


def run(name: str, work: Work, path: Path) -> None:
    """Measures one experiment and writes each part as it is done; earlier parts go when the first new one is in."""
    work.seconds.clear()
    started, parts = time.monotonic(), {}
    title = "people_locked" if name == "people" and work.people_set == "locked" else name
    for part, figures in EXPERIMENTS[name](work):
        parts[part] = figures
        document: dict[str, Any] = {"benchmark": "auto", "results": {}}
        if path.is_file():
            document = json.loads(path.read_text(encoding="utf-8"))
        entry = (
            conditions(work.seed)
            | {"settings": {**work.changes, "most": work.most}}
            | {"seconds": seconds_of(work, parts), "parts": parts}
        )
        document["results"][title] = entry
        results_file.write(path, document, FIELDS)
        log.info("%s, %s: measured after %.0f s", name, part, time.monotonic() - started)


def main() -> None:
    """Reads the command line, and measures or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", action="append", choices=tuple(EXPERIMENTS))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--generated", type=int)
    parser.add_argument("--examples", type=int)
    parser.add_argument("--most", type=int)
    parser.add_argument("--people-set", choices=("dev", "locked"), default="dev")
    parser.add_argument("--json", type=Path, default=RESULTS / "auto.json")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.json.read_text(encoding="utf-8"))["results"]))
        return
    if given.work is None or not given.only:
        parser.error("--work and --only are needed, or --table")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    shared = given.shared / "data" if (given.shared / "data").is_dir() else given.shared
    changes = {name: getattr(given, name) for name in ("steps", "generated", "examples")}
    changes = {name: value for name, value in changes.items() if value is not None}
    work = Work(given.work.resolve(), shared.resolve(), SEED, changes, given.most, given.people_set)
    for name in given.only:
        run(name, work, given.json)


if __name__ == "__main__":
    main()
