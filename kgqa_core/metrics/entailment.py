"""Does a response say what its reference says, by a classifier's scores (Huang et al. 2024)?

scores: [runs of the response, sentences of the reference, 2], the probabilities of entailment and of contradiction.  A
sentence of the reference is entailed as much as by the run that entails it most, and contradicted as much as by the run
that contradicts it most; a response has the means over the sentences.  One that says nothing has 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def entailment(scores: Scores) -> float:
    """How much the response entails its reference.  Range [0, 1], higher is better."""
    return _mean_of_best(scores, 0)


def contradiction(scores: Scores) -> float:
    """How much the response contradicts its reference.  Range [0, 1], lower is better."""
    return _mean_of_best(scores, 1)


def overall(scores: Scores) -> float:
    """Entailment less contradiction.  Range [-1, 1], higher is better."""
    return entailment(scores) - contradiction(scores)


def _mean_of_best(scores: Scores, column: int) -> float:
    return float(scores.max(axis=0).mean(axis=0)[column]) if scores.size else 0.0
