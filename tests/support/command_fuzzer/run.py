"""Runs cases on warm workers, each with a world of its own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from tests.support.command_fuzzer.commands import commands
from tests.support.command_fuzzer.kinds import Case, cases

ROOT = Path(__file__).resolve().parents[3]
SEED = 17
PROCESS_EVERY = 25
"""One case of so many runs in a process of its own."""


def chosen(seed: int, *, flows: bool, most: int | None = None, only: str = "") -> list[Case]:
    """The cases of a run: all, or a drawn part in which every command and every kind is."""
    found = [one for one in cases(commands(), flows=flows) if one.command.name.startswith(only)]
    draw = random.Random(seed)
    draw.shuffle(found)
    if most is not None and most < len(found):
        seen: set[object] = set()
        first, rest = [], []
        for one in found:
            marks = {one.command.name, (one.kind, one.parameter.role if one.parameter else "")}
            (rest if marks <= seen else first).append(one)
            seen |= marks
        found = [*first, *rest][:most]
    return [
        Case(one.number, one.command, one.parameter, one.kind, place % PROCESS_EVERY == 0 and not one.command.serves)
        for place, one in enumerate(found)
    ]


def run(
    given: Sequence[Case],
    folder: Path,
    *,
    seed: int = SEED,
    workers: int = 1,
    environment: dict[str, str] | None = None,
    target: str = "",
    told: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """Verdicts of cases, by number.  target: `module:function` to call in place of the CLI."""
    waiting: SimpleQueue[Case] = SimpleQueue()
    for one in given:
        waiting.put(one)
    rows: list[dict[str, Any]] = []
    faults: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with _process(folder / f"w{number}", seed, environment or {}, target) as process:
                assert process.stdin and process.stdout
                assert json.loads(process.stdout.readline() or "null"), "the worker did not start"
                while not faults:
                    try:
                        case = waiting.get_nowait()
                    except Empty:
                        break
                    process.stdin.write(json.dumps(_request(case)) + "\n")
                    process.stdin.flush()
                    line = process.stdout.readline()
                    assert line, f"the worker ended at {case.title}"
                    rows.append(json.loads(line))
                    told(rows[-1])
                process.stdin.close()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if faults:
        raise faults[0]
    return sorted(rows, key=lambda row: row["number"])


def _request(case: Case) -> dict[str, Any]:
    parameter = None if case.parameter is None else case.parameter.name
    return {"number": case.number, "command": case.command.name, "parameter": parameter, "kind": case.kind,
            "process": case.process}  # fmt: skip


def _process(folder: Path, seed: int, more: dict[str, str], target: str) -> subprocess.Popen[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_", "KGQA_"))}
    environment = {
        **kept,
        "HOME": str(folder / "login"),
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8:strict",
        "COLUMNS": "120",
        "OMP_NUM_THREADS": "1",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "600",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "HF_HUB_OFFLINE": "1",
        **more,
    }
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "tests.support.command_fuzzer.worker", str(folder), str(seed)]
    return subprocess.Popen(
        [*words, *([target] if target else [])], env=environment, cwd=ROOT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
