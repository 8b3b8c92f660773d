"""The four levels of LTGen: how well known an entity is, I the best known and IV the least (Huang et al. 2024, 3)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgqa_core.errors import InputError
from kgqa_core.types import LEVELS


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds of the levels IV, III, II and I in this order, and the upper bound of I (None: there is none).

    A value equal to a lower bound is in that level; the paper leaves open to which level 10^3 belongs.
    """

    lower: tuple[float, float, float, float]
    upper: float | None
    how: str

    def level(self, value: float) -> str | None:
        """The level of a popularity; None below the lowest and above the highest.

        >>> Bounds((10, 100, 1000, 10000), 100000, "absolute").level(1000)
        'II'
        """
        place = bisect_right(self.lower, value)
        if place == 0 or (self.upper is not None and value >= self.upper):
            return None
        return LEVELS[len(LEVELS) - place]

    def as_text(self) -> dict[str, str]:
        """Each level's interval, in words."""
        ends = [*self.lower[1:], self.upper]
        words = [
            f"{_number(low)} ≤ x" + (f" < {_number(high)}" if high is not None else "")
            for low, high in zip(self.lower, ends, strict=True)
        ]
        return dict(zip(LEVELS, reversed(words), strict=True))


def absolute(thresholds: Sequence[float]) -> Bounds:
    """Levels between five rising bounds.  Raises InputError when they do not rise."""
    low = tuple(float(value) for value in thresholds)
    if len(low) != 5 or any(later <= earlier for earlier, later in zip(low, low[1:], strict=False)):
        raise InputError(f"ltgen.sampling.thresholds must be five rising numbers, but they are {list(thresholds)}")
    return Bounds((low[0], low[1], low[2], low[3]), low[4], "absolute")


def quantiles(values: Iterable[float]) -> Bounds:
    """Levels of about a quarter of the values each; equal values are in one level, and none is empty if it can be.

    From the lowest up, a level takes whole values until it has its share of what is left.  Raises InputError when there
    are fewer than four different values.

    >>> quantiles([1, 1, 1, 1, 1, 2, 3, 4]).lower
    (1.0, 2.0, 3.0, 4.0)
    """
    counts = Counter(float(value) for value in values)
    distinct = sorted(counts)
    if len(distinct) < len(LEVELS):
        raise InputError(
            f"the popularity has only {len(distinct)} different values ({', '.join(map(_number, distinct))}), so it "
            "makes no four levels; give page views with ltgen.popularity.files, or set ltgen.sampling.thresholds and "
            "levels=absolute"
        )
    left = sum(counts.values())
    place = 0
    lower = []
    for levels_left in range(len(LEVELS), 0, -1):
        lower.append(distinct[place])
        share, taken = left / levels_left, 0
        while place < len(distinct) - (levels_left - 1) and (taken == 0 or taken < share):
            taken += counts[distinct[place]]
            place += 1
        left -= taken
    return Bounds((lower[0], lower[1], lower[2], lower[3]), None, "quantiles")


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
