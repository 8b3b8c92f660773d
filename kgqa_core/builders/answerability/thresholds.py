"""When a parser's best form is believed: an entity and a form threshold, below which the answer is NK.

Both are tuned on dev for the best exact match over all questions (Patidar et al. 2023, PAPERS §4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.metrics.answerability import Predicted
from kgqa_core.parsing.parsed import Parsed

Floats = NDArray[np.float64]

STEPS = 200
"""Entity thresholds that are tried at most, at equal shares of the questions."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """entity: smallest confidence in the least certain entity of a form.  form: smallest probability of the form.

    0 lets everything through.
    """

    entity: float = 0.0
    form: float = 0.0

    def hold(self, best: Parsed) -> bool:
        """Whether a form is believed."""
        return best.rho >= self.entity and math.exp(best.score) >= self.form


@dataclass(frozen=True, slots=True)
class Tried:
    """A question's best form.  kept, dropped: exact match when it is believed, and when the answer is NK."""

    rho: float
    probability: float
    kept: float
    dropped: float


def decide(rows: Sequence[Parsed], thresholds: Thresholds | None = None) -> Predicted | None:
    """What a system says of a question, from its forms, best first; only the first counts.

    Without thresholds a question without form has no prediction; with them it is below every threshold, which is NK.
    """
    if not rows:
        return None if thresholds is None else Predicted()
    best = rows[0]
    if best.form is None or (thresholds is not None and not thresholds.hold(best)):
        return Predicted()
    return Predicted(best.form, frozenset(best.answers))


def tune(tried: Sequence[Tried]) -> Thresholds:
    """The thresholds with the highest sum of exact match; of equal ones those that believe most.

    Each lies halfway between two values that were seen, or at 0.
    """
    if not tried:
        return Thresholds()
    rho = np.array([one.rho for one in tried])
    order = np.argsort([-one.probability for one in tried], kind="stable")
    probability = np.array([tried[place].probability for place in order])
    gain = np.array([tried[place].kept - tried[place].dropped for place in order])
    ends = np.append(probability[1:] != probability[:-1], True)  # a threshold cannot part what is equal
    best, found = -np.inf, Thresholds()
    for entity in _cuts(rho):
        sums = np.append(0.0, np.cumsum(np.where(rho[order] >= entity, gain, 0.0)))
        sums[1:][~ends] = -np.inf
        place = len(sums) - 1 - int(np.argmax(sums[::-1]))
        if sums[place] > best:
            best, found = float(sums[place]), Thresholds(entity, _between(probability, place))
    return found


def _cuts(values: Floats) -> list[float]:
    """0, and thresholds between neighbouring values."""
    distinct = np.unique(values)
    if len(distinct) > STEPS:
        distinct = np.unique(np.quantile(values, np.linspace(0, 1, STEPS), method="nearest"))
    return [0.0, *((distinct[1:] + distinct[:-1]) / 2).tolist()]


def _between(falling: Floats, kept: int) -> float:
    """A threshold that keeps the first `kept` of falling probabilities."""
    if kept == len(falling):
        return 0.0
    if kept == 0:
        return math.nextafter(float(falling[0]), 2.0)
    return float(falling[kept - 1] + falling[kept]) / 2
