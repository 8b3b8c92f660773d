"""Artifacts that a test fills itself, in the home of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.run import Run


def made(run: Run, kind: str, name: str, fill: Callable[[Path], Any]) -> ArtifactRef:
    """An artifact of a kind, whose folder `fill` fills."""

    def filled(out: Path, work: Path) -> dict[str, Any]:
        fill(out)
        return {}

    return run.home.compute(kind, name * 10, filled, run.provenance())[0]
