"""What an answer is going to be before it is there: its length, and what an agent may ask for it at most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from kgqa_core.config import Answerer, AnsweringOptions, LlmOptions
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.llm.forecast import SECONDS_A_CALL, StagePlan
from kgqa_core.types import Question


@runtime_checkable
class ExplorationLimits(Protocol):
    """The section of an explorer that asks an endpoint, with its limits for one question."""

    @property
    def calls(self) -> int:
        """Completions at most."""

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens at most."""

    @property
    def max_new_tokens(self) -> int:
        """Tokens of a reply at most."""


def forecast_exploration(
    *, questions: Path, name: str, options: AnsweringOptions, limits: ExplorationLimits, llm: LlmOptions, seed: int
) -> StagePlan:
    """The most that an explorer can ask, by its limits for one question: what it needs depends on what it is answered.

    name: of the experiment, `retriever/format`.  What the cache holds is not known before, and counts here.
    Raises QuestionFileError when the split is empty.
    """
    chosen = choose(read_questions(questions), options.split, options.limit, seed)
    number = sum(bool(question.topic_entities) for question in chosen)
    answerer = Answerer.parse(options.answerer)
    model = str(answerer.model)
    written = min(limits.tokens, limits.calls * limits.max_new_tokens)
    read, price = limits.tokens - written, llm.prices.get(model)
    dearest = None
    if price is not None:
        dearest = number * limits.tokens * max(price.prompt, price.completion) / 1e6
    return StagePlan(
        f"answers {name}", model, number * limits.calls, number * read, number * written, cost=dearest,
        seconds=number * limits.calls * SECONDS_A_CALL / llm.concurrency, counted=False,
        assumptions=(f"the limits of the section {answerer.kind}, which few questions need",),
    )  # fmt: skip


def typical_answer(records: Sequence[Question]) -> str:
    """The gold answer of median length among the training questions, or among all where there is no training split."""
    names = [record.answer_names[0][0] for record in records if record.split == "train" and record.answer_names]
    names = names or [record.answer_names[0][0] for record in records if record.answer_names]
    return sorted(names, key=lambda name: (len(name), name))[len(names) // 2] if names else ""
