"""The language models of a system, whose completions may be kept so that none is paid for twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import LlmOptions
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import ResponseCache, open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel, OnResult


class CachedModel:
    """A language model whose completions are taken from a response cache, and are kept in it as they come."""

    def __init__(self, model: LanguageModel, responses: ResponseCache) -> None:
        self.model, self.responses = model, responses
        self.name, self.revision, self.batch_sensitive = model.name, model.revision, model.batch_sensitive

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        """As of the model; one whose reply cannot be read, now or earlier, has finish `error`."""
        outcomes = generate_cached(self.model, PromptBatch(prompts, params, cache=self.responses))
        completions = [
            outcome.completion or Completion("", "error", error="; ".join(outcome.spent) or "no completion")
            for outcome in outcomes
        ]
        if on_result is not None:
            for index, completion in enumerate(completions):
                on_result(index, completion)
        return completions


@dataclass(frozen=True)
class Models:
    """How the language models of a system are loaded.

    responses: folder of the response cache that their completions are kept in; None asks them every time.  budget: of
    requests to endpoints.
    """

    llm: LlmOptions
    responses: Path | None = None
    budget: Budget | None = None

    def load(self, spec: str) -> LanguageModel:
        """The model that a name stands for.  Raises what `load_model` raises."""
        return self.cached(load_model(spec, self.llm, budget=self.budget))

    def cached(self, model: LanguageModel) -> LanguageModel:
        """A model with the response cache before it, where there is one."""
        return model if self.responses is None else CachedModel(model, open_cache(self.responses))
