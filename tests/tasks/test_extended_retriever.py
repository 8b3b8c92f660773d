"""The retriever's extensions in a run: further question sets, linked questions, an earlier run's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from kgqa_core.config import Profile, make_profile
from kgqa_core.errors import InputError
from kgqa_core.store.artifacts import read_manifest
from kgqa_core.store.home import read_run
from tasks.answering import answer_all
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.run import Run, tracked_run
from tasks.kg import build_kg, export_dkg
from tasks.questions import load_questions
from tasks.resume.inputs import (
    FEEDBACK,
    LINKED,
    MORE,
    artifacts,
    reads_same_inputs,
    training_change,
    training_input_change,
    training_inputs,
)
from tasks.retrieval import retrieve_all, train_retrievers
from tasks.rewriting import write_triples
from tests.support.toy import write_graph, write_questions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]

SMALL = {"encoder": "scratch", "scratch_width": 16, "epochs": 1, "min_steps": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    triples = write_graph(folder / "graph.tsv", 600)
    write_questions(folder / "questions.jsonl", triples, 120)
    write_questions(folder / "more.jsonl", triples, 60, seed=9)
    return folder


def settings(folder: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """A profile on the toy graph."""
    plain: dict[str, dict[str, Any]] = {
        "kg": {"name": "toy", "files": [str(folder / "graph.tsv")]},
        "questions": {"name": "toy", "source": "jsonl", "path": str(folder / "questions.jsonl")},
        "rigel": SMALL,
        "retrieval": {"retrievers": ["rigel"]},
        "answering": {"knowledge": ["none", "rigel"], "limit": 30},
    }
    return {name: plain.get(name, {}) | sections.get(name, {}) for name in {*plain, *sections}}


@flow(name="learning")
def learning(profile: Profile) -> Run:
    """Training, retrieval and, where training questions are asked, answers."""
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = load_questions(kg, profile.questions, profile.seed)
        trained = train_retrievers(kg, dkg, questions, profile)
        made = RunArtifacts(kg, dkg, questions, trained)
        facts = retrieve_all(made, profile)
        if profile.answering.split == "train":
            knowledge = {"rigel/triples": write_triples(kg, questions, facts["rigel"], "rigel", False)}
            answer_all(made, facts, knowledge, profile)
        run.save(status="done")
        return run


def counts(run: Run, stage: str) -> dict[str, Any]:
    found = next(own for own in run.stages if own.name == stage)
    assert found.artifact is not None
    return dict(read_manifest(found.artifact.folder)["counts"])


def test_an_earlier_run_and_further_sets_teach_the_retriever(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(tmp_path))
    asking = {"retrieval": {"retrievers": ["rigel"], "training": True}, "answering": {"split": "train"}}
    first = learning(make_profile(settings(inputs, **asking)))
    assert counts(first, "facts/rigel")["questions"] == 120, "training questions are retrieved for too"
    more = {"more": [{"name": "others", "path": str(inputs / "more.jsonl")}]}
    extended = {"feedback": first.id, "soft_start": True, "intersect": "min", "mix": {"others": 0.5}}
    second = learning(make_profile(settings(inputs, questions=more, rigel=SMALL | extended)))
    spoken, learnt = counts(second, "feedback"), counts(second, "retriever")
    assert spoken["answered"] == 30
    assert learnt["with_feedback"] == spoken["with_paths"]
    assert set(learnt["sets"]) == {"toy", "others"} and learnt["sets"]["others"]["weight"] == 0.5
    assert counts(second, "questions") == counts(first, "questions")
    assert [own.name for own in second.stages].count("linked") == 2
    record = read_run(second.home.root, second.id) or {}
    learnt = training_inputs(record)
    assert set(learnt) == {MORE + "others", LINKED, FEEDBACK}
    profile = second.profile
    assert profile is not None and reads_same_inputs(record, profile, second.home.root)
    assert training_input_change(learnt, profile, second.home.root) is None
    assert training_change("retriever", dict(artifacts(record))["retriever"], profile) is None
    unknown = settings(inputs, rigel=SMALL | {"feedback": "no-such-run"})
    with pytest.raises(InputError, match="no run 'no-such-run'"):
        learning(make_profile(unknown))
    write_graph(tmp_path / "other.tsv", 500)
    other = settings(inputs, rigel=SMALL | {"feedback": first.id}, kg={"files": [str(tmp_path / "other.tsv")]})
    with pytest.raises(InputError, match="is over another graph than this one"):
        learning(make_profile(other))
