"""How much the words of a question are those of each relation: what candidates are made of where a schema is large."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kgqa_core.parsing.words import key_words, stems

PREFIX = 5
"""Letters that two words share where they are forms of one word: `produced` and `producer`."""
NEAR = 0.7
"""Likeness of two such words."""


class RelationLikeness:
    """Words of relations, weighted by how few relations have them."""

    def __init__(self, labels: Sequence[str]) -> None:
        words = [sorted(set(stems(key_words(label)))) for label in labels]
        self.vocabulary = {word: place for place, word in enumerate(sorted({word for own in words for word in own}))}
        self._by_prefix: dict[str, list[int]] = {}
        for word, place in self.vocabulary.items():
            if len(word) >= PREFIX:
                self._by_prefix.setdefault(word[:PREFIX], []).append(place)
        rows = [row for row, own in enumerate(words) for _ in own]
        columns = [self.vocabulary[word] for own in words for word in own]
        have = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(labels), len(self.vocabulary)))
        rare = np.log1p(len(labels) / np.maximum(1.0, np.asarray(have.sum(0)).ravel()))
        total = np.maximum(1e-9, have @ rare)
        self._weights = (csr_array((1.0 / total, (range(len(total)), range(len(total))))) @ have).multiply(rare).tocsr()

    def of(self, text: str) -> NDArray[np.float64]:
        """[relations] the share of each label's words that a text has, in [0, 1]; rare words count more."""
        likeness = np.zeros(len(self.vocabulary))
        for word in dict.fromkeys(stems(text)):
            if len(word) >= PREFIX:
                near = self._by_prefix.get(word[:PREFIX], ())
                likeness[list(near)] = np.maximum(likeness[list(near)], NEAR)
            if word in self.vocabulary:
                likeness[self.vocabulary[word]] = 1.0
        found: NDArray[np.float64] = np.asarray(self._weights @ likeness)
        return found
