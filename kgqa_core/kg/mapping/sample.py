"""Tables as frames of text, and the beginning of them that a mapping is guessed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.csv_rows import CutRows, cut, likely_delimiter, note_delimiter, rows_of
from kgqa_core.kg.formats.nested_json import nesting_of
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.tables import native_datatype, parquet_header, parquet_rows, parquet_schema

SAMPLE_ROWS = 100_000
"""Rows of a table that are looked at."""
SAMPLE_BYTES = 256 << 20
"""Bytes of text that are looked at, of all tables together."""
INNER = "\x1f"
"""In the place of a delimiter that is part of a text, and between the elements of a list."""
SAMPLE_CELL = 300
"""Characters of a cell that are looked at."""


@dataclass(frozen=True, slots=True)
class Table:
    """The beginning of a table.

    file: the label of its source.  frame: its rows as text, by column; those of `lists` are joined by INNER.  whole:
    whether these are all rows.  datatypes: of columns whose source has datatypes.  prefix, key, foreign: as of
    `nested_json.Nesting`, where its source says so.
    """

    name: str
    file: str
    frame: pl.DataFrame
    whole: bool = True
    datatypes: dict[str, str] = field(default_factory=dict)
    lists: frozenset[str] = frozenset()
    prefix: str | None = None
    key: str | None = None
    foreign: dict[str, str] = field(default_factory=dict)


def header_of(source: Source, options: KgOptions) -> list[str]:
    """The columns of a table; of those with one name the second is `name 2`."""
    if source.is_parquet:
        return _distinct(parquet_header(parquet_schema(source)))
    head = source.head(1)
    return _distinct(cut(head[0], likely_delimiter(head[0], (), options))) if head else []


def rows(source: Source, options: KgOptions) -> Iterator[CutRows]:
    """The rows of a table, their fields called `c0`, `c1` …; `mended` says which were realigned, where any was."""
    if source.is_parquet:
        yield from parquet_rows(source)
        return
    head = source.head(1)
    if head:
        delimiter = likely_delimiter(head[0], (), options)
        note_delimiter(source, delimiter, options)
        width = len(cut(head[0], delimiter))
        for piece in rows_of(source, delimiter, {f"c{index}": index for index in range(width)}):
            yield replace(piece, frame=_realigned(piece.frame, delimiter, width))


def _realigned(frame: pl.DataFrame, delimiter: str, width: int) -> pl.DataFrame:
    """Rows with a field too many where a delimiter before a space is part of a text: `Pavlova, Ltd.` without quotes."""
    wide = (pl.col("n") > width) & ~pl.col("text").str.contains('"', literal=True)
    cells = pl.col("text").str.replace_all(f"{delimiter} ", INNER, literal=True).str.split(delimiter)
    bad = frame.filter(wide).with_columns(cells=cells).filter(pl.col("cells").list.len() == width)
    if not bad.height:
        return frame
    mended = bad.with_columns(
        pl.lit(width, dtype=pl.Int64).alias("n"),
        pl.lit(True).alias("mended"),
        *(
            pl.col("cells").list.get(index).str.replace_all(INNER, f"{delimiter} ", literal=True).alias(f"c{index}")
            for index in range(width)
        ),
    ).drop("cells")
    return pl.concat([frame.join(bad, on="line", how="anti"), mended], how="diagonal").sort("line")


def sample(name: str, source: Source, options: KgOptions, tables: int = 1) -> Table:
    """The beginning of a table.  tables: how many share SAMPLE_BYTES.  Raises KgInputError."""
    header = header_of(source, options)
    fields = [f"c{index}" for index in range(len(header))]
    parts: list[pl.DataFrame] = []
    lists: set[str] = set()
    height, size, whole = 0, 0, True
    for piece in rows(source, options):
        frame = piece.frame
        if "n" in frame.columns:
            frame = frame.filter(pl.col("n") == len(header))
        several = {field for field in fields if isinstance(frame.schema[field], pl.List)}
        lists.update(name for name, field in zip(header, fields, strict=True) if field in several)
        cut = [pl.element().str.slice(0, SAMPLE_CELL)]
        frame = frame.select(
            pl.col(field).list.eval(*cut).list.join(INNER)
            if field in several
            else pl.col(field).str.slice(0, SAMPLE_CELL)
            for field in fields
        ).head(SAMPLE_ROWS - height)
        parts.append(frame.rename(dict(zip(fields, header, strict=True))))
        height, size = height + frame.height, size + int(frame.estimated_size())
        if height >= SAMPLE_ROWS or size >= SAMPLE_BYTES // tables:
            whole = piece.fraction >= 1 and frame.height == piece.frame.height
            break
    frame = pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys(header, pl.String))
    table = Table(name, source.label, frame, whole, lists=frozenset(lists))
    if not source.is_parquet:
        return table
    schema = parquet_schema(source)
    kinds = dict(zip(header, map(native_datatype, schema.types), strict=True))
    table = replace(table, datatypes={column: kind for column, kind in kinds.items() if kind != "string"})
    return table if (nesting := nesting_of(schema)) is None else replace(table, **asdict(nesting))


def _distinct(header: Sequence[str]) -> list[str]:
    names: list[str] = []
    for name in header:
        further = (f"{name} {number}" for number in count(2))
        names.append(name if name not in names else next(other for other in further if other not in names))
    return names
