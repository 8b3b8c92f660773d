"""How far two judges of the same items agree."""

from __future__ import annotations

from collections.abc import Sequence


def kappa(cells: Sequence[int]) -> float | None:
    """Cohen's κ of a table (both correct, first only, second only, both incorrect): in [-1, 1], higher is better.

    κ = (p_o - p_e) / (1 - p_e), with p_e the agreement that the two shares of `correct` would have by chance; None
    where p_e is 1.

    >>> round(kappa([20, 5, 10, 15]), 6)
    0.4
    """
    yes, first_only, second_only, no = cells
    total = sum(cells)
    observed = yes + no
    chance = (yes + first_only) * (yes + second_only) + (second_only + no) * (first_only + no)
    if chance == total * total:
        return None
    return (observed * total - chance) / (total * total - chance)
