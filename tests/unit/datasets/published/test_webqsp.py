"""WebQSP: parses read, chains as gold paths, a tenth of train held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from kgqa_core.config import QuestionsOptions, QuestionSource
from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import input_files, read_raw, read_source
from kgqa_core.datasets.published.base import Reject
from kgqa_core.datasets.published.registry import BENCHMARKS
from kgqa_core.datasets.published.webqsp import FILES
from kgqa_core.datasets.published.webqsp_parses import WebQspQuestion, form_of_chain
from kgqa_core.errors import FormError, QuestionFileError
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.sparql import from_sparql
from tests.unit.datasets.published.official import graph, loaded

SPLIT_FILES = {split: f"WebQSP.{split}.json" for split in ("train", "test")}


def read(folder: Path, parses: Literal["first", "all"] = "first") -> list[Any]:
    return list(FILES.read(QuestionSource(path=str(folder), parses=parses)))


def questions_of(folder: Path) -> list[tuple[str | None, WebQspQuestion]]:
    return [(source.split, row) for source, row in FILES.records(folder) if isinstance(row, WebQspQuestion)]


def parsed(name: str, **more: Any) -> dict[str, Any]:
    parse = {
        "PotentialTopicEntityMention": "jamaican",
        "TopicEntityName": "Jamaica",
        "TopicEntityMid": "m.03_r3",
        "InferentialChain": ["location.country.languages_spoken"],
        "Answers": [
            {"AnswerType": "Entity", "AnswerArgument": "m.01428y", "EntityName": "Jamaican English"},
            {"AnswerType": "Entity", "AnswerArgument": "m.04ygk0", "EntityName": None},
        ],
    }
    other = {**parse, "InferentialChain": ["location.country.official_language"], "Answers": []}
    text = "what does jamaican people speak? "
    return {"QuestionId": name, "RawQuestion": text, "Parses": [{**parse, **more}, other]}


def stored(folder: Path, split: str, questions: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SPLIT_FILES[split]
    path.write_text(json.dumps({"Questions": questions}), encoding="utf-8-sig")
    return path


def test_the_first_parse_becomes_a_raw_question(tmp_path: Path) -> None:
    stored(tmp_path, "test", [parsed("WebQTest-0")])
    assert read(tmp_path) == [
        canonical(
            {
                "id": "WebQTest-0",
                "question": "what does jamaican people speak?",
                "topic_entities": ["m.03_r3"],
                "answers": ["m.01428y", "m.04ygk0"],
                "answer_type": "entities",
                "answer_aliases": {"m.01428y": ["Jamaican English"]},
                "relation_path": ["location.country.languages_spoken"],
                "split": "test",
                "complexity": "generic",
                "hops": 1,
            }
        )
        | {"topic_names": {"m.03_r3": "Jamaica"}}
    ]
    assert [
        (parse.mention, parse.topic_name) for _, question in questions_of(tmp_path) for parse in question.parses[:1]
    ] == [("jamaican", "Jamaica")]


def test_a_question_without_chain_topic_or_answer_stays_without_them(tmp_path: Path) -> None:
    value = {"AnswerType": "Value", "AnswerArgument": "1971-10-13", "EntityName": None}
    questions = [
        parsed("a", InferentialChain=None, TopicEntityMid=None),
        parsed("b", Answers=[]),
        parsed("c", Answers=[value], InferentialChain=["x.y.z", "u.v.w"]),
        {"QuestionId": "d", "RawQuestion": "who?", "Parses": []},
    ]
    stored(tmp_path / "data", "test", questions)
    rows = {row["id"]: row for row in read_raw(QuestionsOptions(source="webqsp", path=str(tmp_path)), 7)}
    assert (rows["a"]["relation_paths"], rows["a"]["topic_entities"], rows["a"]["hops"]) == ([], [], None)
    assert (rows["b"]["answers"], rows["b"]["answer_type"]) == ([], None)
    assert (rows["c"]["answers"], rows["c"]["answer_type"], rows["c"]["complexity"]) == (
        ["1971-10-13"],
        None,
        "multi-hop",
    )
    assert rows["d"]["topic_entities"] == rows["d"]["relation_paths"] == []


def test_a_seeded_tenth_of_train_is_dev(tmp_path: Path) -> None:
    stored(tmp_path, "train", [parsed(f"WebQTrn-{number}") for number in range(50)])
    stored(tmp_path, "test", [parsed("WebQTest-0")])
    options = QuestionsOptions(source="webqsp", path=str(tmp_path))
    splits = {row["id"]: row["split"] for row in read_raw(options, 7)}
    assert [list(splits.values()).count(split) for split in ("train", "dev", "test")] == [45, 5, 1]
    assert splits == {row["id"]: row["split"] for row in read_raw(options, 7)}
    assert splits != {row["id"]: row["split"] for row in read_raw(options, 8)}
    assert [path.name for path in input_files(options)] == list(SPLIT_FILES.values())


def test_faults_name_file_and_question(tmp_path: Path) -> None:
    with pytest.raises(QuestionFileError, match="neither a file nor a folder"):
        read(tmp_path / "nothing")
    with pytest.raises(QuestionFileError, match="is it the folder of WebQSP"):
        read(tmp_path)
    for text in ("{", "[]", '{"Questions": {}}', '{"questions": []}'):
        (tmp_path / SPLIT_FILES["train"]).write_text(text, encoding="utf-8")
        with pytest.raises(QuestionFileError, match=r"WebQSP.train.json"):
            read(tmp_path)


@pytest.mark.parametrize("parses", ["first", "all"])
def test_a_row_that_cannot_be_read_is_rejected_and_the_others_stay(tmp_path: Path, parses: Any) -> None:
    bad = parsed("WebQTrn-7")
    del bad["RawQuestion"]
    again = parsed("WebQTrn-0")
    more = [parsed(f"WebQTrn-{number}") for number in (20, 21)]
    stored(tmp_path, "train", [parsed("WebQTrn-0"), bad, "no object", again, *more])
    rows, rejects = read_source(QuestionsOptions(source="webqsp", path=str(tmp_path), parses=parses), 7)
    assert [row["id"] for row in rows] == ["WebQTrn-0", "WebQTrn-20", "WebQTrn-21"]
    assert {reject.file for reject in rejects} == {str(tmp_path / "WebQSP.train.json")}
    assert [reject.row for reject in rejects] == ["row 2 (WebQTrn-7)", "row 3", "row 4 (WebQTrn-0)"]
    assert "RawQuestion" in rejects[0].reason and "already used in row 1" in rejects[2].reason
    stored(tmp_path, "train", [bad, bad])
    with pytest.raises(
        QuestionFileError, match=r"2 of its 2 rows cannot be read.*no file of WebQSP.*row 1 \(WebQTrn-7\)"
    ):
        read_source(QuestionsOptions(source="webqsp", path=str(tmp_path), parses=parses), 7)


def everything(tmp_path: Path, *questions: dict[str, Any]) -> list[dict[str, Any]]:
    stored(tmp_path, "train", list(questions))
    return [row for row in read(tmp_path, "all") if not isinstance(row, Reject)]


def constraint(operator: str, kind: str, argument: str, relation: str, node: int = 0, value: str = "String") -> Any:
    return {
        "Operator": operator,
        "ArgumentType": kind,
        "Argument": argument,
        "EntityName": "",
        "SourceNodeIndex": node,
        "NodePredicate": relation,
        "ValueType": value,
    }


def test_every_parse_gives_its_answers_and_chains_and_the_first_its_form(tmp_path: Path) -> None:
    question = parsed("WebQTrn-0", Sparql="SELECT DISTINCT ?x WHERE { }")
    question["Parses"][1]["Answers"] = [{"AnswerType": "Entity", "AnswerArgument": "m.0999", "EntityName": "Patois"}]
    (row,) = everything(tmp_path, question)
    assert row["answers"] == ["m.01428y", "m.04ygk0", "m.0999"]
    assert row["answer_aliases"] == [["Jamaican English"], [], ["Patois"]]
    assert row["relation_paths"] == [["location.country.languages_spoken"], ["location.country.official_language"]]
    assert row["s_expression"] == "(JOIN (R location.country.languages_spoken) m.03_r3)"
    assert (row["sparql"], row["complexity"]) == ("SELECT DISTINCT ?x WHERE { }", "generic")


@pytest.mark.parametrize(
    ("constraints", "time", "order", "form", "complexity"),
    [
        (
            [constraint("Equal", "Entity", "m.05zppz", "people.person.gender", 1)],
            None,
            None,
            "(AND (JOIN (R a.b.c) (JOIN (R t.u.v) m.03_r3)) (JOIN people.person.gender m.05zppz))",
            "intersection",
        ),
        (
            [constraint("Equal", "Value", "Country", "a.b.type")],
            None,
            None,
            '(JOIN (R a.b.c) (AND (JOIN (R t.u.v) m.03_r3) (JOIN a.b.type "Country")))',
            "intersection",
        ),
        (
            [
                constraint("LessOrEqual", "Value", "2010-12-31", "a.b.from", 0, "DateTime"),
                constraint("GreaterOrEqual", "Value", "2010-01-01", "a.b.to", 0, "DateTime"),
            ],
            [0, 1],
            None,
            "(JOIN (R a.b.c) (TC (JOIN (R t.u.v) m.03_r3) a.b.from 2010^^http://www.w3.org/2001/XMLSchema#gYear))",
            "multi-hop",
        ),
        (
            [],
            None,
            ("Descending", 0, 1, 1, "a.b.d"),
            "(ARGMAX (JOIN (R a.b.c) (JOIN (R t.u.v) m.03_r3)) a.b.d)",
            "superlative",
        ),
        (
            [],
            None,
            ("Ascending", 1, 1, 0, "a.b.d"),
            "(JOIN (R a.b.c) (NTHMIN 2 (JOIN (R t.u.v) m.03_r3) a.b.d))",
            "ordinal",
        ),
    ],
)
def test_constraints_time_and_order_of_a_parse_are_in_its_form(
    tmp_path: Path, constraints: Any, time: Any, order: Any, form: str, complexity: str
) -> None:
    names = ("SortOrder", "Start", "Count", "SourceNodeIndex", "NodePredicate")
    question = parsed(
        "WebQTrn-0",
        InferentialChain=["t.u.v", "a.b.c"],
        Constraints=constraints,
        Time={"IsRelativeToNow": False, "Start": "2010-01-01", "End": "2010-12-31", "AssociatedConstraints": time}
        if time
        else None,
        Order=dict(zip(names, order, strict=True)) if order else None,
    )
    (row,) = everything(tmp_path, question)
    assert (row["s_expression"], row["complexity"]) == (form, complexity)


def test_a_parse_that_no_form_writes_says_why_and_the_next_is_taken(tmp_path: Path) -> None:
    order = {"SortOrder": "Descending", "Start": 0, "Count": 3, "SourceNodeIndex": 0, "NodePredicate": "a.b.c"}
    alone = parsed("a", Order=order)
    del alone["Parses"][1]
    rows = {row["id"]: row for row in everything(tmp_path, alone, parsed("b", Order=order))}
    assert rows["a"]["s_expression"] is None and "the best 3" in rows["a"]["without_form"]
    assert rows["b"]["s_expression"] == "(JOIN (R location.country.official_language) m.03_r3)"


def test_a_question_without_answers_is_kept_and_marked(tmp_path: Path) -> None:
    rows = everything(tmp_path, parsed("a", Answers=[]), {"QuestionId": "b", "RawQuestion": "who?", "Parses": []})
    assert [(row["answerable"], row["reason"]) for row in rows] == [
        (False, "no parse has an answer in WebQSP.train.json"),
        (False, "it has no parse in WebQSP.train.json"),
    ]


def test_the_stage_links_ids_and_chains_to_a_graph(tmp_path: Path) -> None:
    stored(tmp_path / "webqsp", "test", [parsed("WebQTest-0")])
    kg = graph(tmp_path, "m.03_r3\tlocation.country.languages_spoken\tm.01428y\n")
    out, _ = loaded(tmp_path, kg, source="webqsp", path=str(tmp_path / "webqsp"))
    (question,) = read_questions(out)
    assert question.relation_paths == (("location.country.languages_spoken",),)
    assert (len(question.topic_entities), len(question.answers)) == (1, 1)
    assert "Jamaican English" in question.answer_names[0]
    assert {benchmark.source for benchmark in BENCHMARKS if benchmark.name == "WebQSP"} == {"webqsp"}


def test_form_and_sparql_of_the_parses_of_train_agree(shared_data: Path) -> None:
    parses = [
        parse
        for split, question in questions_of(shared_data / "webqsp")
        if split == "train"
        for parse in question.parses
    ]
    assert (len(parses), sum(parse.by_hand for parse in parses)) == (3_453, 105)
    assert sum(bool(parse.constraints) for parse in parses) == 879
    assert sum(parse.order is not None for parse in parses) == 92
    some = [parse for parse in parses if not parse.by_hand and (parse.constraints or parse.order)][::40]
    both = []
    for parse in some:
        try:
            both.append((form_of_chain(parse), from_sparql(parse.sparql or "")))
        except FormError:
            continue
    assert len(both) >= 20
    assert all(isomorphic(form, other) for form, other in both)


def test_the_official_files_have_the_questions_and_chains_that_are_published(shared_data: Path) -> None:
    rows = questions_of(shared_data / "webqsp")
    by_split = {split: [q.parses[0] for own, q in rows if own == split and q.parses] for split in ("train", "test")}
    assert {split: sum(own == split for own, _ in rows) for split in by_split} == {"train": 3_098, "test": 1_639}
    assert {split: sum(not parse.chain for parse in own) for split, own in by_split.items()} == {
        "train": 54,
        "test": 23,
    }
    assert sum(not parse.answers for parse in by_split["test"]) == 11
    parses = [parse for own in by_split.values() for parse in own]
    assert {len(parse.chain) for parse in parses} == {0, 1, 2}
    assert len({relation for parse in parses for relation in parse.chain}) == 555
