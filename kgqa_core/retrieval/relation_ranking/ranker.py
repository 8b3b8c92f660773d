"""What a relation ranker is asked, and what it answers; nothing here knows of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgqa_core.monitor import QUIET, Monitor

DECIMALS = 6
"""Digits of a score that count: what differs less is a tie."""

Place = tuple[int, float]
"""Place of a relation among the candidates, and its score in [0, 1], higher is better."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, the name of one of its entities, and the relations of this entity in words.

    Equal words of several relations are ranked alike; their order breaks the tie.
    """

    question: str
    entity: str
    relations: tuple[str, ...]


class Ranker(Protocol):
    """Ranks the relations of an entity by how much they matter for a question.

    counts: what a run should know of it, added up over all calls.
    """

    name: str
    counts: dict[str, int]

    def rank(self, asked: Sequence[Ask], most: int, monitor: Monitor = QUIET) -> list[list[Place]]:
        """At most `most` places of each, best first; empty where there are no candidates or nothing was said."""
        ...


def best_first(scores: Iterable[float], most: int) -> list[Place]:
    """Places of the greatest scores, ties to the smaller place.

    >>> best_first([0.1, 0.9, 0.9, 0.3], 3)
    [(1, 0.9), (2, 0.9), (3, 0.3)]
    """
    rounded = [round(score, DECIMALS) for score in scores]
    order = sorted(range(len(rounded)), key=lambda place: (-rounded[place], place))
    return [(place, rounded[place]) for place in order[:most]]


def recall(kept: Sequence[Iterable[str]], gold: Sequence[Iterable[str]]) -> tuple[int, int]:
    """Gold relations that are kept, and gold relations in all, over pairs of a question and an entity.

    Their quotient is the recall of entity-relation pairs, in [0, 1], higher is better.

    >>> recall([["a", "b"], ["c"]], [["a"], ["c", "d"]])
    (2, 3)
    """
    found = wanted = 0
    for own, right in zip(kept, gold, strict=True):
        distinct = set(right)
        found += len(distinct & set(own))
        wanted += len(distinct)
    return found, wanted
