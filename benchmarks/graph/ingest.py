"""How fast N-Triples become sorted, dictionary-encoded tables, and in how much memory.

    python -m benchmarks.graph.ingest [--sizes 1M,10M,40M] [--rounds 5] [--memory 2GB] [--packed .gz,.zst,.bz2]
        [--json OUT]

Roads (see `ingest_roads`): ours into a DuckDB file, our whole build (names, types, numbers, dates too), plain SQL in
DuckDB into a file, polars, pyoxigraph and rdflib with Python dictionaries.  On a small file all roads must give the
same tables before anything is timed.  Every run is a process of its own, which first does a small file, so that
compilers and imports are warm; its time is that of the road alone, its memory the peak of the process.  Roads are timed
in turn within each round; figures are medians.  rdflib and pyoxigraph read only the first 200,000 and 500,000 lines:
lines a second are compared.  Compressed files are read by our road and compared with the plain file.  Processor time is
given beside wall time: on a machine that others use, wall time says as much about them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import conditions, processor
from benchmarks.graph import ingest_files, ingest_roads
from benchmarks.results_file import CONDITIONS

FIELDS = (
    *CONDITIONS, "machine/cores", "machine/cpu", "machine/load", "machine/packages/*", "machine/python",
    "memory_limit", "seed", "sizes/*/bytes", "sizes/*/lines", "sizes/*/rounds", "sizes/*/roads/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
PACKAGES = ("duckdb", "polars", "pyoxigraph", "rdflib", "numba", "numpy", "pyarrow", "isal", "zstandard", "rapidgzip")
ROUNDS = {10_000_000: 3, 40_000_000: 1}
"""Rounds at most, from a size on."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Ingest of N-Triples, compared.")
    parser.add_argument("--sizes", default="1M", help="lines, as 200k,1M,10M,40M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="2GB", help="limit of our roads and of DuckDB")
    parser.add_argument("--packed", default=".gz,.zst,.bz2", help="compressions to try, or nothing")
    parser.add_argument("--roads", default=",".join(ingest_roads.ROADS))
    parser.add_argument("--folder", type=Path, help="where the files are made (default: a temporary folder)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", nargs=2, metavar=("ROAD", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.run:
        print(json.dumps(run_here(given.run[0], Path(given.run[1]), given.memory)))
        return 0
    roads = [road for road in given.roads.split(",") if road]
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        folder = Path(scratch)
        check(folder, roads, given.memory)
        figures = {
            "machine": machine(),
            "seed": SEED,
            "memory_limit": given.memory,
            "sizes": [
                measure(folder, lines_of(size), roads, given.packed.split(","), given.rounds, given.memory)
                for size in given.sizes.split(",")
            ],
        }
    if given.json:
        results_file.write(given.json, {"conditions": conditions(SEED), **figures}, FIELDS)
    return 0


def lines_of(text: str) -> int:
    units = {"k": 1_000, "m": 1_000_000}
    return int(float(text[:-1]) * units[text[-1].lower()]) if text[-1].lower() in units else int(text)


def check(folder: Path, roads: Sequence[str], memory: str) -> None:
    """All roads make the same tables of a small file."""
    small = folder / "small.nt"
    ingest_files.write(small, 5_000, SEED)
    found = {}
    for road in roads:
        if road != "kgqa build":
            with tempfile.TemporaryDirectory(dir=folder) as out:
                found[road] = ingest_roads.summary(ingest_roads.ROADS[road](small, Path(out), memory)())
    if len(set(found.values())) > 1:
        raise SystemExit(f"the roads disagree: {found}")


def measure(
    folder: Path, lines: int, roads: Sequence[str], packed: Sequence[str], rounds: int, memory: str
) -> dict[str, Any]:
    """Medians of all roads at one size, printed as they come."""
    rounds = min([rounds, *(most for size, most in ROUNDS.items() if lines >= size)])
    path = folder / f"{lines}.nt"
    ingest_files.write(path, lines, SEED)
    runs: list[tuple[str, str, Path, int]] = []
    for road in roads:
        if lines <= ingest_roads.IN_MEMORY.get(road, lines):
            read = min(lines, ingest_roads.SLICED.get(road, lines))
            runs.append((road, road, path if read == lines else ingest_files.head_of(path, read), read))
    for suffix in packed:
        if suffix and "kgqa" in roads:
            runs.append((f"kgqa {suffix}", "kgqa", ingest_files.compress(path, suffix), lines))
    measured: dict[str, list[dict[str, float]]] = {name: [] for name, *_ in runs}
    for _ in range(rounds):
        for name, road, file, _read in runs:
            measured[name].append(run_apart(road, file, memory))
    read_by = {name: read for name, _, _, read in runs}
    results = {
        name: {
            "lines": read_by[name],
            "lines_per_second": read_by[name] / statistics.median(one["seconds"] for one in some),
            "seconds": statistics.median(one["seconds"] for one in some),
            "cpu_seconds": statistics.median(one["cpu_seconds"] for one in some),
            "peak_mb": max(one["peak_mb"] for one in some),
            "rounds": [one["seconds"] for one in some],
        }
        for name, some in measured.items()
    }
    ours = results.get("kgqa", next(iter(results.values())))
    size = path.stat().st_size
    print(f"\n{lines:,} lines, {size / 1e6:,.0f} MB, memory limit {memory}, {rounds} round(s)")
    for name, result in results.items():
        result["ours_is_faster_by"] = ours["lines_per_second"] / result["lines_per_second"]
        each = result["cpu_seconds"] / result["lines"]
        result["ours_needs_less_cpu_by"] = each / (ours["cpu_seconds"] / ours["lines"])
        print(
            f"  {name:<12} {result['lines_per_second']:>12,.0f} lines/s  {result['seconds']:>8.2f} s  "
            f"cpu {result['cpu_seconds']:>8.2f} s  peak {result['peak_mb']:>7,.0f} MB  "
            f"kgqa is {result['ours_is_faster_by']:.2f} times as fast, "
            f"{result['ours_needs_less_cpu_by']:.2f} by processor time"
        )
    for file in folder.glob(f"{lines}*.nt*"):
        file.unlink()
    return {"lines": lines, "bytes": size, "rounds": rounds, "roads": results}


def run_apart(road: str, file: Path, memory: str) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.graph.ingest", "--memory", memory, "--run", road, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{road} failed on {file.name}:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_here(road: str, file: Path, memory: str) -> dict[str, float]:
    """One run in this process, after a small one that warms it."""
    with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
        folder = Path(scratch)
        small = folder / "warm.nt"
        ingest_files.write(small, 2_000, SEED)
        for number, one in enumerate((small, file)):
            out = folder / str(number)
            out.mkdir()
            wall, cpu = time.perf_counter(), time.process_time()
            ingest_roads.ROADS[road](one, out, memory)
            seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak_memory()}


def peak_memory() -> float:
    """MB that this process had resident at most; `ru_maxrss` would begin with what its parent had."""
    status = Path("/proc/self/status")
    if status.is_file():
        return int(re.search(r"VmHWM:\s+([0-9]+)", status.read_text())[1]) / 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> dict[str, Any]:
    """The machine and versions of the figures."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "absent"
    return {
        "cpu": processor("unknown"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "packages": versions,
    }


if __name__ == "__main__":
    raise SystemExit(main())
