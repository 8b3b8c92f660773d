"""Which questions a graph answers, as an answerability benchmark knows: one Parquet file, a row a question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from kgqa_core.errors import ArtifactError
from kgqa_core.types import ENTITY, FACT, REASONS, RELATION

__all__ = ["ENTITY", "FACT", "FILE", "REASONS", "RELATION", "AnswerabilityLabel", "read_labels", "write_labels"]

FILE = "labels.parquet"

SCHEMA = {
    "question": pl.String, "answerable": pl.Boolean, "why": pl.String, "drop": pl.String, "level": pl.String,
}  # fmt: skip
"""Columns of labels.parquet."""


@dataclass(frozen=True, slots=True)
class AnswerabilityLabel:
    """What is known of a question.

    why: one of REASONS, None for an answerable one or where nobody knows.  drop, level: of a benchmark's record, what
    kind of thing was removed and how new that is to a system.
    """

    question: str
    answerable: bool
    why: str | None = None
    drop: str | None = None
    level: str | None = None


def write_labels(folder: Path, labels: Iterable[AnswerabilityLabel]) -> Path:
    """Writes labels.parquet, sorted by question, and returns its path."""
    rows = [asdict(label) for label in sorted(labels, key=lambda label: label.question)]
    path = folder / FILE
    pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(path, compression="zstd", statistics=False)
    return path


def read_labels(folder: Path) -> dict[str, AnswerabilityLabel]:
    """Labels by question.  Raises ArtifactError."""
    path = folder / FILE
    try:
        frame = pl.read_parquet(path, glob=False)
        return {row["question"]: AnswerabilityLabel(**row) for row in frame.iter_rows(named=True)}
    except (OSError, pl.exceptions.PolarsError, TypeError) as fault:
        raise ArtifactError(f"{path} cannot be read ({fault}); run its stage again") from None
