"""What a model wrote for its share of the prompts, in the folder of a part of `write`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from kgqa_core.errors import StorageError
from kgqa_core.llm.paid import Outcome
from kgqa_core.llm.protocol import Completion
from kgqa_core.store.shards import join_rows

FILE = "told.parquet"

TOLD: dict[str, pl.DataType] = {
    "prompt": pl.String(),
    "cached": pl.Boolean(),
    "text": pl.String(),
    "finish": pl.String(),
    "prompt_tokens": pl.Int32(),
    "completion_tokens": pl.Int32(),
    "error": pl.String(),
}
"""Columns of told.parquet: prompts in the order of asking, with their completions, null where all were
rejected."""


def save_told(out: Path, told: Mapping[str, Outcome]) -> None:
    """Writes the outcomes of a part's prompts.  Raises StorageError."""
    names = list(TOLD)[2:]  # a rewriter is not asked how likely its words are
    rows = [
        (prompt, told_of.cached, *(getattr(told_of.completion, name, None) for name in names))
        for prompt, told_of in told.items()
    ]
    try:
        pl.DataFrame(rows, schema=TOLD, orient="row").write_parquet(out / FILE)
    except OSError as fault:
        raise StorageError(f"cannot write to {out}: {fault}; free space or choose another --home") from fault


def read_told(parts: Sequence[Path]) -> dict[str, Outcome]:
    """The outcomes of all parts, in the order in which they would have been asked without parts.

    Raises ArtifactError when a part is damaged.
    """
    return {
        prompt: Outcome(None if rest[1] is None else Completion(*rest), cached=cached)
        for prompt, cached, *rest in join_rows(parts, FILE, by=()).iter_rows()
    }
