"""`kgqa questions generate`, and a run on a graph alone, or with a few real questions."""

from __future__ import annotations

import json
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
def test_a_graph_alone_is_enough_and_the_run_says_what_it_is_scored_on(folder: Path, tmp_path: Path) -> None:
    done = forked_kgqa("run", "--kg", folder / "films.nt", "--home", tmp_path / "home", *SMALL)
    assert done.code == 0, done.err[-3000:]
    assert GENERATED_SCORES in " ".join(done.out.split())
    [report] = (tmp_path / "home" / "runs").glob("*/report.html")
    assert GENERATED_SCORES in report.read_text(encoding="utf-8")


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
