"""A question of a client, and a typed answer as tools and pages show it: bounded, without what the model read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from kgqa_core.answering.reply import Answer, AnswerFact, AnswerTopic
from kgqa_core.serving.graph_records import GraphRecord
from kgqa_core.types import NameSuggestion

MOST_FACTS = 50
"""Retrieved facts, and texts of proof, that a record holds."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of a client; fields as of `System.ask`.

    knowledge: `retriever/format` in place of the server's.  min_confidence: in [0, 1], in place of the system's.
    """

    question: str
    topics: tuple[str, ...] = ()
    dialogue: tuple[tuple[str, str], ...] = ()
    knowledge: str | None = None
    min_confidence: float | None = None


AskSystem = Callable[[Ask], Answer]
"""Answers a question with a system that is open; it is called from several threads, and raises KgqaError."""


@dataclass(frozen=True)
class AskResult(GraphRecord):
    """The answer to a question, and what it rests on.

    answer: None where the graph does not hold it; then reason, missing and nearest say why, model_answer what was
    withheld, and suggestions what words that were not read may mean, each with a line of a names file.  answers: as a
    list of names or values.  proof: the triples that the answer rests on, of which there are `proof_rows`.  facts: what
    was retrieved for the question, of which there are `facts_total`.  form: the logical form
    that was computed; `query` takes it.  confidence: in [0, 1], that the answer, given or withheld, is right (where an
    abstainer judges: that the graph holds it), null where it is not calibrated or there is no answer to be sure of;
    min_confidence: the answer is given from this confidence on.  topics: entities that the question is about, with the
    words that name them.
    """

    question: str
    answer: str | None
    answers: tuple[str, ...]
    topics: tuple[AnswerTopic, ...]
    proof: tuple[str, ...]
    proof_rows: int
    facts: tuple[AnswerFact, ...]
    facts_total: int
    form: str | None
    road: str | None
    wording: str | None
    model: str
    knowledge: str
    answerable: bool | None
    confidence: float | None
    calibrated: bool | None
    min_confidence: float | None
    reason: str | None
    missing: str | None
    nearest: str | None
    suggestions: tuple[NameSuggestion, ...]
    model_answer: str | None
    seconds: float

    @classmethod
    def of(cls, answer: Answer, seconds: float) -> AskResult:
        """The record of an answer that took so long."""
        given: dict[str, Any] = {
            "answers": tuple(answer.listed), "proof": answer.proof[:MOST_FACTS], "facts": answer.facts[:MOST_FACTS],
            "facts_total": len(answer.facts), "seconds": round(seconds, 3),
        }  # fmt: skip
        names = [one.name for one in fields(cls)]
        return cls(**{name: given[name] if name in given else getattr(answer, name) for name in names})
