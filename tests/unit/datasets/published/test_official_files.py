"""Official files of benchmarks: each is recognised and read with its own ids and answers; bad rows are listed."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions, QuestionSource
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import REJECTS, input_files, read_raw, read_source
from kgqa_core.datasets.published.iris import entities_of_sparql, key_of_iri
from kgqa_core.datasets.published.registry import BENCHMARKS, source_of
from kgqa_core.errors import QuestionFileError
from tests.support.official_files import (
    ENTITY_QUESTIONS,
    FREEBASE_LINES,
    KQAPRO,
    LCQUAD1,
    LCQUAD2,
    MINTAKA,
    POPQA,
    QALD9,
    QALD10,
    RELATION_LINKING,
    WITQA,
    official_files,
)
from tests.unit.datasets.published.official import graph, loaded, stored


def rows_of(path: Path, **options: Any) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_raw(QuestionSource(path=str(path), **options), 7)}


def picked(row: dict[str, Any], *names: str) -> list[Any]:
    return [row[name] for name in names]


@pytest.mark.parametrize(("name", "content", "source"), official_files())
def test_a_file_is_recognised_by_its_content(tmp_path: Path, name: str, content: Any, source: str) -> None:
    path = stored(tmp_path / name, content)
    assert source_of(path) == source
    rows, rejects = read_source(QuestionSource(path=str(path)), 7)
    assert rows and not rejects
    assert {row["split"] for row in rows} == {None}, "a file alone does not say its split"


@pytest.mark.parametrize(("name", "content", "source"), official_files()[:4])
def test_a_packed_file_with_a_byte_order_mark_and_line_breaks_is_recognised(
    tmp_path: Path, name: str, content: Any, source: str
) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(json.dumps(content, indent=1).encode("utf-8-sig")))
    assert source_of(path) == source
    assert read_raw(QuestionSource(path=str(path)), 7)


def test_mintaka_has_entities_truth_values_numbers_dates_and_texts(tmp_path: Path) -> None:
    rows = rows_of(stored(tmp_path / "mintaka_dev.json", MINTAKA))
    assert picked(rows["m1"], "question", "topic_entities", "answers", "answer_type", "complexity") == [
        "Which river runs through Graz?", ["Q13298"], ["Q16021"], "entities", "multi-hop",
    ]  # fmt: skip
    assert rows["m1"]["answer_aliases"] == [["Mur"]]
    assert picked(rows["m2"], "answers", "answer_type", "complexity", "topic_entities") == [
        ["yes"], "yes/no", "yes/no", ["Q41"],
    ]  # fmt: skip
    assert picked(rows["m3"], "answers", "answer_type", "complexity") == [["3"], "number", "count"]
    assert picked(rows["m4"], "answers", "answer_type") == [["1956-10-20"], "date"]
    assert picked(rows["m5"], "answers", "answer_type") == [["Decrease"], "text"], "an answer without an id is its text"


def test_mintaka_is_read_in_each_language(tmp_path: Path) -> None:
    path = stored(tmp_path / "mintaka_dev.json", MINTAKA)
    rows, rejects = read_source(QuestionSource(path=str(path), language="de"), 7)
    assert {row["id"]: row["question"] for row in rows}["m1"] == "Welcher Fluss fließt durch Graz?"
    assert {row["language"] for row in rows} == {"de"}
    assert rows[0]["answer_aliases"] == [["Mur (Fluss)", "Mur"]]
    assert [reject.row for reject in rejects] == ["row 5 (m5)"]
    assert "not there in the language 'de', only in en, fr" in rejects[0].reason


def test_a_folder_keeps_the_official_splits(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        stored(tmp_path / f"mintaka_{split}.json", [{**MINTAKA[0], "id": split}])
    options = QuestionsOptions(source="mintaka", path=str(tmp_path))
    assert {row["id"]: row["split"] for row in read_raw(options, 7)} == {
        "train": "train", "dev": "dev", "test": "test",
    }  # fmt: skip
    assert [path.name for path in input_files(options)] == [
        f"mintaka_{split}.json" for split in ("train", "dev", "test")
    ]
    with pytest.raises(QuestionFileError, match=r"holds none of mintaka_train.json.*is it the folder of Mintaka"):
        read_raw(QuestionsOptions(source="mintaka", path=str(stored(tmp_path / "no/file", "").parent)), 7)


def test_lcquad_2_takes_the_best_text_and_keeps_its_query(tmp_path: Path) -> None:
    rows = rows_of(stored(tmp_path / "train.json", LCQUAD2))
    assert picked(rows["1"], "question", "topic_entities", "answers", "relation_paths") == [
        "Of which country is Graz a city?", ["Q13298"], [], [["P17"]],
    ]  # fmt: skip
    assert rows["1"]["sparql"] == LCQUAD2[0]["sparql_wikidata"].strip()
    assert rows["2"]["question"] == "How many states has Austria?", "n/a is no paraphrase"
    assert rows["2"]["s_expression"] == "(COUNT (JOIN (R P150) Q40))"
    assert "several answers" in rows["3"]["without_form"], "a query that no form writes stays, with the reason"


def test_lcquad_1_is_over_dbpedia_and_its_bare_count_is_read(tmp_path: Path) -> None:
    rows = rows_of(stored(tmp_path / "train-data.json", LCQUAD1))
    graz = "http://dbpedia.org/resource/Graz"
    assert picked(rows["1501"], "question", "topic_entities") == ["Which river runs through Graz?", [graz]]
    assert rows["1501"]["relation_paths"] == [["http://dbpedia.org/ontology/river"]]
    assert rows["1502"]["s_expression"] == f"(COUNT (JOIN (R http://dbpedia.org/ontology/twinTown) {graz}))"


def test_the_lines_of_relation_linking_are_told_apart_by_their_graph(tmp_path: Path) -> None:
    wikidata, dbpedia = (
        stored(tmp_path / f"{number}.jsonl", json.dumps(row) + "\n") for number, row in enumerate(RELATION_LINKING)
    )
    assert (source_of(wikidata), source_of(dbpedia)) == ("lcquad2", "lcquad1")
    assert rows_of(wikidata)["19719"]["topic_entities"] == ["Q13298"]


def test_queries_without_answers_get_their_result_on_the_graph(tmp_path: Path) -> None:
    kg = graph(tmp_path, "Q13298\tP17\tQ40\nQ40\tP150\tQ41358\nQ40\tP150\tQ42497\n")
    more = {**LCQUAD2[0], "uid": 4, "sparql_wikidata": "SELECT DISTINCT ?a WHERE { wd:Q13298 wdt:P99999 ?a }"}
    yes = {**LCQUAD2[0], "uid": 5, "sparql_wikidata": "ASK WHERE { wd:Q13298 wdt:P17 wd:Q40 }"}
    no = {**yes, "uid": 6, "sparql_wikidata": "ASK WHERE { wd:Q41358 wdt:P17 wd:Q40 }"}
    unknown = {**yes, "uid": 7, "sparql_wikidata": "ASK WHERE { wd:Q13298 wdt:P150 wd:Q41358 }"}
    only = {**yes, "uid": 8, "sparql_wikidata": "ASK WHERE { wd:Q13298 wdt:P17 wd:Q42497 }"}
    two = {**yes, "uid": 9, "sparql_wikidata": "SELECT ?a ?b WHERE { wd:Q13298 wdt:P17 ?a . ?a wdt:P150 ?b }"}
    counted = {**yes, "uid": 10, "sparql_wikidata": "SELECT (COUNT(?b) AS ?n) WHERE { wd:Q40 ?r ?b . wd:Q13298 ?s ?a }"}
    path = stored(tmp_path / "lcquad.json", [*LCQUAD2, more, yes, no, unknown, only, two, counted])
    questions = {question.id: question for question in read_questions(loaded(tmp_path, kg, path=str(path))[0])}
    assert (questions["1"].answer_keys, questions["1"].answer_type) == (("Q40",), "entities")
    assert (questions["1"].unlinkable, len(questions["1"].answers)) == (None, 1)
    assert (questions["2"].answer_keys, questions["2"].answer_type) == (("2",), "number")
    assert questions["3"].unlinkable == "its query has no result in this graph", "several answers: it is executed"
    assert questions["9"].s_expression is None and set(questions["9"].answer_keys) == {"Q40", "Q41358", "Q42497"}
    assert (questions["10"].answer_keys, questions["10"].answer_type) == (("2",), "number")
    assert questions["4"].unlinkable == "its query has no result in this graph"
    assert (questions["5"].answer_keys, questions["5"].answer_type) == (("yes",), "yes/no")
    assert [questions[own].answer_keys for own in ("6", "7", "8")] == [("no",), ("no",), ()], "nothing is in Q42497"


def test_qald_reads_bindings_and_truth_values(tmp_path: Path) -> None:
    rows = rows_of(stored(tmp_path / "qald-9-train-multilingual.json", QALD9))
    assert picked(rows["1"], "topic_entities", "answers", "answer_type") == [
        ["http://dbpedia.org/resource/Graz"], ["http://dbpedia.org/resource/Mur", "http://dbpedia.org/resource/Kainach"],
        "entities",
    ]  # fmt: skip
    assert picked(rows["2"], "answers", "answer_type") == [["no"], "yes/no"]
    assert picked(rows["3"], "answers", "answer_type") == [["289440"], "number"]
    assert picked(rows["4"], "answers", "answer_type") == [["1128-02-20"], "date"]
    assert picked(rows["5"], "answers", "answer_type") == [[], None], "a query without results has no answer"
    assert rows["1"]["sparql"] == QALD9["questions"][0]["query"]["sparql"]


def test_qald_10_has_short_keys_and_other_languages(tmp_path: Path) -> None:
    path = stored(tmp_path / "qald_10.json", QALD10)
    row = rows_of(path, language="zh")["0"]
    assert picked(row, "question", "topic_entities", "answers", "language") == [
        "格拉茨在哪个国家？", ["Q13298"], ["Q40"], "zh",
    ]  # fmt: skip
    with pytest.raises(QuestionFileError, match=r"row 1 \(0\).* no text in the language 'ja', only in en"):
        rows_of(path, language="ja")


def test_ids_that_qald_uses_in_both_splits_get_the_split_in_front(tmp_path: Path) -> None:
    for split in ("train", "test"):
        stored(tmp_path / f"qald-9-{split}-multilingual.json", QALD9)
    rows = read_raw(QuestionsOptions(source="qald9", path=str(tmp_path), train_from="train"), 7)
    assert {"train-1", "test-1"} <= {row["id"] for row in rows}
    assert Counter(row["split"] for row in rows) == {"train": 4, "dev": 1, "test": 5}


def test_kqa_pro_types_answers_by_the_last_function(tmp_path: Path) -> None:
    rows = list(rows_of(stored(tmp_path / "val.json", KQAPRO)).values())
    assert [(row["answers"], row["answer_type"], row["complexity"]) for row in rows] == [
        (["Mur"], "entities", "multi-hop"),
        (["2"], "number", "count"),
        (["no"], "yes/no", "yes/no"),
        (["1128-02-20"], "date", "generic"),
        (["127.5 square kilometre"], "text", "generic"),
        (["Graz"], "entities", "comparative"),
        ([], None, None),
    ]
    assert rows[0]["topic_entities"] == ["Graz"]
    assert rows[0]["sparql"] == KQAPRO[0]["sparql"]


def test_popqa_names_the_property_and_every_name_of_the_answer(tmp_path: Path) -> None:
    row = rows_of(stored(tmp_path / "popQA.tsv", POPQA))["4222362"]
    assert picked(row, "topic_entities", "relation_paths", "answers") == [["Q1042738"], [["P106"]], ["Q82955"]]
    assert row["answer_aliases"] == [["politician", "political leader", "polit."]]


def test_witqa_and_entity_questions_are_one_fact_each(tmp_path: Path) -> None:
    (row,) = rows_of(stored(tmp_path / "witqa.csv", WITQA)).values()
    assert picked(row, "topic_entities", "relation_paths", "answers") == [["Q505310"], [["P36"]], ["Q1311821"]]
    first, second = rows_of(stored(tmp_path / "P19.dev.json", ENTITY_QUESTIONS)).values()
    assert picked(first, "id", "topic_entities", "relation_paths", "answers") == [
        "P19-dev-00001", ["Alma Mahler"], [["P19"]], ["Vienna", "Wien"],
    ]  # fmt: skip
    assert second["topic_entities"] == [], "another wording names no topic"


def test_simplequestions_on_freebase_has_the_keys_of_the_dump(tmp_path: Path) -> None:
    row = rows_of(stored(tmp_path / "annotated_fb_data_valid.txt", FREEBASE_LINES))["sqf-000001"]
    assert picked(row, "topic_entities", "relation_paths", "answers") == [
        ["m.04whkz5"], [["book.written_work.subjects"]], ["m.01cj3p"],
    ]  # fmt: skip


def test_bad_rows_are_listed_and_the_others_stay(tmp_path: Path) -> None:
    bad = [{**MINTAKA[0], "id": "bad", "answer": {"answerType": "entities", "answer": []}}, "no object", MINTAKA[0]]
    path = stored(tmp_path / "mintaka_dev.json", [*MINTAKA, *bad])
    rows, rejects = read_source(QuestionSource(path=str(path)), 7)
    assert [row["id"] for row in rows] == ["m1", "m2", "m3", "m4", "m5"]
    assert [(reject.file, reject.row) for reject in rejects] == [
        (str(path), "row 6 (bad)"), (str(path), "row 7"), (str(path), "row 8 (m1)"),
    ]  # fmt: skip
    assert (
        "field 'answer.answerType' must be one of entity, boolean, numerical, date, string, but it is 'entities'"
        in rejects[0].reason
    )
    assert rejects[1].reason == "a row must be an object, but it is a string"


def test_the_stage_writes_the_rejected_rows(tmp_path: Path) -> None:
    kg = graph(tmp_path, "Q13298\tP403\tQ16021\n")
    path = stored(tmp_path / "mintaka_dev.json", [*MINTAKA, {"id": "x"}])
    out, counts = loaded(tmp_path, kg, path=str(path))
    assert counts["rejects"] == 1
    (line,) = (out / REJECTS).read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["row"] == "row 6 (x)"


def test_a_file_whose_rows_are_mostly_bad_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path / "train.json", [{"uid": 1, "sparql_wikidata": "x"}, {"uid": 2}])
    with pytest.raises(QuestionFileError, match="2 of its 2 rows cannot be read, so that it is no file of LC-QuAD 2"):
        rows_of(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"a": 1, "b": [2]}', "one JSON document, an object with a, b"),
        ('{\n"a": 1\n}', "one JSON document, an object with a"),
        ('{"a": 1}\n{"a": 2}\n', "JSON Lines, the first of which is an object with a"),
        ('[{"title": "x"}]', "one JSON list, the first item of which is an object with title"),
        ("[]", "one JSON list, the first item of which is nothing"),
        ("[1, 2]", "one JSON list, the first item of which is a number"),
    ],
)
def test_a_strange_json_is_refused_in_one_line(tmp_path: Path, content: str, what: str) -> None:
    path = stored(tmp_path / "strange.json", content)
    with pytest.raises(QuestionFileError) as fault:
        read_raw(QuestionSource(path=str(path)), 7)
    message = str(fault.value)
    assert "\n" not in message and what in message
    assert "our JSON Lines" in message and "Mintaka (" in message


def test_our_own_questions_in_one_list_get_a_hint(tmp_path: Path) -> None:
    path = stored(tmp_path / "own.json", [{"id": "1", "question": "a?", "topic_entities": ["a"], "answers": ["b"]}])
    with pytest.raises(QuestionFileError, match="write one object a line, not one array"):
        source_of(path)


def test_what_is_no_json_keeps_its_faults_by_line(tmp_path: Path) -> None:
    for content in ("what?", '{"id": "1", ', '[{"id": ', '{"id": "1", "question": "a"}\n{\n'):
        path = stored(tmp_path / "own.jsonl", content)
        assert source_of(path) == "jsonl"
        with pytest.raises(QuestionFileError, match="line 1|line 2"):
            read_raw(QuestionSource(path=str(path)), 7)


def test_every_source_is_one_and_every_recognised_set_says_its_fields() -> None:
    sources = [spec.source for spec in BENCHMARKS if spec.source]
    assert len(sources) == len(set(sources))
    assert all(spec.fields and spec.loader for spec in BENCHMARKS if spec.recognise)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?a WHERE { wd:Q13298 wdt:P17 ?a . ?a wdt:P31 wd:Q6256 }", ["Q13298", "Q6256"]),
        ("PREFIX e: <http://www.wikidata.org/entity/> SELECT ?a { e:Q1 ?p ?a }", ["Q1"]),
        ('SELECT ?a { <http://dbpedia.org/resource/Graz> ?p "dbr:Wien" }', ["http://dbpedia.org/resource/Graz"]),
        ("SELECT ?a { dbr:St._Pölten dbo:country ?a }", ["http://dbpedia.org/resource/St._Pölten"]),
        ("SELECT ?x { ns:m.03_r3 ns:location.country.languages_spoken ?x }", ["m.03_r3"]),
        ("SELECT ?x { ?x ?p ?y }", []),
    ],
)
def test_the_entities_of_a_query_are_found(query: str, expected: list[str]) -> None:
    assert entities_of_sparql(query) == expected


def test_keys_are_those_of_graphs() -> None:
    assert key_of_iri("https://www.wikidata.org/wiki/Q42") == "Q42"
    assert key_of_iri("http://dbpedia.org/resource/Graz") == "http://dbpedia.org/resource/Graz"


def test_the_dev_file_of_mintaka_is_read_whole(shared_data: Path) -> None:
    path = shared_data / "mintaka" / "mintaka_dev.json"
    for language in ("en", "ja"):
        rows, rejects = read_source(QuestionSource(path=str(path), language=language), 7)
        assert (len(rows), rejects) == (2_000, [])
    assert Counter(row["answer_type"] for row in rows) == {
        "entities": 1_419, "yes/no": 284, "date": 136, "number": 136, "text": 25,
    }  # fmt: skip


def test_the_tables_of_long_tail_questions_are_read_whole(shared_data: Path) -> None:
    folder = shared_data / "longtail" / "Disambiguated_Datasets"
    read: Callable[[str], int] = lambda name: len(rows_of(folder / name))  # noqa: E731
    assert [read(f"Disamb{name}.csv") for name in ("PopQA", "EntityQA", "WITQA")] == [1_399, 2_882, 2_256]
