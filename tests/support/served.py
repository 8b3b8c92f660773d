"""A system that answers by a function, and a source of such systems, for tests of what is around them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvicorn

from kgqa_core.answering.reply import Answer
from kgqa_core.errors import EndpointError, InputError, KgqaError
from kgqa_core.serving.addresses import bind
from kgqa_core.serving.guard import Guard
from kgqa_core.serving.http import create_app
from kgqa_core.serving.run import ImpatientProtocol, worker_options
from kgqa_core.serving.service import Service
from kgqa_core.store.artifacts import Home
from kgqa_core.tracing import NO_TRACER, QuestionTrace, Span
from kgqa_core.types import Question


def echo(question: Question) -> str:
    """The question itself; `nowhere` is no topic."""
    if "nowhere" in question.topic_keys:
        raise InputError("topic entity 'nowhere' is not in this graph")
    return question.text


@dataclass
class EchoSystem:
    """Answers each question by `reply`; `batches` has the sizes of the batches.  gate: waited for before each."""

    reply: Callable[[Question], str] = echo
    batches: list[int] = field(default_factory=list)
    gate: threading.Event | None = None
    least: float | None = None
    reading: int = 0
    knowledge: str = "own/triples"
    model: Any = None
    words: Any = None
    language: str = "en"
    tracer: Any = NO_TRACER
    confirmed: Any = tuple
    listeners: Any = field(default_factory=dict)

    def ask(self, text: str) -> Answer:
        return Answer("warm", text, text)

    def failed(self, why: str) -> KgqaError:
        return EndpointError(why)

    def at_confidence(self, least: float) -> EchoSystem:
        return replace(self, least=least)

    def at_reading(self, number: int) -> EchoSystem:
        return replace(self, reading=number)

    def answer(self, questions: Sequence[Question], traces: dict[str, str] | None = None) -> list[Answer]:
        if self.gate is not None:
            self.gate.wait(30)
        for question in (one for one in questions if one.id in self.listeners):
            self.listeners[question.id]("linked", {"topics": []})
            self.listeners[question.id]("understood", {"form": "Q1", "named": question.text})
        texts = [self.reply(question) for question in questions]
        self.batches.append(len(questions))
        for question in questions:
            if self.tracer.wants():
                spans = [Span("linking", 0.0, 0.25), Span("forms", 0.25, 0.5)]
                name = self.tracer.record(QuestionTrace({}, {}, 0.0, 0.75, spans))
                if name is not None and traces is not None:
                    traces[question.id] = name
        return [
            Answer(question.id, question.text, text, answers=(text,), proof=(f"(a, says, {text})",), proof_rows=7,
                   operation="none", min_confidence=self.least, answerable=True, confidence=0.9, calibrated=True,
                   reject="the language model failed: 500" if text == "failing" else None)
            for question, text in zip(questions, texts, strict=True)
        ]  # fmt: skip


class EchoSource:
    """Systems by run; `run` is the champion now, `broken` runs cannot be opened."""

    def __init__(self, **systems: EchoSystem) -> None:
        self.systems = systems or {"one": EchoSystem()}
        self.run = next(iter(self.systems))
        self.broken: set[str] = set()
        self.opened: list[tuple[str, str | None]] = []
        self.looked_into: Any = None
        self.traced_by: Any = NO_TRACER
        self.home, self.called = Home(Path("no-home")), "toy"

    def current(self) -> str:
        return self.run

    def tracer(self, run: str) -> Any:
        return self.traced_by

    def record_of(self, run: str) -> dict[str, Any]:
        return {"profile": {"kg": {"name": "toy"}}}

    def names(self, run: str) -> str:
        return ""

    def name(self, run: str) -> str:
        return self.called

    def open(self, run: str, on_view: Any = None) -> tuple[EchoSystem, Any]:
        if on_view is not None:
            on_view(self.looked_into)
        return self._opened(run, None), self.looked_into

    def with_knowledge(self, run: str, knowledge: str) -> EchoSystem:
        return self._opened(run, knowledge)

    def _opened(self, run: str, knowledge: str | None) -> EchoSystem:
        self.opened.append((run, knowledge))
        if run in self.broken:
            raise InputError(f"run {run} is damaged")
        return self.systems[run]


def echo_worker() -> Guard:
    """The application of one worker of several."""
    return create_app(Service(EchoSource()), worker_options().http())  # type: ignore[arg-type]


@contextlib.contextmanager
def listening(app: Any) -> Iterator[str]:
    """An application on loopback; its address without path."""
    bound = bind("127.0.0.1", 0)
    bound.listen(128)
    config = uvicorn.Config(
        app, http=ImpatientProtocol, log_config=None, access_log=False, timeout_graceful_shutdown=2
    )  # fmt: skip
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(20)
        bound.close()
        assert not thread.is_alive()
