"""Statements as spans of bytes: a batch that no string has been made of yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kgqa_core.kg.formats.base import ENTITY, LITERAL, PLAIN, REJECTS, STATEMENTS, empty
from kgqa_core.kg.formats.ntriples_columns import DATATYPE, GRAPH, KIND, OBJECT, PREDICATE, SUBJECT
from kgqa_core.kg.vocabulary import STRING as XSD_STRING

Array = NDArray[Any]


SPARE = 16
"""Bytes behind the data that kernels may read."""


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """A batch, as `base.Batch`, whose terms are spans of `data`.

    data: uint8, with SPARE bytes behind the last line.  rows: int32 (statements, COLUMNS), each a pair (begin, length)
    for subject, predicate, object, datatype (of a language with its `@`; length 0 is a plain string) and graph, whether
    the object is a literal, and the line, from 0 in this batch.
    """

    data: Array
    rows: Array
    first_line: int = 1
    rejects: pl.DataFrame = field(default_factory=lambda: empty(REJECTS))
    ignored: int = 0
    fraction: float = 0.0
    filtered: Mapping[str, int] = field(default_factory=dict)
    unread: int = 0
    qualifiers: pl.DataFrame | None = None

    @property
    def height(self) -> int:
        """Statements."""
        return len(self.rows)

    @property
    def statements(self) -> pl.DataFrame:
        """The statements as columns of strings, made anew at each call."""
        literal = pl.Series(self.rows[:, KIND], dtype=pl.Int8) == LITERAL
        datatype = self.strings(DATATYPE)
        frame = pl.DataFrame(
            {
                "subject": self.strings(SUBJECT),
                "predicate": self.strings(PREDICATE),
                "object": self.strings(OBJECT),
                "kind": pl.select(pl.when(literal).then(LITERAL).otherwise(ENTITY)).to_series(),
                "datatype": pl.select(
                    pl.when(literal).then(pl.when(datatype == "").then(pl.lit(XSD_STRING)).otherwise(datatype))
                ).to_series(),
            }
        )
        return frame.cast({name: STATEMENTS[name] for name in PLAIN})  # type: ignore[arg-type]

    @property
    def graphs(self) -> pl.Series:
        """The graph of each statement; empty where it has none."""
        return self.strings(GRAPH)

    def strings(self, column: int) -> pl.Series:
        """The spans of one of the columns SUBJECT, PREDICATE, OBJECT, DATATYPE, GRAPH, as strings."""
        from kgqa_core.kg.formats.ntriples_kernels import gather  # numba takes 0.4 s to import

        offsets = np.zeros(len(self.rows) + 1, dtype=np.int64)
        np.cumsum(self.rows[:, column + 1], out=offsets[1:])
        text = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather(self.data, self.rows[:, column], offsets, text)
        array = pa.LargeStringArray.from_buffers(len(self.rows), pa.py_buffer(offsets), pa.py_buffer(text))
        series = pl.from_arrow(array)
        assert isinstance(series, pl.Series)
        return series
