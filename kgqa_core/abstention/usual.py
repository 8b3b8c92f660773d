"""What is usual for a wording: how the findings of a question differ from those of answerable ones that ask alike.

A comparison has two paths to two values, an intersection two to one entity, a yes/no question may find nothing at all:
what is little for one is much for another.  So each finding is also told as its difference from the mean of the nearest
answerable training questions, by the words that are left when topics are masked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.abstention.wordings import AT_ONCE, NEIGHBOURS, SHARPNESS, Wordings, Words

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Usual:
    """Of each wording, the sum of each finding over answerable training questions, and how many have it.

    sums, counts: [wordings, findings].
    """

    wordings: Wordings
    sums: Array
    counts: Array

    @classmethod
    def learn(cls, wordings: Wordings, texts: Sequence[Words], findings: Array, answerable: Sequence[bool]) -> Usual:
        """From findings [n, …] of training questions; NaN is not there."""
        sums, counts = (np.zeros((len(wordings.places), findings.shape[1])) for _ in range(2))
        for text, row, good in zip(texts, findings, answerable, strict=True):
            if good:
                place = wordings.places[text]
                sums[place] += np.nan_to_num(row)
                counts[place] += ~np.isnan(row)
        return cls(wordings, sums, counts)

    def differences(self, texts: Sequence[Words], findings: Array, own: Sequence[bool | None] | None = None) -> Array:
        """[n, …] of questions; NaN where either is not there.  own: as of `Wordings.features`."""
        rows, turned = self.wordings.encoded(texts), self.wordings.rows.T.tocsc()
        there = np.flatnonzero(self.counts.any(axis=1))
        found = np.full(findings.shape, np.nan)
        for start in range(0, len(texts), AT_ONCE):
            likeness = np.asarray((rows[start : start + AT_ONCE] @ turned).todense())[:, there]
            for number, alike in enumerate(likeness, start):
                mine = self.wordings.places.get(texts[number]) if own is not None and own[number] else None
                found[number] = findings[number] - self._expected(alike, there, mine, findings[number])
        return found

    def _expected(self, alike: Array, there: NDArray[np.int64], mine: int | None, row: Array) -> Array:
        """Mean of the nearest; mine: place of a training question's wording, which then counts without it."""
        near = np.argsort(-alike, kind="stable")[: NEIGHBOURS + 1]
        sums, counts = self.sums[there[near]], self.counts[there[near]]
        if mine is not None:
            self_ = there[near] == mine
            sums[self_] -= np.nan_to_num(row)
            counts[self_] -= ~np.isnan(row)
        filled = np.flatnonzero(counts.any(axis=1))[:NEIGHBOURS]
        votes = alike[near][filled] ** SHARPNESS
        total = votes @ counts[filled]
        mean: Array = np.divide(votes @ sums[filled], total, out=np.full(len(row), np.nan), where=total > 1e-12)
        return mean

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What safetensors keep of it."""
        return {"usual_sums": self.sums, "usual_counts": self.counts}

    @classmethod
    def of(cls, wordings: Wordings, arrays: Mapping[str, NDArray[Any]]) -> Usual:
        """Back from `arrays`."""
        return cls(wordings, arrays["usual_sums"], arrays["usual_counts"])
