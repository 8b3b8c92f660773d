"""Question records survive the disk."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgqa_core.datasets.question import FILE, read_questions, write_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.types import Question

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
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_a_missing_damaged_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"questions.parquet is missing"):
        read_questions(tmp_path)
    (tmp_path / FILE).write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_questions(tmp_path)
    pl.DataFrame({"id": ["a"]}).write_parquet(tmp_path / FILE)
    with pytest.raises(ArtifactError, match="has other columns"):
        read_questions(tmp_path)
