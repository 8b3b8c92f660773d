"""Knowing when not to answer, on answerability benchmarks: retrievers and builtin model with abstention.

    python -m benchmarks.answers.abstention --work DIR --set zjqa=FOLDER [--set atlas=FOLDER …] [--json OUT]

Each FOLDER is one that `kgqa answerability build --profile NAME` wrote.  `kgqa answerability abstain` is run on it in
the home DIR/home with the profile of that name: retrievers are trained on the modified graph with the answerable
training questions and start from linked topics, the model answers, the abstainer learns from answerable and
unanswerable training questions and is calibrated on dev.  All figures are of the test questions.

without: the abstainer again with one kind of features left out; only: with one kind alone.  rules: no abstainer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import fields_below
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from kgqa_core.workspace import Workspace

FIELDS = (
    *fields_below("sets/*"), "machine", "seed", "sets/*/seconds", "sets/*/settings/*", "sets/*/scores/...",
    "sets/*/benchmark/...", "?sets/*/rules/...", "?sets/*/without */...", "?sets/*/only */...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SHOWN = (
    "auroc", "auroc_interval", "ece", "area", "best_area", "accuracy", "answered", "answered_of_answerable",
    "declined_of_unanswerable", "risk", "risk_without", "wrong_reasons", "wrong_reasons_by_drop",
)  # fmt: skip
GROUPS = ("links", "facts", "model", "wording")


def command(work: Path, folder: Path, profile: str, settings: Sequence[str]) -> dict[str, Any]:
    """What `kgqa answerability abstain` printed; stages that are finished in the home are not made again."""
    sets = [part for setting in settings for part in ("--set", setting)]
    given = [str(folder), "--profile", profile, "--home", str(work / "home"), "--json", *sets]
    run = [sys.executable, "-m", "flows.cli", "answerability", "abstain", *given]
    out = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def artifacts(home: Path, run_id: str) -> dict[str, list[Path]]:
    """Folders of a run's stages by name, in order."""
    record = newest_run(Home(home), run_id)
    found: dict[str, list[Path]] = {}
    for stage in record["stages"]:
        if stage["artifact"]:
            found.setdefault(stage["name"], []).append(Path(stage["artifact"]["path"]))
    return found


def again(made: dict[str, list[Path]], features: Sequence[str], seed: int) -> dict[str, Any]:
    """The scores of an abstainer with these kinds of features; with none, of the rules."""
    from kgqa_core.abstention.apply import apply
    from kgqa_core.abstention.train import train
    from kgqa_core.config import AbstentionOptions
    from kgqa_core.evaluation.abstention import score

    def one(name: str) -> Path:
        return next(own[0] for kind, own in made.items() if kind.partition("/")[0] == name)

    answers = dict(
        zip(("train", "dev", "test"), next(own for kind, own in made.items() if "answers" in kind), strict=True)
    )
    facts = {kind.partition("/")[2]: own[0] for kind, own in made.items() if kind.startswith("facts/")}
    questions, given = one("questions"), one("linked") if "linked" in made else one("questions")
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        abstainer = base / "abstainer" if features else None
        for folder in ("abstainer", "sure", "scores"):
            (base / folder).mkdir()
        if abstainer is not None:
            learning = {split: answers[split] for split in ("train", "dev")}
            train(
                Workspace(abstainer),
                kg=one("kg"),
                questions=given,
                labels=questions,
                facts=facts,
                answers=learning,
                name="",
                options=AbstentionOptions(features=tuple(features)),
            )
        apply(
            Workspace(base / "sure"),
            kg=one("kg"),
            questions=given,
            facts=facts,
            answers={"test": answers["test"]},
            abstainer=abstainer,
        )
        score(
            Workspace(base / "scores"),
            questions=questions,
            labels=questions,
            confidence=base / "sure",
            answers=answers["test"],
            seed=seed,
            bootstrap=100,
        )
        found = json.loads((base / "scores" / "abstention.json").read_text(encoding="utf-8"))
    return {key: found[key] for key in SHOWN}


def main() -> None:
    """Runs each set and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--set", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--setting", action="append", default=[], help="a key of the profile, key=value")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--no-parts", action="store_true", help="without the abstainers of some features alone")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.environ["KGQA_HOME"] = str(given.work / "home")
    results: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "seed": given.seed,
        "sets": {},
    }
    for pair in given.set:
        name, _, folder = pair.partition("=")
        started = time.monotonic()
        settings = [f"seed={given.seed}", "retrieval.retrievers=[rigel,hop_path]", *given.setting]
        found = command(given.work, Path(folder).resolve(), name, settings)
        made = artifacts(given.work / "home", found["run_id"])
        statistics = json.loads((Path(folder) / "statistics.json").read_text(encoding="utf-8"))
        own = {"seconds": round(time.monotonic() - started, 1), "settings": settings, "scores": found}
        own["conditions"] = conditions(given.seed)
        own["benchmark"] = {key: statistics[key] for key in ("seed", "p_u", "questions") if key in statistics}
        if not given.no_parts:
            own["rules"] = again(made, (), given.seed)
            for group in GROUPS:
                own[f"without {group}"] = again(made, [other for other in GROUPS if other != group], given.seed)
                own[f"only {group}"] = again(made, [group], given.seed)
        results["sets"][name] = own
        for key in ("rules", *(f"{how} {group}" for how in ("without", "only") for group in GROUPS)):
            if key in own:
                print(f"{name} {key}: AUROC {own[key]['auroc']}", file=sys.stderr)
        if given.json is not None:
            results_file.write(given.json, results, FIELDS, sort_keys=True)
    print(json.dumps({name: {key: own["scores"][key] for key in SHOWN} for name, own in results["sets"].items()}))


if __name__ == "__main__":
    main()
