"""What figures were measured under (commit, date and machine), and the folders that the benchmarks use."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PROFILES = ROOT / "flows" / "profiles"
DATA = Path(os.environ.get("KGQA_SHARED_DATA") or ROOT.parent / "shared" / "data")
"""Published data sets, graphs and question files, beside the checkout."""
MEASURED = ("kgqa_core", "tasks", "flows", "benchmarks", "tools", "tests", "pyproject.toml", "constraints.txt",
            ":!*.md", ":!benchmarks/results")  # fmt: skip
"""What figures depend on, as git names paths: not the pages, nor the results that the run before wrote."""


def conditions(seed: int, root: Path = ROOT) -> dict[str, Any]:
    """Seed, commit of a checkout (and whether the tree had changes), date, cores and threads.

    `KGQA_COMMIT` names the commit of a copy of the tree without its history.
    """
    commit = _git(root, "rev-parse", "HEAD").strip()
    return {
        "seed": seed,
        "commit": commit + (" with changes" if changes(root) else "") or os.environ.get("KGQA_COMMIT", ""),
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def changes(root: Path = ROOT) -> list[str]:
    """Files that figures depend on and that are not as the commit of a checkout has them; none without its history."""
    return [line[3:] for line in _git(root, "status", "--porcelain", "--", *MEASURED).splitlines()]


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False).stdout


def commit_name(commit: str) -> str:
    """A commit as tables show it: seven digits, and whether the tree had changes.

    >>> commit_name("f6697919538cb92353d6833eeb48fa57c2e078f7 with changes")
    'f669791 with changes'
    """
    digits, _, rest = commit.partition(" ")
    return f"{digits[:7]} {rest}".strip()


def processor(unknown: str = "not known") -> str:
    """The processor's name, where the system tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), unknown)
