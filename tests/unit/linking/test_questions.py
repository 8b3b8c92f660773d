"""Questions get the topics that the tagger finds, their gold answers stay, and parts join to the whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import KgOptions, LinkingOptions
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.kg.build import build as build_kg
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.questions import LINKS, link_questions, merge
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.store.digest import content_digest
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

TRIPLES = """\
<http://x/Q1> <http://x/capital> <http://x/Q2> .
<http://x/Q3> <http://x/capital> <http://x/Q4> .
<http://x/Q1> <http://x/borders> <http://x/Q3> .
<http://x/Q2> <http://x/twin> <http://x/Q4> .
<http://x/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "Avalonia"@en .
<http://x/Q2> <http://www.w3.org/2000/01/rdf-schema#label> "Zweibrücken"@en .
<http://x/Q3> <http://www.w3.org/2000/01/rdf-schema#label> "Bergonia"@en .
<http://x/Q4> <http://www.w3.org/2000/01/rdf-schema#label> "Quelmar"@en .
<http://x/Q4> <http://www.w3.org/2004/02/skos/core#altLabel> "Old Harbour"@en .
"""
OPTIONS = LinkingOptions()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of a graph and its mention dictionary."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "graph.nt").write_text(TRIPLES, encoding="utf-8")
    for name in ("kg", "mentions"):
        (folder / name).mkdir()
    build_kg(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / "graph.nt"),)))
    build_mentions(Workspace(folder / "mentions"), kg=folder / "kg")
    return {"kg": folder / "kg", "mentions": folder / "mentions"}


@pytest.fixture
def ids(graph: dict[str, Path]) -> dict[str, int]:
    with KgStore.open(graph["kg"]) as store:
        return {name: store.resolve([name])[name][0] for name in ("Avalonia", "Zweibrücken", "Bergonia", "Quelmar")}


def sample_questions(ids: dict[str, int]) -> list[Question]:
    gold = {"answers": (ids["Zweibrücken"],), "answer_keys": ("http://x/Q2",), "relation_paths": (("capital",),)}
    return [
        Question(
            "a", "What is the capital of Avalonia?", topic_keys=("Avalonia",), topic_entities=(ids["Avalonia"],), **gold
        ),
        Question("b", "which twin does ZWEIBRUCKEN have?", split="train"),
        Question("c", "Is Bergonia or Old Harbour larger?", topic_keys=("Nobody",), unlinkable="no such topic"),
        Question("d", "And what is its capital?", dialogue=(("user", "Does Avalonia have a king?"), ("agent", "No."))),
        Question("e", "How late is it?"),
    ]  # fmt: skip


def linked(tmp_path: Path, graph: dict[str, Path], questions: list[Question], **more: object) -> dict[str, Question]:
    """Questions by id after linking into `tmp_path / "out"`."""
    for name in ("questions", "out"):
        (tmp_path / name).mkdir(exist_ok=True)
    write_questions(tmp_path / "questions", questions)
    inputs = {**graph, "questions": tmp_path / "questions", "options": OPTIONS, **more}
    link_questions(Workspace(tmp_path / "out"), **inputs)  # type: ignore[arg-type]
    return {question.id: question for question in read_questions(tmp_path / "out")}


def test_topics_are_replaced_and_all_else_stays(tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]) -> None:
    questions = sample_questions(ids)
    found = linked(tmp_path, graph, questions)
    assert found["a"].topic_entities == (ids["Avalonia"],)
    assert found["b"].topic_entities == (ids["Zweibrücken"],)
    assert set(found["c"].topic_entities) == {ids["Bergonia"], ids["Quelmar"]}
    assert found["e"].topic_entities == found["e"].topic_weights == ()
    for question in questions:
        own = found[question.id]
        assert len(own.topic_weights) == len(own.topic_entities) == len(own.topic_keys)
        assert list(own.topic_weights) == sorted(own.topic_weights, reverse=True)
        unchanged = {name: getattr(question, name) for name in ("topic_keys", "topic_entities", "topic_weights")}
        assert replace(own, **unchanged) == question


def test_the_words_of_a_mention_are_stored_so_that_they_can_be_masked(
    tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]
) -> None:
    found = linked(tmp_path, graph, sample_questions(ids))
    assert found["b"].topic_keys == ("ZWEIBRUCKEN",)
    assert set(found["c"].topic_keys) == {"Bergonia", "Old Harbour"}


def test_topics_are_those_that_the_tagger_names(tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]) -> None:
    found = linked(tmp_path, graph, sample_questions(ids))
    tagger = open_tagger(graph["mentions"], graph["kg"], OPTIONS)
    for question in sample_questions(ids):
        expected = tagger.select(tagger.link(question.text, question.dialogue))
        own = found[question.id]
        assert list(zip(own.topic_entities, own.topic_weights, strict=True)) == expected
        assert all(0 <= rho <= 1 for rho in own.topic_weights)
    assert found["d"].topic_entities == (ids["Avalonia"],)  # of the earlier turn


def test_links_say_where_each_topic_stands(tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]) -> None:
    questions = {question.id: question for question in sample_questions(ids)}
    found = linked(tmp_path, graph, list(questions.values()))
    links = pl.read_parquet(tmp_path / "out" / LINKS)
    assert links.columns == ["question", "turn", "start", "end", "mention", "entity", "rho", "rank"]
    for row in links.iter_rows(named=True):
        question = questions[row["question"]]
        turns = [question.text, *(text for _, text in reversed(question.dialogue))]
        assert turns[row["turn"]][row["start"] : row["end"]] == row["mention"]
    best = links.filter(pl.col("rank") == 0)
    for name, question in found.items():
        assert set(question.topic_entities) <= set(best.filter(pl.col("question") == name)["entity"].to_list())


def test_a_higher_threshold_and_a_smaller_top_take_fewer(
    tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]
) -> None:
    one = linked(tmp_path, graph, sample_questions(ids), options=OPTIONS.model_copy(update={"top": 1}))
    none = linked(
        tmp_path, graph, sample_questions(ids), options=OPTIONS.model_copy(update={"threshold": 1.0, "fallback": False})
    )
    assert len(one["c"].topic_entities) == 1
    assert not any(question.topic_entities for question in none.values())


def test_questions_of_other_splits_keep_the_topics_that_they_name(
    tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]
) -> None:
    questions = sample_questions(ids)
    questions[1] = replace(questions[1], topic_keys=("Zweibrücken",), topic_entities=(ids["Zweibrücken"],))
    questions.append(Question("f", "which twin does ZWEIBRUCKEN have?", split="train"))
    found = linked(tmp_path, graph, questions, splits=("dev", "test"))
    assert found["b"] == questions[1]
    assert found["a"].topic_weights and found["f"].topic_entities == (ids["Zweibrücken"],) and found["f"].topic_weights


def test_counts_tell_what_was_found(tmp_path: Path, graph: dict[str, Path], ids: dict[str, int]) -> None:
    for name in ("questions", "out"):
        (tmp_path / name).mkdir()
    write_questions(tmp_path / "questions", sample_questions(ids))
    counts = link_questions(Workspace(tmp_path / "out"), **graph, questions=tmp_path / "questions", options=OPTIONS)
    assert {name: counts[name] for name in ("questions", "with_topics", "without_topics", "topics")} == {
        "questions": 5, "with_topics": 4, "without_topics": 1, "topics": 5,
    }  # fmt: skip


@pytest.mark.parametrize("among", [1, 2, 7])
def test_parts_join_to_what_one_call_writes(
    tmp_path: Path, graph: dict[str, Path], ids: dict[str, int], among: int
) -> None:
    linked(tmp_path, graph, sample_questions(ids))
    parts = []
    for number in range(among):
        parts.append(tmp_path / f"part{number}")
        parts[-1].mkdir()
        inputs = {**graph, "questions": tmp_path / "questions", "options": OPTIONS}
        link_questions(Workspace(parts[-1], part=(number, among)), **inputs)  # type: ignore[arg-type]
    joined = tmp_path / "joined"
    joined.mkdir()
    counts = merge(Workspace(joined), parts)
    assert content_digest(joined) == content_digest(tmp_path / "out")
    assert counts["topics"] == 5
    assert json.loads((parts[0] / "part.json").read_text())["counts"]["questions"] <= 5
