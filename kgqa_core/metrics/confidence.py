"""Metrics of confidences: calibration of probabilities, and which answers to give first.

Calibration is of a yes/no event: p is the probability that it happens, the outcome 1 where it did.  Temperature
scaling, the expected calibration error, reliability; risk and coverage, AUROC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

BINS = 10
"""Bins of equal width between 0 and 1."""

COLDEST, HOTTEST = 0.05, 20.0
"""Temperatures that are looked at."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions between two probabilities: their mean, how often it happened, and how many there are."""

    low: float
    high: float
    mean: float
    share: float
    n: int


def sigmoid(logits: ArrayLike) -> Array:
    """Probabilities of logits; no logit overflows."""
    values = np.asarray(logits, dtype=np.float64)
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1.0 + small)


def log_loss(logits: ArrayLike, outcomes: ArrayLike) -> float:
    """Mean negative log-likelihood of outcomes in {0, 1}, in nats; 0 without any.  Lower is better."""
    values, happened = _pair(logits, outcomes)
    return float((np.logaddexp(0.0, values) - happened * values).mean()) if values.size else 0.0


def fit_temperature(logits: ArrayLike, outcomes: ArrayLike) -> float:
    """The T in [0.05, 20] for which sigmoid(logits / T) has the least negative log-likelihood (Guo et al. 2017).

    The loss is convex in 1 / T, so its slope is halved to zero.  1 where nothing can be learnt: no predictions, or all
    logits 0.  Where every logit has the right sign the likelihood grows without end, and T is the coldest.
    """
    values, happened = _pair(logits, outcomes)
    if not values.size or not np.any(values):
        return 1.0

    def slope(sharpness: float) -> float:
        return float(((sigmoid(sharpness * values) - happened) * values).mean())

    low, high = 1 / HOTTEST, 1 / COLDEST
    if slope(low) >= 0:
        return HOTTEST
    if slope(high) <= 0:
        return COLDEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) >= 0 else (middle, high)
    return round(2 / (low + high), 6)


def reliability(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = BINS) -> list[Bin]:
    """The bins of equal width that hold any prediction, in order; a bin has its lower end, the last one 1 too."""
    p, happened = _pair(probabilities, outcomes)
    index = np.minimum((p * bins).astype(np.int64), bins - 1)
    results = []
    for number in range(bins):
        own = index == number
        if n := int(own.sum()):
            results.append(
                Bin(number / bins, (number + 1) / bins, float(p[own].mean()), float(happened[own].mean()), n)
            )
    return results


def expected_calibration_error(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = BINS) -> float:
    """Mean over predictions of |mean probability − share that happened| of their bin (Naeini et al. 2015).

    In [0, 1], 0 is best; 0 without predictions.
    """
    result = reliability(probabilities, outcomes, bins)
    total = sum(one.n for one in result)
    return sum(one.n * abs(one.mean - one.share) for one in result) / total if total else 0.0


def _pair(values: ArrayLike, outcomes: ArrayLike) -> tuple[Array, Array]:
    one, other = np.asarray(values, dtype=np.float64).ravel(), np.asarray(outcomes, dtype=np.float64).ravel()
    if one.shape != other.shape:
        raise ValueError(f"{one.size} predictions, but {other.size} outcomes")
    return one, other


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
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # of equal values the mean of their ranks
    above = float(ranks[index][wanted].sum()) - ones * (ones + 1) / 2
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
    index = np.searchsorted(values[order], cuts, side="left")
    wanted = np.concatenate([[0.0], np.cumsum(kinds[order])])
    right = (wanted[-1] - wanted[index]) + (index - wanted[index])
    return float(cuts[int(np.argmax(right))])


def coverage_threshold(confidences: ArrayLike, coverage: float) -> float:
    """The confidence that a further value reaches with a probability of at least `coverage`, in (0, 1).

    It is the k-th smallest of n values, k = ⌊(n + 1)(1 − coverage)⌋ (split conformal prediction: Vovk et al. 2005).
    The bound holds where values and the further one are exchangeable, over their draw; 0, which everything reaches,
    where n < 1 / (1 − coverage) − 1.

    >>> coverage_threshold([0.9, 0.1, 0.5, 0.7], 0.6)
    0.5
    """
    values = np.sort(np.asarray(confidences, dtype=np.float64).ravel())
    k = int(np.floor((values.size + 1) * (1 - coverage) + 1e-9))
    return float(values[k - 1]) if k else 0.0
