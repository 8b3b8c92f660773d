"""Two runs question by question: scores that both have of the same question, and the difference between them.

A question is the same when its id and its text are: `q0001` of another question set is another question.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgqa_core.evaluation.labels import main_split
from kgqa_core.metrics.significance import bootstrap_interval, mcnemar, three_digits
from kgqa_core.store.tables import read_frame

SAMPLES = 10_000
COLUMNS = ("experiment", "split", "question", "text", "metric", "value")


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of (after − before) over n questions, with the ends of its interval.

    before, after: means of both.  won, lost: questions whose score rose and fell.  p: McNemar's exact test where all
    scores are 0 or 1, else None.
    """

    value: float
    low: float
    high: float
    n: int
    before: float
    after: float
    won: int
    lost: int
    p: float | None

    def rounded(self) -> dict[str, Any]:
        """As JSON, floats with six decimals."""
        return {
            name: round(one, 6) if isinstance(one, float) and name != "p" else one for name, one in asdict(self).items()
        }


def read_scored(scores: Path, questions: Path) -> pl.DataFrame:
    """Rows (experiment, split, question, text, metric, value) of a `scores` artifact and its questions.

    Raises ArtifactError when either is gone.
    """
    frame = read_frame(scores / "scores.parquet", ("experiment", "split", "question", "metric", "value"))
    texts = read_frame(questions / "questions.parquet", ("id", "text"))
    return frame.join(texts.rename({"id": "question"}), on="question", how="left").select(COLUMNS)


def pair(before: pl.DataFrame, after: pl.DataFrame, experiments: tuple[str, str], metric: str) -> pl.DataFrame:
    """Rows (question, split, before, after) of the questions that both scored, in order of id.

    before, after: as `read_scored` gives them.  experiments: the name in each.  Only the split that tables show: test,
    or else dev, or else train.
    """
    first, second = (
        frame.filter((pl.col("experiment") == name) & (pl.col("metric") == metric))
        for frame, name in zip((before, after), experiments, strict=True)
    )
    shared = first.select("question", "text", "split", before="value").join(
        second.select("question", "text", after="value"), on=["question", "text"], nulls_equal=True
    )
    split = main_split(set(shared["split"].to_list()))
    return (
        shared.filter(pl.col("split") == (split or "")).select("question", "split", "before", "after").sort("question")
    )


def difference(pairs: pl.DataFrame, *, seed: int = 0, level: float = 0.95, samples: int = SAMPLES) -> Difference:
    """The difference between paired scores with its percentile bootstrap interval, drawn by question.

    pairs: rows with `before` and `after`.  Without pairs nothing is known: 0 in [-1, 1].
    """
    before, after = (pairs[name].to_numpy().astype(np.float64) for name in ("before", "after"))
    if not before.size:
        return Difference(0.0, -1.0, 1.0, 0, 0.0, 0.0, 0, 0, None)
    change = after - before
    interval = bootstrap_interval(change, samples=samples, seed=seed, level=level)
    won, lost = int((change > 0).sum()), int((change < 0).sum())
    binary = bool(np.isin(before, (0.0, 1.0)).all() and np.isin(after, (0.0, 1.0)).all())
    p = three_digits(mcnemar(won, lost)) if binary else None
    return Difference(
        interval.value, interval.low, interval.high, interval.n, float(before.mean()), float(after.mean()), won, lost, p
    )


def points(value: float) -> str:
    """A difference of scores in points of a hundred, with its sign: 0.003 → `+0.3`."""
    text = f"{100 * value:+.1f}"
    return ("0.0" if text in ("+0.0", "-0.0") else text).replace("-", "−")
