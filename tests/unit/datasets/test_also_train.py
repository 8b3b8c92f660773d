"""Questions of a further file train besides, with the path that their answers tell, and never what is tested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions, QuestionsOptions
from kgqa_core.datasets.derived.found_paths import named_in, path_to, with_found_paths
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import CORRECTED, load
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tasks.engine.corrected import nearly_learnt

TRIPLES = """\
anna lives_in bonn
anna speaks german
bert lives_in bonn
bert born_in bonn
carl lives_in kiel
bonn located_in west
kiel located_in north
west part_of land
"""


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("also")
    (folder / "g.tsv").write_text(TRIPLES.replace(" ", "\t"), encoding="utf-8")
    (folder / "kg").mkdir()
    build(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / "g.tsv"),)))
    return folder / "kg"


@pytest.fixture
def store(kg: Path) -> Iterator[KgStore]:
    with KgStore.open(kg) as opened:
        yield opened


def ids(store: KgStore, *names: str) -> list[int]:
    found = store.resolve(list(names))
    return [found[name][0] for name in names]


def path(store: KgStore, topic: str, *answers: str) -> list[str] | None:
    found = path_to(store, ids(store, topic), ids(store, *answers))
    keys = store.relation_keys()
    return None if found is None else [("<inv>-" if back else "") + keys[relation] for relation, back in found]


@pytest.mark.parametrize(
    ("topic", "answers", "expected"),
    [
        ("anna", ["bonn"], ["lives_in"]),
        ("bonn", ["anna", "bert"], ["<inv>-lives_in"]),
        ("anna", ["west"], ["lives_in", "located_in"]),
        ("anna", ["bert"], ["lives_in", "<inv>-born_in"]),
        ("west", ["anna", "bert"], ["<inv>-located_in", "<inv>-lives_in"]),
        ("bonn", ["anna"], None),  # nothing leads to anna alone but what leads to bert too
        ("anna", ["land"], None),  # three relations
        ("anna", ["anna"], None),
    ],
)
def test_the_shortest_path_to_exactly_the_answers_is_found(
    store: KgStore, topic: str, answers: list[str], expected: list[str] | None
) -> None:
    assert path(store, topic, *answers) == expected


def test_what_has_a_path_or_a_form_keeps_it(store: KgStore) -> None:
    [anna, bonn] = ids(store, "anna", "bonn")
    given = [
        Question("a", "?", topic_entities=(anna,), answers=(bonn,), relation_paths=(("speaks",),)),
        Question("b", "?", topic_entities=(anna,), answers=(bonn,), s_expression="(JOIN (R lives_in) anna)"),
        Question("c", "?", topic_entities=(anna,), answers=(bonn,)),
        Question("d", "?", topic_entities=(anna,)),
    ]
    found = with_found_paths(given, store)
    assert found[:2] == given[:2] and found[3] == given[3]
    assert found[2].relation_paths == (("lives_in",),) and found[2].hops == 1


def test_a_question_whose_topic_leads_nowhere_is_about_what_its_words_name(store: KgStore) -> None:
    [anna, bonn, kiel, west] = ids(store, "anna", "bonn", "kiel", "west")
    wrong = {"topic_entities": (kiel,), "topic_keys": ("kiel",), "unlinkable": "whatever"}
    given = [
        Question("a", "in which part of the land is ANNA's home?", answers=(west,), **wrong),
        Question("b", "where does nobody live", answers=(bonn,), **wrong),
        Question("c", "Kiel: where does anna live?", answers=(bonn,), topic_entities=(anna,), topic_keys=("a",)),
    ]
    found = with_found_paths(given, store)
    assert (found[0].topic_entities, found[0].topic_keys, found[0].unlinkable) == ((anna,), ("anna",), None)
    assert found[0].relation_paths == (("lives_in", "located_in"),)
    assert found[1] == given[1] and found[2].topic_entities == (anna,)
    assert named_in(store, "Anna, bert’s friend, left bonn") == [*sorted(ids(store, "anna", "bert", "bonn"))]
    assert named_in(store, "") == []


def row(name: str, text: str, topic: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "question": text, "topic_entities": [topic], "answers": [answer], **more}


OWN = [
    row("q1", "Where does Anna live?", "anna", "bonn", split="train"),
    row("q2", "Where does Bert live?", "bert", "bonn", split="dev"),
    row("q3", "Where does Carl live?", "carl", "kiel", split="test"),
]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return str(path)


def test_further_questions_train_as_often_as_asked_and_tested_ones_are_left_out(kg: Path, tmp_path: Path) -> None:
    further = [
        row("x", "Which part of the country is Anna's?", "anna", "west"),
        row("q1", "where does carl live", "carl", "bonn"),  # the test's words
        row("y", "WHERE does BERT live", "bert", "kiel"),  # the dev's
    ]
    options = QuestionsOptions(
        path=write(tmp_path / "q.jsonl", OWN), also_train=write(tmp_path / "f.jsonl", further), also_train_repeat=3
    )
    counts = load(Workspace(tmp_path), kg=kg, options=options, seed=7)
    assert counts["questions"] == {"train": 4, "dev": 1, "test": 1}
    found = {one.id: one for one in read_questions(tmp_path)}
    assert sorted(found) == ["q1", "q2", "q3", "x", "x#2", "x#3"]
    assert {found[name].relation_paths for name in ("x", "x#2", "x#3")} == {(("lives_in", "located_in"),)}
    assert found["q1"].relation_paths == (), "the set's own questions are as they come"


def test_questions_with_split_test_are_not_trained_on_and_test_only_what_is_no_near_duplicate(
    kg: Path, tmp_path: Path
) -> None:
    further = [
        row("x", "Which part of the country is Anna's?", "anna", "west"),
        row("t1", "Of which part of the country is Carl?", "carl", "north", split="test"),
        row("t2", "which part of our country is anna's", "anna", "west", split="test"),
        row("t3", "Home region of Anna?", "anna", "west", split="test"),
        row("t4", "WHERE does ANNA live", "anna", "bonn", split="test"),  # the set's own training
        row("t5", "Which part is Berta's?", "berta", "west", split="test"),  # of no entity
        row("t6", "Who lives where the sun sets?", "anna", "bonn", split="test"),
    ]
    own = [*OWN, row("q4", "The country's part, of which Anna is?", "anna", "land", split="test")]
    options = QuestionsOptions(path=write(tmp_path / "q.jsonl", own), also_train=write(tmp_path / "f.jsonl", further))
    load(Workspace(tmp_path), kg=kg, options=options, seed=7)
    trained = {one.id.partition("#")[0] for one in read_questions(tmp_path) if one.split == "train"}
    assert trained == {"q1", "x"}
    assert [one.id for one in read_questions(tmp_path / CORRECTED)] == ["t1", "t6"]
    assert nearly_learnt(tmp_path) == {"q4"}, "near-duplicates of what is trained on do not decide who is champion"


def test_ids_that_the_set_has_are_changed_and_a_file_that_is_none_is_named(kg: Path, tmp_path: Path) -> None:
    own = write(tmp_path / "q.jsonl", OWN)
    further = write(tmp_path / "f.jsonl", [row("q1", "Home of Anna?", "anna", "bonn")])
    load(
        Workspace(tmp_path), kg=kg, options=QuestionsOptions(path=own, also_train=further, also_train_repeat=1), seed=7
    )
    assert sorted(one.id for one in read_questions(tmp_path)) == ["further-q1", "q1", "q2", "q3"]
    with pytest.raises(QuestionFileError, match=r"gone\.jsonl"):
        load(
            Workspace(tmp_path),
            kg=kg,
            options=QuestionsOptions(path=own, also_train=str(tmp_path / "gone.jsonl")),
            seed=7,
        )
