"""How far scores can be trusted: percentile bootstrap of a mean, McNemar's test of a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

_CELLS = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over n questions with the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    n: int

    def rounded(self, digits: int = 6) -> dict[str, float | int]:
        """As JSON: `{"value", "low", "high", "n"}`."""
        return {name: round(value, digits) for name, value in asdict(self).items()}


def bootstrap_interval(values: ArrayLike, *, samples: int = 1000, seed: int = 0, level: float = 0.95) -> Interval:
    """Mean of values [n] with a percentile bootstrap interval (Efron 1979); low <= value <= high.

    Drawing n of n values with replacement is drawing how often each *distinct* value comes, a multinomial; scores take
    few distinct values, so memory is samples x distinct values (in chunks), never samples x n.  The result depends on
    the values and the seed, not on the order of the values.  Without values nothing is known: mean 0, interval [0, 1].
    Where all values are equal the interval has no width: the bootstrap cannot see what was never sampled.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    n = int(data.size)
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    distinct, counts = np.unique(data, return_counts=True)
    value = float(np.dot(distinct, counts) / n)
    if distinct.size == 1:
        return Interval(value, value, value, n)
    generator = np.random.default_rng(seed)
    means = np.empty(samples)
    chunk = max(1, _CELLS // distinct.size)
    for start in range(0, samples, chunk):
        draws = generator.multinomial(n, counts / n, size=min(chunk, samples - start))
        means[start : start + chunk] = draws @ distinct / n
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(value, min(float(low), value), max(float(high), value), n)


def mcnemar(helpful: int, harmful: int) -> float:
    """Two-sided p of McNemar's exact test: could chance alone fix and break so unequal numbers of questions?

    helpful, harmful: questions that only one of two experiments gets right.  Were both equally good, each such question
    would be a toss of a coin, so p is the chance of a binomial (n = helpful + harmful, 1/2) at least as far from n / 2;
    questions that both get right or wrong say nothing.  In (0, 1], lower is stronger; symmetric; 1 without any
    difference.  Source: McNemar 1947, in the exact form.
    """
    n = helpful + harmful
    if n == 0:
        return 1.0
    fewer = min(helpful, harmful)
    from scipy.special import logsumexp
    from scipy.stats import binom, binomtest  # half a second, which answering a question need not wait for

    p = float(binomtest(fewer, n).pvalue)
    return p or 2 * float(np.exp(logsumexp(binom.logpmf(np.arange(fewer + 1), n, 0.5))))  # below 1e-258 it gives 0


def holm(ps: Sequence[float]) -> list[float]:
    """p-values corrected for their number so that the chance of any false finding among them stays that of one.

    ps: of m tests, in [0, 1].  The k-th smallest (k from 0) times m − k, never below what a smaller one has become, at
    most 1; in the order given.  Source: Holm 1979, the step-down form of Bonferroni's correction.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(ps)
    least = 0.0
    for position, index in enumerate(sorted(range(len(ps)), key=lambda one: ps[one])):
        least = max(least, min(1.0, (len(ps) - position) * ps[index]))
        corrected[index] = least
    return corrected


def three_digits(p: float) -> float:
    """A p-value to three significant digits; an exact tie rounds up: 2/64 is 0.0313.

    >>> three_digits(2 / 64), three_digits(1.0)
    (0.0313, 1.0)
    """
    return float(f"{p * (1 + 1e-12):.3g}")
