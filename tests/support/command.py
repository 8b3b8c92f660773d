"""Run `kgqa` as a user does: in a process of its own, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


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
    *words: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 600
) -> Outcome:
    """Run a command and wait for it."""
    return run_python(["-m", "flows.cli", *words], env=env, cwd=cwd, timeout=timeout)


def run_python(
    words: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 600
) -> Outcome:
    """Run Python with arguments, the project importable, and nothing of this process's Prefect settings but `env`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_", "KGQA_"))}
    kept["PYTHONPATH"] = str(ROOT)
    kept["COLUMNS"] = "160"
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env={**kept, **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
