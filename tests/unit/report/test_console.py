"""Stages of a run on the console and in its JSON: each artifact has a name of its own."""

from __future__ import annotations

from typing import Any

from flows.cli._runs import summarise
from kgqa_core.report.console import stage_names


def stage(name: str, title: str, path: str | None, status: str, seconds: float) -> dict[str, Any]:
    artifact = {"path": path} if path is not None else None
    return {"name": name, "title": title, "status": status, "seconds": seconds, "counts": {}, "artifact": artifact}


STAGES = [
    stage("mentions", "mentions", "/a", "computed", 7.4),
    stage("answers/x", "answers/x auto", "/b", "computed", 1.0),
    stage("answers/x", "answers/x builtin", "/c", "cached", 2.0),
    stage("mentions", "mentions", "/a", "cached", 0.1),
    stage("failed", "failed", None, "failed", 0.3),
]


def test_stages_of_the_same_name_and_other_artifacts_are_told_apart() -> None:
    assert stage_names(STAGES) == ["mentions", "answers/x", "answers/x builtin", "mentions", "failed"]


def test_json_has_every_artifact_as_it_was_first_needed() -> None:
    record = {"home": "h", "run_id": "r", "report": "p", "mlflow_run_id": None, "stages": STAGES}
    record["aggregates"] = {"scores": {}}
    assert summarise(record)["stages"] == {
        "mentions": {"status": "computed", "seconds": 7.4},
        "answers/x": {"status": "computed", "seconds": 1.0},
        "answers/x builtin": {"status": "cached", "seconds": 2.0},
        "failed": {"status": "failed", "seconds": 0.3},
    }
