"""The question file: what it accepts, and that every fault is named with its line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.datasets.files.jsonl import canonical, read_predictions, read_question_file
from kgqa_core.errors import QuestionFileError

GOOD = {"id": "q1", "question": "what is the capital of France?", "topic_entities": ["France"], "answers": ["Paris"]}
GRAPH_QUERY = {
    "nodes": [{"nid": 0, "node_type": "class", "id": "a.b", "question_node": 1, "function": "none"},
              {"nid": 1, "node_type": "entity", "id": "m.01", "question_node": 0, "function": "none"}],
    "edges": [{"start": 0, "end": 1, "relation": "r"}],
}  # fmt: skip


def good(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def fault(path: Path) -> str:
    with pytest.raises(QuestionFileError) as caught:
        read_question_file(path)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_minimal_row_gets_every_field() -> None:
    assert canonical(GOOD) == {
        "id": "q1",
        "question": "what is the capital of France?",
        "topic_entities": ["France"],
        "answers": ["Paris"],
        "answer_type": None,
        "relation_paths": [],
        "split": None,
        "complexity": None,
        "s_expression": None,
        "language": None,
        "hops": None,
        "answer_aliases": [[]],
        "level": None,
        "dialogue": [],
        "reference": None,
        "gold_triples": [],
    }


def test_carriage_returns_alone_end_lines_and_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b"\r".join(json.dumps(good(id=name)).encode() for name in "ab"))
    assert [row["id"] for row in read_question_file(path)] == ["a", "b"]
    path.write_bytes(gzip.compress(b"x" * 257 + b"ustar"))
    assert "is a tar archive" in fault(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert "write what is needed of it as lines of text" in fault(path)


def test_a_dialogue_with_its_reference_and_triples_is_read() -> None:
    turns = [{"role": "user", "text": " who? "}, {"role": "agent", "text": "Ada"}]
    row = canonical(good(level="II", dialogue=turns, reference="In 1815.", gold_triples=[["Ada", "born", "1815"]]))
    assert row["level"] == "II"
    assert row["dialogue"] == [["user", "who?"], ["agent", "Ada"]]
    assert row["reference"] == "In 1815."
    assert row["gold_triples"] == [["Ada", "born", "1815"]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"level": 2}, "field 'level' must be one of I, II, III, IV, but it is 2"),
        ({"dialogue": "hello"}, "field 'dialogue' must be a list of turns"),
        ({"dialogue": ["hello"]}, "field 'dialogue': turn 1 must be an object with role and text, but it is a string"),
        ({"dialogue": [{"role": "bot", "text": "a"}]}, "the role of turn 1 must be user or agent, but it is 'bot'"),
        ({"dialogue": [{"role": "user", "text": " "}]}, "turn 1 must have a text, but it is ' '"),
        ({"reference": ["a"]}, "field 'reference' must be a string, but it is a list"),
        ({"gold_triples": ["a", "b", "c"]}, "must list triples of three keys, [head, relation, tail], but it holds"),
        ({"gold_triples": [["a", "b"]]}, "but it holds ['a', 'b']"),
        ({"gold_triples": [["a", "b", ""]]}, "but it holds ['a', 'b', '']"),
        ({"gold_triples": {"a": "b"}}, "field 'gold_triples' must be a list of triples, [head, relation, tail], but"),
    ],
)
def test_a_bad_value_of_an_optional_field_is_named_with_its_line(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in (GOOD, good(id="q2", **changes))), encoding="utf-8")
    message = fault(path)
    assert f"{path} line 2: " in message
    assert expected in message


@pytest.mark.parametrize(
    ("fields", "form", "reason"),
    [
        ({"sparql": "SELECT ?x { wd:Q142 wdt:P36 ?x }"}, "(JOIN (R P36) Q142)", None),
        ({"sparql_query": "SELECT ?x { ns:m.01 ns:a.b ?x }"}, "(JOIN (R a.b) m.01)", None),
        ({"s_expression": "(JOIN r Q1)", "sparql": "SELECT ?x { wd:Q142 wdt:P36 ?x }"}, "(JOIN r Q1)", None),
        ({"graph_query": GRAPH_QUERY, "sparql": "ASK { }"}, "(AND a.b (JOIN r m.01))", None),
        ({"graph_query": {"nodes": []}}, None, "graph_query: this is no graph query"),
        ({"sparql": "SELECT ?x ?y { ?x ns:a ?y }"}, None, "sparql: outside the fragment that forms write: several"),
        ({"sparql": "SELECT ?x {"}, None, "sparql: SPARQL, character 12"),
        ({"sparql": "ASK " + "{" * 5000}, None, "sparql: "),
        ({"sparql": None, "graph_query": None}, None, None),
    ],
)  # fmt: skip
def test_a_query_gives_the_form_of_a_question_that_has_none(
    fields: dict[str, Any], form: str | None, reason: str | None
) -> None:
    row = canonical(good(**fields))
    assert row["s_expression"] == form
    assert ("without_form" in row) == (reason is not None)
    if reason is not None:
        assert row["without_form"].startswith(reason)


@pytest.mark.parametrize(
    ("topics", "fields", "paths"),
    [
        (["Q142"], {}, [["P36", "P6"]]),
        (["Q142"], {"relation_path": ["P1"]}, [["P1"]]),
        (["Q2", "Q1"], {"sparql": "SELECT ?x { wd:Q1 wdt:P1 ?x . wd:Q2 wdt:P2 ?x }"}, [["P2"], ["P1"]]),
        (["Q2"], {"sparql": "SELECT ?x { ?x wdt:P1 wd:Q1 . wd:Q2 wdt:P2 ?x }"}, [["<inv>-P1"], ["P2"]]),
        (["Q142"], {"s_expression": "(JOIN (R P36) Q142)"}, []),
    ],
)  # fmt: skip
def test_a_query_gives_the_relation_paths_of_a_question_that_has_none(
    topics: list[str], fields: dict[str, Any], paths: list[list[str]]
) -> None:
    sparql = "SELECT ?x { wd:Q142 wdt:P36 ?y . ?y wdt:P6 ?x }"
    row = canonical(good(**{"topic_entities": topics, "sparql": sparql, **fields}))
    assert row["relation_paths"] == paths


def test_a_graph_query_that_is_no_object_is_a_fault(question_file: Callable[..., Path]) -> None:
    assert "line 1: field 'graph_query' must be an object" in fault(question_file(good(graph_query="x")))


@pytest.mark.parametrize(
    ("given", "expected"),
    [([4], ["4"]), ([4.0], ["4"]), ([2.5], ["2.5"]), ([True], ["yes"]), (["a", "a"], ["a"]), ("Paris", ["Paris"])],
)
def test_answers_become_texts(given: Any, expected: list[str]) -> None:
    assert canonical(good(answers=given))["answers"] == expected


def test_truth_values_make_a_yes_no_question() -> None:
    assert canonical(good(answers=[False]))["answer_type"] == "yes/no"


def test_a_relation_path_may_be_one_or_several() -> None:
    assert canonical(good(relation_path=["a", "b"]))["relation_paths"] == [["a", "b"]]
    assert canonical(good(relation_path=[["a"], ["b", "c"]]))["relation_paths"] == [["a"], ["b", "c"]]
    assert canonical(good(relation_path=[]))["relation_paths"] == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [(["x", "y"], [["x", "y"], []]), ([["x"], ["y"]], [["x"], ["y"]]), ({"B": ["y"]}, [[], ["y"]])],
)
def test_aliases_have_three_forms(given: Any, expected: list[list[str]]) -> None:
    assert canonical(good(answers=["A", "B"], answer_aliases=given))["answer_aliases"] == expected


def test_canonical_form_is_a_fixed_point(question_file: Callable[..., Path]) -> None:
    rows = read_question_file(question_file(good(relation_path=["a"], answer_aliases=["x"], hops=1)))
    assert [canonical(row) for row in rows] == rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": None}, "field 'question' must be a string, but it is null"),
        ({"question": "  "}, "field 'question' is empty"),
        ({"topic_entities": [3]}, "field 'topic_entities' must list non-empty strings, but it holds 3"),
        ({"topic_entities": {"a": 1}}, "field 'topic_entities' must be a list, but it is an object"),
        ({"answers": [None]}, "field 'answers' must list strings, numbers, true or false, but it holds None"),
        ({"answer_type": "entity"}, "must be one of entities, number, yes/no, date, text, but it is 'entity'"),
        ({"split": "valid"}, "must be one of train, dev, test, but it is 'valid'"),
        ({"relation_path": "a"}, "field 'relation_path' must be a list of relation keys, but it is a string"),
        ({"relation_path": ["a", 1]}, "must list relation keys (strings)"),
        ({"hops": "2"}, "field 'hops' must be a whole number, but it is '2'"),
        ({"answer_aliases": {"Lyon": ["x"]}}, "names 'Lyon', which is not among the answers"),
        ({"answer_aliases": [["x"], ["y"]]}, "has 2 lists for 1 answers"),
        ({"id": True}, "field 'id' must be a string, but it is true or false"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(
    question_file: Callable[..., Path], changes: dict[str, Any], message: str
) -> None:
    text = fault(question_file(GOOD, good(id="q2", **changes) if "id" not in changes else good(**changes)))
    assert "line 2: " in text
    assert message in text


def test_a_missing_field_gets_the_nearest_name(question_file: Callable[..., Path]) -> None:
    row = {key: value for key, value in GOOD.items() if key != "topic_entities"}
    text = fault(question_file({**row, "topic_entity": ["France"]}))
    assert "line 1: field 'topic_entities' is missing; did you mean 'topic_entity'?" in text


def test_malformed_json_names_its_line(question_file: Callable[..., Path]) -> None:
    text = fault(question_file(GOOD, '{"id": "q2", '))
    assert "questions.jsonl line 2: malformed JSON at column" in text


def test_five_faults_are_listed_and_the_rest_counted(question_file: Callable[..., Path]) -> None:
    text = fault(question_file(GOOD, *["{"] * 7))
    assert "has 7 faults" in text
    assert text.count("malformed JSON") == 5
    assert "… and 2 more" in text


def test_a_duplicate_id_names_both_lines(question_file: Callable[..., Path]) -> None:
    assert "line 3: id 'q1' is already used on line 1" in fault(question_file(GOOD, good(id="q2"), GOOD))


@pytest.mark.parametrize(
    "line", ["[1, 2]", '"text"', "17", '{"id": "a", "hops": NaN}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}"]
)
def test_a_line_that_is_no_object_is_a_fault(question_file: Callable[..., Path], line: str) -> None:
    assert "line 1: " in fault(question_file(line))


def test_half_a_surrogate_pair_is_a_fault(question_file: Callable[..., Path]) -> None:
    line = json.dumps(GOOD).replace("France?", "\\ud800?")
    assert "line 1: field 'question' holds half of a surrogate pair" in fault(question_file(line))


def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n\xff\xfe\n")
    assert "line 2: not UTF-8" in fault(path)


def test_an_array_gets_a_hint(question_file: Callable[..., Path]) -> None:
    assert "one object a line, not one array" in fault(question_file("[", json.dumps(GOOD), "]"))


def test_missing_empty_and_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text("\n\n", encoding="utf-8")
    assert "is empty" in fault(tmp_path / "questions.jsonl")
    assert "does not exist; did you mean 'questions.jsonl'?" in fault(tmp_path / "question.jsonl")
    assert "is a directory" in fault(tmp_path)


def test_gzip_is_read_and_a_cut_one_is_a_fault(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps(good(id=f"q{n}")) + "\n" for n in range(2000)).encode())
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(whole)
    assert len(read_question_file(path)) == 2000
    path.write_bytes(whole[: len(whole) // 2])
    assert "is damaged or cut off" in fault(path)
    path.write_bytes(b"plain text")
    assert "is damaged or cut off" in fault(path)


def test_byte_order_mark_blank_lines_and_line_separators_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    text = json.dumps(good(question="one\u2028two"), ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n" + json.dumps(good(id=2)).encode())
    rows = read_question_file(path)
    assert [row["id"] for row in rows] == ["q1", "2"]
    assert rows[0]["question"] == "one\u2028two"


def test_without_gold_topics_and_answers_may_be_absent(question_file: Callable[..., Path]) -> None:
    path = question_file({"id": "q", "question": "where?"})
    assert read_question_file(path, gold=False)[0]["answers"] == []
    assert "field 'topic_entities' is missing" in fault(path)


def test_predictions_are_read_by_id(question_file: Callable[..., Path]) -> None:
    rows = {"id": "a", "prediction": "Paris"}, {"id": "b", "output": ["x", 4]}, {"id": 3, "answer": ""}
    path = question_file(*rows, {"id": "n", "answer": None})
    assert read_predictions(path) == {"a": "Paris", "b": "x, 4", "3": "", "n": ""}
    with pytest.raises(QuestionFileError, match="line 2: field 'prediction' is missing"):
        read_predictions(question_file({"id": "a", "prediction": "x"}, {"id": "b"}))
    with pytest.raises(QuestionFileError, match="id 'a' is already used on line 1"):
        read_predictions(question_file({"id": "a", "prediction": "x"}, {"id": "a", "prediction": "y"}))


def test_plain_lines_of_a_text_file_are_questions_where_no_answers_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_bytes(b"\xef\xbb\xbfWho is Ana?\r\n\n  Where is Bo? \n")
    rows = read_question_file(path, gold=False)
    assert [(row["id"], row["question"]) for row in rows] == [("1", "Who is Ana?"), ("3", "Where is Bo?")]
    assert "malformed JSON" in fault(path), "answers are needed"
    for content, told in ((b"Who is Ana?\nWo ist M\xfcller?\n", "line 2: 'utf-8' codec"), (b" \n", "is empty")):
        path.write_bytes(content)
        with pytest.raises(QuestionFileError, match=told):
            read_question_file(path, gold=False)
