"""How much the words of a question are those of each relation: what candidates are made of where a schema is large."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgqa_core.papers.grailqability.parsing.word_overlap import WordOverlap


class RelationLikeness:
    """Words of relations, weighted by how few relations have them."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._overlap = WordOverlap(labels)
        self._labels = self._overlap.labels(labels)

    def of(self, text: str) -> NDArray[np.float64]:
        """[relations] the share of each label's words that a text has, in [0, 1]; rare words count more."""
        words = self._overlap.read([text]).rows.toarray()[0]
        likeness: NDArray[np.float64] = self._labels.rows @ words / np.maximum(1e-9, self._labels.total)
        return likeness
