"""WebQSP: parses read, chains as gold paths, a tenth of train held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions, QuestionsOptions
from kgqa_core.datasets.load import input_files, load, read_raw
from kgqa_core.datasets.question import read_questions
from kgqa_core.datasets.registry import BENCHMARKS
from kgqa_core.datasets.webqsp import SPLIT_FILES, read_parsed, read_webqsp
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.build import build


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
    assert list(read_webqsp(tmp_path)) == [
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
    ]
    assert [(question.mention, question.topic_name) for question in read_parsed(tmp_path)] == [("jamaican", "Jamaica")]


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
    with pytest.raises(QuestionFileError, match="is not a folder"):
        list(read_webqsp(tmp_path / "nothing"))
    with pytest.raises(QuestionFileError, match="is it the folder of WebQSP"):
        list(read_webqsp(tmp_path))
    bad = parsed("WebQTrn-7")
    del bad["RawQuestion"]
    stored(tmp_path, "train", [parsed("WebQTrn-0"), bad, "no object"])
    with pytest.raises(QuestionFileError, match=r"(?s)train.json has 2 faults.*question WebQTrn-7.*question 3"):
        list(read_webqsp(tmp_path))
    for text in ("{", "[]", '{"Questions": {}}', '{"questions": []}'):
        (tmp_path / SPLIT_FILES["train"]).write_text(text, encoding="utf-8")
        with pytest.raises(QuestionFileError, match=r"WebQSP.train.json"):
            list(read_webqsp(tmp_path))


def test_the_stage_links_ids_and_chains_to_a_graph(tmp_path: Path) -> None:
    stored(tmp_path / "webqsp", "test", [parsed("WebQTest-0")])
    graph = tmp_path / "graph.tsv"
    graph.write_text("m.03_r3\tlocation.country.languages_spoken\tm.01428y\n", encoding="utf-8")
    for part in ("kg", "questions"):
        (tmp_path / part).mkdir()
    build(tmp_path / "kg", options=KgOptions(files=(str(graph),), format="delimited", delimiter="\t"))
    options = QuestionsOptions(source="webqsp", path=str(tmp_path / "webqsp"))
    load(tmp_path / "questions", kg=tmp_path / "kg", options=options, seed=7)
    (question,) = read_questions(tmp_path / "questions")
    assert question.relation_paths == (("location.country.languages_spoken",),)
    assert (len(question.topic_entities), len(question.answers)) == (1, 1)
    assert "Jamaican English" in question.answer_names[0]
    assert {benchmark.source for benchmark in BENCHMARKS if benchmark.name == "WebQSP"} == {"webqsp"}


def test_the_official_files_have_the_questions_and_chains_that_are_published(shared_data: Path) -> None:
    questions = list(read_parsed(shared_data / "webqsp"))
    by_split = {split: [q for q in questions if q.split == split] for split in ("train", "test")}
    assert {split: len(own) for split, own in by_split.items()} == {"train": 3_098, "test": 1_639}
    assert {split: sum(not q.chain for q in own) for split, own in by_split.items()} == {"train": 54, "test": 23}
    assert sum(not question.answers for question in by_split["test"]) == 11
    assert {len(question.chain) for question in questions} == {0, 1, 2}
    assert len({relation for question in questions for relation in question.chain}) == 555
