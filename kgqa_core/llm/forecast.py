"""What a stage is going to ask of a model: calls, tokens, money and time, without what the cache holds.

Lengths of outputs, repeats and speed are measured on completions that the cache has of the same model and the same
template, where there are enough; until then each is an assumption, and the plan says which it made and what would come
out were it wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from kgqa_core.config import LlmOptions
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import Identity, ResponseCache, open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import ask
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.llm.tokens import counter
from kgqa_core.monitor import QUIET, Monitor

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


TEXTS = (0.5, 2.0)
"""Lengths of texts that are not written yet, over those of the template's sentences, that a range covers.

Of 14,489 texts that ChatGPT wrote for Retrieve-Rewrite-Answer, 98 in 100 are within; those of one data set together are
0.8 to 1.0 times as long as the template's."""

ANY = (0.0, math.inf)
"""Lengths of outputs of which nothing is known but that they have a token and end at their limit."""

TOKENIZERS = (0.6, 1.5)
"""Tokens of a text over the estimate by its characters that a range covers.

A vocabulary of 30,000 English pieces has 0.8 to 1.1 on prompts of ours; DeepSeek names 0.6 for Chinese."""

CHAT = (0, 7, 30)
"""Tokens that an endpoint's chat template puts around a prompt: fewest, assumed (OpenAI's models), most (with a line
for the system)."""

REJECTED = 0.1
"""Share of completions that may be rejected by the upper end of a range; of ChatGPT's texts 0.2 to 1.1 % would be."""


@dataclass(frozen=True, slots=True)
class Amount:
    """One end of a plan's range."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What one stage is going to ask one model.

    calls: completions still to be paid for, those that will be rejected and requested again included.  cached: prompts
    whose completion the cache holds.  cost: by llm.prices, None without a price.  seconds: at the measured or assumed
    speed.  counted: whether prompt tokens are counted with the model's tokenizer.  assumptions: what was not measured.
    low, high: what it would be with shorter or longer outputs, fewer or more rejects; None where all is measured.
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
    low: Amount | None = None
    high: Amount | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What the cache shows of a model's completions of one template; zero completions where it has none.

    prompt_ratio: tokens of prompts as the model counts them over ours.  base, slope: completion tokens as a line of
    ours of the prompt; text_base, text_slope: likewise tokens of the texts, counted as by `measure`'s reader.
    spent: share of completions that were rejected.  seconds: between completions, pauses left out.
    """

    completions: int = 0
    prompt_ratio: float = 1.0
    base: float = 0.0
    slope: float = 0.0
    text_base: float = 0.0
    text_slope: float = 0.0
    spent: float = 0.0
    seconds: float | None = None

    @property
    def enough(self) -> bool:
        """Whether there is enough to go by."""
        return self.completions >= ENOUGH


@dataclass(slots=True)
class Wanted:
    """Prompts that a stage still has to send, as tokens: a weight for each, the chance that it is sent at all.

    outputs: tokens of each answer where nothing is measured.  texts: tokens of each prompt that stand for a text not
    written yet.  unsure: whether a prompt's weight is a guess.  cached: prompts that need not be sent.
    """

    prompts: list[float] = field(default_factory=list)
    outputs: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    texts: list[float] = field(default_factory=list)
    unsure: list[bool] = field(default_factory=list)
    cached: int = 0

    def add(
        self, prompt_tokens: float, output_tokens: float, weight: float = 1.0, *, text: float = 0.0,
        unsure: bool = False,
    ) -> None:  # fmt: skip
        """One more prompt."""
        self.prompts.append(prompt_tokens)
        self.outputs.append(output_tokens)
        self.weights.append(weight)
        self.texts.append(text)
        self.unsure.append(unsure)


def measure(
    cache: ResponseCache | None, identity: Identity | None, opening: str, params: GenerationParams,
    count: Callable[[str], int], reader: Callable[[str], int] | None = None,
) -> Measured:  # fmt: skip
    """What the latest completions of a model to prompts that begin with `opening` show, for outputs of one limit.

    reader: counts the texts as the model that is to read them does; `count` when absent.
    """
    if cache is None or identity is None:
        return Measured()
    latest = cache.latest(identity, opening, LATEST)
    rows = [row for row in latest if row.max_new_tokens == params.max_new_tokens]
    good = [row for row in rows if row.accepted and row.completion_tokens > 0]
    if len(good) < ENOUGH:
        return Measured(len(good), spent=0.0)
    ours = [float(count(row.prompt)) for row in good]
    base, slope = _line(ours, [float(row.completion_tokens) for row in good])
    text_base, text_slope = _line(ours, [float((reader or count)(row.text)) for row in good])
    times = sorted(row.stored for row in rows)
    gaps = [after - before for before, after in zip(times, times[1:], strict=False) if after - before < PAUSE]
    return Measured(
        len(good), sum(row.prompt_tokens for row in good) / max(1.0, sum(ours)), base, slope, text_base, text_slope,
        sum(not row.accepted for row in rows) / len(rows), sum(gaps) / len(gaps) if gaps else None,
    )  # fmt: skip


def plan(
    stage: str, model: str, wanted: Wanted, measured: Measured, llm: LlmOptions, params: GenerationParams, *,
    attempts: int = 1, assumed: str = "", between: tuple[float, float] = TEXTS,
) -> StagePlan:  # fmt: skip
    """The plan of some prompts.  attempts: completions of one prompt that may be rejected.  assumed: how the outputs'
    lengths were guessed where nothing is measured.  between: how many times as long as guessed they may be."""
    _, counted = counter(model, llm) if wanted.prompts or wanted.cached else (len, True)
    remote = model.startswith("openai:")
    around = CHAT if remote and not measured.enough else (0, 0, 0)
    calls, prompt_tokens, completion_tokens = _amount(
        wanted, measured, params, repeated(measured.spent, attempts), around=around[1]
    )  # fmt: skip
    assumptions = _assumptions(measured, calls, counted, remote, llm, attempts, assumed)
    if not remote:
        seconds = (prompt_tokens + completion_tokens) / LOCAL_TOKENS_A_SECOND
    elif measured.seconds is not None:
        seconds = calls * measured.seconds
    else:
        seconds = calls * SECONDS_A_CALL / llm.concurrency

    def rounded(calls: float, prompt_tokens: float, completion_tokens: float) -> Amount:
        price = llm.prices.get(model)
        cost = None if price is None else (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1e6
        return Amount(math.ceil(calls - 1e-9), round(prompt_tokens), round(completion_tokens), cost)

    found = rounded(calls, prompt_tokens, completion_tokens)
    ends: list[Amount | None] = [None, None]
    if calls and (not measured.enough or any(wanted.texts) or any(wanted.unsure)):
        for end in (0, 1):
            repeats = repeated(measured.spent if measured.enough else REJECTED * end, attempts)
            units = 1.0 if counted or measured.enough else TOKENIZERS[end]
            ends[end] = rounded(*_amount(wanted, measured, params, repeats, end, between[end], units, around[2 * end]))
    return StagePlan(
        stage, model, found.calls, found.prompt_tokens, found.completion_tokens, wanted.cached, found.cost, seconds,
        counted, assumptions, *ends,
    )  # fmt: skip


def _amount(
    wanted: Wanted, measured: Measured, params: GenerationParams, repeats: float, end: int | None = None,
    length: float = 1.0, units: float = 1.0, around: int = 0,
) -> tuple[float, float, float]:  # fmt: skip
    """Calls, prompt tokens and completion tokens, as expected or at one end of the range.

    length: of outputs over what was guessed, where nothing is measured.  units: tokens over ours.  around:
    tokens around each prompt.
    """
    weights = wanted.weights
    if end is not None:
        weights = [float(end) if unsure else own for own, unsure in zip(weights, wanted.unsure, strict=True)]
    longer = 0.0 if end is None else TEXTS[end] - 1.0
    prompts = [own + longer * text for own, text in zip(wanted.prompts, wanted.texts, strict=True)]
    if measured.enough:
        outputs = [max(1.0, measured.base + measured.slope * tokens) for tokens in prompts]
    else:
        outputs = wanted.outputs if end is None else [max(1.0, tokens) * length * units for tokens in wanted.outputs]
    outputs = [min(max(1.0, tokens), params.max_new_tokens) for tokens in outputs]
    calls = repeats * sum(weights)
    prompt_tokens = repeats * measured.prompt_ratio * units * _dot(prompts, weights) + around * calls
    return calls, prompt_tokens, repeats * _dot(outputs, weights)


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
    if not counted and not measured.enough:
        found.append(
            "tokens estimated: one for four ASCII characters, two others, one East Asian (llm.tokenizers counts them)"
        )
    if not measured.enough:
        if assumed:
            found.append(assumed)
        if remote:
            found.append(f"{CHAT[1]} tokens a prompt for the chat template")
        if attempts > 1:
            found.append("no completion is rejected")
    if not remote:
        found.append(f"{LOCAL_TOKENS_A_SECOND:,.0f} tokens a second")
    elif measured.seconds is None:
        found.append(f"{SECONDS_A_CALL:g} s a request, {llm.concurrency} at once")
    return tuple(found)


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Least squares; a falling line becomes level."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0
    slope = max(0.0, slope)
    return mean_y - slope * mean_x, slope


def _dot(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


T = TypeVar("T")


def at_endpoint(model: str) -> bool:
    """Whether a model is behind an endpoint: only there do requests cost, so only there is a pilot worth it."""
    return model.startswith("openai:")


def some(everything: Sequence[T], number: int, seed: int) -> list[T]:
    """`number` of some things in their order, drawn with the seed; a larger number draws others besides."""
    places = list(range(len(everything)))
    Random(f"pilot/{seed}").shuffle(places)
    return [everything[place] for place in sorted(places[:number])]


def ask_some(
    model: str, prompts: Sequence[str], params: GenerationParams, number: int, llm: LlmOptions, *, seed: int,
    cache: Path | None, budget: Budget | None = None, monitor: Monitor = QUIET,
) -> None:  # fmt: skip
    """Asks `number` of a stage's prompts, unless the model is a local one.

    Raises BudgetReached after all that was paid for is kept, EndpointError, StorageError.
    """
    if at_endpoint(model) and prompts:
        sample = some(prompts, number, seed)
        ask(
            load_model(model, llm, budget=budget),
            sample,
            params,
            cache=open_cache(cache),
            monitor=monitor,
            what="pilot",
        )
