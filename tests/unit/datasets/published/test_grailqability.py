"""GrailQAbility: answerable and marked questions, rejected rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import read_raw, read_source
from kgqa_core.errors import QuestionFileError
from tests.unit.datasets.published.official import graph, loaded, stored

FORM = "(AND film.actor (JOIN film.actor.film m.01))"
BOB = [{"answer_type": "Entity", "answer_argument": "m.02", "entity_name": "Bob"}]


def question(qid: int, **more: Any) -> dict[str, Any]:
    return {
        "qid": qid,
        "question": "who acted in it?",
        "answer": BOB,
        "function": "none",
        "sparql_query": "SELECT ?x WHERE { … }",
        "level": "i.i.d.",
        "s_expression": FORM,
        "qType": "A",
        "Missing_KB_elements": ["none"],
        **more,
    }


def unanswerable(qid: int, missing: Any, **more: Any) -> dict[str, Any]:
    lost = {"qType": "U", "Missing_KB_elements": missing, "answer": [], "s_expression": "NK"}
    return question(qid, **{**lost, "Organswer": BOB, "Orgs_expression": FORM, **more})


def files(folder: Path) -> Path:
    name = "GrailQAbility_v1.0_{}_a_na_reference.json"
    no_fact = unanswerable(4, ["F"]) | {"s_expression": FORM}
    count = unanswerable(5, ["T", "R"], function="count", answer="0", level="zero-shot")
    stored(folder / name.format("train"), [question(1), unanswerable(2, ["E"])])
    stored(folder / name.format("dev"), [question(3), no_fact, count])
    return folder


def options(path: Path, **more: Any) -> QuestionsOptions:
    return QuestionsOptions(source="grailqability", path=str(path), **more)


def test_raw_questions_mark_what_cannot_be_answered_and_hide_its_ideal_form(tmp_path: Path) -> None:
    rows = {row["id"]: row for row in read_raw(options(files(tmp_path)), 7)}
    assert [name for name, row in rows.items() if row.get("answerable") is False] == ["2", "4", "5"]
    assert {name: (rows[name]["reason"], rows[name]["missing"]) for name in ("2", "4", "5")} == {
        "2": ("entity not found", "entity"),
        "4": ("no fact", "fact"),
        "5": ("no such type, no such relation", "type, relation"),
    }
    assert (rows["1"]["s_expression"], rows["1"]["answers"]) == (FORM, ["m.02"])
    assert [(rows[name]["s_expression"], rows[name]["answers"]) for name in ("2", "4", "5")] == [
        (None, []),
        (FORM, []),
        (None, []),
    ]
    assert all("sparql" not in rows[name] for name in ("2", "4", "5"))
    assert rows["2"]["topic_entities"] == ["m.01"]


def test_the_stage_scores_the_answerable_ones_and_lists_the_others(tmp_path: Path) -> None:
    kg = graph(tmp_path, "m.02\tfilm.actor.film\tm.01\n")
    out, counts = loaded(tmp_path, kg, source="grailqability", path=str(files(tmp_path / "data")))
    assert [record.id for record in read_questions(out)] == ["1", "3"]
    assert counts["unanswerable"] == 3
    lines = [json.loads(line) for line in (out / "unanswerable.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["id"], line["split"], line["missing"]) for line in lines] == [
        ("2", "train", "entity"),
        ("4", "dev", "fact"),
        ("5", "dev", "type, relation"),
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (question(1, qType="X"), "field 'qType' must be one of A, U, NA"),
        ({"qid": 1, "question": "who?"}, "field 'qType' is missing"),
        (unanswerable(1, ["none"]), "field 'Missing_KB_elements' must list some of T, R, E, F"),
        (unanswerable(1, []), "field 'Missing_KB_elements'"),
        ({**unanswerable(1, ["E"]), "Organswer": "Bob"}, "field 'Organswer' must be a list"),
    ],
)
def test_a_bad_row_is_rejected_and_the_others_stay(tmp_path: Path, row: Any, reason: str) -> None:
    stored(tmp_path / "GrailQAbility_v1.0_dev_a_na_reference.json", [row, question(7)])
    rows, rejects = read_source(options(tmp_path), 7)
    assert ([row["id"] for row in rows], rejects[0].row) == (["7"], "row 1 (1)")
    assert reason in rejects[0].reason


def test_a_row_that_does_not_say_what_is_missing_is_read(tmp_path: Path) -> None:
    stored(tmp_path / "GrailQAbility_v1.0_dev_a_na_reference.json", [unanswerable(1, None), question(7)])
    [lost, _], rejects = read_source(options(tmp_path), 7)
    assert rejects == [] and (lost["answerable"], lost["reason"], lost.get("missing")) == (
        False,
        "the graph does not answer it",
        None,
    )


def test_a_folder_without_questions_or_with_two_sets_of_them_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuestionFileError, match=r"is it the folder of GrailQAbility"):
        read_source(options(tmp_path), 7)
    for home in ("a", "b"):
        stored(tmp_path / home / "GrailQAbility_v1.0_dev_a_na_reference.json", [question(7)])
    with pytest.raises(QuestionFileError, match="the dev questions are there twice"):
        read_source(options(tmp_path), 7)
