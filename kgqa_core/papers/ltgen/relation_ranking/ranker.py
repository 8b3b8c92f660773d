"""What a relation ranker reads and returns, and the ranker `embedding`, which needs no training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.sentence_encoder import CachedEncoder, SentenceEncoder
from kgqa_core.nn.vectors import ONE, dots, open_vectors
from kgqa_core.retrieval.relation_texts import words
from kgqa_core.types import INVERSE

DECIMALS = 6
"""Digits of a score that count: what differs less is a tie."""
RankedRelation = tuple[int, float]
"""Index of a relation among the candidates, and its score in [0, 1], higher is better."""


@dataclass(frozen=True, slots=True)
class RankingQuery:
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

    def rank(self, queries: Sequence[RankingQuery], most: int, monitor: Monitor = QUIET) -> list[list[RankedRelation]]:
        """At most `most` relations of each, best first; empty without candidates, or where the output names none."""


def best_first(scores: Iterable[float], most: int) -> list[RankedRelation]:
    """Indices of the greatest scores, ties to the smaller index.

    >>> best_first([0.1, 0.9, 0.9, 0.3], 3)
    [(1, 0.9), (2, 0.9), (3, 0.3)]
    """
    rounded = [round(score, DECIMALS) for score in scores]
    order = sorted(range(len(rounded)), key=lambda index: (-rounded[index], index))
    return [(index, rounded[index]) for index in order[:most]]


class EmbeddingRanker:
    """Compares sentence vectors by their cosine, which is the score where it is above 0.

    The entity's name is left out of what is compared: it stands in the question and before every one of its relations
    alike.  A relation and its inverse have the same words and the same score.
    cache: folder that keeps vectors for all runs.  counts: texts (distinct ones that were compared).
    """

    name = "embedding"

    def __init__(self, encoder: SentenceEncoder, cache: Path | None = None) -> None:
        self.encoder, self.cache = encoder, cache
        self.counts = {"texts": 0}

    def rank(self, queries: Sequence[RankingQuery], most: int, monitor: Monitor = QUIET) -> list[list[RankedRelation]]:
        """At most `most` relations of each, ties to the smaller index."""
        wording = {text: relation_text(text) for text in {text for query in queries for text in query.relations}}
        distinct = sorted({query.question for query in queries} | set(wording.values()))
        self.counts["texts"] += len(distinct)
        with open_vectors(self.cache, self.encoder.digest, self.encoder.width) as store:
            vectors = CachedEncoder(self.encoder, store).vectors(distinct, monitor)
        index = {text: number for number, text in enumerate(distinct)}
        rankings: list[list[RankedRelation]] = []
        for one in queries:
            rows = np.array([index[wording[text]] for text in one.relations], dtype=np.int64)
            scores = dots(vectors[rows], vectors[[index[one.question]]])[:, 0] / ONE**2
            rankings.append(best_first(np.clip(scores, 0.0, 1.0).tolist(), most))
        return rankings


def relation_text(text: str) -> str:
    """The words of a directed relation without its direction.

    >>> relation_text("<inv>-placeOfBirth")
    'place of birth'
    """
    return words(text.removeprefix(INVERSE)).lower()
