"""What the wording of a question says of its answerability, from few unanswerable examples: LC-QuAD-NoA.

    python -m benchmarks.answers.noa [--json OUT]

LC-QuAD-NoA has questions of LC-QuAD 2 and as many of the same templates made unanswerable, their wording checked by
hand.  Its graph is the whole of Wikidata, which is not here, so that only the text can be read: the packaged sentence
encoder's vector of a question and a logistic regression, on all answerable training questions and 20, 100 or all of the
unanswerable ones (ten draws of the first two, classes weighted alike; 0 examples: the cosine to the nearest answerable
training question).  Trained on the published training file, scored once on its test file; nothing of it ships.

auroc: answerable against unanswerable test questions.  Intervals draw test questions (1,000 times); those of several
draws of examples are also the spread of the draws.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results_file
from benchmarks.conditions import DATA, commit_name, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.metrics.confidence import auroc, sigmoid
from kgqa_core.nn.sentence_encoder import SentenceEncoder

FIELDS = (*CONDITIONS, "questions/*/*", "rows/*/*")
"""What the result file holds (benchmarks/results_file.py)."""
FOLDER = DATA / "unanswerable_lcquad2_noa"
FILES = {"train": "LC-QuAD_2_train_balanced.json", "test": "test_balanced.json"}
SEED, DRAWS, RESAMPLED = 7, 10, 1_000
EXAMPLES = (0, 20, 100, None)
"""Unanswerable training questions; None for all of them."""
PRIOR = 10.0
"""Precision of the normal prior of the weights, for vectors of length 1."""

Array = NDArray[np.float64]


def read(split: str) -> tuple[list[str], Array]:
    """Texts of a file, and 1 for the answerable ones: the original questions, which say nothing of it."""
    rows = json.loads((FOLDER / FILES[split]).read_text(encoding="utf-8"))
    rows = [row for row in rows if row["question"]]
    return [row["question"] for row in rows], np.array([float(row.get("has_answer", True)) for row in rows])


def fit(vectors: Array, kinds: Array) -> Array:
    """Weights of a logistic regression, the constant last, both classes weighted alike, by Newton's method."""
    x = np.hstack([vectors, np.ones((len(vectors), 1))])
    weight = np.where(kinds > 0, 0.5 / kinds.sum(), 0.5 / (1 - kinds).sum()) * len(kinds)
    prior = np.append(np.full(vectors.shape[1], PRIOR), 1e-6)
    theta = np.zeros(x.shape[1])
    for _ in range(20):
        p = sigmoid(x @ theta)
        slope = x.T @ (weight * (p - kinds)) + prior * theta
        theta -= np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(prior), slope)
    return theta


def scores(train: tuple[Array, Array], test: Array, examples: int | None, draw: int) -> Array:
    """How answerable the test questions look from so many unanswerable examples."""
    vectors, kinds = train
    good, bad = np.flatnonzero(kinds > 0), np.flatnonzero(kinds == 0)
    if examples == 0:
        return (test @ vectors[good].T).max(axis=1)
    if examples is not None:
        bad = np.random.default_rng([SEED, draw]).choice(bad, size=examples, replace=False)
    chosen = np.concatenate([good, bad])
    theta = fit(vectors[chosen], kinds[chosen])
    return test @ theta[:-1] + theta[-1]


def row(drawn: list[Array], kinds: Array) -> dict[str, float]:
    """Mean AUROC of the draws, its interval over test questions, and the lowest and highest draw."""
    values = [auroc(each, kinds) for each in drawn]
    generator = np.random.default_rng(SEED)
    resampled = []
    for _ in range(RESAMPLED):
        at = generator.integers(0, len(kinds), len(kinds))
        resampled.append(auroc(drawn[generator.integers(0, len(drawn))][at], kinds[at]))
    low, high = np.quantile(resampled, [0.025, 0.975])
    named = {"auroc": np.mean(values), "low": low, "high": high, "lowest": min(values), "highest": max(values)}
    return {name: round(float(value), 4) for name, value in named.items()} | {"draws": len(drawn)}


def tables(found: dict[str, Any]) -> str:
    """The table of the page."""
    lines = ["| unanswerable examples | AUROC | lowest and highest draw |", "|---|--:|--:|"]
    for name, own in found["rows"].items():
        spread = f"{own['lowest']:.3f}, {own['highest']:.3f}" if own["draws"] > 1 else "–"
        lines.append(f"| {name} | {own['auroc']:.3f} ({own['low']:.3f}–{own['high']:.3f}) | {spread} |")
    sizes, made = found["questions"], found["conditions"]
    counts = (f"{own['answerable']:,} answerable and {own['unanswerable']:,} unanswerable" for own in sizes.values())
    note = "Training: {}; test: {} questions; ".format(*counts)
    note += f"seed {made['seed']}, commit {commit_name(made['commit'])}, {made['date']}."
    return "\n".join([*lines, "", note]) + "\n"


def main() -> None:
    """Encodes, fits, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    encoder = SentenceEncoder("minilm")
    texts, kinds = zip(*(read(split) for split in FILES), strict=True)
    train, test = (np.asarray(encoder.encode(own), dtype=np.float64) for own in texts)
    made: dict[str, Any] = {
        "conditions": conditions(SEED),
        "questions": {
            split: {"answerable": int(own.sum()), "unanswerable": int((1 - own).sum())}
            for split, own in zip(FILES, kinds, strict=True)
        },
        "rows": {},
    }
    for examples in EXAMPLES:
        draws = 1 if examples in (0, None) else DRAWS
        drawn = [scores((train, kinds[0]), test, examples, draw) for draw in range(draws)]
        made["rows"]["all" if examples is None else str(examples)] = row(drawn, kinds[1])
    if options.json:
        results_file.write(options.json, made, FIELDS)
    else:
        print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
