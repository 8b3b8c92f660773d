"""An agent that explores the graph for many questions at once: policies in lock step, each request cached and booked.

All questions that wait for a reply are sent together, through `paid.generate_cached`: equal requests are one, a reply
that cannot be read is a spent attempt, and a run that was killed finds what was answered in the cache and goes on from
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kgqa_core.answering.exploration import End, Exploration, ExplorerInputs
from kgqa_core.config import AgentOptions
from kgqa_core.llm.cache import ResponseCache, open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import Outcome, PromptBatch, insist
from kgqa_core.llm.protocol import GenerationParams, LanguageModel
from kgqa_core.llm.tokens import estimate
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.peers.agent.forms import ParsedReply, UnreadableStep
from kgqa_core.papers.peers.agent.operations import ExplorationSession, NamedGraph
from kgqa_core.papers.peers.agent.policies import POLICIES, Policy, Progress, StepRequest
from kgqa_core.papers.peers.agent.protocols import PROTOCOLS
from kgqa_core.types import Question


@dataclass
class _Run:
    """A question under way."""

    question: Question
    session: ExplorationSession
    progress: Progress
    policy: Policy
    waiting: StepRequest | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreadable: int = 0
    end: End = "answered"
    answers: tuple[str, ...] | None = None
    prompt: str = field(default="", repr=False)

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class GraphAgent:
    """Explores the graph by the policy and in the protocol of its options.

    view: of the graph.  model: behind an endpoint.  cache: completions that were paid for.
    """

    def __init__(
        self,
        view: NamedGraph,
        model: LanguageModel,
        options: AgentOptions,
        *,
        attempts: int = 3,
        cache: ResponseCache | None = None,
    ) -> None:
        self.view, self.model, self.options, self.attempts = view, model, options, attempts
        self.cache = cache if cache is not None else ResponseCache()
        self.protocol = PROTOCOLS[options.protocol]
        self.params = GenerationParams(max_new_tokens=options.max_new_tokens)

    @classmethod
    def open(cls, inputs: ExplorerInputs) -> GraphAgent:
        """The agent of a profile.  Raises EndpointError."""
        options: AgentOptions = inputs.section
        model = load_model(inputs.model, inputs.llm, budget=inputs.budget)
        view = NamedGraph(inputs.dkg, inputs.store, options.shown)
        return cls(view, model, options, attempts=inputs.llm.attempts, cache=open_cache(inputs.cache))

    def explore(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Exploration]:
        """One exploration per question; one without a topic ends before it begins."""
        runs = [self._start(question) for question in questions]
        while waiting := [run for run in runs if run.waiting is not None]:
            for run in waiting:
                self._write(run)
            sent = [run for run in waiting if run.waiting is not None]
            for attempts in sorted({self._attempts(run) for run in sent}):
                self._send([run for run in sent if self._attempts(run) == attempts], attempts)
            monitor.progress(sum(run.waiting is None for run in runs), len(runs), "questions")
        return [self._finished(run) for run in runs]

    def _start(self, question: Question) -> _Run:
        session = ExplorationSession(self.view, question.topic_entities)
        progress = Progress()
        run = _Run(
            question, session, progress, POLICIES[self.options.policy](question.text, session, self.options, progress)
        )
        if not question.topic_entities:
            run.end = "no topic"
            return run
        progress.closing = self.options.calls == 1
        run.waiting = next(run.policy)
        return run

    def _attempts(self, run: _Run) -> int:
        """Completions that its next request may take, one being left for the answer."""
        left = self.options.calls - run.calls - (not run.progress.closing)
        return max(1, min(self.attempts, left))

    def _write(self, run: _Run) -> None:
        """The prompt of what a run waits for; the run ends where its limits have no room for that."""
        request = run.waiting
        assert request is not None
        run.prompt = self.protocol.request(request.system, request.user, request.turns, request.forms)
        most = run.tokens + estimate(run.prompt) + self.params.max_new_tokens
        if run.calls >= self.options.calls or most > self.options.tokens:
            run.end, run.waiting = "limit", None
            run.policy.close()

    def _send(self, runs: Sequence[_Run], attempts: int) -> None:
        forms = [run.waiting.forms for run in runs if run.waiting is not None]

        def fault(index: int, text: str) -> str | None:
            try:
                self.protocol.read(text, forms[index])
            except UnreadableStep as why:
                return str(why)
            return None

        batch = PromptBatch(
            [run.prompt for run in runs],
            self.params,
            cache=self.cache,
            validate=fault,
            attempts=attempts,
            retry_temperature=self.options.retry_temperature,
            what="explorations",
        )
        for run, outcome in zip(runs, insist(self.model, batch), strict=True):
            self._receive(run, outcome)

    def _receive(self, run: _Run, outcome: Outcome) -> None:
        assert run.waiting is not None
        run.calls += outcome.calls
        run.prompt_tokens += outcome.prompt_tokens
        run.completion_tokens += outcome.completion_tokens
        run.unreadable += len(outcome.spent)
        run.progress.steps += [f"unreadable: {why}" for why in outcome.spent]
        if outcome.failed:
            run.end, run.waiting = "error", None
            run.policy.close()
            return
        reply: ParsedReply | None = None
        if outcome.completion is not None:
            reply = self.protocol.read(outcome.completion.text, run.waiting.forms)
        run.progress.closing = run.calls + 1 >= self.options.calls
        last = reply is None
        try:
            run.waiting = run.policy.send(reply)
        except StopIteration as stop:
            run.waiting, run.answers = None, stop.value
            if run.answers is None:
                run.end = "unreadable" if last else "limit"

    def _finished(self, run: _Run) -> Exploration:
        entities = [run.session.find(name) for name in run.answers or ()]
        known = [entity for entity in entities if entity is not None]
        names, keys = self.view.entity_names(known), self.view.store.entity_keys(known) if known else {}
        rows: dict[str, str] = {}
        for entity, written in zip(entities, run.answers or (), strict=True):
            if entity is not None:
                rows.setdefault(keys[entity], names[entity])
            elif written.strip():
                rows.setdefault(written.strip(), written.strip())
        return Exploration(
            run.question.id,
            run.end,
            tuple(rows.values()),
            tuple(rows),
            run.session.facts(known),
            tuple(run.progress.steps),
            run.calls,
            run.prompt_tokens,
            run.completion_tokens,
            run.session.operations,
            run.progress.refused,
            run.unreadable,
        )
