"""Feedback is kept without the person, and counts when two agree or one is confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.datasets.jsonl import read_question_file
from kgqa_core.errors import InputError, StorageError
from kgqa_core.serving.feedback import FILE, Feedback, FeedbackStore, write_lessons


@pytest.fixture
def store(tmp_path: Path) -> FeedbackStore:
    return FeedbackStore(tmp_path / "serve")


def down(correction: tuple[str, ...] | None, session: str, question: str = "Capital of Bolivia?") -> Feedback:
    return Feedback(question, "down", ("Bolivia",), ("La Paz",), correction, session=session)


def up(answers: tuple[str, ...], session: str) -> Feedback:
    return Feedback(
        "capital of bolivia", "up", ("Bolivia",), answers, form="(JOIN (R capital) <Bolivia>)", session=session
    )


def test_one_voice_does_not_count_and_two_that_agree_do(store: FeedbackStore) -> None:
    store.add(down(("Sucre",), "a"))
    store.add(down(("Sucre",), "a"))
    assert store.lessons() == [], "the same session twice is one voice"
    store.add(down(("Sucre",), "b"))
    [lesson] = store.lessons()
    assert (lesson.question, lesson.topics, lesson.answers) == ("Capital of Bolivia?", ("Bolivia",), ("Sucre",))
    assert (lesson.by, lesson.confirmed) == (2, False)


def test_a_thumb_up_agrees_with_a_correction_that_says_the_same(store: FeedbackStore) -> None:
    store.add(down(("Sucre",), "a"))
    store.add(up(("Sucre",), "b"))
    [lesson] = store.lessons()
    assert lesson.answers == ("Sucre",) and lesson.form == "(JOIN (R capital) <Bolivia>)"


def test_names_and_keys_of_one_thing_are_one_answer(store: FeedbackStore) -> None:
    keys = {"Sucre": "Q2907", "La Paz": "Q1491"}
    store.add(down(("Sucre",), "a").in_keys(keys))
    store.add(down(("Q2907",), "b").in_keys(keys))
    [lesson] = store.lessons()
    assert lesson.answers == ("Q2907",) and store.rows()[0]["answers"] == ["Q1491"]


def test_voices_in_balance_count_for_neither(store: FeedbackStore) -> None:
    for session, answer in (("a", "Sucre"), ("b", "Sucre"), ("c", "La Paz"), ("d", "La Paz")):
        store.add(down((answer,), session))
    assert store.lessons() == []
    store.add(down(("Sucre",), "e"))
    assert [lesson.answers for lesson in store.lessons()] == [("Sucre",)]


def test_who_changes_his_mind_has_one_voice(store: FeedbackStore) -> None:
    store.add(down(("La Paz",), "a"))
    store.add(down(("Sucre",), "a"))
    store.add(down(("La Paz",), "b"))
    assert store.lessons() == []
    store.add(down(("Sucre",), "b"))
    assert [lesson.answers for lesson in store.lessons()] == [("Sucre",)]


def test_a_confirmed_entry_counts_by_itself_and_against_many(store: FeedbackStore) -> None:
    number = store.add(down(("Sucre",), "a"))
    for session in "bcd":
        store.add(down(("La Paz",), session))
    store.confirm(number)
    assert [(lesson.answers, lesson.confirmed) for lesson in store.lessons()] == [(("Sucre",), True)]
    store.remove(number)
    assert [lesson.answers for lesson in store.lessons()] == [("La Paz",)]
    for other in (99, 0, -1, 10**40, -(10**40)):
        with pytest.raises(InputError, match=f"no feedback {other};"):
            store.confirm(other)
        with pytest.raises(InputError, match=f"no feedback {other};"):
            store.remove(other)


def test_a_thumb_down_without_a_correction_says_nothing_of_what_is_right(store: FeedbackStore) -> None:
    store.add(down(None, "a"))
    store.add(down(None, "b"))
    assert store.lessons() == [] and len(store.rows()) == 2


def test_feedback_that_contradicts_itself_is_refused(store: FeedbackStore) -> None:
    with pytest.raises(InputError, match="comes with the verdict down"):
        store.add(Feedback("q", "up", answers=("a",), correction=("b",)))
    with pytest.raises(InputError, match="confirms answers"):
        store.add(Feedback("q", "up"))
    assert store.rows() == []


def test_the_session_is_kept_as_a_digest_and_the_time_as_a_day(store: FeedbackStore) -> None:
    store.add(down(("Sucre",), "ada@example.org"))
    store.close()
    raw = store.path.read_bytes()
    assert b"ada@example.org" not in raw and b"Sucre" in raw
    [row] = FeedbackStore(store.path.parent).rows()
    assert len(row["at"]) == len("2026-01-01") and len(row["session"]) == 16


def test_lessons_are_a_question_file_whose_name_follows_its_content(store: FeedbackStore, tmp_path: Path) -> None:
    for session in "ab":
        store.add(down(("Sucre",), session))
        store.add(down(("Brasília",), session, "Capital of Brazil?"))
    path = write_lessons(tmp_path, store.lessons())
    assert path == write_lessons(tmp_path, list(reversed(store.lessons())))
    rows = read_question_file(path)
    assert sorted((row["question"], *row["answers"], row["split"]) for row in rows) == [
        ("Capital of Bolivia?", "Sucre", "train"), ("Capital of Brazil?", "Brasília", "train"),
    ]  # fmt: skip


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 500)
    with pytest.raises(StorageError, match=r"feedback\.sqlite cannot be used"):
        FeedbackStore(tmp_path)
