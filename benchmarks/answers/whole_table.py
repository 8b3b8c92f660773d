"""Measures the whole table of the profile table1: two question sets over Atlas, two answerers, one command.

    python -m benchmarks.answers.whole_table --work DIR [--limit N] [--json benchmarks/results/whole_table.json]

DIR keeps the home: what is there and was made with the same options and code is not made again, and a killed run goes
on.  The JSON is written whole: conditions, the profile, the seconds of each set's stages (what was cached counts as
nothing), the scores of each set's test questions with 95 % bootstrap intervals, and the paired tests.  exact, contains:
of the answers (Sen et al. 2023).  hits_at_1: of a retriever alone.  --limit: questions of each set, for trials.
`make bench-docs` writes the tables of docs/whole_table.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, ROOT, commit_name, conditions
from benchmarks.results_file import CONDITIONS, write
from kgqa_core.report import set_tables
from kgqa_core.report.grid import Cell, Grid

SEED = 7
PROFILE = "table1"
KEPT = ("exact", "contains", "hits_at_1")

FIELDS = (
    "benchmark",
    *CONDITIONS,
    "profile/...",
    "runs/*/kg_digest",
    "runs/*/questions_digest",
    "runs/*/seconds/*",
    "tables/sets/*/scores/*/test/*/*",
    "tables/sets/*/by_complexity/*/*/*/*",
    "tables/sets/*/n_unlinkable/*",
    "tables/models/*/*",
    "tables/knowledge/*/*",
)


def measure(work: Path, limit: int | None) -> dict[str, Any]:
    """Runs the profile in a process of its own, and what is kept of its result."""
    words = ["run", "--profile", PROFILE, "--home", str(work / "home"), "--json"]
    words += ["--set", f"seed={SEED}"] + (["--set", f"answering.limit={limit}"] if limit else [])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    summary = json.loads(done.stdout.strip().splitlines()[-1])
    runs = {name: record(work / "home", run) for name, run in summary["sets"].items()}
    whole = record(work / "home", summary["run_id"])
    return {
        "benchmark": "whole_table",
        "conditions": conditions(SEED),
        "profile": whole["profile"],
        "runs": {name: one_run(run) for name, run in runs.items()},
        "tables": kept(summary["tables"]),
    }


def record(home: Path, run: str) -> dict[str, Any]:
    """What a run says of itself."""
    found: dict[str, Any] = json.loads((home / "runs" / run / "run.json").read_text(encoding="utf-8"))
    return found


def one_run(run: dict[str, Any]) -> dict[str, Any]:
    """Digest of a set's questions, and seconds of its stages."""
    stages = [stage for stage in run["stages"] if stage.get("artifact")]
    digests = {stage["name"]: stage["artifact"]["digest"] for stage in stages}
    seconds: dict[str, float] = {}
    for stage in stages:
        kind = stage["name"].partition("/")[0]
        seconds[kind] = round(seconds.get(kind, 0.0) + float(stage["seconds"]), 1)
    return {"questions_digest": digests["questions"], "kg_digest": digests["kg"], "seconds": seconds}


def kept(tables: dict[str, Any]) -> dict[str, Any]:
    """The scores of the test split, by complexity type too, and the tests, of the metrics that the page shows."""
    sets = {}
    for name, one in tables["sets"].items():
        tested = {experiment: splits["test"] for experiment, splits in one["scores"].items() if "test" in splits}
        scores = {experiment: {"test": chosen(cells)} for experiment, cells in tested.items() if chosen(cells)}
        types = {
            experiment: {group: chosen(cells) for group, cells in groups.items() if chosen(cells)}
            for experiment, groups in one["by_complexity"].items()
        }
        sets[name] = {"scores": scores, "by_complexity": types, "n_unlinkable": one["n_unlinkable"]}
    tests = {key: [row for row in tables[key] if row["metric"] in KEPT] for key in ("models", "knowledge")}
    return {"sets": sets, **tests}


def chosen(cells: dict[str, Any]) -> dict[str, Any]:
    """The metrics that are kept."""
    return {metric: cells[metric] for metric in KEPT if metric in cells}


def figures(found: dict[str, Any]) -> str:
    """The tables of the page."""
    tables, when = found["tables"], found["conditions"]
    sizes = {
        name: max(splits["test"]["exact"]["n"] for splits in one["scores"].values() if "exact" in splits["test"])
        for name, one in tables["sets"].items()
    }
    asked = ", ".join(f"{size:,} of {name}" for name, size in sizes.items())
    took = ", ".join(f"{sum(one['seconds'].values()) / 60:.0f} min {name}" for name, one in found["runs"].items())
    line = (
        f"Commit {commit_name(when['commit'])}, {when['date']}, seed "
        f"{when['seed']}, {when['cores']} cores, OMP_NUM_THREADS={when['threads']}, beside other work. Test questions: "
        f"{asked}. Time of all stages: {took}. In percent, with 95 % bootstrap intervals."
    )
    grids = [
        set_tables.table_1(tables, "exact"), set_tables.table_1(tables, "contains"),
        set_tables.retrievers_table(tables), *(set_tables.table_2(tables, name, "exact") for name in tables["sets"]),
        set_tables.models_table(tables, "exact"),
    ]  # fmt: skip
    grids += [grid for grid in set_tables.knowledge_tables(tables, "exact") if " · builtin · " in grid.title]
    return "\n\n".join([line, *(markdown(grid) for grid in grids if grid.rows)])


def markdown(grid: Grid) -> str:
    """A grid as a table of Markdown under its title."""
    heads = "| " + " | ".join(grid.columns) + " |"
    lines = [f"**{grid.title}**", "", heads, "|---|" + "--:|" * (len(grid.columns) - 1)]
    wide = len(grid.columns) > 5
    lines += ["| " + " | ".join((name, *(written(cell, wide) for cell in cells))) + " |" for name, cells in grid.rows]
    return "\n".join([*lines, *(["", grid.note] if grid.note else [])])


def written(cell: Any, wide: bool) -> str:
    """What stands in a cell; of a wide table without intervals."""
    if isinstance(cell, Cell) and not wide:
        return f"{cell} [{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
    return "–" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


def main() -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--json", type=Path, default=RESULTS / "whole_table.json")
    given = parser.parse_args()
    found = measure(given.work.resolve(), given.limit)
    write(given.json, found, FIELDS)


if __name__ == "__main__":
    main()
