"""Question records on disk: one Parquet file, a column per field of `types.Question`, rows sorted by id."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from kgqa_core.errors import ArtifactError
from kgqa_core.types import Question

FILE = "questions.parquet"

_TEXT, _TEXTS, _IDS = pa.large_string(), pa.large_list(pa.large_string()), pa.large_list(pa.int64())

SCHEMA = pa.schema(
    {
        "id": _TEXT,
        "text": _TEXT,
        "split": _TEXT,
        "language": _TEXT,
        "topic_keys": _TEXTS,
        "topic_entities": _IDS,
        "answer_type": _TEXT,
        "answer_keys": _TEXTS,
        "answers": _IDS,
        "answer_names": pa.large_list(_TEXTS),
        "relation_paths": pa.large_list(_TEXTS),
        "s_expression": _TEXT,
        "complexity": _TEXT,
        "hops": pa.int32(),
        "source": _TEXT,
        "unlinkable": _TEXT,
    }
)
"""Columns in the order of the fields of `Question`."""


def write_questions(folder: Path, questions: Iterable[Question]) -> Path:
    """Writes `questions.parquet` into `folder`, rows sorted by id, and returns its path."""
    rows = sorted(questions, key=lambda question: question.id)
    arrays = [pa.array([getattr(row, column.name) for row in rows], type=column.type) for column in SCHEMA]
    path = folder / FILE
    scratch = path.with_suffix(".tmp")
    pl.DataFrame(pa.Table.from_arrays(arrays, schema=SCHEMA)).write_parquet(scratch, compression="zstd")
    os.replace(scratch, path)
    return path


def read_questions(folder: Path) -> list[Question]:
    """The questions of a `questions` artifact (its folder, or the Parquet file itself), in order of id.

    Raises ArtifactError when there is none, or when its columns are not those of `Question`.
    """
    path = folder / FILE if folder.is_dir() else folder
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the questions stage again")
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise ArtifactError(f"{path} cannot be read ({fault}); delete its folder and run again") from None
    if frame.columns != SCHEMA.names:
        raise ArtifactError(f"{path} has other columns than this version writes; delete its folder and run again")
    table = frame.to_arrow().combine_chunks()
    columns = [_values(table.column(name).combine_chunks()) for name in SCHEMA.names]
    return [Question(*row) for row in zip(*columns, strict=True)]


def _values(array: Any) -> list[Any]:
    """Python values of an Arrow array, lists as tuples: two reads of a flat array are much faster than one a row."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    if pa.types.is_large_list(array.type) or pa.types.is_list(array.type):
        values = _values(array.values)
        return [tuple(values[start:end]) for start, end in pairwise(array.offsets.to_pylist())]
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    found: list[Any] = array.to_pylist()
    return found
