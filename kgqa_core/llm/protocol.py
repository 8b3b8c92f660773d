"""What a language model is to the pipeline: prompts in, completions out, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "refusal", "empty", "unreadable", "error"]
"""Why a completion ended: by itself, at the token limit, declined, without text, in a reply that was billed and cannot
be read, or failed after all tries."""


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """How to write.

    max_new_tokens: longest completion.  temperature: 0 is greedy.  top_p: nucleus, in (0, 1].  top_k: likeliest tokens
    that are sampled from; 0 is all.  num_beams: of a beam search, which does not sample; 1 is none.  seed: of sampling.
    stop: texts at which a completion is cut.  Several samples of one prompt are several requests (`paid.PromptBatch`).
    log_probabilities: return how likely the model finds what it writes; such completions are
    cached apart from others.  choices: texts of which a local model writes the likeliest, token by token, and nothing
    else; endpoints are not sent them.
    """

    max_new_tokens: int = 32
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    num_beams: int = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    log_probabilities: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote for one prompt.  Token counts are the model's own; `error` says what failed, if it did.

    log_probability: natural logarithm of the probability of the tokens that it wrote, the end token included, by the
    model's own distribution whatever was sampled from; None where not requested or not returned.
    scored_tokens: how many tokens that is of; a server may write others that it does not show.
    repairs: what was odd in the reply and was replaced when it was read.  estimated: whether a token count of the
    server was none, and stands here as an estimate.
    """

    text: str
    finish: Finish = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None
    log_probability: float | None = None
    scored_tokens: int = 0
    repairs: tuple[str, ...] = ()
    estimated: bool = False


OnResult = Callable[[int, Completion], None]
"""Called with the prompt's place in the input and its completion as soon as that is known, in any order."""


OnText = Callable[[str, str], None]
"""Called with a prompt and what is written for it so far, which begins anew where a request is repeated."""


class LanguageModel(Protocol):
    """A model that continues prompts.

    name: `builtin`, `hf:…` or `openai:…`.  revision: digest of the weights, or the id that the endpoint gives it.
    batch_sensitive: whether the last bits of a completion may depend on the prompts that are sent along with it, so
    that a resumed run must send the same groups to write the same; an endpoint's completions are cached one by one.
    """

    name: str
    revision: str
    batch_sensitive: bool

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in the order of the prompts.  Equal prompts get equal completions.

        Raises EndpointError when an endpoint is down, ModelError when the model cannot do what params ask,
        BudgetReached when no further request may start; what was completed until then has gone to on_result.
        """


class Overheard:
    """A model that tells what it writes while it writes; it takes `on_text` in `generate`, and says so by `tells`."""

    def __init__(self, model: Any, on_text: OnText) -> None:
        self.model, self.on_text = model, on_text
        self.name, self.revision, self.batch_sensitive = model.name, model.revision, model.batch_sensitive

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        """As of the model."""
        completions: list[Completion] = self.model.generate(prompts, params, on_result, self.on_text)
        return completions


def overheard(model: LanguageModel, on_text: OnText) -> LanguageModel:
    """The model with a listener; the model itself where it tells nothing before the end."""
    return Overheard(model, on_text) if getattr(model, "tells", False) else model


def clean_text(text: str) -> str:
    """The text with U+FFFD for every NUL and every half of a surrogate pair; halves that stand together are joined.

    >>> clean_text("a\\ud83d b\\x00")
    'a\ufffd b\ufffd'
    """
    if text.isprintable():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first of the stop texts."""
    indices = [index for index in (text.find(mark) for mark in stop if mark) if index >= 0]
    return text[: min(indices)] if indices else text
