"""The two tables of a `computed` artifact: what was computed of each question, and the triples that prove it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.store.tables import read_frame

COMPUTED, PROOF = "computed.parquet", "proof.parquet"

SCHEMA: dict[str, Any] = {
    "question": pl.String, "kind": pl.String, "form": pl.String, "answers": pl.List(pl.String),
    "keys": pl.List(pl.String), "weight": pl.Float64, "truncated": pl.Boolean, "tried": pl.Int32,
    "topics": pl.List(pl.String), "words": pl.String, "confidence": pl.Float64, "min_confidence": pl.Float64,
    "road": pl.String, "reason": pl.String, "missing": pl.String,
}  # fmt: skip
"""Columns of computed.parquet: `ComputedAnswer` without its proof; `form` is None where nothing was found."""
PROOF_SCHEMA: dict[str, Any] = {"question": pl.String, "rank": pl.Int32, "triple": pl.Int64, "text": pl.String}
"""Columns of proof.parquet: the triples that the answer of a question rests on, in order of id, and as text."""


def read_computed(computed: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of computed.parquet of an artifact, in order of question, which is one.  Raises ArtifactError."""
    return read_frame(computed / COMPUTED, columns).sort("question")
