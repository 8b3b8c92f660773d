"""What a stage is going to ask of a model: calls, tokens, money and time, without what the cache holds.

Lengths of outputs, repeats and speed are measured on completions that the cache has of the same model and the same
template, where there are enough; until then each is an assumption, and the plan says which it made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kgqa_core.config import LlmOptions
from kgqa_core.llm.cache import Identity, ResponseCache
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.llm.tokens import counter

ENOUGH = 20
"""Completions in the cache from which something is measured."""

SECONDS_A_CALL = 2.0
"""Assumed time of one request to an endpoint."""

LOCAL_TOKENS_A_SECOND = 2_000.0
"""Assumed tokens that a local model reads and writes in a second."""

PAUSE = 10.0
"""Seconds without a new completion that count as a pause between runs."""

LATEST = 2_000
"""Completions that are looked at to measure."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What one stage is going to ask one model.

    calls: completions still to be paid for, those that will be rejected and asked again included.  cached: prompts
    whose completion the cache holds.  cost: by llm.prices, None without a price.  seconds: at the measured or assumed
    speed.  counted: whether prompt tokens are counted with the model's tokenizer.  assumptions: what was not measured.
    """

    stage: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached: int = 0
    cost: float | None = None
    seconds: float = 0.0
    counted: bool = True
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """What the cache tells of a model's completions of one template; zero completions where it tells nothing.

    prompt_ratio: tokens of prompts as the model counts them over ours.  base, slope: completion tokens as a line of
    ours of the prompt.  spent: share of completions that were rejected.  seconds: between completions, pauses left out.
    """

    completions: int = 0
    prompt_ratio: float = 1.0
    base: float = 0.0
    slope: float = 0.0
    spent: float = 0.0
    seconds: float | None = None

    @property
    def enough(self) -> bool:
        """Whether there is enough to go by."""
        return self.completions >= ENOUGH


@dataclass(slots=True)
class Wanted:
    """Prompts that a stage still has to ask, as tokens: a weight for each, the chance that it is asked at all.

    outputs: tokens of each answer where nothing is measured.  cached: prompts that need not be asked.
    """

    prompts: list[float] = field(default_factory=list)
    outputs: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    cached: int = 0

    def add(self, prompt_tokens: float, output_tokens: float, weight: float = 1.0) -> None:
        """One more prompt."""
        self.prompts.append(prompt_tokens)
        self.outputs.append(output_tokens)
        self.weights.append(weight)


def measure(
    cache: ResponseCache | None, identity: Identity | None, opening: str, params: GenerationParams,
    count: Callable[[str], int],
) -> Measured:  # fmt: skip
    """What the latest completions of a model to prompts that begin with `opening` tell, for outputs of one limit."""
    if cache is None or identity is None:
        return Measured()
    rows = cache._store.read(
        "SELECT prompt, prompt_tokens, completion_tokens, state, stored, params FROM responses WHERE backend = ? AND "
        "endpoint = ? AND model = ? AND substr(prompt, 1, ?) = ? ORDER BY stored DESC LIMIT ?",
        [identity.backend, identity.endpoint, identity.model, len(opening), opening, LATEST],
    )
    rows = [row for row in rows if json.loads(row[5]).get("max_new_tokens") == params.max_new_tokens]
    good = [row for row in rows if row[3] == "accepted" and row[2] > 0]
    if len(good) < ENOUGH:
        return Measured(len(good), spent=0.0)
    ours = [float(count(row[0])) for row in good]
    base, slope = _line(ours, [float(row[2]) for row in good])
    times = sorted(row[4] for row in rows)
    gaps = [after - before for before, after in zip(times, times[1:], strict=False) if after - before < PAUSE]
    return Measured(
        len(good), sum(row[1] for row in good) / max(1.0, sum(ours)), base, slope,
        sum(row[3] == "spent" for row in rows) / len(rows), sum(gaps) / len(gaps) if gaps else None,
    )  # fmt: skip


def plan(
    stage: str, model: str, wanted: Wanted, measured: Measured, llm: LlmOptions, params: GenerationParams, *,
    attempts: int = 1, assumed: str = "",
) -> StagePlan:  # fmt: skip
    """The plan of some prompts.  attempts: completions of one prompt that may be rejected.  assumed: how the outputs'
    lengths were guessed where nothing is measured."""
    _, counted = counter(model, llm) if wanted.prompts or wanted.cached else (len, True)
    repeats = repeated(measured.spent, attempts)
    calls = sum(wanted.weights) * repeats
    prompt_tokens = repeats * measured.prompt_ratio * _dot(wanted.prompts, wanted.weights)
    if measured.enough:
        outputs = [max(1.0, measured.base + measured.slope * tokens) for tokens in wanted.prompts]
    else:
        outputs = wanted.outputs
    outputs = [min(tokens, params.max_new_tokens) for tokens in outputs]
    completion_tokens = repeats * _dot(outputs, wanted.weights)
    remote = model.startswith("openai:")
    assumptions = _assumptions(measured, calls, counted, remote, llm, attempts, assumed)
    price = llm.prices.get(model)
    cost = None if price is None else (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1e6
    if not remote:
        seconds = (prompt_tokens + completion_tokens) / LOCAL_TOKENS_A_SECOND
    elif measured.seconds is not None:
        seconds = calls * measured.seconds
    else:
        seconds = calls * SECONDS_A_CALL / llm.concurrency
    return StagePlan(
        stage, model, math.ceil(calls - 1e-9), round(prompt_tokens), round(completion_tokens), wanted.cached, cost,
        seconds, counted, assumptions,
    )  # fmt: skip


def repeated(spent: float, attempts: int) -> float:
    """Completions that one prompt takes, when each is rejected with a chance `spent` and `attempts` are made."""
    return float(sum(spent**attempt for attempt in range(max(1, attempts))))


def opening_of(template: str, placeholder: str) -> str:
    """What every prompt of a template begins with."""
    return template.split(placeholder)[0]


def _assumptions(
    measured: Measured, calls: float, counted: bool, remote: bool, llm: LlmOptions, attempts: int, assumed: str
) -> tuple[str, ...]:
    if not calls:
        return ()
    found = []
    if not counted:
        found.append("tokens estimated: one for four ASCII characters, one for any other (llm.tokenizers counts them)")
    if not measured.enough:
        if assumed:
            found.append(assumed)
        if attempts > 1:
            found.append("no completion is rejected")
    if not remote:
        found.append(f"{LOCAL_TOKENS_A_SECOND:,.0f} tokens a second")
    elif measured.seconds is None:
        found.append(f"{SECONDS_A_CALL:g} s a request, {llm.concurrency} at once")
    return tuple(found)


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Least squares; a falling line is taken as level."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0
    slope = max(0.0, slope)
    return mean_y - slope * mean_x, slope


def _dot(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))
