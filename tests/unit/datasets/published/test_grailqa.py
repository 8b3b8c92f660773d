"""GrailQA: official fields, forms through the parser, hidden answers, rejected rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import input_files, read_raw, read_source
from kgqa_core.datasets.published.grailqa import FILES, GrailQuestion
from kgqa_core.errors import QuestionFileError
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.parser import parse
from kgqa_core.logic.sparql import from_sparql
from tests.unit.datasets.published.official import graph, loaded, stored

FORM = "(AND film.actor (JOIN film.actor.film (JOIN film.film.director m.01)))"
GRAPH_QUERY = {
    "nodes": [
        {"nid": 0, "node_type": "class", "id": "film.actor", "question_node": 1, "function": "none"},
        {"nid": 1, "node_type": "class", "id": "film.film", "question_node": 0, "function": "none"},
        {"nid": 2, "node_type": "entity", "id": "m.01", "question_node": 0, "function": "none"},
    ],
    "edges": [
        {"start": 0, "end": 1, "relation": "film.actor.film"},
        {"start": 1, "end": 2, "relation": "film.film.director"},
    ],
}


def question(qid: int, **more: Any) -> dict[str, Any]:
    return {
        "qid": qid,
        "question": "who acted in films of ann? ",
        "answer": [{"answer_type": "Entity", "answer_argument": "m.02", "entity_name": "Bob"}],
        "function": "none",
        "num_node": 3,
        "num_edge": 2,
        "graph_query": GRAPH_QUERY,
        "sparql_query": "SELECT (?x0 AS ?value) WHERE { … }",
        "domains": ["film"],
        "level": "i.i.d.",
        "s_expression": FORM,
        **more,
    }


def options(path: Path, **more: Any) -> QuestionsOptions:
    return QuestionsOptions(source="grailqa", path=str(path), **more)


def test_a_row_becomes_a_question_with_its_form_its_path_and_its_level(tmp_path: Path) -> None:
    stored(tmp_path / "grailqa_v1.0_train.json", [question(21)])
    (row,) = read_raw(options(tmp_path, train_from="train"), 7)
    assert {name: row[name] for name in ("id", "question", "split", "answer_type", "complexity", "hops")} == {
        "id": "21",
        "question": "who acted in films of ann?",
        "split": "train",
        "answer_type": "entities",
        "complexity": "multi-hop",
        "hops": 2,
    }
    assert (row["topic_entities"], row["answers"], row["answer_aliases"]) == (["m.01"], ["m.02"], [["Bob"]])
    assert row["relation_paths"] == [["<inv>-film.film.director", "<inv>-film.actor.film"]]
    assert (row["s_expression"], row["generalization"]) == (FORM, "iid")
    assert row["sparql"] == "SELECT (?x0 AS ?value) WHERE { … }"


@pytest.mark.parametrize(
    ("form", "complexity"),
    [
        ("(AND a.b (JOIN a.b.c m.01))", "generic"),
        ("(AND a.b (AND (JOIN a.b.c m.01) (JOIN a.b.d m.02)))", "intersection"),
        ("(COUNT (AND a.b (JOIN a.b.c m.01)))", "count"),
        ("(ARGMAX (AND a.b (JOIN a.b.c m.01)) a.b.height)", "superlative"),
        ("(AND a.b (ge a.b.height 3^^http://www.w3.org/2001/XMLSchema#integer))", "comparative"),
    ],
)
def test_the_type_of_a_question_is_that_of_its_form(tmp_path: Path, form: str, complexity: str) -> None:
    stored(tmp_path / "own.json", [question(1, s_expression=form)])
    (row,) = read_raw(options(tmp_path / "own.json"), 7)
    assert (row["complexity"], row["split"]) == (complexity, None)


def test_counts_are_numbers_and_a_form_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    five = [{"answer_type": "Value", "answer_argument": "5"}]
    rows = [
        question(1, function="count", answer=five, s_expression=f"(COUNT {FORM})"),
        question(2, s_expression="(JOIN"),
        question(3, s_expression=None),
    ]
    stored(tmp_path / "own.json", rows)
    count, broken, without = read_raw(options(tmp_path / "own.json"), 7)
    assert (count["answers"], count["answer_type"]) == (["5"], "number")
    assert broken["s_expression"] is None and broken["without_form"].startswith("s_expression: ")
    assert isomorphic(parse(without["s_expression"]), parse(FORM))
    assert broken["topic_entities"] == without["topic_entities"] == ["m.01"]


def test_a_scored_run_measures_on_dev_for_the_answers_of_test_are_not_published(tmp_path: Path) -> None:
    stored(tmp_path / "grailqa_v1.0_train.json", [question(number) for number in range(20)])
    stored(tmp_path / "grailqa_v1.0_dev.json", [question(number, level="zero-shot") for number in range(20, 25)])
    stored(tmp_path / "grailqa_v1.0_test_public.json", [{"qid": 99, "question": "who?"}])
    assert [path.name for path in input_files(options(tmp_path))] == [
        "grailqa_v1.0_train.json",
        "grailqa_v1.0_dev.json",
        "grailqa_v1.0_test_public.json",
    ]
    rows = read_raw(options(tmp_path, test_from="dev"), 7)
    assert Counter(row["split"] for row in rows) == {"train": 18, "dev": 2, "test": 5}
    assert {row["generalization"] for row in rows if row["split"] == "test"} == {"zero-shot"}
    assert Counter(row["split"] for row in read_raw(options(tmp_path), 7)) == {"train": 20, "dev": 5}
    open_rows = read_raw(options(tmp_path / "grailqa_v1.0_test_public.json", unscored=True), 7)
    assert [(row["id"], row["answers"], row["topic_entities"]) for row in open_rows] == [("99", [], [])]
    with pytest.raises(QuestionFileError, match="no dev questions to measure on"):
        read_raw(options(tmp_path / "grailqa_v1.0_train.json", test_from="dev"), 7)
    with pytest.raises(QuestionFileError, match=r"answers of the 1 questions .* are not published.*kgqa answer"):
        read_raw(options(tmp_path / "grailqa_v1.0_test_public.json"), 7)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"qid": 1}, "field 'question' is missing"),
        ({"qid": 1, "questoin": "who?"}, "did you mean 'questoin'"),
        (question(1, level="new"), "field 'level' must be one of i.i.d., iid, compositional, zero-shot"),
        (question(1, answer="Bob"), "field 'answer' must be a list, but it is a string"),
        (question(1, answer=[{"answer_type": "Thing", "answer_argument": "m.1"}]), "must be one of Entity, Value"),
        (question(1, answer=[{"answer_type": "Entity"}]), "field 'answer[0].answer_argument' is missing"),
        (question(1, graph_query=[]), "field 'graph_query' must be an object, but it is a list"),
        ("text", "a row must be an object, but it is a string"),
        (question(0), "its id is already used in row 1"),
    ],
)
def test_a_bad_row_is_rejected_with_file_row_and_field_and_the_others_stay(
    tmp_path: Path, row: Any, reason: str
) -> None:
    stored(tmp_path / "grailqa_v1.0_dev.json", [question(0), row, question(2)])
    rows, rejects = read_source(options(tmp_path), 7)
    assert [row["id"] for row in rows] == ["0", "2"]
    assert len(rejects) == 1
    assert rejects[0].file.endswith("grailqa_v1.0_dev.json") and rejects[0].row.startswith("row 2")
    assert reason in rejects[0].reason


def test_another_file_or_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none", "neither a file nor a folder"), (tmp_path, "is it the folder of GrailQA")):
        with pytest.raises(QuestionFileError, match=words):
            read_source(options(path), 7)
    for text, words in (("{", "is not JSON"), ('{"a": 1}', "must be a list of questions")):
        (tmp_path / "own.json").write_text(text, encoding="utf-8")
        with pytest.raises(QuestionFileError, match=words):
            read_source(options(tmp_path / "own.json"), 7)
    stored(tmp_path / "own.json", [{"a": 1}])
    with pytest.raises(QuestionFileError, match=r"1 of its 1 rows cannot be read.*'qid'"):
        read_source(options(tmp_path / "own.json"), 7)


def test_the_stage_keeps_form_query_and_level_and_lists_the_rejects(tmp_path: Path) -> None:
    kg = graph(tmp_path, "m.03\tfilm.film.director\tm.01\nm.02\tfilm.actor.film\tm.03\n")
    file = stored(tmp_path / "sample.json", [question(1), {"qid": 2}])
    out, counts = loaded(tmp_path, kg, source="grailqa", path=str(file))
    (record,) = read_questions(out)
    assert (record.s_expression, record.generalization, record.unlinkable) == (FORM, "iid", None)
    assert record.sparql is not None and record.sparql.startswith("SELECT")
    assert record.relation_paths == (("<inv>-film.film.director", "<inv>-film.actor.film"),)
    assert counts["rejects"] == 1
    (reject,) = map(json.loads, (out / "rejects.jsonl").read_text(encoding="utf-8").splitlines())
    assert (reject["file"], reject["row"]) == (str(file), "row 2 (2)")
    assert "'question' is missing" in reject["reason"]


def test_the_sample_is_read_whole_with_the_topics_that_it_names(shared_data: Path) -> None:
    path = shared_data / "grailqa" / "tog" / "graliqa.json"
    rows, rejects = read_source(options(path), 7)
    records = {record.id: record for _, record in FILES.records(path) if isinstance(record, GrailQuestion)}
    assert (len(rows), rejects, len(records)) == (1_000, [], 1_000)
    assert all(row["s_expression"] == records[row["id"]].s_expression for row in rows)
    assert Counter(row["generalization"] for row in rows) == {"iid": 240, "compositional": 198, "zero-shot": 562}
    named = {str(row["qid"]): set(row["topic_entity"]) for row in json.loads(path.read_text(encoding="utf-8"))}
    # The sample names ids that begin with `m.` only.
    assert all(named[row["id"]] == {key for key in row["topic_entities"] if key.startswith("m.")} for row in rows)
    some = [record for record in records.values() if record.function == "none"][::50]
    assert all(isomorphic(parse(record.s_expression or ""), from_sparql(record.sparql or "")) for record in some)
