"""Tables of artifacts, read with faults that name the way out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from kgqa_core.errors import ArtifactError


def read_frame(path: Path, columns: Sequence[str] | None = None, optional: Sequence[str] = ()) -> pl.DataFrame:
    """The named columns of a Parquet file, the optional ones where there are any; every column without names.

    Raises ArtifactError when the file is missing or damaged, or lacks a column.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run again to rebuild it")
    try:
        there = pl.scan_parquet(path, glob=False).collect_schema() if optional else ()
        named = None if columns is None else [*columns, *(column for column in optional if column in there)]
        return pl.read_parquet(path, columns=named, glob=False)
    except (OSError, pl.exceptions.PolarsError) as fault:
        reason = str(fault).partition("\n")[0]
        raise ArtifactError(f"{path} cannot be read ({reason}); delete its folder and run again") from None
