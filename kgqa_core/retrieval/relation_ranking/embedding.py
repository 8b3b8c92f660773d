"""The relation ranker `embedding`: likeness of the question and the words of a relation, with no training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.sentence_encoder import CachedEncoder, SentenceEncoder
from kgqa_core.nn.vectors import ONE, dots, open_vectors
from kgqa_core.retrieval.label import words
from kgqa_core.retrieval.relation_ranking.ranker import Ask, Place, best_first
from kgqa_core.types import INVERSE


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

    def rank(self, asked: Sequence[Ask], most: int, monitor: Monitor = QUIET) -> list[list[Place]]:
        """At most `most` places of each, ties to the smaller place."""
        told = {text: relation_text(text) for text in {text for one in asked for text in one.relations}}
        distinct = sorted({one.question for one in asked} | set(told.values()))
        self.counts["texts"] += len(distinct)
        with open_vectors(self.cache, self.encoder.digest, self.encoder.width) as store:
            vectors = CachedEncoder(self.encoder, store).vectors(distinct, monitor)
        place = {text: number for number, text in enumerate(distinct)}
        found: list[list[Place]] = []
        for one in asked:
            rows = np.array([place[told[text]] for text in one.relations], dtype=np.int64)
            scores = dots(vectors[rows], vectors[[place[one.question]]])[:, 0] / ONE**2
            found.append(best_first(np.clip(scores, 0.0, 1.0).tolist(), most))
        return found


def relation_text(text: str) -> str:
    """The words of a directed relation without its direction.

    >>> relation_text("<inv>-placeOfBirth")
    'place of birth'
    """
    return words(text.removeprefix(INVERSE)).lower()
