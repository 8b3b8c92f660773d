"""The table of what a run answered: question, gold answers, each experiment's answer and its scores."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl

from kgqa_core.runs.records import answer_table
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.run import Run

SHOWN = 2000
"""Rows of the table that MLflow's page shows; the Parquet file has all."""


def write_predictions(run: Run, scores: ArtifactRef, questions: ArtifactRef) -> tuple[Path, Path]:
    """Writes `predictions.parquet` and, for MLflow's page, `predictions.json` into the run's folder; both paths."""
    answers = [ref.folder for ref in run.made("answers").values()]
    table = answer_table(scores.folder, questions.folder, answers)
    whole, shown = run.folder / "predictions.parquet", run.folder / "predictions.json"
    scratch = run.folder / f".predictions.{os.getpid()}.tmp"
    table.write_parquet(scratch, compression="zstd")
    os.replace(scratch, whole)
    first = table.head(SHOWN).with_columns(pl.col(pl.Float64).round(4))
    content = {"columns": first.columns, "data": [list(row) for row in first.iter_rows()]}
    scratch.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    os.replace(scratch, shown)
    return whole, shown
