"""Fits the weights of the link probability on training questions, and prints them as `prior.WEIGHTS` has them.

    python -m benchmarks.answers.linking_prior --work DIR --shared ../shared/data

Every name found in a text is a case: positive when one of its entities is gold.  Names inside a gold mention are left
out, for they lose to it anyway.  Six data sets count alike, 2,500 texts each; ridge of 3 on 4,000 cases a set.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers.linking_data import SETS, Data, read
from kgqa_core.linking import kernels
from kgqa_core.linking.fold import fold_text
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.linking.spots import WEIGHTS, Occurrence, Writing, features

Array = NDArray[np.float64]
HELD = {"usual_inside": -1.5, "value": -0.5}
"""Weights that are set by hand; the others are fitted beside them."""


def cases(data: Data, most: int, seed: int) -> tuple[Array, Array]:
    """Features [cases, weights] and whether each is a mention [cases]."""
    mentions, rows = MentionDictionary(data.mentions), list(data.rows)
    random.Random(seed).shuffle(rows)
    values: list[list[float]] = []
    truth: list[float] = []
    for text, gold in rows[:most]:
        folded, writing, here = fold_text(text), Writing.of(text), []
        strings = mentions.names
        found = kernels.spot(strings.blob, strings.offsets, folded.data, folded.begin, folded.end)
        for first, last, name in found.tolist():
            start, end = int(folded.first[first]), int(folded.last[last])
            right = any(entity in gold for entity, _ in mentions.candidates(name))
            seen = Occurrence(text[start:end], start, last - first + 1, name)
            here.append((start, end, right, features(seen, writing, mentions)))
        golden = [(start, end) for start, end, right, _ in here if right]
        for start, end, right, row in here:
            if not any(a <= start and end <= b and (a, b) != (start, end) for a, b in golden):
                values.append(row)
                truth.append(float(right))
    return np.array(values), np.array(truth)


def fit(sets: list[tuple[Array, Array]], ridge: float = 3.0, each: float = 4000) -> Array:
    """Weights of a ridge logistic regression, by Newton's steps; the bias is free, and what is HELD stays."""
    x, y = np.concatenate([x for x, _ in sets]), np.concatenate([y for _, y in sets])
    weight = np.concatenate([np.full(len(y), each / len(y)) for _, y in sets])
    names = list(WEIGHTS)
    free = [place for place, name in enumerate(names) if name not in HELD]
    whole = np.array([HELD.get(name, 0.0) for name in names])
    offset, x = x @ whole, x[:, free]
    penalty = np.eye(len(free)) * ridge
    penalty[0, 0] = 1e-3
    b = np.zeros(len(free))
    for _ in range(100):
        p = 1 / (1 + np.exp(-x @ b - offset))
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + penalty
        step = np.linalg.solve(hessian, x.T @ (weight * (p - y)) + penalty @ b)
        b -= step
        if np.abs(step).max() < 1e-9:
            break
    whole[free] = b
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--texts", type=int, default=2_500)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args()
    sets = [cases(read(given.work, given.shared, name, "train"), given.texts, given.seed) for name in SETS]
    weights = fit(sets)
    for name, value in zip(WEIGHTS, weights, strict=True):
        print(f'    "{name}": {value:.2f},')
    for name, (x, y) in zip(SETS, sets, strict=True):
        p = 1 / (1 + np.exp(-x @ weights))
        print(f"# {name}: {len(y)} cases, {y.mean():.2f} mentions, {((p > 0.5) == y).mean():.3f} right")


if __name__ == "__main__":
    main()
