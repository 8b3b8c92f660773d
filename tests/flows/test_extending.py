"""The retriever of docs/extending.md, added to a copy of the project exactly as the page says, in a run of `kgqa`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from kgqa_core.store.home import read_run
from tests.support.chat_server import ChatServer
from tests.support.command import kgqa
from tests.support.extending_page import copy_packages, follow, section
from tests.support.toy import write_graph, write_questions


@pytest.mark.slow
def test_a_retriever_of_three_files_is_trained_asked_reported_and_tracked(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_packages(project, "kgqa_core", "tasks", "flows")
    touched = follow(section("A retriever"), project)
    assert len(touched) <= 3, touched

    triples = write_graph(tmp_path / "register.tsv", 1500)
    write_questions(tmp_path / "questions.jsonl", triples, 60)
    with ChatServer(lambda prompt: "Nobody") as server:
        settings = {
            "retrieval.retrievers": "[common_relation, random]", "answering.knowledge": "[common_relation]",
            "common_relation.least": "2", "answering.limit": "5", "answering.answerer": "openai:stub",
            "llm.base_url": server.base_url, "evaluation.bootstrap": "100",
        }  # fmt: skip
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        given = {"env": {"OPENAI_API_KEY": "none", "PYTHONPATH": str(project)}, "cwd": project}
        home = tmp_path / "home"
        graph = ["--kg", tmp_path / "register.tsv", "--questions", tmp_path / "questions.jsonl", "--home", home]
        ran = kgqa("run", "--json", "--answerer", "builtin", *graph, *words, **given)
        assert ran.code == 0, ran.err[-4000:]
        wrong = kgqa("run", *graph, "--set", "retrieval.retrievers=[common_relations]", **given)
    assert wrong.code == 2 and "did you mean 'common_relation'" in wrong.err, wrong.err

    assert {"common_relation/triples/openai:stub", "common_relation/-/-", "random/-/-"} <= set(ran.json["scores"])
    folder = home / "runs" / ran.json["run_id"]
    record = read_run(home, folder.name) or {}
    artifacts = {stage["name"]: Path(stage["artifact"]["path"]) for stage in record["stages"] if stage["artifact"]}
    assert {"common_relation", "facts/common_relation", "answers/common_relation"} <= set(artifacts)
    counts = json.loads((artifacts["common_relation"] / "relations.json").read_text(encoding="utf-8"))
    assert counts and all(count >= 2 for count in counts.values())
    assert "Common relations facts" in Path(ran.json["report"]).read_text(encoding="utf-8")

    client = MlflowClient(f"sqlite:///{home / 'mlflow' / 'mlflow.db'}")
    [experiment] = [one.experiment_id for one in client.search_experiments() if client.search_runs([one.experiment_id])]
    runs = {run.data.tags.get("kgqa.stage"): run.data for run in client.search_runs([experiment])}
    for stage in ("common_relation", "facts/common_relation"):
        assert runs[stage].params["common_relation.least"] == "2", stage
