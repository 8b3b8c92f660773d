"""What a confidence is worth: which answers are given first, how many of these are wrong, and who is told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coverage:
    """One point of a risk-coverage curve: with this confidence and more, the share answered, and of these the wrong."""

    confidence: float
    coverage: float
    risk: float


def auroc(scores: ArrayLike, positives: ArrayLike) -> float:
    """Chance that a positive has a greater score than a negative, ties half (Hanley and McNeil 1982).

    In [0, 1]: 1 is perfect, 0.5 is chance, 0 the wrong way round.  0.5 where either kind is missing.
    """
    values, kinds = _pair(scores, positives)
    wanted = kinds > 0
    ones, others = int(wanted.sum()), int((~wanted).sum())
    if not ones or not others:
        return 0.5
    above = float(rankdata(values)[wanted].sum()) - ones * (ones + 1) / 2
    return above / (ones * others)


def risk_coverage(confidences: ArrayLike, wrong: ArrayLike) -> list[Coverage]:
    """The curve of El-Yaniv and Wiener 2010, from the most confident answers to all of them.

    wrong: 1 for a wrong answer, 0 for a right one, or a share of it.  Answers of equal confidence are given together.
    """
    values, faults = _pair(confidences, wrong)
    if not values.size:
        return []
    order = np.argsort(-values, kind="stable")
    values, risks = values[order], np.cumsum(faults[order])
    last = np.flatnonzero(np.append(np.diff(values) != 0, True))
    return [
        Coverage(float(values[at]), float((at + 1) / values.size), float(risks[at] / (at + 1))) for at in last.tolist()
    ]


def area_under_risk(confidences: ArrayLike, wrong: ArrayLike) -> float:
    """Mean risk over all coverages 1/n … 1; answers of equal confidence come in a random order.  Lower is better.

    With w wrong answers of n in the best order it is the mean of max(0, k − (n − w)) / k over k, in the worst that of
    min(k, w) / k; 0 without answers.  Source: Geifman and El-Yaniv 2019 (AURC).
    """
    values, faults = _pair(confidences, wrong)
    if not values.size:
        return 0.0
    order = np.argsort(-values, kind="stable")
    values, faults = values[order], faults[order].copy()
    for part in np.split(np.arange(values.size), np.flatnonzero(np.diff(values) != 0) + 1):
        faults[part] = faults[part].mean()
    return float((np.cumsum(faults) / np.arange(1, values.size + 1)).mean())


def best_area(wrong: Sequence[float] | Array) -> float:
    """`area_under_risk` of the best possible order: all right answers first."""
    faults = np.asarray(wrong, dtype=np.float64)
    return area_under_risk(-faults, faults)


def best_threshold(confidences: ArrayLike, positives: ArrayLike) -> float:
    """The confidence from which on an answer is given so that most are decided rightly; ties go to the smallest.

    It lies in the middle between two confidences that occur; 0 answers all, just above 1 none.
    """
    values, kinds = _pair(confidences, positives)
    if not values.size:
        return 0.5
    levels = np.unique(values)
    cuts = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [np.nextafter(1.0, 2.0)]])
    order = np.argsort(values, kind="stable")
    place = np.searchsorted(values[order], cuts, side="left")
    wanted = np.concatenate([[0.0], np.cumsum(kinds[order])])
    right = (wanted[-1] - wanted[place]) + (place - wanted[place])
    return float(cuts[int(np.argmax(right))])


def _pair(values: ArrayLike, others: ArrayLike) -> tuple[Array, Array]:
    one, other = np.asarray(values, dtype=np.float64).ravel(), np.asarray(others, dtype=np.float64).ravel()
    if one.shape != other.shape:
        raise ValueError(f"{one.size} confidences, but {other.size} outcomes")
    return one, other
