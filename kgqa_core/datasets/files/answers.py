"""The table of answers, whoever gave them: a language model, or the symbolic answerer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

SCHEMA = {
    "question": pl.String, "retriever": pl.String, "format": pl.String, "model": pl.String, "prompt_digest": pl.String,
    "output": pl.String, "abstained": pl.Boolean, "finish": pl.String, "prompt_tokens": pl.Int32, "tokens": pl.Int32,
}  # fmt: skip
"""Columns of answers.parquet; `finish` is stop, length, refusal, empty or error."""

ROAD_SCHEMA = {"road": pl.String, "confidence": pl.Float64}
"""Columns that the answers of `auto` have besides: one of `types.ROADS`, None where it declined, and its confidence
that the answer is right, None where that was not learnt."""

SECONDS = "volatile/answers_seconds.parquet"

LIKELY = "log_probabilities.parquet"
"""How likely the model found what it wrote: question, log_probability (None where it is not known), tokens that it is
of.  It is there where the options ask for it."""


def save_seconds(out: Path, counts: Mapping[str, Any], seconds: float) -> None:
    """Writes volatile/answers_seconds.parquet."""
    (out / SECONDS).parent.mkdir(exist_ok=True)
    spent = {name: [counts[name]] for name in ("questions", "prompts", "cached")} | {"seconds": [seconds]}
    pl.DataFrame(spent).write_parquet(out / SECONDS)
