"""The page on peers' methods shows the figures of the benchmark's file and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers.peers import PARTS

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
AGENTS = [
    f"{policy}, {protocol}{ending}"
    for policy in ("loop", "beam")
    for protocol in ("tools", "json")
    for ending in ("", ", misbehaving")
]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def test_every_part_says_its_conditions_and_names_its_rows(document: dict[str, Any]) -> None:
    assert set(document["results"]) <= set(PARTS) and {"agent", "gcr", "atlas"} <= set(document["results"])
    for part in document["results"].values():
        assert {"seed", "commit", "date", "cores", "threads"} <= set(part["conditions"])
    assert list(document["results"]["agent"]["rows"]) == AGENTS
    for row in document["results"]["gcr"]["rows"].values():
        assert row.get("paths_of_graph", 1.0) == 1.0
    trained = document["results"]["atlas"]["rows"]
    assert set(trained) == {"random", "oracle", "rigel", "hop_path", "transfernet"}
    assert trained["transfernet"]["hits_at_1"] > trained["random"]["hits_at_1"]


def test_transcripts_show_each_policy_protocol_and_model(document: dict[str, Any]) -> None:
    text = (ROOT / "benchmarks" / "results" / "peers_transcripts.txt").read_text(encoding="utf-8")
    titles = {f"agent: {name}" for name in AGENTS}
    for part in {"gcr", "gcr_trained"} & set(document["results"]):
        titles |= {f"{part}: {name}" for name in document["results"][part]["rows"] if name != "trie"}
    assert {line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")} == titles
