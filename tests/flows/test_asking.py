"""A finished run's system is opened with what its stages had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows import asking
from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import make_profile


def test_a_system_shares_the_home_cache_and_the_seed_of_its_run(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: dict[str, Any] = {}
    monkeypatch.setattr(asking.System, "open", lambda **given: opened.update(given))
    monkeypatch.setattr(
        asking, "stage_artifact", lambda record, kind: ArtifactRef(kind=kind, path=f"/{kind}", digest="")
    )
    profile = make_profile({"seed": 11, "retrieval": {"retrievers": ["hop_path", "kaping"]}})
    asking.open_system({"run_id": "r", "profile": profile.model_dump(mode="json")}, "hop_path")
    assert (opened["cache"], opened["seed"]) == (own_home / "cache", 11)
    assert (opened["kg"], opened["retriever"], opened["knowledge"]) == (
        Path("/kg"),
        Path("/hop_path"),
        "hop_path/triples",
    )
