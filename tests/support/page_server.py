"""The web page over a small graph and a system with given answers, on a port of loopback."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from kgqa_core.answering.reply import Answer, AnswerFact, AnswerTopic, RankedEntity
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.run import ImpatientProtocol, listen
from kgqa_core.serving.service import Service
from kgqa_core.types import Question
from tests.support.hostile import EVIL
from tests.support.question_graph import X
from tests.support.served import EchoSource, EchoSystem
from tests.support.served_graph import HOSTILE

DIRECTED, MAYOR, NEXT = "Who directed Night B1?", "Who is the mayor of Norland?", "And who starred in it?"
STARRED, EVILS, SLOW = "Who starred in Night C2?", "What does evil say?", "slow"


@dataclass
class PageSystem(EchoSystem):
    """Answers the questions above; `questions` has what it was asked."""

    questions: list[tuple[Question, float | None]] = field(default_factory=list)

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        self.questions += [(question, self.least) for question in questions]
        if any(question.text == SLOW for question in questions):
            time.sleep(2)
        return [self._one(question) for question in questions]

    def _one(self, question: Question) -> Answer:
        both = {"model": "auto", "knowledge": "hop_path/triples", "operation": "none", "calibrated": True}
        if question.text == MAYOR:
            topic = AnswerTopic(f"{X}c0", "Norland", "Norland", 0.71)
            sure = {"answerable": False, "confidence": 0.06, "min_confidence": 0.5} if self.least is None else {
                "answerable": True, "confidence": 0.06, "min_confidence": self.least}  # fmt: skip
            return Answer(question.id, question.text, "Ada Stone", answers=("Ada Stone",), topics=(topic,), **sure, **both,
                          **({"reason": "no such relation", "missing": "mayor", "nearest": "capital"}
                             if self.least is None else {}))  # fmt: skip
        if question.text == EVILS:
            return Answer(
                question.id, question.text, HOSTILE, answers=(HOSTILE, *EVIL), wording="\n".join(EVIL),
                topics=(AnswerTopic(f"{X}evil", HOSTILE, "evil", 0.5), *(AnswerTopic(one, one, "say") for one in EVIL)),
                facts=tuple(AnswerFact(one, 1, 0.5, 1) for one in EVIL), entities=(RankedEntity(HOSTILE, 0.5),),
                form=EVIL[0], proof=EVIL, proof_rows=len(EVIL), road=EVIL[1], answerable=True, confidence=0.9,
                min_confidence=0.5, **both)  # fmt: skip
        film, name = (f"{X}f2", "Night C2") if question.text == STARRED else (f"{X}f1", "Night B1")
        relation = "starred_actors" if question.text in (NEXT, STARRED) else "directed_by"
        if question.text == STARRED:  # as answerers that compute nothing
            both = {"model": "builtin", "knowledge": "rigel/triples", "calibrated": False}
            answers: tuple[str, ...] = ("Cleo Stone", "Hana Stone")
            return Answer(question.id, question.text, ", ".join(answers), answers=answers, answerable=True, confidence=1.0,
                          min_confidence=0.5, topics=(AnswerTopic(film, name),), **both)  # fmt: skip
        answers = ("Ben Stone",) if relation == "directed_by" else ("Ben Stone", "Eve Stone", "Hana Stone")
        return Answer(
            question.id, question.text, ", ".join(answers), answers=answers, topics=(AnswerTopic(film, name, name, 0.83),),
            facts=tuple(AnswerFact(f"({name}, {relation}, {one})", 1, 0.9, 1) for one in answers),
            entities=tuple(RankedEntity(one, 0.9) for one in answers), form=f"(JOIN (R <{X}{relation}>) <{film}>)",
            proof=tuple(f"({name}, {relation}, {one})" for one in answers), proof_rows=len(answers), road="labels",
            answerable=True, confidence=0.93, min_confidence=0.5, **both)  # fmt: skip


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
    bound = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, http=ImpatientProtocol, lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.05)
    try:
        yield PageServer(f"http://127.0.0.1:{bound.getsockname()[1]}", system, feedback)
    finally:
        server.should_exit = True
        thread.join(60)
        feedback.close()
        bound.close()
