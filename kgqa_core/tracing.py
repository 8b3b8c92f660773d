"""How a question was answered, step by step, without knowing who keeps it.

`System` takes a `QuestionTracer`; the tasks hand it one that writes to MLflow.  A trace is made after the answer, from
values that the steps had anyway, so that a question that is not traced costs a few looks at the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Span:
    """One step of answering a question.

    name: `linking`, `retrieval`, `knowledge`, `forms`, `model` or `wording`.  started: seconds since 1970.  seconds: of
    the step; questions that are answered together share it.  inputs, outputs: plain values.  prompt_tokens,
    completion_tokens: of a language model, None for other steps.
    """

    name: str
    started: float
    seconds: float
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionTrace:
    """A question, its answer and the steps between, oldest first.

    inputs, outputs: what was asked and answered, as plain values.  attributes: what traces are searched by, such as
    `road` and `confidence`; None where there is none.  batch: questions that were answered together.
    """

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    started: float
    seconds: float
    spans: Sequence[Span]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1


OnStep = Callable[[str, Mapping[str, Any]], None]
"""Called with a step and plain values while a question is answered: `linked` (topics), `understood` (form, and `named`
the same with names), `written` (text: what a language model has written more)."""


class QuestionTracer(Protocol):
    """Keeper of traces."""

    def wants(self) -> bool:
        """Whether the question at hand is to be traced; called once for each question."""

    def record(self, trace: QuestionTrace) -> str | None:
        """Keep a trace; its id, or None where it has none.  Raises nothing."""


class NoTracer:
    """Keeps nothing."""

    def wants(self) -> bool:
        """No question is traced."""
        return False

    def record(self, trace: QuestionTrace) -> str | None:
        """Ignored."""
        return None


NO_TRACER = NoTracer()


class StepClock:
    """When each step of a batch, which begins now, began (seconds since 1970) and how long it took."""

    def __init__(self) -> None:
        self.started, self._began = time.time(), time.monotonic()
        self.steps: dict[str, tuple[float, float]] = {}

    @property
    def seconds(self) -> float:
        """Since the batch began."""
        return time.monotonic() - self._began

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what runs inside as a step."""
        began = self.seconds
        try:
            yield
        finally:
            self.steps[name] = (self.started + began, self.seconds - began)
