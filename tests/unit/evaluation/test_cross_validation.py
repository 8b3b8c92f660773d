"""Scores of folds pooled: means over the questions of all folds, and of each."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kgqa_core.errors import ArtifactError
from kgqa_core.evaluation.cross_validation import pool_folds


def fold(folder: Path, cells: list[tuple[str, str, str, str, float]]) -> Path:
    folder.mkdir()
    schema = {"experiment": pl.String, "split": pl.String, "question": pl.String, "metric": pl.String}
    frame = pl.DataFrame(cells, schema=schema | {"value": pl.Float64}, orient="row")
    frame.write_parquet(folder / "scores.parquet")
    return folder


def test_every_test_question_counts_once_and_dev_questions_do_not(tmp_path: Path) -> None:
    one = fold(tmp_path / "a", [
        ("rigel/-/-", "test", "a", "hits_at_1", 1.0), ("rigel/-/-", "test", "b", "hits_at_1", 1.0),
        ("rigel/-/-", "test", "c", "hits_at_1", 0.0), ("rigel/-/-", "dev", "z", "hits_at_1", 0.0),
        ("kaping/-/-", "test", "a", "hits_at_1", 1.0),
    ])  # fmt: skip
    two = fold(tmp_path / "b", [
        ("rigel/-/-", "test", "z", "hits_at_1", 0.0), ("rigel/-/-", "dev", "a", "hits_at_1", 1.0),
    ])  # fmt: skip
    found = pool_folds([one, two], samples=100, seed=7)
    assert set(found["scores"]) == {"rigel/-/-"}  # kaping lacks a fold
    cell = found["scores"]["rigel/-/-"]["test"]["hits_at_1"]
    assert (cell["value"], cell["n"]) == (0.5, 4) and cell["low"] <= 0.5 <= cell["high"]
    assert found["folds"] == {"rigel/-/-": {"hits_at_1": [0.666667, 0.0]}}


def test_a_question_that_two_folds_tested_is_refused(tmp_path: Path) -> None:
    cells = [("rigel/-/-", "test", "a", "hits_at_1", 1.0)]
    with pytest.raises(ArtifactError, match="'a' was tested in two folds"):
        pool_folds([fold(tmp_path / "a", cells), fold(tmp_path / "b", cells)])
