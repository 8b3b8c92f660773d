"""Question sets and answers as QALD JSON: read back, they are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.qald_export import iri_of_key, keys_of_names, qald_document, read_answer_lists
from kgqa_core.datasets.load import read_raw
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore
from tests.support.official_files import MINTAKA, QALD9, QALD10


def written(folder: Path, document: Any, name: str = "set.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return read_raw(QuestionSource(path=str(path)), 7)


@pytest.mark.parametrize("document", [QALD9, QALD10, MINTAKA])
def test_a_set_that_is_written_and_read_again_is_the_same(tmp_path: Path, document: Any) -> None:
    rows = read(written(tmp_path, document))
    again = read(written(tmp_path, qald_document(rows, name="set"), "again.json"))
    names = ("id", "question", "answers", "language", "s_expression", "sparql")
    assert [[row.get(name) for name in names] for row in again] == [
        [row.get(name) or (row["language"] or "en" if name == "language" else row.get(name)) for name in names]
        for row in rows
    ]
    assert [row["answer_type"] for row in again] == [row["answer_type"] for row in rows]


def test_predictions_stand_in_the_place_of_gold_answers(tmp_path: Path) -> None:
    rows = read(written(tmp_path, QALD9))
    answers = {"1": ["Mur", "Nowhere"], "2": ["Yes."], "3": ["289,440"], "4": ["1128-02-20"]}
    document = qald_document(rows, name="set", answers=answers, keys={"Mur": "Q16021"})
    results = {question["id"]: question["answers"][0] for question in document["questions"]}
    assert results["1"]["results"]["bindings"] == [
        {"x": {"type": "uri", "value": "http://www.wikidata.org/entity/Q16021"}},
        {"x": {"type": "literal", "value": "Nowhere"}},
    ]
    assert results["2"] == {"head": {}, "boolean": True}
    assert results["3"]["results"]["bindings"][0]["x"]["value"] == "289440"
    assert results["4"]["results"]["bindings"][0]["x"]["datatype"].endswith("#date")
    assert results["5"]["results"]["bindings"] == [], "a question without an answer stays, for recall"


def test_answers_of_kgqa_answer_are_read_as_lists(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [
        {"id": "1", "answer": "Mur, Enns", "answers": ["Mur", "Enns"]},
        {"id": "2", "answer": None, "answers": []},
        {"id": 3, "prediction": "yes"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read_answer_lists(path) == {"1": ["Mur", "Enns"], "2": [], "3": ["yes"]}
    path.write_text('{"id": "1"}\n', encoding="utf-8")
    with pytest.raises(QuestionFileError, match="line 1: field 'answers' is missing"):
        read_answer_lists(path)


def test_a_name_of_several_entities_is_the_best_known_one(store: KgStore) -> None:
    assert keys_of_names(["Paris", "France", "nobody"], store) == {
        "Paris": "http://x/Paris", "France": "http://x/France",
    }  # fmt: skip


def test_keys_become_iris_and_names_do_not() -> None:
    assert iri_of_key("m.02mjmr") == "http://rdf.freebase.com/ns/m.02mjmr"
    assert iri_of_key("http://dbpedia.org/resource/Graz") == "http://dbpedia.org/resource/Graz"
    assert [iri_of_key(text) for text in ("Graz", "Q", "a b://c", "note: this")] == [None] * 4
