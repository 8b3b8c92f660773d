"""What the answerers have in common that explore the graph: what they start from, and what they return.

An explorer answers a question from its topics, without a retriever.  Its answers are written in the tables of computed
answers, with the triples that it visited as proof, and a table of its own with calls, tokens and steps (`explored`).
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.answering.exploration import Exploration, ExploredAnswer, Explorer, ExplorerInputs
from kgqa_core.answering.explored import write_explored
from kgqa_core.answering.registry import ANSWERERS, check_explorer
from kgqa_core.config import Answerer, LlmOptions, Options
from kgqa_core.datasets.derived.splits import QuestionSample
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ConfigError
from kgqa_core.kg.store import KgStore
from kgqa_core.symbolic.compute import Calculator, proofs, write
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question, Retrieved
from kgqa_core.workspace import Workspace


def open_explorer(answerer: str, inputs: ExplorerInputs) -> Explorer:
    """The explorer of an answerer as a profile names it.  Raises ConfigError for another, ModelError, EndpointError."""
    check_explorer(answerer, inputs.llm)
    module, _, name = ANSWERERS[Answerer.parse(answerer).kind].explorer.partition(":")
    if not module:
        listed = ", ".join(name for name, spec in ANSWERERS.items() if spec.explores)
        raise ConfigError(f"answerer {answerer!r} does not explore the graph; those that do are {listed}")
    opened: Explorer = getattr(importlib.import_module(module), name).open(inputs)
    return opened


def explore(
    workspace: Workspace,
    *,
    kg: Path,
    dkg: Path,
    questions: Path,
    answerer: str,
    section: Options,
    llm: LlmOptions,
    sample: QuestionSample,
) -> dict[str, Any]:
    """Writes the tables of computed answers and explored.parquet, a row a question, and returns counts.

    questions: with the topics to start from.  section: the explorer's own options.
    Counts: questions, ends (how many ended how), answered, calls, prompt_tokens, completion_tokens, calls_a_question
    and tokens_a_question (means), operations, refused, unreadable.
    Raises QuestionFileError when the split is empty, and what `Explorer.explore` raises.
    """
    chosen = sample.of(read_questions(questions))
    kind = Answerer.parse(answerer)
    from kgqa_core.dkg.csr import Dkg  # with numba

    with KgStore.open(kg) as store:
        inputs = ExplorerInputs(
            Dkg.open(dkg), store, str(kind.model), section, llm, sample.seed, workspace.cache, workspace.budget
        )
        explorations = open_explorer(answerer, inputs).explore(chosen, workspace.monitor)
        names = store.names({topic for question in chosen for topic in question.topic_entities})
        solved = [
            exploration.computed(kind.kind, [names[topic] for topic in question.topic_entities])
            for exploration, question in zip(explorations, chosen, strict=True)
        ]
        write(workspace.out, solved, proofs(store, solved))
    write_explored(workspace.out, explorations)
    return counts_of(explorations)


def counts_of(found: Sequence[Exploration]) -> dict[str, Any]:
    """Sums and means over explorations."""
    tokens = sum(one.prompt_tokens + one.completion_tokens for one in found)
    calls = sum(one.calls for one in found)
    return {
        "questions": len(found),
        "ends": dict(sorted(Counter(one.end for one in found).items())),
        "answered": sum(bool(one.names) for one in found),
        "calls": calls,
        "prompt_tokens": sum(one.prompt_tokens for one in found),
        "completion_tokens": sum(one.completion_tokens for one in found),
        "calls_a_question": round(calls / max(1, len(found)), 2),
        "tokens_a_question": round(tokens / max(1, len(found)), 1),
        "operations": sum(one.operations for one in found),
        "refused": sum(one.refused for one in found),
        "unreadable": sum(one.unreadable for one in found),
    }


class ExploringCalculator(Calculator):
    """Answers questions as they come by an explorer, where `Calculator` computes from facts."""

    def __init__(self, store: KgStore, explorer: Explorer, kind: str) -> None:
        self.store, self.explorer, self.kind = store, explorer, kind

    def at_confidence(self, least: float) -> ExploringCalculator:
        """Itself: an explorer knows no confidence."""
        return self

    def compute(self, questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> list[ComputedAnswer]:
        """What the explorer finds for each question.  retrieved: not read."""
        return [one.computed(self.kind) for one in self.explorer.explore(questions)]

    def reply(self, solved: ComputedAnswer) -> dict[str, Any]:
        """As of `Calculator`, with the effort."""
        return super().reply(solved) | {"effort": solved.effort if isinstance(solved, ExploredAnswer) else None}
