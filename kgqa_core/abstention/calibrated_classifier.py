"""A small calibrated classifier: logistic regression on a curve of each feature.

Each feature is cut at quantiles of training, and its part of the logit is a straight line between the cuts, level
beyond the first and the last; a feature that is not there (NaN) has a part of its own.  The parts add up, so that each
question's confidence can be read feature by feature.  Newton's method finds the one optimum: nothing is random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.metrics.confidence import fit_temperature, sigmoid

CUTS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Quantiles of training between which a feature's part is straight."""

STEPS = 50
"""Steps of Newton's method; it is done after some ten."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AdditiveClassifier:
    """A trained classifier.

    names: of the features.  cuts: of each feature, ascending.  weights: the constant, then of each feature one for
    "not there" and one for each cut.  temperature: what logits are divided by.
    """

    names: tuple[str, ...]
    cuts: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    temperature: float = 1.0

    @classmethod
    def fit(
        cls, names: Sequence[str], features: Array, outcomes: Sequence[bool], strength: float
    ) -> AdditiveClassifier:
        """Learns from features [n, names] and what came of them.  strength: of the prior that parts are level."""
        values, happened = np.asarray(features, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
        cuts = tuple(_cuts(values[:, index]) for index in range(len(names)))
        spread = _spread(values, cuts)
        size = spread.shape[1]
        prior = np.full(size, strength)
        prior[0] = 1e-6
        weights = np.zeros(size)
        for _ in range(STEPS):
            p = sigmoid(spread @ weights)
            slope = spread.T @ (p - happened) + prior * weights
            bend = (spread * (p * (1 - p))[:, None]).T @ spread + np.diag(prior)
            step = np.linalg.solve(bend, slope)
            weights -= step / max(1.0, float(np.abs(step).max()) / 5)
            if float(np.abs(step).max()) < 1e-8:
                break
        return cls(tuple(names), cuts, tuple(round(weight, 10) for weight in weights.tolist()))

    def logits(self, features: Array) -> Array:
        """[n] of features [n, names], divided by the temperature."""
        spread = _spread(np.asarray(features, dtype=np.float64), self.cuts)
        logits: Array = spread @ np.array(self.weights) / self.temperature
        return logits

    def confidence(self, features: Array) -> Array:
        """[n] probabilities."""
        return sigmoid(self.logits(features))

    def calibrated(self, features: Array, outcomes: Sequence[bool]) -> AdditiveClassifier:
        """The same with the temperature under which outcomes that it was not fitted on are likeliest."""
        cold = replace(self, temperature=1.0)
        return replace(self, temperature=fit_temperature(cold.logits(features), np.asarray(outcomes, dtype=np.float64)))

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "names": list(self.names), "cuts": [list(feature_cuts) for feature_cuts in self.cuts],
            "weights": list(self.weights), "temperature": self.temperature,
        }  # fmt: skip

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> AdditiveClassifier:
        """Back from `to_json`."""
        cuts = tuple(tuple(feature_cuts) for feature_cuts in stored["cuts"])
        return cls(tuple(stored["names"]), cuts, tuple(stored["weights"]), float(stored["temperature"]))


def _cuts(values: Array) -> tuple[float, ...]:
    there = values[~np.isnan(values)]
    return tuple(np.unique(np.quantile(there, CUTS).round(9)).tolist()) if there.size else (0.0,)


def _spread(values: Array, cuts: Sequence[Sequence[float]]) -> Array:
    """[n, 1 + Σ (1 + cuts)]: 1, and of each feature how much each cut has of its value, the two beside it sharing."""
    columns = [np.ones((len(values), 1))]
    for index, feature_cuts in enumerate(cuts):
        column = values[:, index]
        missing = np.isnan(column)
        at = np.array(feature_cuts)
        inside = np.clip(np.where(missing, at[0], column), at[0], at[-1])
        right = np.clip(np.searchsorted(at, inside, side="left"), min(1, len(at) - 1), len(at) - 1)
        left = np.maximum(right - 1, 0)
        width = at[right] - at[left]
        share = np.where(width > 0, (inside - at[left]) / np.where(width > 0, width, 1.0), 1.0)
        part = np.zeros((len(values), 1 + len(at)))
        rows = np.arange(len(values))
        part[rows, 1 + left] += 1 - share
        part[rows, 1 + right] += share
        part[missing, 1:] = 0.0
        part[missing, 0] = 1.0
        columns.append(part)
    return np.concatenate(columns, axis=1)
