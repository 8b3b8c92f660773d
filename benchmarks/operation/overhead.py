"""Orchestration: what a run costs in which every stage is found, and where that time goes.

    python -m benchmarks.operation.overhead [--profile NAME_OR_FILE] [--runs 5] [--top 25] [--json OUT]

Works with the servers of PREFECT_API_URL and MLFLOW_TRACKING_URI (operations.py brings up real ones) and in the home
KGQA_HOME: a first run makes what is missing, then the flow is run again `runs` times in this process.  Times
are those of the main thread and leave each other out: what is inside an inner line is not in the outer one.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPANS = (
    ("asking Prefect", "httpx", "Client.send"),
    ("telling Prefect's events", "prefect.events.worker", "EventsWorker.attach_related_resources_from_context"),
    ("telling MLflow", "requests", "Session.send"),
    ("finding and verifying artifacts", "kgqa_core.store.artifacts", "Home.find"),
    ("computing keys", "tasks.engine.stage", "stage_key"),
    ("writing the report", "kgqa_core.report.page", "write"),
    ("gathering examples", "kgqa_core.report.examples", "gather_examples"),
    ("contending", "tasks.engine.champion", "contend"),
)


class Spans:
    """Seconds of the main thread inside chosen functions, each without those inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._open: list[float] = []

    def watch(self, name: str, module: str, path: str) -> None:
        """Time a function from now on; silently nothing where there is none."""
        import importlib

        try:
            owner = importlib.import_module(module)
            *classes, function = path.split(".")
            for part in classes:
                owner = getattr(owner, part)
            original = getattr(owner, function)
        except (ImportError, AttributeError):
            return
        setattr(owner, function, self._timed(name, original))

    def _timed(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return original(*args, **kwargs)
            started = time.perf_counter()
            self._open.append(0.0)
            try:
                return original(*args, **kwargs)
            finally:
                whole = time.perf_counter() - started
                inner = self._open.pop()
                if self._open:
                    self._open[-1] += whole
                self.seconds[name] = self.seconds.get(name, 0.0) + whole - inner
                self.calls[name] = self.calls.get(name, 0) + 1

        return timed

    def take(self) -> dict[str, dict[str, float]]:
        """Seconds and calls since the last call."""
        found = {name: {"seconds": round(self.seconds[name], 4), "calls": self.calls[name]} for name in self.seconds}
        self.seconds, self.calls = {}, {}
        return found


def measure(profile: Any, runs: int, top: int) -> dict[str, Any]:
    """Wall seconds of cached runs, by stage and by what they were spent on."""
    from flows.pipeline import pipeline
    from tasks.engine.run import Run

    stages: dict[str, list[float]] = {}
    original = Run.stage

    def stage(self: Run, name: str, title: str) -> Any:
        return _Timed(original(self, name, title), stages.setdefault(name, []))

    pipeline(profile)
    Run.stage = stage  # type: ignore[method-assign, assignment]
    spans = Spans()
    for span in SPANS:
        spans.watch(*span)
    walls, parts = [], []
    for _ in range(runs):
        started = time.perf_counter()
        pipeline(profile)
        walls.append(time.perf_counter() - started)
        parts.append(spans.take())
    middle = parts[walls.index(sorted(walls)[len(walls) // 2])]
    wall, in_stages = statistics.median(walls), sum(statistics.median(found) for found in stages.values())
    profiler = cProfile.Profile()
    profiler.enable()
    pipeline(profile)
    profiler.disable()
    return {
        "stages": len(stages),
        "wall_seconds": [round(value, 3) for value in walls],
        "median_seconds": round(wall, 3),
        "seconds_in_stages": round(in_stages, 3),
        "seconds_a_stage": round(in_stages / max(1, len(stages)), 4),
        "by_stage": {name: round(statistics.median(found), 4) for name, found in stages.items()},
        "spent_on": middle,
        "not_attributed": round(wall - sum(one["seconds"] for one in middle.values()), 3),
        "hot": hottest(profiler, top),
    }


class _Timed:
    def __init__(self, manager: Any, into: list[float]) -> None:
        self._manager, self._into = manager, into

    def __enter__(self) -> Any:
        self._started = time.perf_counter()
        return self._manager.__enter__()

    def __exit__(self, *words: Any) -> Any:
        try:
            return self._manager.__exit__(*words)
        finally:
            self._into.append(time.perf_counter() - self._started)


def hottest(profiler: cProfile.Profile, top: int) -> list[dict[str, Any]]:
    """Functions of the run by time of their own."""
    table: dict[Any, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    rows = sorted(table.items(), key=lambda row: -row[1][2])[:top]
    return [
        {
            "function": f"{Path(where[0]).name}:{where[1]} {where[2]}",
            "calls": stats[0],
            "own_seconds": round(stats[2], 3),
        }
        for where, stats in rows
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="atlas")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--top", type=int, default=25)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    from flows.cli import _session as session

    session.Session().prepare()
    result = measure(session.choose_profile(given.profile), given.runs, given.top)
    print(f"cached run: {result['median_seconds']} s, {result['stages']} stages, {result['seconds_a_stage']} s a stage")
    for name, part in sorted(result["spent_on"].items(), key=lambda row: -row[1]["seconds"]):
        print(f"  {part['seconds']:8.3f} s  {part['calls']:5.0f} calls  {name}")
    print(f"  {result['not_attributed']:8.3f} s               not attributed")
    for row in result["hot"]:
        print(f"    {row['own_seconds']:7.3f} s own  {row['calls']:8d} calls  {row['function']}")
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
