"""A small pipeline of map stages that ask an endpoint, on any runner; `python -m tests.support.mapped PROFILE.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from prefect import flow

from kgqa_core.config import Profile, make_profile
from kgqa_core.store.artifacts import read_manifest
from tasks.answering import answer_all
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.run import Run, tracked_run
from tasks.kg import build_kg, export_dkg
from tasks.questions import load_questions
from tasks.retrieval import retrieve_all
from tasks.rewriting import write_all
from tests.support.toy import write_graph, write_questions

RETRIEVERS = ["random", "oracle"]


def settings(folder: Path, base_url: str = "http://127.0.0.1:9/v1", **runner: Any) -> dict[str, Any]:
    """A profile on a graph and questions that are written into the folder, or are there already."""
    if not (folder / "graph.tsv").is_file():
        write_questions(folder / "questions.jsonl", write_graph(folder / "graph.tsv", 600), 120)
    return {
        "kg": {"name": "toy", "files": [str(folder / "graph.tsv")]},
        "questions": {"name": "toy", "source": "jsonl", "path": str(folder / "questions.jsonl")},
        "retrieval": {"retrievers": RETRIEVERS},
        "answering": {
            "answerer": "openai:m", "knowledge": ["none", "random", "oracle/template"], "limit": 20,
        },
        "llm": {"base_url": base_url},
        "operations": {"runner": runner},
    }  # fmt: skip


@flow(name="mapped")
def mapped(profile: Profile) -> Run:
    """The stages up to the answers."""
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = load_questions(kg, profile.questions, profile.seed)
        made = RunArtifacts(kg, dkg, questions)
        facts = retrieve_all(made, profile)
        answer_all(made, facts, write_all(made, facts, None, profile), profile)
        return run


def outcomes(run: Run) -> dict[str, tuple[str, dict[str, Any]]]:
    """Digest and counts of each stage's artifact."""
    return {
        stage.name: (stage.artifact.digest, read_manifest(stage.artifact.folder)["counts"])
        for stage in run.stages
        if stage.artifact is not None
    }


if __name__ == "__main__":
    mapped(make_profile(json.loads(Path(sys.argv[1]).read_text())))
