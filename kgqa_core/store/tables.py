"""Tables of other stages, read with faults that name the way out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from kgqa_core.errors import ArtifactError


def read_frame(path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> pl.DataFrame:
    """The named columns of a Parquet file, the optional ones where there are any.

    Raises ArtifactError when the file is missing or lacks a column.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the pipeline again to rebuild it")
    there = pl.scan_parquet(path, glob=False).collect_schema()
    missing = [column for column in columns if column not in there]
    if missing:
        raise ArtifactError(f"{path} has no column '{missing[0]}'; delete its folder and run the pipeline again")
    return pl.read_parquet(path, columns=[*columns, *(column for column in optional if column in there)], glob=False)
