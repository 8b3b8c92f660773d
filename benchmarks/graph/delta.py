"""What it costs to bring a graph and what is made of it up to date, beside making it anew.

    python -m benchmarks.graph.delta [--sizes 200k,1M,10M] [--rounds 3] [--memory 2GB] [--folder DIR] [--json OUT]

At each size a graph of N-Triples is made (`ingest_files`), then 0.1 % of it changed: half of the change is lines that
went, half lines that came.  Each step is `kgqa kg …` in a process of its own, in turn within each round, medians:
a build, an update with the files of the difference, an update with the new dump, whole, the build of the differentiable
KG and its update.  seconds: of the command's work, which ends with the artifact digested and in place; process: with
starting Python.  Before anything counts, both updates are compared with a build of the new dump, by key.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import ROOT, conditions
from benchmarks.graph import ingest_files
from benchmarks.graph.ingest import lines_of, machine
from benchmarks.results_file import CONDITIONS

FIELDS = (
    *CONDITIONS, "machine/cores", "machine/cpu", "machine/load", "machine/packages/*", "machine/python",
    "memory_limit", "share", "sizes/*/lines", "sizes/*/bytes", "sizes/*/graph_bytes", "sizes/*/removed",
    "sizes/*/added", "sizes/*/rounds", "sizes/*/load", "sizes/*/same/*", "sizes/*/steps/*/seconds",
    "sizes/*/steps/*/process_seconds", "sizes/*/steps/*/cpu_seconds", "sizes/*/steps/*/peak_mb",
    "sizes/*/steps/*/of", "sizes/*/steps/*/share", "sizes/*/steps/*/cpu_share", "sizes/*/steps/*/rounds/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
SHARE = 0.001
"""Changed lines, of all lines."""

OF = {"update, files": "build", "update, new dump": "build", "DKG, updated": "DKG"}
"""Steps and what they are compared with."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Updates of a graph, compared with builds.")
    parser.add_argument("--sizes", default="200k", help="lines, as 200k,1M,10M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="2GB", help="kg.memory_limit")
    parser.add_argument("--folder", type=Path, help="where the files are made (default: a temporary folder)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--make", nargs=2, metavar=("FOLDER", "LINES"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.make:
        print(json.dumps(make_files(Path(given.make[0]), int(given.make[1]))))
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        figures = {
            "machine": machine(),
            "memory_limit": given.memory,
            "share": SHARE,
            "sizes": [measure(Path(scratch), lines_of(size), given.rounds, given.memory)
                      for size in given.sizes.split(",")],
        }  # fmt: skip
    if given.json:
        results_file.write(given.json, {"conditions": conditions(SEED), **figures}, FIELDS)
    return 0


def make_files(folder: Path, lines: int) -> dict[str, int]:
    """Writes old.nt, new.nt, added.nt and removed.nt; how many lines the last two have.

    A statement that is in removed.nt is in no line of new.nt, however often old.nt has it.
    """
    ingest_files.write(folder / "old.nt", lines, SEED)
    count = max(1, int(lines * SHARE / 2))
    generator = np.random.default_rng(SEED)
    numbers = set(generator.choice(lines, count, replace=False).tolist())
    with (folder / "old.nt").open(encoding="utf-8") as old:
        removed = {line for number, line in enumerate(old) if number in numbers}
    # As many lines of a graph of the same size and another seed, from its first piece.
    ingest_files.write(folder / "other.nt", lines, SEED + 1, count)
    added = list(dict.fromkeys((folder / "other.nt").read_text(encoding="utf-8").splitlines(keepends=True)))
    added = [line for line in added if line not in removed]
    (folder / "other.nt").unlink()
    (folder / "removed.nt").write_text("".join(sorted(removed)), encoding="utf-8")
    (folder / "added.nt").write_text("".join(added), encoding="utf-8")
    with (folder / "old.nt").open(encoding="utf-8") as old, (folder / "new.nt").open("w", encoding="utf-8") as new:
        new.writelines(line for line in old if line not in removed)
        new.writelines(added)
    return {"removed": len(removed), "added": len(added)}


def measure(scratch: Path, lines: int, rounds: int, memory: str) -> dict[str, Any]:
    """Medians of all steps at one size, printed as they come."""
    folder = scratch / str(lines)
    folder.mkdir()
    # In a process of its own: a command's peak of memory begins with what this process has.
    making = [sys.executable, "-m", "benchmarks.graph.delta", "--make", str(folder), str(lines)]
    sizes = json.loads(subprocess.run(making, check=True, capture_output=True, text=True).stdout)
    setting = ("--set", f"kg.memory_limit={memory}")
    steps = {
        "build": ("kg", "build", "old.nt", "--out", "graph", *setting),
        "update, files": ("kg", "update", "graph", "--added", "added.nt", "--removed", "removed.nt", "--out", "files",
                          *setting),
        "update, new dump": ("kg", "update", "graph", "new.nt", "--out", "dump", *setting),
        "DKG": ("kg", "dkg", "graph", "--out", "dkg"),
        "DKG, updated": ("kg", "dkg", "files", "--old-dkg", "dkg", "--out", "newer"),
    }  # fmt: skip
    run(folder, ("kg", "build", "new.nt", "--out", "rebuilt", *setting))  # the compilers' caches are filled, too
    for step in steps.values():
        run(folder, step)
    same = {}
    for name in ("files", "dump"):
        compared = run(folder, ("kg", "diff", name, "rebuilt", "--out", "differing"))
        if any(count for part in compared["printed"].values() for count in part.values()):
            raise SystemExit(f"the update with the {name} is not the graph of the new dump: {compared['printed']}")
        same[name] = True
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in steps}
    load = os.getloadavg()[0]
    for _ in range(rounds):
        for name, step in steps.items():
            measured[name].append(run(folder, step))
    results: dict[str, dict[str, Any]] = {
        name: {
            field: statistics.median(one[field] for one in some)
            for field in ("seconds", "process_seconds", "cpu_seconds")
        }
        | {"peak_mb": max(one["peak_mb"] for one in some), "rounds": [one["seconds"] for one in some]}
        for name, some in measured.items()
    }
    print(f"\n{lines:,} lines, load {load:.1f}, {rounds} round(s), {sizes}")
    for name, result in results.items():
        result["of"] = OF.get(name, name)
        result["share"] = result["seconds"] / results[result["of"]]["seconds"]
        result["cpu_share"] = result["cpu_seconds"] / results[result["of"]]["cpu_seconds"]
        print(
            f"  {name:<18} {result['seconds']:>8.2f} s  process {result['process_seconds']:>8.2f} s  "
            f"cpu {result['cpu_seconds']:>8.2f} s  peak {result['peak_mb']:>7,.0f} MB  "
            f"{result['share']:.3f} of {result['of']}, {result['cpu_share']:.3f} by processor time"
        )
    found = {
        "lines": lines, "bytes": (folder / "old.nt").stat().st_size,
        "graph_bytes": (folder / "graph" / "kg.duckdb").stat().st_size,
        **sizes, "rounds": rounds, "load": load, "same": same, "steps": results,
    }  # fmt: skip
    shutil.rmtree(folder)
    return found


def run(folder: Path, words: Sequence[str]) -> dict[str, Any]:
    """One command in a process of its own, whose outputs replace earlier ones."""
    shutil.rmtree(folder / words[words.index("--out") + 1], ignore_errors=True)
    begin = time.perf_counter()
    command = [sys.executable, "-m", "flows.cli", *words, "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "KGQA_HOME": str(folder / "home")}
    with (folder / "out.json").open("w+", encoding="utf-8") as out:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.PIPE, text=True)
        assert child.stderr is not None
        error = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        out.seek(0)
        printed = out.read()
    if child.returncode:
        raise SystemExit(f"kgqa {' '.join(words)} ended with {child.returncode}:\n{error}{printed}")
    result = json.loads(printed)
    return {
        "printed": result,
        "seconds": result.get("seconds"),
        "process_seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


if __name__ == "__main__":
    raise SystemExit(main())
