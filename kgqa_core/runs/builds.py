"""Artifacts that are built outside of runs, under digests of what they are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kgqa_core.monitor import Monitor
from kgqa_core.store.artifacts import ArtifactRef, Home, canonical_json
from kgqa_core.workspace import Workspace


def filled(
    home: Home, kind: str, parts: Mapping[str, Any], fill: Callable[[Workspace], Mapping[str, Any]], monitor: Monitor
) -> ArtifactRef:
    """The artifact that is made of these parts: found in the home, or filled now."""
    made_of = {"stage": kind, **parts}
    key = hashlib.sha256(canonical_json(made_of).encode()).hexdigest()

    def compute(out: Path, work: Path) -> Mapping[str, Any]:
        return fill(Workspace(out, work, home.cache, monitor))

    return home.compute(kind, key, compute, {"stage": kind, "made_of": made_of}, monitor)[0]


@cache
def build_code() -> str:
    """Digest of the source files that a build of a graph or of its arrays runs."""
    root = Path(__file__).parents[1]
    files = sorted(file for room in ("dkg", "kg") for file in (root / room).rglob("*.py"))
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()
