"""Map stages on task runners: four parts on two workers against one worker, as ratios of one run.

    python -m benchmarks.operation.runners [--runners thread process dask ray] [--limit 2048] [--json OUT]

The work is the answers of the built-in model to Atlas questions with random facts.  Each measurement is a
process of its own on one home, in which what came before the answers is found; answers and paid responses are removed
before it.  `start` is the stage before, in which the runner starts; `seconds` is the stage of answers.  One worker is
measured twice: with all cores for its threads, and on one core alone.  The digests of all measurements must be equal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import ROOT, conditions
from benchmarks.results_file import CONDITIONS

FIELDS = (
    *CONDITIONS, "machine/...", "shards", "limit", "undivided/...", "runners/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

KINDS = ("thread", "process", "dask", "ray")
MARK = "measured "


def profile_of(kind: str, shards: int, workers: int, limit: int) -> Any:
    from kgqa_core.config import make_profile

    runner = {"kind": kind, "shards": shards, "workers": workers}
    return make_profile(
        {
            "name": "runners",
            "kg": {"name": "atlas", "files": ["bundled:atlas"]},
            "questions": {"name": "atlas", "source": "atlas"},
            "retrieval": {"retrievers": ["random"]},
            "answering": {"knowledge": ["random"], "limit": limit},
            "operations": {"runner": runner},
        }
    )


def measure(kind: str, shards: int, workers: int, limit: int) -> dict[str, Any]:
    """Seconds until workers are there, and of the answers, in the home KGQA_HOME."""
    from prefect import flow

    from kgqa_core.store.artifacts import Home
    from tasks.answering import answer
    from tasks.engine.run import tracked_run
    from tasks.kg import build_kg, export_dkg
    from tasks.questions import load_questions
    from tasks.retrieval import retrieve
    from tasks.rewriting import write_triples

    profile = profile_of(kind, shards, workers, limit)
    home = Home.current()

    @flow(name="runners")
    def measured() -> dict[str, Any]:
        with tracked_run(profile) as run:
            kg = build_kg(profile.kg)
            dkg = export_dkg(kg, profile.dkg)
            questions = load_questions(kg, profile.questions, profile.seed)
            for path in [*(home.root / "artifacts").glob("facts*"), *(home.root / "artifacts").glob("answers*")]:
                shutil.rmtree(path)
            for path in home.cache.glob("responses.sqlite*"):
                path.unlink()
            clock = time.perf_counter()
            facts = retrieve(kg, dkg, questions, None, "random", profile.retrieval, None, profile.seed)
            start = time.perf_counter() - clock
            knowledge = write_triples(kg, questions, facts, "random", False)
            clock = time.perf_counter()
            made = answer(questions, knowledge, "random/triples", profile.answering, profile.llm, profile.seed)
            seconds = time.perf_counter() - clock
            return {
                "start": round(start, 2), "seconds": round(seconds, 2), "digest": made.digest,
                "prompts": run.stages[-1].counts["prompts"],
            }  # fmt: skip

    return measured()


def in_process(kind: str, shards: int, workers: int, limit: int, cores: int, home: Path) -> dict[str, Any]:
    """`measure` in a process of its own that may use so many cores."""
    order = f"{kind},{shards},{workers},{limit},{cores}"
    environment = {
        **os.environ, "KGQA_HOME": str(home), "PREFECT_HOME": str(home / "prefect"), "PYTHONPATH": str(ROOT),
        "PREFECT_LOGGING_LEVEL": "ERROR", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true", "RAY_USAGE_STATS_ENABLED": "0", "TOKENIZERS_PARALLELISM": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
    }  # fmt: skip
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "benchmarks.operation.runners", "--measure", order]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not found:
        raise SystemExit(f"{order} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(found[-1].removeprefix(MARK))
    return {"workers": workers, "cores": cores, **result}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--runners", nargs="+", default=KINDS, choices=KINDS)
    words.add_argument("--shards", type=int, default=4)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--limit", type=int, default=2048, help="questions; parts are whole groups of 256 prompts")
    words.add_argument("--json", type=Path)
    words.add_argument("--measure", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.measure:
        kind, *numbers = given.measure.split(",")
        shards, workers, limit, cores = map(int, numbers)
        with contextlib.suppress(AttributeError, OSError):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        print(MARK + json.dumps(measure(kind, shards, workers, limit)), flush=True)
        return
    cores = len(os.sched_getaffinity(0))
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="kgqa-runners-") as folder:
        home = Path(folder)
        in_process("inline", 1, 1, 8, cores, home)  # what is only slow the first time
        whole = in_process("inline", 1, 1, given.limit, cores, home)
        print(f"undivided: {whole['seconds']} s, {whole['prompts']} prompts", flush=True)
        for kind in given.runners:
            many = in_process(kind, given.shards, given.workers, given.limit, cores, home)
            one = in_process(kind, given.shards, 1, given.limit, cores, home)
            alone = in_process(kind, given.shards, 1, given.limit, 1, home)
            rows[kind] = {
                "workers": many, "one_worker": one, "one_worker_on_one_core": alone,
                "ratio": round(one["seconds"] / many["seconds"], 3),
                "ratio_on_one_core": round(alone["seconds"] / many["seconds"], 3),
                "ratio_undivided": round(whole["seconds"] / many["seconds"], 3),
                "same_digest": {whole["digest"]} == {made["digest"] for made in (many, one, alone)},
            }  # fmt: skip
            row = rows[kind]
            print(
                f"{kind}: {many['seconds']} s with {given.workers} workers, {one['seconds']} s with one (ratio "
                f"{row['ratio']}), {alone['seconds']} s with one on one core (ratio {row['ratio_on_one_core']}), "
                f"digests {'equal' if row['same_digest'] else 'DIFFER'}",
                flush=True,
            )
    if given.json:
        document = {
            "machine": {"cores": cores, "python": platform.python_version(), "machine": platform.machine()},
            "shards": given.shards, "limit": given.limit, "undivided": whole, "runners": rows,
        }  # fmt: skip
        results_file.write(given.json, {"conditions": conditions(7), **document}, FIELDS)
    if not all(row["same_digest"] for row in rows.values()):
        raise SystemExit("the digests differ")


if __name__ == "__main__":
    main()
