"""`kgqa questions generate`, and a run on a graph alone, or with a few real questions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kgqa_core.report.page import GENERATED_SCORES
from tests.support.forked_command import forked_kgqa
from tests.support.question_graph import triples

SMALL = (
    "--answerer", "builtin", "--set", "questions.generated.size=120", "--set", "retrieval.retrievers=[random,oracle]",
    "--set", "answering.knowledge=[oracle/triples]",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with films.nt."""
    found = tmp_path_factory.mktemp("films")
    (found / "films.nt").write_text("\n".join(triples()) + "\n", encoding="utf-8")
    return found


@pytest.mark.slow
def test_questions_are_generated_once_and_no_file_is_overwritten(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    words = ("questions", "generate", "--kg", folder / "films.nt", "--out", out, "--size", "40", "--seed", "3")
    first = forked_kgqa(*words, "--home", tmp_path / "home", "--json")
    assert first.code == 0, first.err[-3000:]
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert first.json["counts"]["questions"] == len(rows) == sum(first.json["counts"]["by_kind"].values())
    again = forked_kgqa(*words, "--home", tmp_path / "home")
    assert again.code == 2 and "q.jsonl" in again.err and "--force" in again.err
    forced = forked_kgqa(*words, "--home", tmp_path / "home", "--force")
    assert forced.code == 0 and "yes no" in forced.out, forced.err[-3000:]
    assert rows == [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_graph_alone_is_measured_and_trains_nothing_and_the_run_says_so(folder: Path, tmp_path: Path) -> None:
    done = forked_kgqa("run", "--kg", folder / "films.nt", "--home", tmp_path / "home", "--json")
    assert done.code == 0, done.err[-3000:]
    assert "facts/topics@linked" in done.json["stages"] and not {"hop_path", "retriever"} & done.json["stages"].keys()
    assert list(done.json["scores"]) == ["linked/-/-", "topics@linked/triples/auto"]
    note = done.json["decisions"]["label_parser"]
    assert re.match(r"Label parser: the packaged head start, not trained on this graph, answers \d+\.\d % \[", note)
    assert note.endswith("(label_parser.adapt: questions of your own train it, or the value always)")
    [report] = (tmp_path / "home" / "runs").glob("*/report.html")
    for text in (GENERATED_SCORES, note):
        assert text in " ".join(done.err.split()) and text in report.read_text(encoding="utf-8")
    question = "whats the capital of norland"
    asked = forked_kgqa("ask", question, "--home", tmp_path / "home", "--json").json
    at_once = forked_kgqa("ask", question, "--kg", folder / "films.nt", "--home", tmp_path / "home", "--json").json
    assert asked["answers"] == at_once["answers"] == ["Norland City"]
    assert asked["confidence"] == pytest.approx(at_once["confidence"], abs=1e-3)


@pytest.mark.slow
def test_a_real_test_question_is_what_is_scored(folder: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    question = {"id": "1", "question": "norlands capital?", "topic_entities": ["Norland"], "answers": ["Norland City"]}
    few.write_text(json.dumps(question | {"split": "test"}), encoding="utf-8")
    words = ("run", "--kg", folder / "films.nt", "--questions", few, "--set", "questions.source=generated")
    done = forked_kgqa(*words, "--home", tmp_path / "home", *SMALL)
    assert done.code == 0, done.err[-3000:]
    assert GENERATED_SCORES not in " ".join(done.out.split())
    [report] = (tmp_path / "home" / "runs").glob("*/report.html")
    assert GENERATED_SCORES not in report.read_text(encoding="utf-8")
