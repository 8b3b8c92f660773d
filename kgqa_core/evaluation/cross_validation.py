"""Scores of several folds as one: every question counts once, in the fold that tested it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.errors import ArtifactError
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.store.tables import read_frame


def pool_folds(folders: Sequence[Path], *, samples: int = 1000, seed: int = 0) -> dict[str, Any]:
    """`scores` of the test questions of all folds as `aggregate` has them, and `folds`: the mean of each fold.

    folders: `scores` artifacts, in the order of the folds.  An experiment that a fold lacks is left out, and so is a
    metric.  Intervals are bootstraps over questions; they do not hold how much trainings differ, which `folds` shows.
    Raises ArtifactError when a question was tested in two folds.
    """
    columns = ("experiment", "split", "question", "metric", "value")
    parts = [
        read_frame(folder / "scores.parquet", columns).select(columns).filter(pl.col("split") == "test")
        for folder in folders
    ]
    frame = pl.concat([part.with_columns(fold=pl.lit(number)) for number, part in enumerate(parts)])
    twice = frame.group_by("question").agg(pl.col("fold").n_unique()).filter(pl.col("fold") > 1)["question"].sort()
    if len(twice):
        raise ArtifactError(f"question {twice[0]!r} was tested in two folds; these are not folds of one question set")
    scores: dict[str, Any] = {}
    folds: dict[str, Any] = {}
    keys = ("experiment", "metric")
    for (experiment, metric), own in frame.sort(*keys, "fold", "question").group_by(*keys, maintain_order=True):
        means = own.group_by("fold", maintain_order=True).agg(pl.col("value").mean())["value"].to_list()
        if len(means) < len(folders):
            continue
        interval = bootstrap_interval(own["value"].to_list(), samples=samples, seed=seed).rounded()
        scores.setdefault(str(experiment), {"test": {}})["test"][str(metric)] = interval
        folds.setdefault(str(experiment), {})[str(metric)] = [round(mean, 6) for mean in means]
    return {"scores": scores, "folds": folds}
