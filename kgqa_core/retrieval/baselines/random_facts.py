"""Random Facts, a baseline of Sen et al. 2023: facts drawn uniformly from those one hop from the topic entities."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from kgqa_core.dkg.csr import Dkg
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.api import ranked
from kgqa_core.types import Fact, Question, Retrieved


class RandomFacts:
    """Draws k facts per question; the draw depends on seed and question id, not on the other questions."""

    name = "random"

    def __init__(self, dkg: Dkg, k: int, seed: int) -> None:
        self.dkg, self.k, self.seed = dkg, k, seed

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """k facts per question, each with score 1, or all where there are fewer; entities are their other ends."""
        found = []
        for number, question in enumerate(questions):
            found.append(self._draw(question))
            if number % 1000 == 0 or number + 1 == len(questions):
                monitor.progress(number + 1, len(questions), "questions")
        return found

    def _draw(self, question: Question) -> Retrieved:
        topics = np.array(sorted(set(question.topic_entities)), dtype=np.int64)
        starts, stops = self.dkg.row_bounds(topics)
        degrees = stops - starts
        total = int(degrees.sum())
        if not total:
            return Retrieved(question.id)
        digest = hashlib.sha256(f"{self.seed}\n{question.id}".encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        size = min(total, 4 * self.k + 8)
        edges = self._distinct(draw.choice(total, size=size, replace=False), topics, starts, degrees)
        if len(edges) < self.k and size < total:
            edges = self._distinct(draw.permutation(total), topics, starts, degrees)
        edges = edges[: self.k]
        triples, directions = self.dkg.triple_of(edges).tolist(), self.dkg.direction_of(edges).tolist()
        facts = [Fact(0, 1.0, 1, triple, direction) for triple, direction in zip(triples, directions, strict=True)]
        ends = sorted({int(entity) for entity in self.dkg.tail[edges]})
        return Retrieved(question.id, ranked(facts), tuple((entity, 1.0) for entity in ends))

    def _distinct(self, places: np.ndarray, topics: np.ndarray, starts: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        """Edges at some places of the topics' joined rows; a triple between two topics counts from its head only."""
        owner = np.searchsorted(np.cumsum(degrees), places, side="right")
        edges = starts[owner] + places - (np.cumsum(degrees) - degrees)[owner]
        doubled = np.isin(self.dkg.tail[edges], topics) & (self.dkg.direction_of(edges) < 0)
        return np.asarray(edges[~doubled], dtype=np.int64)
