"""The development set of quiz questions: what its list names, and what counts as a gold answer that is named."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.answers import quiz
from benchmarks.conditions import DATA
from kgqa_core.answering.reply import Answer

ROW: dict[str, Any] = {
    "answers": ["Cyril Ramaphosa", "Ann"],
    "names": ["Cyril Ramaphosa", "Ann", "C. Ramaphosa"],
    "type": None,
}


def reply(*answers: str, confidence: float | None = None) -> Answer:
    return Answer("1", "?", ", ".join(answers) or None, answers=answers, confidence=confidence)


def test_one_gold_answer_by_any_of_its_names_is_enough_and_an_answer_without_one_is_wrong() -> None:
    given = [reply("c. ramaphosa", "Bo"), reply("Bo", confidence=0.9), reply(), reply("Ann", "Cyril Ramaphosa")]
    assert [quiz.verdict(ROW, own) for own in given] == ["named", "wrong", "declined", "named"]
    shares = {name: own["share"] for name, own in quiz.figures([ROW] * 4, given).items()}
    assert shares == {"named": 0.5, "wrong": 0.25, "declined": 0.25, "exact": 0.25, "wrong_above_0.8": 0.25}


def test_the_list_names_a_hundred_questions_once_and_the_facts_of_mintaka() -> None:
    rows = quiz.listed()
    assert len({row[:2] for row in rows}) == len(rows) == quiz.NUMBER
    assert all(bool(facts) == (name == quiz.MINTAKA) for name, _, facts in rows)
    assert all(len(fact) == 3 for _, _, facts in rows for fact in facts)


@pytest.mark.skipif(not (DATA / "mintaka").is_dir(), reason="the shared data are not beside the checkout")
def test_every_question_of_the_list_is_in_the_shared_data_with_its_facts_in_the_graph() -> None:
    rows = quiz.rows(DATA)
    assert len(rows) == quiz.NUMBER and all(row["question"] and row["answers"] for row in rows)
    missing = {fact for _, _, facts in quiz.listed() for fact in facts}
    for triple in quiz.triples(DATA):
        missing.discard(triple)
    assert not missing
    label = set(quiz.labels(DATA).values())
    assert all(answer in label or answer in ("yes", "3") for row in rows for answer in row["answers"])
