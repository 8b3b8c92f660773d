"""How many words two texts share, counted by how rare they are among the labels of a graph's relations and types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from kgqa_core.linking.words import FUNCTION_WORDS
from kgqa_core.papers.grailqability.parsing.words import key_words, stems

PREFIX = 5
"""Letters that two words share where they are forms of one word: `produced` and `producer`."""
NEAR = 0.7
"""Likeness of two such words."""

SHARES = 4
"""Numbers that say how much two texts share."""
SLOT = re.compile(r"\[[A-Z]\d+\]")
"""What stands for a mention or a value in a text: it is no word."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TextWords:
    """The words of some texts.

    rows: [texts, vocabulary].  total: [texts] what the words of each text come to that the vocabulary has.  whole:
    [texts] the same of all its words but those of grammar.
    """

    rows: csr_array
    total: Floats
    whole: Floats

    def of(self, indices: Sequence[int] | NDArray[np.int64]) -> TextWords:
        """Those of some of the texts."""
        rows = np.asarray(indices, dtype=np.int64)
        return TextWords(self.rows[rows], self.total[rows], self.whole[rows])

    def followed_by(self, more: TextWords) -> TextWords:
        """These texts, then others."""
        rows = csr_array(vstack((self.rows, more.rows), format="csr"))
        pairs = ((self.total, more.total), (self.whole, more.whole))
        return TextWords(rows, *(np.concatenate(pair) for pair in pairs))


class WordOverlap:
    """The words of labels, weighted by how few labels have them; words of other texts do not count."""

    def __init__(self, labels: Sequence[str]) -> None:
        words = [sorted(set(stems(key_words(label)))) for label in labels]
        self.vocabulary = {
            word: index for index, word in enumerate(sorted({word for label_words in words for word in label_words}))
        }
        self._by_prefix: dict[str, list[int]] = {}
        for word, index in self.vocabulary.items():
            if len(word) >= PREFIX:
                self._by_prefix.setdefault(word[:PREFIX], []).append(index)
        self._near: dict[str, dict[int, float]] = {}
        having = np.zeros(len(self.vocabulary))
        for label_words in words:
            having[[self.vocabulary[word] for word in label_words]] += 1
        self.rarity: Floats = np.log1p(len(labels) / np.maximum(1.0, having))
        self.unheard = float(np.log1p(len(labels)))

    def read(self, texts: Sequence[str]) -> TextWords:
        """Of each word of the vocabulary how like it the nearest word of a text is, in [0, 1]."""
        likenesses, unheard = [], []
        for text in texts:
            likeness_of_word: dict[int, float] = {}
            words = dict.fromkeys(stems(SLOT.sub(" ", text)))
            for word in words:
                for index, likeness in self._likeness(word).items():
                    likeness_of_word[index] = max(likeness, likeness_of_word.get(index, 0.0))
            likenesses.append(likeness_of_word)
            unheard.append(sum(not self._likeness(word) and word not in FUNCTION_WORDS for word in words))
        rows = self._rows(likenesses)
        total: Floats = rows @ self.rarity
        return TextWords(rows, total, total + self.unheard * np.array(unheard, dtype=np.float64))

    def labels(self, texts: Sequence[str]) -> TextWords:
        """The rarity of each word that a label has, or a text made of labels."""
        rarities = []
        for text in texts:
            indices = {self.vocabulary[word] for word in stems(key_words(text)) if word in self.vocabulary}
            rarities.append({index: float(self.rarity[index]) for index in indices})
        rows = self._rows(rarities)
        total: Floats = np.asarray(rows.sum(1)).ravel()
        return TextWords(rows, total, total)

    def _likeness(self, word: str) -> dict[int, float]:
        if word not in self._near:
            near = dict.fromkeys(self._by_prefix.get(word[:PREFIX], ()) if len(word) >= PREFIX else (), NEAR)
            self._near[word] = near | ({self.vocabulary[word]: 1.0} if word in self.vocabulary else {})
        return self._near[word]

    def _rows(self, weights: Sequence[dict[int, float]]) -> csr_array:
        columns = np.array([index for row in weights for index in sorted(row)], dtype=np.int64)
        values = np.array([row[index] for row in weights for index in sorted(row)], dtype=np.float64)
        ends = np.concatenate(([0], np.cumsum([len(row) for row in weights]))).astype(np.int64)
        return csr_array((values, columns, ends), shape=(len(weights), len(self.vocabulary)))


def shares(shared: Floats, text: Floats, whole: Floats, label: Floats) -> Floats:
    """[pairs, SHARES] of texts and labels.

    These are the share of the label's words in the text, of the text's in the label, the product of both, and the share
    of all the text's words.  shared, text, whole, label: [pairs] what the shared words come to, those of the text that
    any label has, all of the text, and those of the label.
    """
    of_label, of_text, of_whole = (shared / np.maximum(1e-9, total) for total in (label, text, whole))
    return np.stack((of_label, of_text, of_label * of_text, of_whole), axis=-1)


def crossed(texts: TextWords, labels: TextWords) -> Floats:
    """[texts, labels, SHARES] the shares of each text with each label."""
    shared = (texts.rows @ labels.rows.T).toarray()
    return shares(shared, texts.total[:, None], texts.whole[:, None], labels.total[None, :])


class RelationLikeness:
    """Words of relations, weighted by how few relations have them."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._overlap = WordOverlap(labels)
        self._labels = self._overlap.labels(labels)

    def of(self, text: str) -> Floats:
        """[relations] the share of each label's words that a text has, in [0, 1]; rare words count more."""
        words = self._overlap.read([text]).rows.toarray()[0]
        likeness: Floats = self._labels.rows @ words / np.maximum(1e-9, self._labels.total)
        return likeness
