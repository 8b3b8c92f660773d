"""Answerability benchmarks of four question sets at p_u = 33 %: built, verified, and parsers on them.

    python -m benchmarks.papers.answerability --work DIR [--sets atlas,zjqa,metaqa,wikidata-mini]
        [--steps build,verify,evaluate] [--parsers rng,decode] [--train A,A+U] [--topics linked,gold]
        [--set KEY=VALUE …] [--json OUT]

Every step is the command that a user runs, in a process of its own, whose CPU seconds and largest memory are recorded.
Benchmarks lie in DIR/SET, the home is DIR/home; what is finished is found again, so a step that was killed goes on.
The file OUT is read first and only what was measured now is replaced: a set's steps may be run one by one.  Seconds of
an evaluation hold what was computed in that run and nothing that was found.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.results_file import fields_below

FIELDS = (
    *fields_below("sets/*/build"), *fields_below("?sets/*/verify"), *fields_below("?sets/*/evaluate/*"), "machine/*",
    "sets/*/build/digest", "sets/*/build/counts/...", "sets/*/build/cost/*", "sets/*/build/splits/...",
    "sets/*/build/drops/...", "sets/*/build/unanswerable_by_split/...", "sets/*/build/goals/...",
    "sets/*/build/left_out/...", "sets/*/build/graphs/...", "sets/*/build/agreeing_with_annotation",
    "?sets/*/build/full_zero_shot/...",
    "?sets/*/verify/clean", "?sets/*/verify/questions", "?sets/*/verify/checked_and_faults/...",
    "?sets/*/verify/cost/*", "?sets/*/evaluate/*linked/...",
    "?sets/*/evaluate/*gold/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
SETS = ("atlas", "zjqa", "metaqa", "wikidata-mini")
STEPS = ("build", "verify", "evaluate")
TABLES = ("splits", "drops", "unanswerable_by_split")


def kgqa(*words: str, home: Path | None) -> tuple[dict[str, Any], dict[str, float]]:
    """The JSON that a command printed, and its cost.  Raises SystemExit where it failed."""
    command = [sys.executable, "-m", "flows.cli", "answerability", *words, "--json"]
    started = time.monotonic()
    process = subprocess.Popen([*command, *(["--home", str(home)] if home else [])], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1) or not printed.strip():
        raise SystemExit(f"{' '.join(words)} ended with {code}")
    cost = {
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
    }
    return json.loads(printed.strip().splitlines()[-1]), cost


def build(name: str, work: Path) -> dict[str, Any]:
    """Counts, tables and digest of a benchmark."""
    found, cost = kgqa("build", "--profile", name, "--out", str(work / name), home=work / "home")
    tables = json.loads((work / name / "statistics.json").read_text(encoding="utf-8"))
    chosen = {
        key: tables[key]
        for key in (*TABLES, "goals", "full_zero_shot", "left_out", "graphs", "agreeing_with_annotation")
    }
    return {
        "conditions": conditions(SEED),
        "digest": found["digest"],
        "counts": found["counts"],
        "cost": cost,
        **chosen,
    }


def verify(name: str, work: Path) -> dict[str, Any]:
    """How often each rule was checked and broken."""
    found, cost = kgqa("verify", str(work / name), home=None)
    rules = {check["rule"]: [check["checked"], check["faults"]] for check in found["checks"]}
    return {
        "conditions": conditions(SEED),
        "clean": found["clean"],
        "questions": found["questions"],
        "checked_and_faults": rules,
        "cost": cost,
    }


def evaluate(name: str, work: Path, parser: str, training: str, topics: str, settings: list[str]) -> dict[str, Any]:
    """Scores of one parser and training, without and with thresholds."""
    options = [word for setting in settings for word in ("--set", setting)]
    words = ("evaluate", str(work / name), "--parsers", parser, "--train", training, "--topics", topics, *options)
    found, cost = kgqa(*words, home=work / "home")
    return {"conditions": conditions(SEED), "systems": found["systems"], "settings": settings, "cost": cost}


def main() -> None:
    """Run the requested steps and write their results."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, required=True)
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--steps", default="build,verify")
    options.add_argument("--parsers", default="rng,decode")
    options.add_argument("--train", default="A,A+U")
    options.add_argument("--topics", default="linked")
    options.add_argument("--set", action="append", default=[])
    options.add_argument("--json", type=Path, default=RESULTS / "answerability.json")
    given = options.parse_args()
    found: dict[str, Any] = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    found["machine"] = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    for name in given.sets.split(","):
        own = found.setdefault("sets", {}).setdefault(name, {})
        for step in given.steps.split(","):
            if step == "evaluate":
                for topics in given.topics.split(","):
                    for parser in given.parsers.split(","):
                        for training in given.train.split(","):
                            evaluated = evaluate(name, given.work, parser, training, topics, given.set)
                            own.setdefault("evaluate", {})[f"{parser}/{training}/{topics}"] = evaluated
                            _write(given.json, found)
            else:
                own[step] = {"build": build, "verify": verify}[step](name, given.work)
                _write(given.json, found)


def _write(path: Path, found: dict[str, Any]) -> None:
    results_file.write(path, found, FIELDS, sort_keys=True)


if __name__ == "__main__":
    main()
