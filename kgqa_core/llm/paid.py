"""Completions that are never paid twice: every call of a stage to a language model goes through `generate_cached`.

Completions are cached as they come; a killed run goes on with what is missing.  A completion that the caller's check
rejects is a spent attempt: it is cached with its reason, never given to that caller, and counts against `attempts` in
every later run.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from kgqa_core.errors import BudgetReached
from kgqa_core.llm.cache import Identity, Request, ResponseCache
from kgqa_core.llm.faults import UNREADABLE
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.artifacts import canonical_json
from kgqa_core.store.shards import Part, share

Check = Callable[[int, str], str | None]
"""From a prompt's index and a completion's text to the reason why it is rejected, None when it is accepted."""

AGAIN = 2
"""Further passes over prompts on which the endpoint failed."""

log = logging.getLogger("kgqa")

GROUP = 256
"""Prompts that are sent together where they may affect each other; a resumed run repeats whole groups."""


@dataclass(frozen=True)
class Expected:
    """What a caller expects of completions; only a forecast reads it.

    text: of the completion of the prompt at an index.  hit: whether a completion is one after which no further text is
    tried; None where completions are texts that later prompts hold.
    """

    text: Callable[[int], str]
    hit: Callable[[int, Completion], bool] | None = None


@dataclass(frozen=True)
class PromptBatch:
    """The prompts of one call, and how their completions are drawn, checked and kept.

    samples: number of the candidate of each prompt, 0 when absent; an equal prompt and sample is sent once and checked
    at its first index.  cache: None keeps nothing.  validate: the caller's check; with one, refusals and empty
    completions are rejected without being shown to it.  attempts: completions of one item that may be rejected before
    it is given up.  A further sample or attempt draws with another seed, a further attempt at retry_temperature where
    that is given.  expected: of the completions, for a forecast.  what: of what progress is shown.
    """

    prompts: Sequence[str]
    params: GenerationParams
    samples: Sequence[int] | None = None
    cache: ResponseCache | None = None
    validate: Check | None = None
    attempts: int = 1
    retry_temperature: float | None = None
    expected: Expected | None = None
    monitor: Monitor = QUIET
    what: str = "answers"

    @property
    def responses(self) -> ResponseCache:
        """The cache, or one that holds nothing."""
        return self.cache if self.cache is not None else ResponseCache()


@runtime_checkable
class Recording(Protocol):
    """A model that decides itself what is sent of a call of `generate_cached`: all, some or nothing."""

    def record(self, batch: PromptBatch) -> list[Outcome]:
        """One outcome per prompt, as of `generate_cached`."""


@runtime_checkable
class CacheAware(Protocol):
    """A model that wants to know when the cache has answers of it."""

    def has_answered(self) -> None:
        """An earlier call was answered."""


@dataclass(frozen=True)
class Outcome:
    """What came of one prompt.

    completion: the accepted one, or one with finish `error` when the endpoint failed on it (sent again in the next
    run); None when all attempts were rejected or came in replies that cannot be read.  spent: reasons of these
    attempts, in order.  cached: whether nothing had to be sent.  prompt_tokens, completion_tokens: of all attempts, the
    rejected ones too.
    """

    completion: Completion | None
    spent: tuple[str, ...] = ()
    cached: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def calls(self) -> int:
        """Completions of it, the rejected ones too."""
        return len(self.spent) + (self.completion is not None)

    @property
    def failed(self) -> bool:
        """Whether the endpoint failed on it."""
        return self.completion is not None and self.completion.finish == "error"


@dataclass(slots=True)
class _Item:
    """A prompt and sample that is sent once for all its indices."""

    prompt: str
    sample: int
    indices: list[int]
    spent: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    cached: bool = True
    tokens: tuple[int, int] = (0, 0)


def generate_cached(model: LanguageModel, batch: PromptBatch) -> list[Outcome]:
    """One outcome per prompt, in the order of the prompts; all that was answered is on disk when this returns.

    Raises BudgetReached after what was under way has been cached, EndpointError, ModelError, StorageError.
    """
    return model.record(batch) if isinstance(model, Recording) else send(model, batch)


def send(model: LanguageModel, batch: PromptBatch) -> list[Outcome]:
    """`generate_cached` for a model that is sent all that the cache does not hold."""
    prompts, validate, attempts, completions_cache = batch.prompts, batch.validate, batch.attempts, batch.responses
    items = _items(prompts, batch.samples)
    identity, silent = identity_of(model), isinstance(model, _Silent)
    done = 0

    def finish(item: _Item, outcome: Outcome) -> None:
        nonlocal done
        item.outcome = outcome
        done += len(item.indices)
        batch.monitor.progress(done, len(prompts), batch.what)

    def judge(item: _Item, request: Request, completion: Completion) -> str | None:
        reason = _reason(item, completion, validate)
        before, after = item.tokens
        item.tokens = (before + completion.prompt_tokens, after + completion.completion_tokens)
        if reason is None:
            finish(item, Outcome(completion, tuple(item.spent), item.cached, *item.tokens))
            return None
        item.spent.append(reason)
        if request.attempt + 1 >= attempts:
            finish(item, Outcome(None, tuple(item.spent), item.cached, *item.tokens))
        return reason

    def group(members: Sequence[_Item], requests: Sequence[Request]) -> None:
        known = completions_cache.get(requests)
        whole = not model.batch_sensitive or all(request.key in known for request in requests)
        missing: list[tuple[_Item, Request]] = []
        for item, request in zip(members, requests, strict=True):
            stored = known.get(request.key) if whole else None
            if stored is None:
                missing.append((item, request))
            elif (reason := judge(item, request, stored.completion)) != stored.reason and not silent:
                completions_cache.put(request, stored.completion, reason)
        if not missing:
            return
        if known and isinstance(model, CacheAware):
            model.has_answered()

        def arrived(index: int, completion: Completion) -> None:
            item, request = missing[index]
            item.cached = False
            if completion.finish == "error":
                finish(item, Outcome(completion, tuple(item.spent), False, *item.tokens))
            else:
                completions_cache.put(request, completion, judge(item, request, completion))

        model.generate([item.prompt for item, _ in missing], missing[0][1].params, arrived)

    try:
        for attempt in range(max(1, attempts)):
            waiting = [item for item in items if item.outcome is None]
            for members, requests in _groups(
                identity, waiting, batch.params, attempt, batch.retry_temperature, together=model.batch_sensitive
            ):
                group(members, requests)
    except BudgetReached as reached:
        raise BudgetReached(reached.limit, reached.spent, reached.needed, done, len(prompts) - done) from None
    finally:
        completions_cache.flush()
    outcomes = [Outcome(None)] * len(prompts)
    for item in items:
        for index in item.indices:
            outcomes[index] = item.outcome or Outcome(None, tuple(item.spent))
    return outcomes


def insist(model: LanguageModel, batch: PromptBatch, before: Callable[[], object] = lambda: None) -> list[Outcome]:
    """The outcomes of `generate_cached`; where the endpoint failed it is called again, AGAIN times, and then logged.

    batch: with a cache, where a further pass finds what was answered.  before: called before each pass.
    """
    for _ in range(AGAIN + 1):
        before()
        outcomes = generate_cached(model, batch)
        if not any(outcome.failed for outcome in outcomes):
            break
    if failed := sum(outcome.failed for outcome in outcomes):
        log.warning(
            "%s gave no answer to %d of %d prompts for %s; the first: %s",
            model.name, failed, len(outcomes), batch.what,
            next((one.completion and one.completion.error) or "it failed" for one in outcomes if one.failed),
        )  # fmt: skip
    return outcomes


def portion(model: LanguageModel, prompts: Sequence[str], part: Part | None) -> list[str]:
    """The prompts that one part of a stage sends; all of them without a part.

    Where the prompts of a call may affect each other a part takes whole groups.  For one sample and one attempt: which
    prompts a second attempt sends together depends on all that failed the first.
    """
    unique = sorted(set(prompts), key=lambda prompt: (len(prompt), prompt))
    starts = range(0, len(unique), GROUP if model.batch_sensitive else 1)
    return unique[share(part, starts, len(unique))]


class _Silent:
    """A model that answers nothing."""

    def __init__(self, identity: Identity) -> None:
        self.name, self.revision = f"{identity.backend}:{identity.model}", identity.revision
        self.address, self.model = identity.endpoint, identity.model
        self.batch_sensitive = identity.backend != "openai"

    def generate(self, *_: object) -> list[Completion]:
        """Nothing."""
        return []


def peek(identity: Identity | None, batch: PromptBatch) -> list[Outcome]:
    """What `generate_cached` would take from the cache; `cached` is False where it would send a request.

    identity: of the model (`llm.factory.identify`), which needs not be loaded; None knows nothing.
    """
    return [Outcome(None)] * len(batch.prompts) if identity is None else send(_Silent(identity), batch)


def identity_of(model: LanguageModel) -> Identity:
    """What the cache knows a loaded model by."""
    backend = re.split(r"\W", model.name, maxsplit=1)[0]
    rest = model.name[len(backend) :].removeprefix(":")
    address = str(getattr(model, "address", ""))
    revision = model.revision + str(getattr(model, "numbers", ""))
    return Identity(backend, address, str(getattr(model, "model", rest)) if address else rest, revision)


def _items(prompts: Sequence[str], samples: Sequence[int] | None) -> list[_Item]:
    numbers = samples if samples is not None else [0] * len(prompts)
    items: dict[tuple[str, int], _Item] = {}
    for index, (prompt, sample) in enumerate(zip(prompts, numbers, strict=True)):
        items.setdefault((prompt, sample), _Item(prompt, sample, [])).indices.append(index)
    return list(items.values())


def _groups(
    identity: Identity,
    items: Sequence[_Item],
    params: GenerationParams,
    attempt: int,
    retry_temperature: float | None,
    *,
    together: bool,
) -> Iterator[tuple[list[_Item], list[Request]]]:
    """Items that are sent in one call, with their requests: those of one sample; fixed groups of similar length where
    the prompts of a call may affect each other."""
    for sample in sorted({item.sample for item in items}):
        sampling = _sampling_params(params, sample, attempt, retry_temperature)
        chosen = [item for item in items if item.sample == sample]
        if not together:
            yield chosen, [Request(identity, sampling, item.prompt, sample, attempt) for item in chosen]
            continue
        chosen.sort(key=lambda item: (len(item.prompt), item.prompt))
        for start in range(0, len(chosen), GROUP):
            part = chosen[start : start + GROUP]
            digest = hashlib.sha256(
                canonical_json([item.prompt for item in part]).encode("utf-8", "surrogatepass")
            ).hexdigest()
            yield part, [Request(identity, sampling, item.prompt, sample, attempt, digest) for item in part]


def _sampling_params(
    params: GenerationParams, sample: int, attempt: int, retry_temperature: float | None
) -> GenerationParams:
    """The settings of a sample and attempt: the caller's for the first, another seed for each further one."""
    if sample == 0 and attempt == 0:
        return params
    digest = hashlib.sha256(f"{params.seed or 0}/{sample}/{attempt}".encode()).digest()
    sampling = replace(params, seed=int.from_bytes(digest[:4], "big") >> 1)
    if attempt and retry_temperature is not None:
        beams = 1 if retry_temperature > 0 else params.num_beams
        sampling = replace(sampling, temperature=retry_temperature, num_beams=beams)
    return sampling


def _reason(item: _Item, completion: Completion, validate: Check | None) -> str | None:
    if completion.finish == "unreadable":
        return completion.error or UNREADABLE
    if validate is None:
        return None
    if completion.finish == "refusal":
        return "refused"
    if completion.finish == "empty":
        return "empty"
    return validate(item.indices[0], completion.text)
