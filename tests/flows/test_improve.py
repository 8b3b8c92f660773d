"""`kgqa improve` asks again what was asked, and says what mends each answer that is none, or not sure."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli.improve import KINDS, _lines, fixes
from kgqa_core.answering.reply import Answer
from kgqa_core.serving.feedback import FeedbackStore, IssuedAnswer
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.types import ENTITY, RELATION, TYPE, UNREAD, UNSURE, NameSuggestion, OfferedReading
from tests.support.forked_command import forked_kgqa

LINE = "relations: {reports to: [boss]}"


def test_each_question_has_the_fix_that_its_answer_needs() -> None:
    meant = (NameSuggestion("boss", "reports to", LINE),)

    def answer(name: str, **given: Any) -> Answer:
        return Answer(name, f"question {name}?", "", answerable=False, **given)

    weak = [
        answer("a", reason=UNREAD, missing="former"),
        *(answer(name, reason=RELATION, missing="boss", suggestions=meant) for name in "bc"),
        answer("d", reason=UNSURE, confidence=0.3),
        Answer("g", "question g?", "Cy", answerable=True, confidence=0.2),
        answer("f", reason=TYPE, missing="ships"),
        answer("e", reason=ENTITY, missing="Narnia", nearest="Narva"),
    ]
    found = fixes(weak, {"d": ["Bo"], "g": ["Cy"], "e": []})
    assert found["names"] == [{"line": LINE, "questions": ["question b?", "question c?"]}]
    [unread], [first, unsure], [type_, missing] = (found[kind] for kind in (*KINDS[1:], KINDS[0]))
    assert unread["question"] == "question a?" and "{…: [former]}" in unread["fix"]
    assert unsure["correction"] == {"id": "2", "question": "question d?", "answers": ["Bo"]}
    assert first["correction"]["answers"] == ["Cy"], "the least sure first"
    assert missing["nearest"] == "Narva" and "entities: {Narva: [Narnia]}" in missing["fix"]
    assert "types: {…: [ships]}" in type_["fix"]
    printed = "\n".join(_lines({"questions": 9, "weak": 7, **found}))
    assert LINE in printed and "confidence 0.30" in printed and "Narnia (nearest: Narva)" in printed
    assert all(title in printed for title in ("Not in this graph", "Not understood", "Not sure"))
    assert "kgqa run" not in printed and "kgqa run" in "\n".join(_lines({"questions": 50, "weak": 20, **found}))


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("(JOIN (R <day rate>) saw)", "day rate"),
        ("(AND (JOIN category garden) (JOIN by Ann))", "…"),
        ("(TYPE item)", "…"),
    ],
)
def test_unread_words_are_a_name_of_the_one_relation_of_the_likeliest_reading(form: str, place: str) -> None:
    reading = OfferedReading("day rate of saw", ("9.50",), 1, 0.2, form)
    answer = Answer(
        "a", "What does the saw cost?", "", answerable=False, reason=UNREAD, missing="cost", readings=(reading,)
    )
    [row] = fixes([answer], {})["not_understood"]
    assert f"{{{place}: [cost]}}" in row["fix"] and ("types or values" in row["fix"]) is (place == "…")


def test_corrections_of_a_file_answer_a_file_and_questions_of_the_server_are_asked_again(tmp_path: Path) -> None:
    home, graph, right = tmp_path / "home", tmp_path / "books.tsv", tmp_path / "right.jsonl"
    graph.write_text("Ada Stone\twrote\tNight Ferry\nBo Lind\twrote\tThe Grey Harbour\n", encoding="utf-8")
    question = "whose quill was behind {}?"
    rows = [{"id": "1", "question": question.format("Night Ferry"), "answers": ["Ada Stone"]}]
    right.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    given = ["--kg", str(graph), "--home", str(home)]
    assert "no questions yet" in forked_kgqa("improve", *given).err
    assert forked_kgqa("feedback", "import", str(right), "--home", str(home)).code == 0
    with contextlib.closing(FeedbackStore(home / SERVE_FOLDER)) as store:
        store.issue([IssuedAnswer(question.format("The Grey Harbour")), IssuedAnswer("and of it?", earlier_turns=1)])
        store.issue([IssuedAnswer("what is the zodiac of Bo Lind?")] * 2)
    result = forked_kgqa("improve", *given, "--json").json
    assert (result["questions"], result["weak"]) == (2, 1)
    questions, out = tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    questions.write_text(question.format("The Grey Harbour") + "\n\n", encoding="utf-8")
    assert forked_kgqa("answer", *given, "--questions", str(questions), "--out", str(out)).code == 0
    assert json.loads(out.read_text(encoding="utf-8"))["answer"] == "Bo Lind"
