"""`kgqa` as a whole process, as the benchmarks of serving run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT


def kgqa(*words: str, home: Path) -> tuple[str, float]:
    """What a command printed, run beside its home, and its seconds; what it says while it works goes to stderr.

    Raises SystemExit where it failed.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words, "--home", str(home)], cwd=home.parent,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"kgqa {words[0]} ended with {done.returncode}")
    return done.stdout, time.perf_counter() - began


def kgqa_json(*words: str, home: Path) -> tuple[dict[str, Any], float]:
    """The JSON that a command prints last, and its seconds.  Raises SystemExit where it failed."""
    printed, seconds = kgqa(*words, "--json", home=home)
    result: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return result, seconds
