"""Question records on disk: one Parquet file, a column per field of `types.Question`, rows sorted by id.

Fields that few data sets have are columns only where some question has a value, so that they change no other data set.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from kgqa_core.errors import ArtifactError
from kgqa_core.input_files import FileState
from kgqa_core.store.tables import read_frame
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
"""Columns that are always there, in the order of the fields of `Question`."""

OPTIONAL = pa.schema(
    {
        "topic_weights": pa.large_list(pa.float64()),
        "level": _TEXT,
        "dialogue": pa.large_list(_TEXTS),
        "reference": _TEXT,
        "gold_triples": pa.large_list(_TEXTS),
        "topic_mentions": _IDS,
        "sparql": _TEXT,
        "generalization": _TEXT,
    }
)
"""Columns that follow where some question has a value, in the same order."""


CACHED_BYTES = 2 << 20
"""Files of questions up to this size, some 30,000 questions, are cached in memory."""


def write_questions(folder: Path, questions: Iterable[Question]) -> Path:
    """Writes `questions.parquet` into `folder`, rows sorted by id, and returns its path."""
    rows = sorted(questions, key=lambda question: question.id)
    schema = pa.schema([*SCHEMA, *(column for column in OPTIONAL if any(_given(row, column.name) for row in rows))])
    arrays = [pa.array([getattr(row, column.name) for row in rows], type=column.type) for column in schema]
    path = folder / FILE
    pl.DataFrame(pa.Table.from_arrays(arrays, schema=schema)).write_parquet(path, compression="zstd")
    return path


def read_questions(folder: Path) -> list[Question]:
    """The questions of a `questions` artifact (its folder, or the Parquet file itself), in order of id.

    Raises ArtifactError when there is none, or when its columns are not those of `Question`.
    """
    path = folder / FILE if folder.is_dir() else folder
    try:
        state = FileState.of(path)
    except OSError:
        return _read(path)
    return list(_read_once(path.absolute(), state)) if state.size <= CACHED_BYTES else _read(path)


@functools.lru_cache(maxsize=2)
def _read_once(path: Path, state: FileState) -> tuple[Question, ...]:
    """The questions of a file in a state; several stages of a run read the same file."""
    return tuple(_read(path))


def _read(path: Path) -> list[Question]:
    frame = read_frame(path)
    names = [*SCHEMA.names, *(name for name in OPTIONAL.names if name in frame.columns)]
    if frame.columns != names:
        raise ArtifactError(f"{path} has other columns than this version writes; delete its folder and run again")
    table = frame.to_arrow().combine_chunks()
    columns = [_values(table.column(name).combine_chunks()) for name in SCHEMA.names]
    questions = [Question(*row) for row in zip(*columns, strict=True)]
    more = {name: _values(table.column(name).combine_chunks()) for name in names[len(SCHEMA) :]}
    if not more:
        return questions
    return [
        replace(question, **dict(zip(more, row, strict=True)))
        for question, row in zip(questions, zip(*more.values(), strict=True), strict=True)
    ]


def _given(question: Question, name: str) -> bool:
    """Whether a question has a value for an optional field."""
    return getattr(question, name) not in (None, ())


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
