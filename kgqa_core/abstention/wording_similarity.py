"""How near a question's wording is to that of questions which the graph is known to answer.

Topics are masked, so that a wording has the relation of a question and not its entity.  No question about what a graph
lacks altogether has an answer: words and turns of phrase of such a question occur in no answerable one, whether or not
training has unanswerable questions like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgqa_core.datasets.files.masking import mask_topic
from kgqa_core.metrics.normalise import tokens
from kgqa_core.types import Question

if TYPE_CHECKING:
    from scipy import sparse

TOPIC = "qtopic"
"""Stands for a topic; a word that no language has."""

NEIGHBOURS = 10
"""QuestionWordings that vote on whether a question is answerable."""

SHARPNESS = 8
"""Power of the similarity that a vote counts by."""

BATCH_SIZE = 256

NAMES = ("wording_nearest", "wording_covered", "wording_strange", "wording_unanswerable")
"""Cosine with the nearest answerable wording; share of the words' weight that answerable wordings have; words in a row
that they have not; share of the nearest wordings that were not answerable."""

Words = tuple[str, ...]


def words_of(question: Question, names: Mapping[int, Sequence[str]] | None = None) -> Words:
    """A question's words with its topics masked; scripts without spaces give signs.  names: of the topics, by id."""
    return tuple(tokens(mask_topic(question, f" {TOPIC} ", names)))


@dataclass(frozen=True)
class QuestionWordings:
    """The different wordings of training.

    terms: index of each word and pair of words.  weight: of each, the inverse document frequency; unknown ones weigh as
    much as the rarest.  counts: answerable questions with each term.  rows: tf-idf of each wording, of length 1.
    known, unknown: how many answerable and unanswerable questions have each wording.  indices: of the wordings.
    """

    terms: dict[str, int]
    weight: NDArray[np.float64]
    counts: NDArray[np.int64]
    rows: sparse.csr_matrix
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]
    indices: dict[Words, int]

    @classmethod
    def learn(cls, texts: Sequence[Words], answerable: Sequence[bool]) -> QuestionWordings:
        """The wordings of training questions, and which of them are answerable."""
        seen: Counter[str] = Counter()
        answered: Counter[str] = Counter()
        for text, good in zip(texts, answerable, strict=True):
            terms = set(_terms(text))
            seen.update(terms)
            if good:
                answered.update(terms)
        names = sorted(seen)
        counts = np.array([answered[term] for term in names], dtype=np.int64)
        weight = np.array([np.log(1 + len(texts) / seen[term]) for term in names])
        indices = {text: number for number, text in enumerate(sorted(set(texts)))}
        known, unknown = np.zeros(len(indices), dtype=np.int64), np.zeros(len(indices), dtype=np.int64)
        for text, good in zip(texts, answerable, strict=True):
            (known if good else unknown)[indices[text]] += 1
        empty = _matrix([], [], [0], len(names))
        wordings = cls(
            {term: index for index, term in enumerate(names)}, weight, counts, empty, known, unknown, indices
        )
        return cls(wordings.terms, weight, counts, wordings.encoded(list(indices)), known, unknown, indices)

    def encoded(self, texts: Sequence[Words]) -> sparse.csr_matrix:
        """[n, terms] of length 1 or less: what a wording has of unknown terms is in its length only."""
        rarest = float(self.weight.max()) if self.weight.size else 1.0
        data: list[float] = []
        columns: list[int] = []
        ends = [0]
        for text in texts:
            counts = Counter(_terms(text))
            pairs = [(self.terms.get(term), count) for term, count in sorted(counts.items())]
            values = [count * (rarest if index is None else self.weight[index]) for index, count in pairs]
            length = float(np.sqrt(np.square(values).sum())) or 1.0
            for (index, _), value in zip(pairs, values, strict=True):
                if index is not None:
                    columns.append(index)
                    data.append(value / length)
            ends.append(len(columns))
        return _matrix(data, columns, ends, len(self.terms))

    def features(
        self, texts: Sequence[Words], known_labels: Sequence[bool | None] | None = None
    ) -> NDArray[np.float64]:
        """[n, 4], as NAMES.  known_labels: of a training question whether it is answerable; its features then leave out
        itself; None for others."""
        labels = list(known_labels) if known_labels is not None else [None] * len(texts)
        results = np.empty((len(texts), len(NAMES)))
        rows = self.encoded(texts)
        turned = self.rows.T.tocsc()
        for start in range(0, len(texts), BATCH_SIZE):
            part = slice(start, start + BATCH_SIZE)
            likeness = np.asarray((rows[part] @ turned).todense())
            for number, (text, good) in enumerate(zip(texts[part], labels[part], strict=True)):
                results[start + number] = self._features(text, likeness[number], good)
        return results

    def strange(self, text: Sequence[str], answerable: bool = False) -> list[tuple[int, int]]:
        """Runs (first, end) of words that no answerable question has, or only one if it is the question's own."""
        odd = [index for index, word in enumerate(text) if self._count(word) <= int(answerable)]
        runs: list[tuple[int, int]] = []
        for index in odd:
            if runs and runs[-1][1] == index:
                runs[-1] = (runs[-1][0], index + 1)
            else:
                runs.append((index, index + 1))
        return runs

    def _features(self, text: Words, likeness: NDArray[np.float64], good: bool | None) -> tuple[float, ...]:
        known, unknown = self.known, self.unknown
        index = self.indices.get(text)
        if good is not None and index is not None:
            known, unknown = known.copy(), unknown.copy()
            (known if good else unknown)[index] -= 1
        nearest = float(likeness[known > 0].max(initial=0.0))
        there = np.flatnonzero(known + unknown)
        near = there[np.argsort(-likeness[there], kind="stable")[:NEIGHBOURS]]
        votes = likeness[near] ** SHARPNESS
        against, of_all = float(votes @ unknown[near]), float(votes @ (known[near] + unknown[near]))
        least = int(good is True)
        rarest = float(self.weight.max()) if self.weight.size else 1.0
        weights = [(rarest if word not in self.terms else self.weight[self.terms[word]], word) for word in text]
        total = sum(weight for weight, _ in weights)
        covered = sum(weight for weight, word in weights if self._count(word) > least)
        longest = max((stop - start for start, stop in self.strange(text, answerable=good is True)), default=0)
        return nearest, covered / total if total else 0.0, float(longest), against / of_all if of_all else 0.0

    def _count(self, word: str) -> int:
        index = self.terms.get(word)
        return 0 if index is None else int(self.counts[index])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that safetensors store; `to_json` has the rest."""
        return {
            "weight": self.weight, "counts": self.counts, "known": self.known, "unknown": self.unknown,
            "data": self.rows.data, "columns": self.rows.indices.astype(np.int32),
            "ends": self.rows.indptr.astype(np.int64),
        }  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Terms and wordings, in order."""
        return {"terms": list(self.terms), "wordings": [list(text) for text in self.indices]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], stored: Mapping[str, Any]) -> QuestionWordings:
        """Back from `arrays` and `to_json`."""
        terms = {term: index for index, term in enumerate(stored["terms"])}
        indices = {tuple(text): index for index, text in enumerate(stored["wordings"])}
        rows = _matrix(arrays["data"], arrays["columns"], arrays["ends"], len(terms))
        return cls(terms, arrays["weight"], arrays["counts"], rows, arrays["known"], arrays["unknown"], indices)


def _matrix(data: ArrayLike, columns: ArrayLike, ends: ArrayLike, width: int) -> sparse.csr_matrix:
    """A row for each end but the first.  scipy.sparse takes as long to import as a question to answer."""
    from scipy import sparse

    values, indices = np.asarray(data, dtype=np.float64), np.asarray(columns, dtype=np.int32)
    bounds = np.asarray(ends)
    return sparse.csr_matrix((values, indices, bounds), (len(bounds) - 1, width))


def _terms(text: Words) -> list[str]:
    """Words and pairs of words that follow each other; the ends of the text count as words of a pair."""
    return [*text, *(f"{one} {other}" for one, other in zip(("^", *text), (*text, "$"), strict=True))]


Array = NDArray[np.float64]


@dataclass(frozen=True)
class TypicalFindings:
    """Of each wording, the sum of each finding over answerable training questions, and how many have it.

    sums, counts: [wordings, findings].
    """

    wordings: QuestionWordings
    sums: Array
    counts: Array

    @classmethod
    def learn(
        cls, wordings: QuestionWordings, texts: Sequence[Words], findings: Array, answerable: Sequence[bool]
    ) -> TypicalFindings:
        """From findings [n, …] of training questions; NaN is not there."""
        sums, counts = (np.zeros((len(wordings.indices), findings.shape[1])) for _ in range(2))
        for text, row, good in zip(texts, findings, answerable, strict=True):
            if good:
                index = wordings.indices[text]
                sums[index] += np.nan_to_num(row)
                counts[index] += ~np.isnan(row)
        return cls(wordings, sums, counts)

    def differences(
        self, texts: Sequence[Words], findings: Array, known_labels: Sequence[bool | None] | None = None
    ) -> Array:
        """[n, …] of questions; NaN where either is not there.  known_labels: as of `QuestionWordings.features`."""
        rows, turned = self.wordings.encoded(texts), self.wordings.rows.T.tocsc()
        there = np.flatnonzero(self.counts.any(axis=1))
        differences = np.full(findings.shape, np.nan)
        for start in range(0, len(texts), BATCH_SIZE):
            likeness = np.asarray((rows[start : start + BATCH_SIZE] @ turned).todense())[:, there]
            for number, alike in enumerate(likeness, start):
                own_index = (
                    self.wordings.indices.get(texts[number])
                    if known_labels is not None and known_labels[number]
                    else None
                )
                differences[number] = findings[number] - self._expected(alike, there, own_index, findings[number])
        return differences

    def _expected(self, alike: Array, there: NDArray[np.int64], own_index: int | None, row: Array) -> Array:
        """Mean of the nearest; own_index: index of a training question's wording, which then counts without it."""
        near = np.argsort(-alike, kind="stable")[: NEIGHBOURS + 1]
        sums, counts = self.sums[there[near]], self.counts[there[near]]
        if own_index is not None:
            self_ = there[near] == own_index
            sums[self_] -= np.nan_to_num(row)
            counts[self_] -= ~np.isnan(row)
        filled = np.flatnonzero(counts.any(axis=1))[:NEIGHBOURS]
        votes = alike[near][filled] ** SHARPNESS
        total = votes @ counts[filled]
        mean: Array = np.divide(votes @ sums[filled], total, out=np.full(len(row), np.nan), where=total > 1e-12)
        return mean

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that safetensors store."""
        return {"usual_sums": self.sums, "usual_counts": self.counts}

    @classmethod
    def from_arrays(cls, wordings: QuestionWordings, arrays: Mapping[str, NDArray[Any]]) -> TypicalFindings:
        """Back from `arrays`."""
        return cls(wordings, arrays["usual_sums"], arrays["usual_counts"])
