"""Answers the questions of many clients with one system, and follows the champion.

What waits is answered together, as a batch, so that many clients cost little more than one.  What costs much is due
later and is answered alone, in one of two threads, and the other answers what else waits, so that a client who asks
long questions, or many, does not keep the others waiting.  A new champion is opened beside the old one and takes the
next batches, so that no request is lost.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from kgqa_core.answering.reply import Answer
from kgqa_core.errors import InputError, KgqaError, ServerBusy
from kgqa_core.linking.questions import dialogue_turns
from kgqa_core.question_limits import question_fault
from kgqa_core.serving.ask_record import Ask
from kgqa_core.serving.examples import MOST_TRIPLES, example_questions
from kgqa_core.serving.feedback import confirmed_questions
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.systems import SystemSource
from kgqa_core.system import System
from kgqa_core.tracing import OnStep, QuestionTrace, QuestionTracer
from kgqa_core.types import Question

log = logging.getLogger("kgqa")

EXAMPLES = "examples"
"""The client of questions that are made from the graph."""
WARMING = "What is this?"
"""A question that is asked before any client's, so that what is loaded at the first use is there."""
MOST_KNOWLEDGE = 4
"""Systems of other knowledge than the server's own that stay open."""
COST_CHARACTERS, DUE_SECONDS = 100, 0.2
"""Characters of a question that cost as much as asking it at all, and in how many seconds so much is due."""
BATCH_COST, COSTLY = 32.0, 8.0
"""Cost of the questions of one batch; and that of a question from which on it is answered alone."""
STUCK_SECONDS = 20.0
"""A server whose oldest question waits, or is being answered, for so long is not ready."""


@dataclass(frozen=True, slots=True)
class Served:
    """An answer, the run whose system gave it, and seconds: waiting for its batch, and answering the batch.

    batch: questions that were answered together.  stages: seconds of each step of the batch.  trace: id of its trace,
    where it was traced.  answer_id: by which feedback names the answer, where that is taken.
    """

    answer: Answer
    run: str
    waited: float
    answered: float
    batch: int
    stages: Mapping[str, float] = field(default_factory=dict)
    trace: str | None = None
    answer_id: str | None = None


class _Stages:
    """Seconds of the steps of each answer; hands on to another tracer what that wants."""

    def __init__(self, tracer: QuestionTracer) -> None:
        self.tracer = tracer
        self.seconds: list[dict[str, float]] = []
        self._wanted = False

    def wants(self) -> bool:
        """Every question."""
        self._wanted = self.tracer.wants()
        return True

    def record(self, trace: QuestionTrace) -> str | None:
        """Keep the seconds, and the trace where it is wanted."""
        self.seconds.append({span.name: round(span.seconds, 4) for span in trace.spans})
        return self.tracer.record(trace) if self._wanted else None


@dataclass(slots=True, eq=False)
class _Waiting:
    """A question that waits.  cost: as of a short one.  due: when, on the clock of `since`.  on_step: of a listener."""

    ask: Ask
    future: Future[Served]
    cost: float
    due: float
    since: float = field(default_factory=time.monotonic)
    on_step: OnStep | None = None

    @property
    def group(self) -> tuple[str | None, float | None, int]:
        return self.ask.knowledge, self.ask.min_confidence, self.ask.reading

    @property
    def costly(self) -> bool:
        return self.cost >= COSTLY


@dataclass
class _Opened:
    """The systems of one run, by knowledge; None is the server's own.  names: digest of those that the home gives its
    graph.  view: looks into its graph.  tracer: keeps traces of its answers."""

    run: str
    names: str
    name: str
    systems: dict[str | None, System]
    view: GraphView | None
    tracer: QuestionTracer
    examples: tuple[str, ...] | None = None


class Service:
    """The system of a home as a service; `start` opens it, `close` ends it when all that waits is answered.

    source: which run answers.  max_batch: questions that are answered together at most.  queue: that wait at most.
    poll_seconds: between two looks at who is champion.  threads: that answer.
    """

    def __init__(
        self,
        source: SystemSource,
        *,
        max_batch: int = 16,
        queue: int = 256,
        poll_seconds: float = 2.0,
        threads: int = 2,
    ) -> None:
        self.source, self.max_batch, self.queue, self.poll_seconds = source, max_batch, queue, poll_seconds
        self.threads = threads
        self.swaps = 0
        self.fault: str | None = None
        self._opened: _Opened | None = None
        self._opening = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._answering: list[_Waiting] = []
        self._due: dict[str, float] = {}
        self._some = threading.Condition()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._renewing, self._examining = threading.Lock(), threading.Lock()
        self._failed: tuple[str, str] | None = None

    def start(self, on_view: Callable[[GraphView | None], None] | None = None) -> None:
        """Opens the system and begins to answer.  Raises what `SystemSource.open` raises.

        on_view: is given what looks into the graph, before the networks and models are loaded.
        """
        self._opened = self._open(self.source.current(), on_view)
        for work in (*[self._answer_all] * self.threads, self._follow):
            self._threads.append(threading.Thread(target=work, name=f"kgqa-{work.__name__.strip('_')}", daemon=True))
            self._threads[-1].start()

    def close(self, seconds: float = 30.0) -> None:
        """Answers what waits, refuses what comes, and ends; after `seconds` what has no answer yet is refused."""
        self._ended.set()
        with self._some:
            self._some.notify_all()
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        with self._some:
            left, self._waiting = self._waiting, []
        for question in left:
            if question.future.set_running_or_notify_cancel():
                question.future.set_exception(ServerBusy("the server is stopping; ask again later"))

    @property
    def started(self) -> bool:
        """Whether a system is open, and the service not closed."""
        return self._opened is not None and not self._ended.is_set()

    @property
    def ready(self) -> bool:
        """Whether questions are answered, and soon."""
        oldest = min((question.since for question in (*self._answering, *self._waiting)), default=math.inf)
        return self.started and time.monotonic() - oldest < STUCK_SECONDS

    @property
    def run(self) -> str:
        """Id of the run whose system answers."""
        return self._system().run

    @property
    def name(self) -> str:
        """What clients call the system: the name of its graph."""
        return self._system().name

    @property
    def names(self) -> str:
        """Digest of the home's names that the graph of the system has, as of `SystemSource.names`."""
        return self._system().names

    @property
    def system(self) -> System:
        """The system that answers."""
        return self._system().systems[None]

    @property
    def view(self) -> GraphView:
        """Looks into the graph of the system that answers; several threads may.

        Raises InputError where that system reads no graph.
        """
        view = self._system().view
        if view is None:
            raise InputError("the system that answers reads no graph; start the server with other --knowledge")
        return view

    @property
    def waiting(self) -> int:
        """Questions that wait."""
        return len(self._waiting)

    def submit(self, asks: Sequence[Ask], client: str = "", on_step: OnStep | None = None) -> list[Future[Served]]:
        """The coming answers, in order; a future holds InputError where the question cannot be answered as asked.

        client: who asks; its questions are due one after the other.  on_step: is told the steps of one question.
        A future that is cancelled before its batch begins costs nothing.
        Raises ServerBusy when more would wait than may, or the server is stopping.
        """
        futures: list[Future[Served]] = [Future() for _ in asks]
        good: list[tuple[Ask, Future[Served]]] = []
        for ask, future in zip(asks, futures, strict=True):
            if fault := question_fault(ask.question, ask.topics, ask.dialogue):
                future.set_exception(InputError(fault))
            else:
                good.append((ask, future))
        with self._some:
            if self._ended.is_set() or self._opened is None:
                raise ServerBusy("the server is stopping or not ready; ask again later")
            self._waiting = [question for question in self._waiting if not question.future.cancelled()]
            if len(self._waiting) + len(good) > self.queue:
                raise ServerBusy(
                    f"{len(self._waiting)} questions wait and {self.queue} may; ask again later, or start the server "
                    "with a longer --queue or more --workers"
                )
            self._waiting.extend(self._queued(good, client, on_step))
            self._some.notify_all()
        return futures

    def _queued(
        self, asks: Sequence[tuple[Ask, Future[Served]]], client: str, on_step: OnStep | None
    ) -> Iterator[_Waiting]:
        """Questions of one client with their times."""
        now = time.monotonic()
        self._due = {name: due for name, due in self._due.items() if due > now}
        for ask, future in asks:
            letters = len(ask.question) + sum(len(text) for _, text in ask.dialogue)
            cost = 1 + letters / COST_CHARACTERS + len(ask.topics)
            self._due[client] = due = max(now, self._due.get(client, now)) + DUE_SECONDS * cost
            yield _Waiting(ask, future, cost, due, now, on_step)

    def ask(self, ask: Ask, timeout: float | None = None) -> Served:
        """The answer to one question, waited for.  Raises what `submit` and its future raise."""
        return self.submit([ask])[0].result(timeout)

    def answer(self, ask: Ask) -> Answer:
        """The answer alone: an `ask_record.AskSystem`."""
        return self.ask(ask).answer

    def examples(self) -> tuple[str, ...]:
        """Questions that the system answers rightly, made from its graph when they are first wanted.

        There are none of a large graph, or where answers are not computed, and may cost money.
        """
        opened = self._system()
        system, view = opened.systems[None], opened.view
        if view is None or view.counts["triples"] > MOST_TRIPLES or getattr(system, "calculator", None) is None:
            return ()
        with self._examining:
            if opened.examples is None:
                with suppress(InputError), closing(view.store()) as store:
                    opened.examples = example_questions(store, self._examined)
            return opened.examples or ()

    def _examined(self, texts: Sequence[str]) -> list[Answer]:
        """Answers to questions of our own, a few at a time beside those of clients."""
        futures = [self.submit([Ask(text)], EXAMPLES)[0] for text in texts]
        return [future.result(STUCK_SECONDS * 3).answer for future in futures]

    def _system(self) -> _Opened:
        if self._opened is None:
            raise ServerBusy("the server is not ready; ask again later")
        return self._opened

    def _open(self, run: str, on_view: Callable[[GraphView | None], None] | None = None) -> _Opened:
        names = self.source.names(run)
        system, view = self.source.open(run, on_view)
        if system.model is None and system.words is None:  # the first question of all costs a second, and no money
            system.ask(WARMING)
        return _Opened(run, names, self.source.name(run), {None: system}, view, self.source.tracer(run))

    # -- the answering threads

    def _answer_all(self) -> None:
        while True:
            with self._some:
                while not (batch := self._batch()):
                    if self._ended.is_set() and not self._waiting:
                        return
                    self._some.wait()
            self._answer(batch)
            with self._some:
                self._answering = [question for question in self._answering if question not in batch]
                self._some.notify_all()

    def _batch(self) -> list[_Waiting]:
        """The question that is due first, and with it the next that ask the same knowledge, confidence and reading.

        One that costs much is answered alone, and after another such: a thread is left for the others.
        """
        busy = self.threads > 1 and any(question.costly for question in self._answering)
        first = min((one for one in self._waiting if not (busy and one.costly)), key=lambda one: one.due, default=None)
        batch: list[_Waiting] = []
        rest: list[_Waiting] = []
        cost = 0.0
        for question in sorted(self._waiting, key=lambda question: question.due):
            fits = not question.costly and len(batch) < self.max_batch and cost + question.cost <= BATCH_COST
            if first is None or not (question is first if first.costly else fits) or question.group != first.group:
                rest.append(question)
            elif question.future.set_running_or_notify_cancel():
                batch.append(question)
                cost += question.cost
        self._waiting, self._answering = rest, [*self._answering, *batch]
        return batch or (self._batch() if first is not None else [])  # the first was cancelled meanwhile

    def _answer(self, batch: Sequence[_Waiting]) -> None:
        opened, began = self._system(), time.monotonic()
        try:
            answers, stages, traces = self._answers(opened, batch)
            rows = list(zip(answers, stages, strict=True))
        except Exception as fault:
            known = isinstance(fault, KgqaError)
            if len(batch) > 1 and (isinstance(fault, InputError) or not known):  # one of them: each on its own
                for question in batch:
                    self._answer([question])
                return
            if not known:
                log.exception("a question could not be answered")
            for question in batch:
                question.future.set_exception(fault)
            return
        seconds = time.monotonic() - began
        for question, (answer, step_seconds) in zip(batch, rows, strict=True):
            if answer.reject is not None:
                question.future.set_exception(opened.systems[None].failed(answer.reject))
                continue
            trace = traces.get(answer.id)
            question.future.set_result(
                Served(answer, opened.run, began - question.since, seconds, len(batch), step_seconds, trace)
            )

    def _answers(
        self, opened: _Opened, batch: Sequence[_Waiting]
    ) -> tuple[list[Answer], list[dict[str, float]], dict[str, str]]:
        """Answers, seconds of each step for each, and ids of traces by the answer's id."""
        asks = [one.ask for one in batch]
        knowledge, least = asks[0].knowledge, asks[0].min_confidence
        if knowledge == opened.systems[None].knowledge:
            knowledge = None
        if (system := opened.systems.get(knowledge)) is None:
            with self._opening:
                if knowledge not in opened.systems:
                    if len(opened.systems) > MOST_KNOWLEDGE:  # closed with the last answer that it is giving
                        del opened.systems[next(name for name in opened.systems if name is not None)]
                    opened.systems[knowledge] = self.source.with_knowledge(opened.run, str(knowledge))
                system = opened.systems[knowledge]
        if least is not None:
            system = system.at_confidence(least)
        if asks[0].reading:
            system = system.at_reading(asks[0].reading)
        questions = [
            Question(
                str(index), ask.question, language=system.language, topic_keys=ask.topics,
                dialogue=dialogue_turns(ask.dialogue),
            )
            for index, ask in enumerate(asks)
        ]  # fmt: skip
        stages, traces = _Stages(opened.tracer), dict[str, str]()
        confirmed = partial(confirmed_questions, self.source.home)
        listeners = {str(index): one.on_step for index, one in enumerate(batch) if one.on_step is not None}
        system = replace(system, tracer=stages, confirmed=confirmed, listeners=listeners)
        return system.answer(questions, traces), stages.seconds, traces

    # -- the following thread

    def _follow(self) -> None:
        while not self._ended.wait(self.poll_seconds):
            self.renew()

    def renew(self) -> None:
        """Opens what is to answer now, where that is another run or the names of its graph have changed.

        Where it cannot be opened, what answers goes on, and `fault` says why.
        """
        with self._renewing:
            run = None
            try:
                run = self.source.current()
                current = run, self.source.names(run)
                if current == self._failed:
                    return
                self._failed = None
                if current == (self.run, self._system().names):
                    self.fault = None
                    return
                self._failed = current
                opened = self._open(run)
            except Exception as fault:
                before = self.fault
                what = f"run {run} cannot be opened" if run is not None else "it is unknown which run is to answer"
                self.fault = f"{what}, and run {self.run} goes on: {fault}"
                if self.fault != before:
                    log.warning("%s", self.fault, exc_info=not isinstance(fault, KgqaError))
                return
            self.fault = self._failed = None
            log.info("run %s answers from now on, in place of %s", opened.run, self.run)
            self._opened = opened
            self.swaps += 1
