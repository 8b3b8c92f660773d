"""Answerers and formats of knowledge are those that a profile can name; a reply has the keys of the command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa_core.answering.forecast import ExplorationLimits
from kgqa_core.answering.registry import (
    ANSWERERS,
    KNOWLEDGE_FORMATS,
    answerer_name,
    answerer_spec,
    knowledge_spec,
    wording_model,
)
from kgqa_core.answering.reply import Answer, AnswerTopic, Effort
from kgqa_core.config import PASSAGES, Answerer, Profile
from kgqa_core.config.experiment import ANSWERER_KINDS, FORMATS


def test_the_formats_are_those_of_the_options() -> None:
    assert set(KNOWLEDGE_FORMATS) == {*FORMATS, PASSAGES}
    assert [name for name, spec in KNOWLEDGE_FORMATS.items() if not spec.facts] == ["none", "passages"]
    assert knowledge_spec("rigel@linked").name == "triples" and knowledge_spec("none").name == "none"


def test_the_answerers_are_those_of_the_options() -> None:
    assert set(ANSWERERS) == {"model", *ANSWERER_KINDS}
    for name, spec in ANSWERERS.items():
        kind = Answerer(name, "builtin")
        assert spec.computes == kind.computes and spec.reads != (kind.computes or kind.explores)
        assert kind.explores == bool(spec.explores) == bool(spec.explorer) == bool(spec.needs_why)
        limited = kind.explores and isinstance(spec.section(Profile()), ExplorationLimits)
        assert limited == ("openai" in spec.explores), "what asks an endpoint has limits, from which it is forecast"
    written = ("builtin", "openai:m", "auto", "auto:hf:x", "agent:openai:m@e", "gcr:hf:x")
    named = [answerer_spec(name).name for name in written]
    assert named == ["model", "model", "auto", "auto", "agent", "gcr"]
    assert [str(Answerer.parse(name)) for name in written] == list(written)
    assert answerer_name("agent:openai:m@e", "") == "agent:openai:m@e"
    for name, spec in ANSWERERS.items():
        assert not spec.explores or spec.section(Profile()) == getattr(Profile(), name)
    assert [wording_model(name) for name in ("auto:hf:x", "auto", "hf:x")] == ["hf:x", None, None]


ASK = ["question", "answer", "answers", "model", "knowledge", "text", "topics", "facts", "entities", "truncated"]
COMPUTED = ["operation", "form", "form_named", "computed", "proof", "proof_rows", "road"]
VERDICT = ["answerable", "confidence", "calibrated", "min_confidence", "reason", "missing", "nearest"]


def test_a_reply_has_the_keys_of_what_was_read_computed_and_judged() -> None:
    plain = Answer("q", "Where?", "Rome", topics=(AnswerTopic("Q1", "Italy"), AnswerTopic("Q2", "Rome", "rome", 0.5)))
    assert list(plain.to_dict()) == ASK and plain.answer == "Rome" and plain.model_answer is None
    assert plain.to_dict()["topics"] == [
        {"key": "Q1", "name": "Italy"}, {"key": "Q2", "name": "Rome", "mention": "rome", "rho": 0.5}
    ]  # fmt: skip
    judged = replace(plain, operation="count", proof=("(a, b, c)",), answerable=True, confidence=1.0, passages=())
    assert list(judged.to_dict()) == [*ASK, "passages", *COMPUTED, *VERDICT]
    assert judged.to_dict()["proof"] == ["(a, b, c)"]
    worded = replace(judged, answers=("Rome", "Milan"), wording="Rome and Milan.")
    assert worded.to_dict()["answers"] == ["Rome", "Milan"] and worded.to_row()["wording"] == "Rome and Milan."
    assert plain.to_dict()["answers"] == ["Rome"]
    explored = replace(plain, operation="agent", effort=Effort("answered", 3, 20, 4, ("looked",)))
    assert explored.to_dict()["effort"]["calls"] == 3 and explored.to_row()["effort"]["steps"] == ("looked",)
    assert list(judged.to_row()) == ["id", "question", "answer", "answers", "facts", "reject", *COMPUTED, *VERDICT]


@pytest.mark.parametrize(("changes", "shown"), [({"answerable": False}, "Rome"), ({"reject": "no topic"}, None)])
def test_an_answer_is_withheld(changes: dict[str, object], shown: str | None) -> None:
    withheld = replace(Answer("q", "Where?", "Rome"), **changes)  # type: ignore[arg-type]
    assert withheld.answer is None and withheld.to_row()["answer"] is None
    assert withheld.to_row().get("model_answer") == shown == withheld.model_answer
