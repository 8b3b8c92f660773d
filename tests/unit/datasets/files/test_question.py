"""Question records survive the disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from kgqa_core.datasets.files.question import FILE, OPTIONAL, SCHEMA, read_questions, write_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.store.digest import content_digest
from kgqa_core.types import LEVELS, ROLES, Question
from tests.support.examples import examples

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
QUESTIONS = st.builds(
    Question,
    id=TEXT,
    text=TEXT,
    split=st.sampled_from(["train", "dev", "test"]),
    language=TEXT,
    topic_keys=TEXTS,
    topic_entities=st.lists(st.integers(0, 2**31), max_size=3).map(tuple),
    answer_keys=TEXTS,
    answers=st.lists(st.integers(0, 2**31), max_size=3).map(tuple),
    answer_names=st.lists(TEXTS, max_size=3).map(tuple),
    relation_paths=st.lists(TEXTS, max_size=3).map(tuple),
    s_expression=st.none() | TEXT,
    complexity=st.none() | TEXT,
    hops=st.none() | st.integers(0, 9),
    source=TEXT,
    unlinkable=st.none() | TEXT,
    topic_weights=st.lists(st.floats(0, 1), max_size=3).map(tuple),
    level=st.none() | st.sampled_from(LEVELS),
    dialogue=st.lists(st.tuples(st.sampled_from(ROLES), TEXT), max_size=2).map(tuple),
    reference=st.none() | TEXT,
    gold_triples=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=2).map(tuple),
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions=st.lists(QUESTIONS, max_size=6, unique_by=lambda question: question.id))
def test_what_is_written_is_read_in_order_of_id(tmp_path: Path, questions: list[Question]) -> None:
    write_questions(tmp_path, questions)
    expected = sorted(questions, key=lambda question: question.id)
    assert read_questions(tmp_path) == expected
    assert read_questions(tmp_path / FILE) == expected


def test_order_of_writing_leaves_no_trace(tmp_path: Path) -> None:
    questions = [Question(id=f"q{n}", text="t", answer_names=(("a", "b"),)) for n in range(20)]
    write_questions(tmp_path, questions)
    before = (tmp_path / FILE).read_bytes()
    write_questions(tmp_path, reversed(questions))
    assert (tmp_path / FILE).read_bytes() == before


def test_questions_without_the_optional_fields_have_the_digest_that_they_always_had(tmp_path: Path) -> None:
    # The digest was taken before there were optional fields: it is in the keys of everything that was made since.
    questions = [
        Question(
            id="a",
            text="who?",
            topic_keys=("A",),
            topic_entities=(0,),
            answer_keys=("B", "C"),
            answers=(1, 2),
            answer_names=(("B", "b"), ("C",)),
            relation_paths=(("r", "s"),),
            hops=2,
            source="x",
        ),
        Question(
            id="b",
            text="何?",
            split="train",
            language="zh",
            answer_type="number",
            complexity="count",
            unlinkable="no topic entity",
        ),
    ]
    write_questions(tmp_path, questions)
    texts, ids = pl.List(pl.String), pl.List(pl.Int64)
    assert pl.read_parquet_schema(tmp_path / FILE) == {
        **dict.fromkeys(("id", "text", "split", "language"), pl.String), "topic_keys": texts, "topic_entities": ids,
        "answer_type": pl.String, "answer_keys": texts, "answers": ids, "answer_names": pl.List(texts),
        "relation_paths": pl.List(texts), "s_expression": pl.String, "complexity": pl.String, "hops": pl.Int32,
        "source": pl.String, "unlinkable": pl.String,
    }  # fmt: skip
    assert pl.read_parquet(tmp_path / FILE).row(0) == (
        "a", "who?", "test", "en", ["A"], [0], "entities", ["B", "C"], [1, 2], [["B", "b"], ["C"]], [["r", "s"]],
        None, None, 2, "x", None,
    )  # fmt: skip
    digest = "4112a849d7d703b172a327309e3ec2fd5c93f0dbb23c48bb7bc35a5962e585a8"
    assert content_digest(tmp_path) == digest, "columns and values are the same, so `content_digest` itself has changed"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topic_weights", (0.25, 0.5)),
        ("level", "III"),
        ("dialogue", (("user", "who?"), ("agent", "her"))),
        ("reference", "It is her."),
        ("gold_triples", (("a", "r", "b"), ("b", "s", "c"))),
    ],
)
def test_an_optional_field_is_a_column_where_one_question_has_it(tmp_path: Path, name: str, value: Any) -> None:
    questions = [Question(id="a", text="?"), replace(Question(id="b", text="?"), **{name: value})]
    write_questions(tmp_path, questions)
    assert list(pl.read_parquet_schema(tmp_path / FILE)) == [*SCHEMA.names, name]
    assert read_questions(tmp_path) == questions
    assert name in OPTIONAL.names


def test_a_missing_damaged_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"questions.parquet is missing"):
        read_questions(tmp_path)
    (tmp_path / FILE).write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_questions(tmp_path)
    pl.DataFrame({"id": ["a"]}).write_parquet(tmp_path / FILE)
    with pytest.raises(ArtifactError, match="has other columns"):
        read_questions(tmp_path)


def test_a_file_is_read_again_where_it_was_written_again(tmp_path: Path) -> None:
    one, other = Question("q1", "one"), Question("q1", "another of more words")
    write_questions(tmp_path, [one])
    first = read_questions(tmp_path)
    first.clear()  # the caller's own
    assert read_questions(tmp_path) == [one]
    write_questions(tmp_path, [other])
    assert read_questions(tmp_path) == [other]
