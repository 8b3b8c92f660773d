"""An answer as a text, in a notebook, as plain values and as a table."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl

from kgqa_core.answering.reply import SHOWN, Answer, Answers, AnswerTopic, refusal_text
from kgqa_core.types import ENTITY, REASONS, TYPE, UNREAD, UNSURE, OfferedReading

MARKUP = '<b onmouseover="x">& Co'
GIVEN = Answer(
    "1", "Who runs <it>?", MARKUP, topics=(AnswerTopic("it", "It"),), operation="none", answers=(MARKUP,),
    proof=(f"(It, run by, {MARKUP})",), proof_rows=1, answerable=True, confidence=0.934, calibrated=True,
)  # fmt: skip
WITHHELD = replace(GIVEN, answerable=False, confidence=None, reason=ENTITY, missing="Atlantis", nearest="Atlanta")


def test_the_text_of_an_answer_is_one_line_with_the_answer_or_why_there_is_none() -> None:
    assert repr(GIVEN) == f"<Answer to 'Who runs <it>?': {MARKUP!r}, confidence 0.93>"
    assert repr(WITHHELD) == (
        "<Answer to 'Who runs <it>?': not in this graph: entity not found: Atlantis (nearest: Atlanta)>"
    )
    assert repr(replace(WITHHELD, reject="the question takes longer")).endswith(": the question takes longer>")
    unread = replace(WITHHELD, reason=UNREAD, missing="former, late", nearest=None, confidence=0.2)
    assert repr(unread) == "<Answer to 'Who runs <it>?': I did not understand “former”, “late”>"


def test_a_decline_is_of_one_of_three_kinds_which_its_record_its_text_and_a_table_have() -> None:
    unsure = replace(WITHHELD, reason=UNSURE, confidence=0.219, min_confidence=0.4, missing=None, nearest=None)
    offered = replace(unsure, readings=(OfferedReading("who leads it", ("A", "B"), 3, 0.219, "(JOIN leads it)"),))
    kinds = {replace(WITHHELD, reason=reason).declined for reason in (*REASONS, TYPE)}
    assert kinds == {"not in this graph"} == {WITHHELD.to_dict()["declined"]}
    assert (unsure.declined, replace(unsure, reason=UNREAD).declined) == ("not sure", "not understood")
    assert GIVEN.declined is replace(unsure, reject="late").declined is None and "declined" not in GIVEN.to_dict()
    assert refusal_text(unsure.to_dict()) == f"I am not sure (confidence 0.21, needs 0.40): {MARKUP}"
    shown = "I am not sure (confidence 0.21, needs 0.40)\n1. who leads it: A, B and 1 more (0.21)"
    assert offered.decline == refusal_text(offered.to_dict()) == shown
    unlikely = replace(offered, readings=(replace(offered.readings[0], confidence=0.004),))
    assert str(unlikely.decline).endswith("who leads it: A, B and 1 more (< 0.01)")
    unread = refusal_text(replace(offered, reason=UNREAD, missing="old").to_dict())
    assert (
        unread
        == "I did not understand “old”\nwithout these words it may mean:\n1. who leads it: A, B and 1 more (0.21)"
    )
    assert Answers([unsure, GIVEN]).to_polars()["declined"].to_list() == ["not sure", None]


def test_a_notebook_shows_values_confidence_and_folded_proof_as_text_and_no_markup_of_the_graph() -> None:
    html = GIVEN._repr_html_()
    assert "<b onmouseover" not in html and html.count("&lt;b onmouseover=&quot;x&quot;&gt;&amp; Co") == 2
    assert "Who runs &lt;it&gt;?" in html and "confidence 0.93" in html
    assert "<details><summary>Proof: 1 fact</summary>" in html
    withheld = WITHHELD._repr_html_()
    assert MARKUP not in withheld and "entity not found: Atlantis" in withheld and "<details>" not in withheld
    many = replace(GIVEN, answers=tuple(map(str, range(SHOWN + 2))))._repr_html_()
    assert f"<li>{SHOWN - 1}</li>" in many and f"<li>{SHOWN}</li>" not in many and "… 2 more" in many
    both = Answers([GIVEN, WITHHELD])._repr_html_()
    assert html in both and withheld in both


def test_plain_values_go_through_json_unchanged() -> None:
    for answer in (GIVEN, WITHHELD):
        assert json.loads(json.dumps(answer.to_dict())) == answer.to_dict()
    assert GIVEN.to_dict()["answers"] == [MARKUP] and WITHHELD.to_dict()["model_answer"] == MARKUP


def test_a_table_has_a_row_an_answer_and_the_same_columns_without_any() -> None:
    table = Answers([GIVEN, WITHHELD, Answer("3", "What?", None, reject="the question is empty")]).to_polars()
    assert table["answer"].to_list() == [MARKUP, None, None] and table["id"].to_list() == ["1", "1", "3"]
    assert table["answers"].to_list() == [[MARKUP], [], []] and table["reason"].to_list() == [None, ENTITY, None]
    assert table["proof"][0].to_list() == [GIVEN.proof[0]] and table["confidence"].dtype == pl.Float64
    assert Answers().to_polars().schema == table.schema
