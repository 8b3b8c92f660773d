"""The table of explorations: what each question took, and what was done for it, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from kgqa_core.answering.reply import Effort
from kgqa_core.errors import StorageError
from kgqa_core.store.tables import read_frame

if TYPE_CHECKING:
    from kgqa_core.answering.exploration import Exploration

EXPLORED = "explored.parquet"

EXPLORED_SCHEMA: dict[str, Any] = {
    "question": pl.String, "end": pl.String, "calls": pl.Int32, "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64, "operations": pl.Int32, "refused": pl.Int32, "unreadable": pl.Int32,
    "steps": pl.List(pl.String),
}  # fmt: skip
"""Columns of explored.parquet: what each question took, and what was done, in words."""


def write_explored(out: Path, found: Sequence[Exploration]) -> None:
    """Writes explored.parquet, rows in order of question.  Raises StorageError."""
    rows = [
        (
            one.question, one.end, one.calls, one.prompt_tokens, one.completion_tokens, one.operations, one.refused,
            one.unreadable, list(one.steps),
        )
        for one in sorted(found, key=lambda one: one.question)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=EXPLORED_SCHEMA, orient="row")
    try:
        frame.write_parquet(out / EXPLORED, compression="zstd", statistics=False)
    except OSError as fault:
        raise StorageError(f"cannot write what was explored to {out}: {fault}; free space") from fault


def read_efforts(folder: Path) -> dict[str, Effort]:
    """Question id → what it took, of a `computed` artifact; empty where nothing explored.  Raises ArtifactError."""
    if not (folder / EXPLORED).is_file():
        return {}
    columns = ("question", "end", "calls", "prompt_tokens", "completion_tokens", "steps")
    rows = read_frame(folder / EXPLORED, columns).select(columns).iter_rows()
    return {
        question: Effort(end, calls, read, written, tuple(steps)) for question, end, calls, read, written, steps in rows
    }


def read_usage(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Question id → finish and tokens, as a table of answers has them, of a `computed` artifact that explored."""
    finishes = {"error": "error", "unreadable": "unreadable", "limit": "length"}
    return {
        question: (finishes.get(one.end, "stop"), one.prompt_tokens, one.completion_tokens)
        for question, one in read_efforts(folder).items()
    }
