"""A few of the completions that a stage will ask for, so that a forecast goes by what the model writes.

They are kept in the response cache under the keys that the stage looks for, and booked on its account: nothing is paid
twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from kgqa_core.config import LlmOptions
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import ask
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.monitor import QUIET, Monitor

T = TypeVar("T")


def at_endpoint(model: str) -> bool:
    """Whether a model is asked behind an endpoint: only there does asking cost, so only there is a pilot worth it."""
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
        asked = some(prompts, number, seed)
        ask(
            load_model(model, llm, budget=budget), asked, params, cache=open_cache(cache), monitor=monitor, what="pilot"
        )
