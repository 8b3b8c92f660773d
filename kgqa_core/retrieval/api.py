"""What every retriever offers, and the order that its facts stand in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Fact, Question, Retrieved

LEAST_SCORE = 1e-3
"""Facts that weigh less are noise and are left out."""


class Retriever(Protocol):
    """Finds facts and candidate answers for questions whose topic entities are known."""

    name: str

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """One `Retrieved` per question, in their order; empty where a question has no topic entity."""
        ...


def ranked(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts hop by hop, the heaviest first within a hop, ties by triple, a triple once per hop; ranks from 0."""
    kept: dict[tuple[int, int], Fact] = {}
    for fact in sorted(facts, key=lambda fact: (fact.hop, -fact.score, fact.triple, -fact.direction)):
        if fact.score >= LEAST_SCORE:
            kept.setdefault((fact.hop, fact.triple), fact)
    return tuple(
        Fact(rank, fact.score, fact.hop, fact.triple, fact.direction, fact.path)
        for rank, fact in enumerate(kept.values())
    )
