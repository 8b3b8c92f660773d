"""Answers in the forms of WebQSP's, GrailQA's and ComplexWebQuestions' own evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app as cli
from kgqa_core.datasets.files.prediction_files import (
    PredictedAnswers,
    cwq_document,
    format_of,
    grailqa_document,
    read_predicted,
    webqsp_document,
    with_keys,
)
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore

FORM = "(JOIN (R capital) France)"


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_of_kgqa_answer_is_read_with_forms_and_rejects(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.jsonl",
        {"id": "q1", "answer": "Madrid, Rome", "answers": ["Madrid", "Rome", "Madrid"], "form": FORM, "reject": None},
        {"id": 2, "answer": None, "answers": [], "reject": "no topic entity"},
        {"id": "q3", "prediction": "Paris"},
        {"id": "q4", "answer": None},
    )
    assert read_predicted(file) == [
        PredictedAnswers("q1", ("Madrid", "Rome"), FORM),
        PredictedAnswers("2", ()),
        PredictedAnswers("q3", ("Paris",)),
        PredictedAnswers("q4", ()),
    ]


def test_each_benchmark_has_its_form() -> None:
    given = [PredictedAnswers("q1", ("m.1", "m.2"), FORM), PredictedAnswers("q2", ())]
    assert webqsp_document(given) == [
        {"QuestionId": "q1", "Answers": ["m.1", "m.2"]},
        {"QuestionId": "q2", "Answers": []},
    ]
    assert grailqa_document(given) == {
        "q1": {"logical_form": FORM, "answer": ["m.1", "m.2"]},
        "q2": {"logical_form": "", "answer": []},
    }
    assert cwq_document(given) == [{"ID": "q1", "answer": "m.1"}, {"ID": "q2", "answer": ""}]


def test_names_become_keys_and_what_is_unknown_or_ambiguous_is_counted(store: KgStore) -> None:
    given = [PredictedAnswers("q1", ("Madrid", "Nowhere", "4")), PredictedAnswers("q2", ("Paris",))]
    keyed = with_keys(given, store)
    assert keyed.predictions[0].answers == ("http://x/Madrid", "Nowhere", "4")
    assert keyed.predictions[1].answers == ("http://x/Paris",), "the one with most triples"
    assert (keyed.unknown, keyed.ambiguous) == (1, 2)


def test_faults_name_the_line_and_the_field(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", {"id": "a"}, {"id": "b", "answer": "x"}, {"id": "b", "answer": "x"}, {"x": 1})
    with pytest.raises(QuestionFileError, match=r"(?s)3 faults.*line 1: field 'answers'.*line 3: id 'b'.*line 4"):
        read_predicted(file)
    with pytest.raises(QuestionFileError, match=r"is empty; write one JSON object a line"):
        read_predicted(written(tmp_path / "b.jsonl"))
    with pytest.raises(QuestionFileError, match=r"unknown; did you mean 'webqsp'.*known are webqsp, grailqa, cwq"):
        format_of("websqp")


def test_the_command_writes_the_document_and_its_counts(tmp_path: Path, kg: Path) -> None:
    answers = written(tmp_path / "a.jsonl", {"id": "q1", "answers": ["Madrid"], "form": FORM})
    call = ["questions", "predictions", "--answers", str(answers), "--format", "grailqa", "--kg", str(kg)]
    out = tmp_path / "out.json"
    done = CliRunner().invoke(cli.app, [*call, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text(encoding="utf-8")) == {"q1": {"logical_form": FORM, "answer": ["http://x/Madrid"]}}
    counts = json.loads(done.stdout.splitlines()[-1])
    assert (counts["questions"], counts["answered"], counts["unknown"], counts["ambiguous"]) == (1, 1, 0, 0)
    again = CliRunner().invoke(cli.app, [*call, "--out", str(out)])
    assert again.exit_code != 0
