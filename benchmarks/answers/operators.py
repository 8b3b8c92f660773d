"""Operators at answer time on Atlas: `exact` by complexity type of a language model, of `symbolic`, and of both.

    python -m benchmarks.answers.operators --work DIR [--json OUT] [--answerer NAME …] [--set key=value …]

Runs the pipeline on the profile `atlas` with gold topics and one retriever's triples, once for each answerer, in the
home DIR/home; stages that are finished there are not made again.  Figures are of all 2,190 test questions (35 % of them
in wordings that no other split has), with 95 % bootstrap intervals.

exact: the output is a gold answer, or lists all of them and nothing else; a language model that names one of several
answers is exact, a symbolic answer lists them all.  first_exact: the same of the first name that the output lists.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import ROOT, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.metrics.text import GoldAnswers, exact
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from kgqa_core.types import COMPLEXITY_TYPES

FIELDS = (
    *CONDITIONS, "benchmark", "data", "retriever", "settings/...", "results/*/*/...", "seconds/*/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
ANSWERERS = ("builtin", "symbolic", "hybrid:builtin")


def run(home: Path, answerer: str, retriever: str, settings: Sequence[str]) -> dict[str, Any]:
    """What a run of the pipeline printed."""
    wanted = [
        f"retrieval.retrievers=[{retriever}]", "retrieval.topics=gold", f"answering.knowledge=[{retriever}]", *settings
    ]  # fmt: skip
    given = [part for setting in wanted for part in ("--set", setting)]
    command = [sys.executable, "-m", "flows.cli", "run", "--profile", "atlas", "--answerer", answerer]
    command += ["--home", str(home), "--json", *given]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def figures(home: Path, run_id: str) -> tuple[str, dict[str, Any]]:
    """Experiment and its figures by complexity type, of a finished run."""
    import polars as pl

    from kgqa_core.datasets.question import read_questions

    record = newest_run(Home(home), run_id)
    folders = {stage["name"]: Path(stage["artifact"]["path"]) for stage in record["stages"] if stage["artifact"]}
    aggregates = json.loads((folders["scores"] / "aggregates.json").read_text(encoding="utf-8"))
    [answers] = [folder for name, folder in folders.items() if name.startswith("answers/")]
    meta = json.loads((answers / "meta.json").read_text(encoding="utf-8"))
    table = pl.read_parquet(answers / "answers.parquet").select("question", "output", "abstained").iter_rows()
    given = {question: (output, abstained) for question, output, abstained in table}
    first: dict[str, list[float]] = {}
    silent: dict[str, list[float]] = {}
    for question in read_questions(folders["questions"]):
        if question.id in given and question.complexity:
            output, abstained = given[question.id]
            first.setdefault(question.complexity, []).append(
                exact(GoldAnswers(question.answer_names), output.split(", ")[0])
            )
            silent.setdefault(question.complexity, []).append(float(abstained))
    found = {}
    groups = aggregates["by_complexity"][meta["experiment"]]
    for kind in COMPLEXITY_TYPES:
        cells = {metric: groups[kind][metric] for metric in ("exact", "f1", "contains")}
        found[kind] = {
            **cells,
            "first_exact": round(sum(first[kind]) / len(first[kind]), 6),
            "abstained": round(sum(silent[kind]) / len(silent[kind]), 6),
        }
    whole = aggregates["scores"][meta["experiment"]]["test"]
    found["all"] = {metric: whole[metric] for metric in ("exact", "f1", "contains")}
    return meta["experiment"], found


def printed(results: dict[str, dict[str, Any]]) -> str:
    """The table of `exact` by type, one column an experiment."""
    names = list(results)
    lines = ["| type | n | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for kind in (*COMPLEXITY_TYPES, "all"):
        cells = [results[name][kind]["exact"] for name in names]
        shown = [f"{cell['value']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]" for cell in cells]
        lines.append(f"| {kind} | {cells[0]['n']} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--answerer", action="append")
    parser.add_argument("--retriever", default="hop_path")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    given = parser.parse_args()
    home, results, seconds = given.work / "home", {}, {}
    for answerer in given.answerer or ANSWERERS:
        started = time.monotonic()
        made = run(home, answerer, given.retriever, given.settings)
        experiment, found = figures(home, made["run_id"])
        results[experiment] = found
        seconds[experiment] = {
            name: stage["seconds"] for name, stage in made["stages"].items() if stage["status"] == "computed"
        } | {"run": round(time.monotonic() - started, 1)}
    print(printed(results))
    if given.json:
        document = {
            "conditions": conditions(7), "benchmark": "operators", "data": "atlas, test split, gold topics",
            "retriever": given.retriever, "settings": given.settings, "results": results, "seconds": seconds,
        }  # fmt: skip
        results_file.write(given.json, document, FIELDS, sort_keys=True)


if __name__ == "__main__":
    main()
