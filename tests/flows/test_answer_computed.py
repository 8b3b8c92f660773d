"""A file of questions is answered by a run that computes answers, whichever topics that run compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked_command import forked_kgqa
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the home of a run of the symbolic answerer that compares gold and linked topics, and its id."""
    folder = tmp_path_factory.mktemp("computed")
    write_questions(folder / "own.jsonl", write_graph(folder / "register.tsv", 2000), 60)
    outcome = forked_kgqa(
        "run", "--json", "--kg", folder / "register.tsv", "--questions", folder / "own.jsonl", "--home",
        folder / "home", "--answerer", "symbolic", "--set", "retrieval.topics=both", "--set",
        "retrieval.retrievers=[hop_path]", "--set", "answering.knowledge=[hop_path]", "--set",
        "hop_path.encoder=scratch", "--set", "hop_path.scratch_width=32", "--set", "hop_path.epochs=2", "--set",
        "operation_classifier.encoder=scratch", "--set", "operation_classifier.scratch_width=32", "--set",
        "operation_classifier.epochs=4", "--set",
        "answering.limit=10", "--set", "evaluation.bootstrap=100",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err[-4000:]
    return folder, outcome.json["run_id"]


@pytest.mark.parametrize(
    ("topics", "answerer"), [("both", "symbolic"), pytest.param("linked", "hybrid", marks=pytest.mark.slow)]
)
def test_a_file_is_answered_with_computed_answers(
    computed: tuple[Path, str], tmp_path: Path, topics: str, answerer: str
) -> None:
    folder, run_id = computed
    edit_profile(folder / "home" / "runs" / run_id / "run.json", topics, answerer)
    rows = [json.loads(line) for line in (folder / "own.jsonl").read_text().splitlines()[:4]]
    new = [{key: row[key] for key in ("id", "question", "topic_entities")} for row in rows]
    new.append({"id": "bare", "question": rows[0]["question"]})
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in new))
    out = tmp_path / "answers.jsonl"
    words = ("answer", "--questions", tmp_path / "new.jsonl", "--home", folder / "home", "--json")
    outcome = forked_kgqa(*words, "--out", out)
    assert outcome.code == 0, outcome.err[-4000:]
    answers = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert set(answers) == {*(row["id"] for row in rows), "bare"}
    assert all(row["operation"] and row["proof"] for row in answers.values())
    assert answers["bare"]["computed"] == answers[rows[0]["id"]]["computed"]


def edit_profile(record: Path, topics: str, answerer: str) -> None:
    """The same run, as if it had compared other topics with another answerer."""
    run: dict[str, Any] = json.loads(record.read_text())
    run["profile"]["retrieval"]["topics"] = topics
    run["profile"]["answering"]["answerer"] = answerer
    record.write_text(json.dumps(run))


def test_knowledge_without_facts_answers_where_nothing_is_computed_and_is_refused_where_it_is(
    computed: tuple[Path, str], tmp_path: Path
) -> None:
    folder, run_id = computed
    record = folder / "home" / "runs" / run_id / "run.json"
    (tmp_path / "new.jsonl").write_text('{"id": "q", "question": "Where?"}\n')
    words = ("answer", "--questions", tmp_path / "new.jsonl", "--home", folder / "home", "--knowledge", "none")
    edit_profile(record, "gold", "symbolic")
    refused = forked_kgqa(*words, "--out", tmp_path / "none.jsonl")
    assert refused.code == 2 and "'none' holds no facts" in refused.err and "hop_path" in refused.err
    edit_profile(record, "gold", "builtin")
    outcome = forked_kgqa(*words, "--out", tmp_path / "answers.jsonl")
    assert outcome.code == 0, outcome.err[-4000:]
    [row] = map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines())
    assert row["reject"] is None and row["facts"] == "" and "answer" in row
