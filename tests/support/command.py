"""Run `kgqa` as a user does, in a process of its own with a home of its own; ports and pipes to give it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FLOWS = frozenset({"run", "demo", "refresh", "ask", "answer", "evaluate", "forecast", "ltgen", "answerability"})
"""Commands that run a flow."""


@dataclass
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The JSON object on the last line of stdout."""
        return json.loads(self.out.strip().splitlines()[-1])


def kgqa(
    *words: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 1800,
    served: bool = True,
) -> Outcome:
    """Run a command and wait for it.

    served: what runs a flow runs it on the tests' Prefect server, unless `env` names one; else it starts one itself.
    """
    given = dict(env or {})
    if served and words and words[0] in FLOWS and "PREFECT_API_URL" not in given:
        from tests.support.prefect_server import shared_environment

        given |= shared_environment()
    return run_python(["-m", "flows.cli", *words], env=given, cwd=cwd, timeout=timeout)


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of Prefect, MLflow and kgqa, the project importable, and `more`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_", "KGQA_"))}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "160"} | more


def closed_port() -> int:
    """A loopback port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_python(
    words: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 1800
) -> Outcome:
    """Run Python with arguments, the project importable, and nothing of this process's Prefect settings but `env`."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment() | dict(env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def written_pipes() -> Iterator[Callable[[bytes], Path]]:
    """Makes a pipe for some bytes, which a thread writes; the reading ends are closed when the block ends."""
    opened: list[int] = []

    def make(data: bytes) -> Path:
        reading, writing = os.pipe()
        opened.append(reading)

        def write() -> None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
                stream.write(data)

        threading.Thread(target=write, daemon=True).start()
        return Path(f"/dev/fd/{reading}")

    yield make
    for number in opened:
        os.close(number)
