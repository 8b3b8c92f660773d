"""Do probabilities mean what they say?  Temperature scaling, the expected calibration error, reliability.

Of a yes/no event: p is the probability that it happens, the outcome 1 where it did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BINS = 10
"""Bins of equal width between 0 and 1."""

COLDEST, HOTTEST = 0.05, 20.0
"""Temperatures that are looked at."""

Array = NDArray[np.float64]


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
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    found = []
    for number in range(bins):
        own = place == number
        if n := int(own.sum()):
            found.append(Bin(number / bins, (number + 1) / bins, float(p[own].mean()), float(happened[own].mean()), n))
    return found


def expected_calibration_error(probabilities: ArrayLike, outcomes: ArrayLike, bins: int = BINS) -> float:
    """Mean over predictions of |mean probability − share that happened| of their bin (Naeini et al. 2015).

    In [0, 1], 0 is best; 0 without predictions.
    """
    found = reliability(probabilities, outcomes, bins)
    total = sum(one.n for one in found)
    return sum(one.n * abs(one.mean - one.share) for one in found) / total if total else 0.0


def _pair(values: ArrayLike, outcomes: ArrayLike) -> tuple[Array, Array]:
    one, other = np.asarray(values, dtype=np.float64).ravel(), np.asarray(outcomes, dtype=np.float64).ravel()
    if one.shape != other.shape:
        raise ValueError(f"{one.size} predictions, but {other.size} outcomes")
    return one, other
