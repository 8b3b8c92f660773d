"""What a stage is going to ask of a model: its own functions run against a `Recorder`, which sends nothing.

A recorder counts the prompts that `paid.generate_cached` would send, without those that the cache holds, and answers
with texts of the expected length, so that later prompts, which hold these answers, have the right size.  Lengths of
outputs, repeats and speed are measured on completions that the cache has of the same model and template, where there
are enough; until then each is an assumption, and two further recordings, with the shortest and the longest answers,
give a range.
"""

from __future__ import annotations

import math
from collections import Counter as Counts
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean, linear_regression

from kgqa_core.config import LlmOptions
from kgqa_core.llm.cache import Identity
from kgqa_core.llm.factory import identify
from kgqa_core.llm.paid import Outcome, PromptBatch, peek, send
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
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

OPENING = 10
"""Characters by which prompts of one template are known: no two wordings of `prompts` but those of LTGen share them.

The shortest, `Question: `, has as many before its first variable."""

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

HITS = 0.8
"""Assumed share of texts from which a QA model answers, for the calls of second and further texts."""

WRONG = "."
"""Stands for an answer that is no hit."""

ESTIMATED = "tokens estimated: one for four ASCII characters, two others, one East Asian (llm.tokenizers counts them)"


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
class CompletionStats:
    """What the cache shows of a model's completions of one template; zero completions where it has none.

    prompt_ratio: tokens of prompts as the model counts them over ours.  base, slope: completion tokens as a line of
    ours of the prompt; text_base, text_slope: likewise our tokens of the texts.  spent: share of completions that were
    rejected.  seconds: between completions, pauses left out.
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


def measure(batch: PromptBatch, identity: Identity | None, count: Callable[[str], int]) -> CompletionStats:
    """What the latest completions of a model to prompts of a batch's template show, for outputs of its limit."""
    if identity is None:
        return CompletionStats()
    latest = batch.responses.latest(identity, opening_of(batch.prompts), LATEST)
    rows = [row for row in latest if row.max_new_tokens == batch.params.max_new_tokens]
    good = [row for row in rows if row.accepted and row.completion_tokens > 0]
    if len(good) < ENOUGH:
        return CompletionStats(len(good))
    ours = [float(count(row.prompt)) for row in good]
    base, slope = _line(ours, [float(row.completion_tokens) for row in good])
    text_base, text_slope = _line(ours, [float(count(row.text)) for row in good])
    times = sorted(row.stored for row in rows)
    gaps = [after - before for before, after in zip(times, times[1:], strict=False) if after - before < PAUSE]
    return CompletionStats(
        len(good), sum(row.prompt_tokens for row in good) / max(1.0, sum(ours)), base, slope, text_base, text_slope,
        sum(not row.accepted for row in rows) / len(rows), fmean(gaps) if gaps else None,
    )  # fmt: skip


Sent = dict[tuple[str, GenerationParams, str, int], Outcome]
"""What stands for completions that were counted, by model, parameters, prompt and sample: each is paid once."""


@dataclass(frozen=True)
class Assumed:
    """What a recorder assumes of completions that are not written.

    text: the answer where the caller of `generate_cached` expects none.  length: how its length was guessed, in words.
    prompts: what is assumed of prompts that hold such texts, in words.
    """

    text: str = WRONG
    length: str = ""
    prompts: str = ""


class Recorder:
    """A model that sends nothing: it counts what would be sent and paid, and answers with texts of expected lengths.

    end: 0 and 1 for the lowest and highest of a range, None for what is expected.  known: whether the cache may hold
    completions of it.  reads: the recorders whose answers its prompts hold.  sent: shared by recorders of one end.
    """

    def __init__(
        self, stage: str, spec: str, llm: LlmOptions, end: int | None = None, assumed: Assumed | None = None, *,
        known: bool = True, reads: Sequence[Recorder] = (), sent: Sent | None = None,
    ) -> None:  # fmt: skip
        self.stage, self.name, self.llm, self.end = stage, spec, llm, end
        self.assumed, self.reads = assumed or Assumed(), reads
        self.sent: Sent = {} if sent is None else sent
        self._others = frozenset(self.sent)
        self.revision, self.batch_sensitive = "", not at_endpoint(spec)
        self.identity = identify(spec, llm) if known else None
        self.count, self.counted = counter(spec, llm)
        self.calls = self.prompt_tokens = self.completion_tokens = 0.0
        self.cached, self.attempts, self.measured = 0, 1, CompletionStats()
        self.hits: float | None = None
        self.hits_measured = self.hits_guessed = False
        self._shared: Counts[str] = Counts()

    def generate(self, prompts: Sequence[str], *_: object) -> list[Completion]:
        """The usual answer to each prompt."""
        return [Completion(self.assumed.text)] * len(prompts)

    def record(self, batch: PromptBatch) -> list[Outcome]:
        """Counts the prompts that would be sent; what stands for their outcomes."""
        held = peek(self.identity, batch)
        measured = measure(batch, self.identity, self.count)
        self._expect_hits(batch, held)
        items = list(zip(batch.prompts, batch.samples or [0] * len(held), strict=True))
        outcomes: dict[tuple[str, int], Outcome] = {}
        for index, (item, outcome) in enumerate(zip(items, held, strict=True)):
            key = (self.name, batch.params, *item)
            if item in outcomes:
                continue
            if outcome.cached or key in self.sent:
                self.cached += outcome.cached or key in self._others
                outcomes[item] = outcome if outcome.cached else self.sent[key]
            else:
                self.measured, self.attempts = measured, batch.attempts
                outcomes[item] = self.sent[key] = self._count(batch, index, item[1])
        return [outcomes[item] for item in items]

    def _expect_hits(self, batch: PromptBatch, held: Sequence[Outcome]) -> None:
        """What share of answers are hits: of those that the cache holds, or as assumed."""
        hit = batch.expected.hit if batch.expected is not None else None
        if hit is None:
            return
        if self.hits is not None:
            self.hits_guessed = not self.hits_measured
            return
        known = [hit(index, own.completion) for index, own in enumerate(held) if own.completion is not None]
        self.hits_measured = len(known) >= ENOUGH
        self.hits = fmean(known) if self.hits_measured else HITS if self.end is None else 1.0 - self.end

    def _count(self, batch: PromptBatch, index: int, sample: int) -> Outcome:
        """Counts one prompt; what stands for its outcome."""
        measured, params, expected, end = self.measured, batch.params, batch.expected, self.end
        text = (expected.text(index) if expected else self.assumed.text).strip() or WRONG
        prompt, length = self.count(batch.prompts[index]), self.count(text)
        spent, units, around = measured.spent, 1.0, 0
        if measured.enough:
            output, size = measured.base + measured.slope * prompt, measured.text_base + measured.text_slope * prompt
        else:
            size = max(1.0, length)
            if end is not None:
                size *= (TEXTS if expected and expected.hit is None else ANY)[end]
                units, spent = 1.0 if self.counted else TOKENIZERS[end], REJECTED * end
            around = CHAT[1 if end is None else 2 * end] if at_endpoint(self.name) else 0
            output = size * units
        calls = repeated(spent, batch.attempts)
        self.calls += calls
        self.prompt_tokens += calls * (measured.prompt_ratio * units * prompt + around)
        self.completion_tokens += calls * min(max(1.0, output), params.max_new_tokens)
        if batch.validate is not None and measured.enough and self._is_due("rejected", spent**batch.attempts):
            return Outcome(None, ("rejected",) * batch.attempts)
        if expected is not None and expected.hit is not None:
            return Outcome(Completion(WRONG if self._is_due("missed", 1.0 - (self.hits or 0.0)) else text))
        characters = max(1, round(len(text) * min(max(1.0, size), params.max_new_tokens) / max(1, length)))
        text = (f"{text} " * (characters // len(text) + 1))[:characters]
        start = sample % len(text)  # texts of other samples are others
        return Outcome(Completion(text[start:] + text[:start]))

    def _is_due(self, name: str, share: float) -> bool:
        """Whether the next prompt belongs to a share of all, which is spread evenly."""
        self._shared[name] += 1
        return math.floor(self._shared[name] * share + 1e-9) > math.floor((self._shared[name] - 1) * share + 1e-9)

    @property
    def guessed(self) -> bool:
        """Whether anything that was counted rests on an assumption."""
        unsure = not self.measured.enough or self.hits_guessed or any(each.guessed for each in self.reads)
        return self.calls > 0 and unsure

    @property
    def amount(self) -> Amount:
        """What was counted, with its price."""
        price, tokens = self.llm.prices.get(self.name), (self.prompt_tokens, self.completion_tokens)
        cost = None if price is None else (tokens[0] * price.prompt + tokens[1] * price.completion) / 1e6
        return Amount(math.ceil(self.calls - 1e-9), round(tokens[0]), round(tokens[1]), cost)

    def plan(self, low: Recorder, high: Recorder) -> StagePlan:
        """The plan of what was recorded.  low, high: the recorders of both ends."""
        total, measured, remote = self.amount, self.measured, at_endpoint(self.name)
        seconds = self.calls * (measured.seconds or SECONDS_A_CALL / self.llm.concurrency)
        if not remote:
            seconds = (self.prompt_tokens + self.completion_tokens) / LOCAL_TOKENS_A_SECOND
        notes = {
            ESTIMATED: not self.counted and not measured.enough,
            self.assumed.length: not measured.enough,
            f"{HITS:.0%} of texts are answered from": self.hits_guessed,
            f"{CHAT[1]} tokens a prompt for the chat template": remote and not measured.enough,
            "no completion is rejected": self.attempts > 1 and not measured.enough,
            f"{LOCAL_TOKENS_A_SECOND:,.0f} tokens a second": not remote,
            f"{SECONDS_A_CALL:g} s a request, {self.llm.concurrency} at once": remote and measured.seconds is None,
            self.assumed.prompts: any(each.guessed for each in self.reads),
        }
        return StagePlan(
            self.stage, self.name, total.calls, total.prompt_tokens, total.completion_tokens, self.cached, total.cost,
            seconds, self.counted, tuple(note for note, holds in notes.items() if note and holds and self.calls),
            *([low.amount, high.amount] if self.guessed else []),
        )  # fmt: skip


class Pilot:
    """A model that is sent some of the prompts of each call of `generate_cached`; the others have no text.

    number: of the prompts that are sent; a larger number draws others besides.
    """

    def __init__(self, model: LanguageModel, number: int, seed: int) -> None:
        self.model, self.number, self.seed, self.generate = model, number, seed, model.generate
        self.name, self.revision, self.batch_sensitive = model.name, model.revision, model.batch_sensitive

    def record(self, batch: PromptBatch) -> list[Outcome]:
        """Sends some of the prompts, as `generate_cached` does."""
        unique = list(dict.fromkeys(batch.prompts))
        Random(f"pilot/{self.seed}").shuffle(unique)
        drawn, validate, samples = set(unique[: self.number]), batch.validate, batch.samples
        chosen = [index for index, prompt in enumerate(batch.prompts) if prompt in drawn]
        part = replace(
            batch, prompts=[batch.prompts[index] for index in chosen], what="pilot",
            samples=samples and [samples[index] for index in chosen],
            validate=validate and (lambda index, text: validate(chosen[index], text)),
        )  # fmt: skip
        sent = dict(zip(chosen, send(self.model, part), strict=True))
        without = Outcome(None, ("not sent",)) if validate else Outcome(Completion("", "empty"))
        return [sent.get(index, without) for index in range(len(batch.prompts))]


Row = Recorder | StagePlan
"""A recorder, or the plan of a stage whose artifact is there."""


def recorded(
    record: Callable[[int | None], Sequence[Row]], sent: dict[int | None, Sent] | None = None
) -> list[StagePlan]:
    """The plans of the rows of `record`: called for what is expected and, where that is a guess, for both ends.

    sent: of each end, where recorders share it.
    """
    rows = low = high = record(None)
    if any(isinstance(row, Recorder) and row.guessed for row in rows):
        low, high = record(0), record(1)
    elif sent is not None:
        sent |= {end: sent[end] | sent[None] for end in (0, 1)}
    return [
        row.plan(*ends) if isinstance(row, Recorder) else row  # type: ignore[arg-type]
        for row, *ends in zip(rows, low, high, strict=True)
    ]


def opening_of(prompts: Sequence[str]) -> str:
    """What most prompts begin with: the first characters of their template."""
    [(opening, _)] = Counts(prompt[:OPENING] for prompt in prompts).most_common(1) or [("", 0)]
    return opening


def repeated(spent: float, attempts: int) -> float:
    """Completions that one prompt takes, when each is rejected with a chance `spent` and `attempts` are made."""
    return float(sum(spent**attempt for attempt in range(max(1, attempts))))


def at_endpoint(model: str) -> bool:
    """Whether a model is behind an endpoint: only there do requests cost, so only there is a pilot worth it."""
    return model.startswith("openai:")


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Least squares; a falling line becomes level."""
    slope = max(0.0, linear_regression(x, y).slope) if len(set(x)) > 1 else 0.0
    return fmean(y) - slope * fmean(x), slope
