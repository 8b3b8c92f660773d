"""How sure the label parser is of an answer: candidates that find the same answer share their probability.

    P(answer is right) = logistic(w · x + b)

x: from the softmax over all candidates and "none", the first is the logit of the answer's share; from the likeness and
the features of the form; and from the words that it leaves unread.  Learnt on questions
whose right answer, or lack of one, is known, from the calibration of the packaged head start (`model.load`), or else
from w = (1, 0, …), b = 0, where the confidence is the share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kgqa_core.search.candidates import Candidate
from kgqa_core.symbolic.by_labels.parser import CandidateFeatures, Ranked
from kgqa_core.symbolic.by_labels.unread import Unread

INPUTS = 14
SCALES = (5.0, 5.5, 4.0, 0.2, 0.15, 0.2, 0.5, 0.2, 0.2, 0.2, 0.45, 0.5, 0.2, 3.5, 1.0)
"""Typical size of each input, and of the bias: a coefficient times its scale is what moves a confidence."""
NOT_READ = Unread(("?",), restricting=True)
"""What is taken for left by a candidate that is too unlikely to be read."""
RIDGE = 100.0
"""Weight of the squared distances of the scaled coefficients from those of the start, against one question.

Generated questions teach what the graph holds, but are put in fewer words than people's: a confidence that is learnt
from them alone is too low for people's.
"""


@dataclass(frozen=True)
class PlanVerdict:
    """What a language model says of the plans of a question.

    place: of the plan that it chooses, 0 for the parser's first, -1 for none.  plans: how many it saw.  missing: words
    of the question that no plan has.  fault: why there is no choice, so that the first plan stays.
    """

    place: int
    plans: int
    missing: str = ""
    fault: str = ""

    def __str__(self) -> str:
        chosen = f"plan {self.place + 1}" if self.place >= 0 else "none"
        said = f"{chosen} of {self.plans}{self.missing and f', missing: {self.missing}'}"
        return f"no choice: {self.fault[:100]}" if self.fault else said


@dataclass(frozen=True)
class Choice:
    """The best answer of a question.

    best: the candidate that gives it; None where there is none.  share: probability of all candidates with this answer.
    none: that of "no form".  second: that of the likeliest other answer.  verdict: of a language model that chose it.
    """

    best: Candidate | None
    share: float
    none: float
    place: int = -1
    ranked: Ranked | None = None
    verdict: PlanVerdict | None = None
    second: float = 0.0

    def inputs(self) -> list[float]:
        """What a calibration reads."""
        if self.ranked is None or self.best is None:
            return [0.0] * INPUTS
        features = CandidateFeatures(*self.ranked.prepared.features[self.ranked.order[self.place]])
        unread = self.ranked.unread.get(self.place, NOT_READ)  # of the best of its answer, whatever stands for it now
        reads_all, none = not (unread.words or unread.likely), _logit(self.none)
        return [
            _logit(self.share), none, _logit(self.share / (self.share + self.second + 1e-9)),
            float(self.ranked.likeness[self.place][1]), float(self.empty), float(features.covered),
            float(features.left), min(unread.likely, 2) / 2, min(unread.alone, 2) / 2, float(unread.unnamed),
            float(unread.restricting), float(reads_all), float(features.worst), none * (not unread.words),
        ]  # fmt: skip

    @property
    def unread(self) -> Unread | None:
        """What the best form leaves of the question, where it was told when the candidates were ranked."""
        if self.ranked is None or self.best is not self.ranked.prepared.candidates[self.ranked.order[self.place]]:
            return None
        return self.ranked.unread.get(self.place)

    @property
    def empty(self) -> bool:
        """Whether the best form states what the graph has no fact of."""
        return self.best is not None and self.best.missing


@dataclass(frozen=True)
class Calibration:
    """Coefficients of the logistic map.  threshold: confidence below which nothing is answered."""

    weights: tuple[float, ...]
    bias: float
    threshold: float = 0.35

    def confidence(self, choice: Choice) -> float:
        """Probability that the answer of a choice is right, in [0, 1]."""
        return 0.0 if choice.best is None else self.at(choice.inputs())

    def at(self, inputs: Sequence[float]) -> float:
        """The same of `Choice.inputs`."""
        x = self.bias + sum(w * v for w, v in zip(self.weights, inputs, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, x))))


AS_IT_IS = Calibration((1.0,) + (0.0,) * (INPUTS - 1), 0.0)
"""Takes the share for the confidence."""


def choose(ranked: Ranked) -> Choice:
    """The answer that most probability is on."""
    return choices(ranked, 1)[0]


def choices(ranked: Ranked, most: int) -> list[Choice]:
    """The answers that most probability is on, best first; one without a candidate where there is none."""
    scores = np.array([*ranked.scores, ranked.none])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    groups: dict[object, float] = {}
    first: dict[object, int] = {}
    for index, (candidate, share) in enumerate(zip(ranked.candidates, shares[:-1].tolist(), strict=True)):
        key = answer_key(candidate)
        groups[key] = groups.get(key, 0.0) + share
        first.setdefault(key, index)
    if not groups:
        return [Choice(None, 0.0, 1.0)]
    order = sorted(groups, key=lambda key: (-groups[key], first[key]))
    found, none = ranked.candidates, float(shares[-1])
    top = [*order[:2], None]
    return [
        Choice(found[first[key]], groups[key], none, first[key], ranked, second=groups.get(top[key == top[0]], 0.0))
        for key in order[:most]
    ]


def answer_key(candidate: Candidate) -> object:
    """What is the same for candidates with the same answer; each that finds nothing has its own."""
    if candidate.table or candidate.finds_nothing:
        return str(candidate.form)
    return (type(candidate.value).__name__, candidate.value) if candidate.nodes is None else candidate.nodes.tobytes()


def calibrate(
    choices: Sequence[Choice], right: Sequence[bool], threshold: float = 0.35, start: Calibration = AS_IT_IS
) -> Calibration:
    """A calibration learnt from choices and whether each is right; few of them move it little from the start."""
    rows = [(choice.inputs(), good) for choice, good in zip(choices, right, strict=True) if choice.best is not None]
    return fit_rows([row for row, _ in rows], [good for _, good in rows], threshold, start)


def fit_rows(
    inputs: Sequence[Sequence[float]],
    right: Sequence[bool],
    threshold: float,
    start: Calibration = AS_IT_IS,
    weights_of_rows: Sequence[float] | None = None,
) -> Calibration:
    """The calibration of rows of `Choice.inputs`, each with its weight in the loss, 1 where none is given."""
    x = torch.tensor(inputs, dtype=torch.float64).reshape(-1, INPUTS)
    y = torch.tensor(right, dtype=torch.float64)
    each = None if weights_of_rows is None else torch.tensor(weights_of_rows, dtype=torch.float64)
    plain = torch.tensor([*start.weights, start.bias], dtype=torch.float64)
    scales = torch.tensor(SCALES, dtype=torch.float64)
    weights = plain.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        logits = x @ weights[:-1] + weights[-1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y, each, reduction="sum")
        loss = loss + RIDGE * (((weights - plain) * scales) ** 2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    rows = [round(value, 6) for value in weights.detach().tolist()]
    return Calibration(tuple(rows[:-1]), rows[-1], threshold)


def _logit(share: float) -> float:
    share = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(share / (1 - share))
