"""The web page over a small graph and a system with given answers, on a port of loopback."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgqa_core.answering.reply import Answer, AnswerFact, AnswerTopic, RankedEntity
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.service import Service
from kgqa_core.types import NameSuggestion, OfferedReading, Question
from tests.support.hostile import EVIL
from tests.support.question_graph import X
from tests.support.served import EchoSource, EchoSystem, listening
from tests.support.served_graph import HOSTILE

DIRECTED, MAYOR, NEXT = "Who directed Night B1?", "Who is the mayor of Norland?", "And who starred in it?"
MADE, OLD = "Who made Night B1?", "Which old boss made Night B1?"
STARRED, EVILS, SLOW = "Who starred in Night C2?", "What does evil say?", "slow"


@dataclass
class PageSystem(EchoSystem):
    """Answers the questions above; `questions` has what it was asked."""

    questions: list[tuple[Question, float | None]] = field(default_factory=list)

    def answer(self, questions: Sequence[Question], traces: dict[str, str] | None = None) -> list[Answer]:
        self.questions += [(question, self.least) for question in questions]
        if any(question.text == SLOW for question in questions):
            time.sleep(2)
        super().answer(questions, traces)  # which records its spans
        return [self._one(question) for question in questions]

    def _one(self, question: Question) -> Answer:
        if question.text == MAYOR:
            return self._mayor(question)
        if question.text == EVILS:
            return _hostile(question)
        if question.text == STARRED:  # as answerers that compute nothing
            names = ("Cleo Stone", "Hana Stone")
            return Answer(
                question.id, question.text, ", ".join(names), answers=names,
                topics=(AnswerTopic(f"{X}f2", "Night C2"),), model="builtin", knowledge="rigel/triples",
                answerable=True, calibrated=False,
            )  # fmt: skip
        if question.text in (MADE, OLD) and not self.reading:
            return _offering(question)
        film, name = f"{X}f1", "Night B1"
        relation = "starred_actors" if question.text == NEXT else "directed_by"
        names = ("Ben Stone", "Eve Stone", "Hana Stone") if question.text == NEXT else ("Ben Stone",)
        triples = tuple(f"({name}, {relation}, {one})" for one in names)
        return Answer(
            question.id, question.text, ", ".join(names), answers=names, **AUTO,
            topics=(AnswerTopic(film, name, name, 0.83),), facts=tuple(AnswerFact(one, 1, 0.9, 1) for one in triples),
            entities=tuple(RankedEntity(one, 0.9) for one in names), form=f"(JOIN (R <{X}{relation}>) <{film}>)",
            proof=triples, proof_rows=len(triples), road="labels", answerable=True, confidence=0.93, min_confidence=0.5,
        )  # fmt: skip

    def _mayor(self, question: Question) -> Answer:
        said = Answer(
            question.id, question.text, "Ada Stone", answers=("Ada Stone",), **AUTO, answerable=True, confidence=0.06,
            topics=(AnswerTopic(f"{X}c0", "Norland", "Norland", 0.71),), min_confidence=self.least,
        )  # fmt: skip
        why = {"reason": "no such relation", "missing": "mayor", "nearest": "capital"}
        return said if self.least is not None else replace(said, answerable=False, min_confidence=0.5, **why)


AUTO: dict[str, Any] = {"model": "auto", "knowledge": "hop_path/triples", "operation": "none", "calibrated": True}


def _offering(question: Question) -> Answer:
    """A decline with two readings; of OLD for a word that was not read."""
    words = ("director of Night B1", "actor of Night B1")
    readings = tuple(OfferedReading(one, ("Ben Stone",), 2, 0.3, "(f)") for one in words)
    why = {"reason": "not sure"} if question.text == MADE else {"reason": "not understood", "missing": "old, boss"}
    meant = (NameSuggestion("boss", "director", "relations: {directed by: [boss]}"),) if question.text == OLD else ()
    return Answer(
        question.id, question.text, "", answers=(), **AUTO, answerable=False, confidence=0.3, min_confidence=0.5,
        topics=(AnswerTopic(f"{X}f1", "Night B1", "Night B1", 0.83),), readings=readings, suggestions=meant, **why,
    )  # fmt: skip


def _hostile(question: Question) -> Answer:
    mentioned = tuple(AnswerTopic(one, one, "say") for one in EVIL)
    return Answer(
        question.id, question.text, HOSTILE, answers=(HOSTILE, *EVIL), wording="\n".join(EVIL), **AUTO,
        topics=(AnswerTopic(f"{X}evil", HOSTILE, "evil", 0.5), *mentioned),
        facts=tuple(AnswerFact(one, 1, 0.5, 1) for one in EVIL), entities=(RankedEntity(HOSTILE, 0.5),),
        form=EVIL[0], proof=EVIL, proof_rows=len(EVIL), road=EVIL[1], answerable=True, confidence=0.9,
        min_confidence=0.5,
    )  # fmt: skip


@dataclass(frozen=True)
class PageServer:
    """Where the page is, who answers, and where feedback goes."""

    address: str
    system: PageSystem
    feedback: FeedbackStore


@contextlib.contextmanager
def page_server(view: GraphView | None, folder: Path, token: str | None = None) -> Iterator[PageServer]:
    """A server of the page, as `kgqa serve` runs one."""
    system, feedback = PageSystem(), FeedbackStore(folder / "feedback")
    source = EchoSource(one=system)
    source.looked_into = view
    app = create_app(Service(source, poll_seconds=5), HttpOptions(token=token), feedback)
    with contextlib.closing(feedback), listening(app) as address:
        yield PageServer(address, system, feedback)
