"""What an answerer that explores the graph starts from, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kgqa_core.answering.reply import Effort
from kgqa_core.config import LlmOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.budget import Budget
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question

if TYPE_CHECKING:
    from kgqa_core.dkg.csr import Dkg

End = Literal["answered", "limit", "unreadable", "error", "no topic"]
"""How an exploration ended: with an answer, at a limit of calls, tokens or turns, for want of a reply that can be read,
because the endpoint failed, or before it began."""


@dataclass(frozen=True, slots=True)
class ExploredAnswer(ComputedAnswer):
    """What exploring found, and what it took."""

    effort: Effort | None = None


@dataclass(frozen=True, slots=True)
class Exploration:
    """What came of exploring the graph for one question.

    names, keys: of the answers, best first; the key of an answer that is no entity is its name.  facts: triples that
    were visited, those that reach an answer first.  steps: what was done, one text each.  calls: completions, those
    that could not be read included; tokens: of these.  operations: on the graph; refused: those of them that named what
    is not there; unreadable: completions that could not be read.
    """

    question: str
    end: End
    names: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    facts: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    operations: int = 0
    refused: int = 0
    unreadable: int = 0
    truncated: bool = False
    weight: float = 0.0

    def effort(self) -> Effort:
        """Calls, tokens and steps, as a reply shows them."""
        return Effort(self.end, self.calls, self.prompt_tokens, self.completion_tokens, self.steps)

    def computed(self, kind: str, topics: Sequence[str] = ()) -> ExploredAnswer:
        """The exploration as a computed answer, whose form is none."""
        return ExploredAnswer(
            self.question, kind, None, self.names, self.keys, self.weight, self.facts, self.truncated,
            self.operations, tuple(topics), effort=self.effort(),
        )  # fmt: skip


@dataclass(frozen=True)
class ExplorerInputs:
    """What an explorer is opened with.

    model: the written name of its language model.  section: its own options.  cache: folder of the response cache.
    """

    dkg: Dkg
    store: KgStore
    model: str
    section: Any
    llm: LlmOptions
    seed: int = 7
    cache: Path | None = None
    budget: Budget | None = None


class Explorer(Protocol):
    """Answers questions by exploring the graph from their topics."""

    def explore(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Exploration]:
        """One exploration per question, in their order.

        Raises BudgetReached, EndpointError, ModelError, StorageError; what was paid for until then is in the cache.
        """
