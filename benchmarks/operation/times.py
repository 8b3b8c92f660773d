"""What a user waits for, measured in a clean clone of one commit with a virtual environment of its own.

    python -m benchmarks.operation.times --work DIR [--commit HEAD] [--rounds 3]
        [--parts install demo busy whole cached ask help test] [--json benchmarks/results/times.json]

install: make install.  demo: `kgqa demo` in an empty home (what the README tells a newcomer to run).  busy: the same
beside two processes that compute without end.  whole: `kgqa run --profile atlas`, in an empty home.  cached: `whole`
again.  ask: one question, without a server, as a whole process.  help: `kgqa --help`.  test: make test, whose packages
are installed before.  ask, help and cached are medians of --rounds.  A part that stands in the JSON is measured again
where it is named in --parts.  Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, conditions, processor
from benchmarks.latency import median_seconds
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table

FIELDS = (*CONDITIONS, "product_ms", "machine", "parts/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
QUESTION = "What is the capital of France?"
PARTS = ("install", "demo", "busy", "whole", "cached", "ask", "help", "test")
SEVERAL = ("cached", "ask", "help")
ENVIRONMENT = ("PYTHONPATH", "KGQA_HOME", "OMP_NUM_THREADS", "VIRTUAL_ENV")
"""Variables that a clean shell does not have."""


def measure(part: str, checkout: Path, rounds: int) -> dict[str, Any]:
    """Seconds of a part, and of the stages of the run that it made."""
    home = checkout.parent / ("whole" if part in SEVERAL else part)
    kgqa = str(checkout / ".venv" / "bin" / "kgqa")
    commands: Mapping[str, tuple[str, ...]] = {
        "install": ("make", "install"), "demo": (kgqa, "demo"), "busy": (kgqa, "demo"),
        "whole": (kgqa, "run", "--profile", "atlas"), "cached": (kgqa, "run", "--profile", "atlas"),
        "ask": (kgqa, "ask", QUESTION), "help": (kgqa, "--help"), "test": ("make", "test"),
    }  # fmt: skip
    if part == "install":
        shutil.rmtree(checkout / ".venv", ignore_errors=True)
    if part == "test":
        run(checkout, "make", "install-dev")
    command = commands[part] + (() if part in ("install", "help", "test") else ("--home", str(home)))
    if part in SEVERAL:
        times = [round(run(checkout, *command), 2) for _ in range(rounds)]
        return {"seconds": statistics.median(times), "all": times}
    shutil.rmtree(home, ignore_errors=True)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (part == "busy"))]
    try:
        found: dict[str, Any] = {"seconds": round(run(checkout, *command), 1)}
    finally:
        for process in others:
            process.kill()
            process.wait()
    return found | ({"stages": stages(home)} if home.is_dir() else {})


def run(checkout: Path, *command: str) -> float:
    """Seconds of a command.  Raises SystemExit where it failed."""
    environment = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    began = time.perf_counter()
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout.decode()[-2000:]}")
    return time.perf_counter() - began


def stages(home: Path) -> dict[str, float]:
    """Seconds of the stages of a home's first run."""
    records = [json.loads(file.read_text(encoding="utf-8")) for file in home.glob("runs/*/run.json")]
    found: dict[str, float] = {}
    for stage in min(records, key=lambda record: str(record["run_id"]))["stages"]:
        found[stage["name"]] = round(found.get(stage["name"], 0.0) + float(stage.get("seconds") or 0.0), 1)
    return found


WAITED: Mapping[str, str] = {
    "install": "`make install`, 2.7 GB",
    "demo": "`kgqa demo`, first time",
    "whole": "the whole comparison, `kgqa run --profile atlas` ([what it does](docs/demo.md#the-whole-comparison))",
    "cached": "the same again, all of it cached",
    "ask": "`kgqa ask` as a process, without a server",
    "test": "`make test`",
}
"""Parts that the README tells of, and what it calls them."""


def times(found: Mapping[str, Any]) -> str:
    """The table of the README: what takes how long, and as a number of matrix products."""
    made, product = found["conditions"], found["product_ms"]
    rows = [
        (WAITED[part], _waited(one["seconds"]), f"{1000 * one['seconds'] / product:,.0f}")
        for part, one in found["parts"].items() if part in WAITED
    ]  # fmt: skip
    text = table((f"on {made['cores']} cores of {found['machine']}", "takes", "matrix products"), rows, right=True)
    return text + (
        "\nA matrix product is one of float32 matrices of 1024 × 1024, "
        f"{product:.1f} ms here: `python -m timeit -s 'import torch; a = torch.rand(1024, 1024)' 'a @ a'` says what it "
        "takes on your machine.\n"
    )


def _waited(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def main() -> None:
    """Measures the parts and writes the JSON after each."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "times.json")
    given = parser.parse_args()
    checkout = given.work.resolve() / "checkout"
    git = ("git", "-C", str(checkout))
    if not (checkout / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
    here = ["git", "-C", str(ROOT), "rev-parse", given.commit]
    commit = subprocess.run(here, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([*git, "fetch", "--quiet", str(ROOT)], check=True)
    subprocess.run([*git, "checkout", "--quiet", commit], check=True)
    record: dict[str, Any] = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    product = torch.rand(1024, 1024)
    of = {"conditions": conditions(SEED, checkout), "machine": processor(platform.machine())}
    if (record.get("machine"), record.get("conditions", {}).get("commit")) != (of["machine"], commit):
        record = {"parts": {}}
    record |= of
    record["product_ms"] = round(1000 * median_seconds(lambda: product @ product, 7), 2)
    for part in given.parts:
        record["parts"][part] = measure(part, checkout, given.rounds)
        print(part, record["parts"][part], flush=True)
        results_file.write(given.json, record, FIELDS)


if __name__ == "__main__":
    main()
