"""Tables of nodes and of edges, as CSV, TSV or Parquet; `kg.table` says which column is what.

A table with the columns `source` and `target` is one of edges, each a triple whose further columns are qualifiers;
another, with the column `id`, is one of nodes, whose further columns are literals.  Values of CSV are text unless
`kg.property_graph.datatypes` gives the column a datatype, or `entity` where it holds keys; Parquet has its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.input_files import unchanged
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import REJECTS, StatementBatch, empty
from kgqa_core.kg.formats.csv_rows import (
    CutRows,
    column_index,
    cut,
    likely_delimiter,
    listed,
    note_delimiter,
    tell_header,
)
from kgqa_core.kg.formats.property_graph import declared
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.table_rows import Role, TableColumn, TableShape, batch_of, batches_of, with_decimal_commas
from kgqa_core.spool import regular_file

TYPES = ";"
"""What stands between the types of a node."""
ROWS = 50_000
"""Rows of Parquet in one batch."""

_NODES: tuple[tuple[str, Role], ...] = (("id", "id"), ("label", "label"), ("type", "types"))
_EDGES: tuple[tuple[str, Role], ...] = (("source", "source"), ("target", "target"), ("relation", "relation"))


class TableFile:
    """Reader of tables of nodes and edges."""

    name = "table"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when kg.table is set and the first line names its columns, else 0."""
        return float(bool(lines) and _layout(lines[0], options) is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a table.  Raises KgInputError when a column is missing."""
        if source.is_parquet:
            yield from _parquet(source, options)
            return
        head = source.head()
        if not head:
            return
        layout = _layout(head[0], options)
        if layout is None:
            raise KgInputError(f"{source.path} {_complaint(_header(head[0], options), options)}")
        delimiter, shape = layout
        tell_header(source.path, cut(head[0], delimiter), head[0])
        note_delimiter(source, delimiter, options)
        yield from batches_of(source, delimiter, with_decimal_commas(shape, source, delimiter))


def header_fault(lines: list[str], options: KgOptions, share: float) -> str | None:
    """What is wrong with a header that has some but not all columns of kg.table; None where nothing is.

    share: how much of the file another reader understands.
    """
    if not lines or not named_columns(options) or _layout(lines[0], options) is not None:
        return None
    header = _header(lines[0], options)
    if share >= 0.5 and not set(named_columns(options)) & set(header):
        return None
    return _complaint(header, options)


def undeclared(lines: list[str], options: KgOptions) -> str | None:
    """What to say of the columns of a table, where the first line is the header of one that is not of triples."""
    header = _header(lines[0], options) if lines else []
    return None if len(header) in (0, 1, 3) else _complaint(header, options)


def shape_of(header: Sequence[str], options: KgOptions) -> TableShape | None:
    """What the columns of a table are; None where it has not those of kg.table.

    Raises KgInputError where kg.table says too little, or a column that it names is there twice.
    """
    table, kinds = options.table, declared(options.property_graph)
    edges = table.source is not None and table.target is not None and {table.source, table.target} <= set(header)
    if not edges and (table.id is None or table.id not in header):
        return None
    if edges and table.relation is None:
        raise KgInputError(
            "kg.table.relation is not set: name the column of the relations, or one relation of all edges, such as "
            "`--set kg.table.relation==knows`"
        )
    columns: list[TableColumn] = []
    constants: dict[Role, str] = {}
    for name, role in _EDGES if edges else _NODES:
        value = getattr(table, name)
        if value is None:
            continue
        if value.startswith("="):
            constants[role] = value[1:]
        elif value in header:
            index = column_index(header, f"kg.table.{name}", value)
            columns.append(TableColumn(f"c{index}", value, role, "string", TYPES if role == "types" else None))
        else:
            return None
    used = [column.name for column in columns]
    if edges and len(set(used)) < len(used):
        raise KgInputError(f"kg.table names {listed(used)} as source, target and relation: each needs its own column")
    columns += [
        TableColumn(f"c{index}", name, "property", kinds.get(name, "string"))
        for index, name in enumerate(header)
        if name not in used
    ]
    types = tuple(part for part in constants.get("types", "").split(TYPES) if part)
    return TableShape(
        tuple(columns), edges, types, constants.get("relation"), options.property_graph.names, len(header)
    )


def named_columns(options: KgOptions) -> list[str]:
    """The columns that kg.table names."""
    values = options.table.model_dump().values()
    return [value for value in values if value is not None and not value.startswith("=")]


def _header(line: str, options: KgOptions) -> list[str]:
    """The columns of a header, under the delimiter that is configured or likely."""
    return cut(line, likely_delimiter(line, named_columns(options), options))


def _layout(header: str, options: KgOptions) -> tuple[str, TableShape] | None:
    """The delimiter under which a header has the columns of kg.table, and what they are."""
    if not named_columns(options):
        return None
    delimiter = likely_delimiter(header, named_columns(options), options)
    shape = shape_of(cut(header, delimiter), options)
    return None if shape is None else (delimiter, shape)


def _complaint(header: Sequence[str], options: KgOptions) -> str:
    named = named_columns(options)
    if not named:
        return (
            "is a table, and kg.table says nothing about its columns; name those of its nodes or edges: `--set "
            "kg.table.id=COLUMN`, or `--set kg.table.source=COLUMN --set kg.table.target=COLUMN --set "
            "kg.table.relation=COLUMN`, or let `kgqa kg map FILE > map.yaml` guess and read it with `--map map.yaml`; "
            f"its columns are {listed(header)}"
        )
    lacking = [name for name in named if name not in header]
    if lacking:
        what = f"has not the columns of kg.table: it lacks {listed(lacking)}{nearest(lacking[0], header)}"
    else:
        what = "needs the column of its nodes (kg.table.id), or those of its edges (kg.table.source, kg.table.target)"
    return f"{what}; its columns are {listed(header)}"


def _parquet(source: Source, options: KgOptions) -> Iterator[StatementBatch]:
    """The statements of a Parquet file."""
    schema = parquet_schema(source)
    header = parquet_header(schema)
    shape = shape_of(header, options)
    if shape is None:
        raise KgInputError(f"{source.path} {_complaint(header, options)}")
    tell_header(source.path, header, "".join(schema.names))
    shape = _native(shape, schema, options)
    for rows in parquet_rows(source):
        yield batch_of(rows, shape)


def parquet_header(schema: pa.Schema) -> list[str]:
    """The columns of a Parquet file, `column 3` for the third where it has no name."""
    return [name or f"column {number}" for number, name in enumerate(schema.names, start=1)]


def parquet_schema(source: Source) -> pa.Schema:
    """The schema of a Parquet file.  Raises KgInputError."""
    with _opened(source) as file:
        return file.schema_arrow


def parquet_rows(source: Source) -> Iterator[CutRows]:
    """The rows of a Parquet file as text or lists of text, their fields called `c0`, `c1` …  Raises KgInputError."""
    with _opened(source) as file:
        fields = [f"c{index}" for index in range(len(file.schema_arrow.names))]
        done, total = 0, max(1, file.metadata.num_rows)
        for batch in file.iter_batches(ROWS):
            frame = pl.from_arrow(batch.rename_columns(fields))
            assert isinstance(frame, pl.DataFrame)
            rows = _as_text(frame, done)
            done += batch.num_rows
            yield CutRows(rows, empty(REJECTS), 0, done / total)


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[pq.ParquetFile]:
    path = regular_file(source.path, KgInputError)
    try:
        with unchanged([source.path], KgInputError), pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as fault:
        reason = str(fault).splitlines()[0][:200]
        raise KgInputError(f"{source.path} cannot be read as Parquet ({reason}); write or fetch it again") from None


def native_datatype(kind: pa.DataType) -> str:
    """The datatype of a column of Parquet, or of the elements of its lists."""
    kind = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    return next((name for test, name in _NATIVE if test(kind)), "string")


def _native(shape: TableShape, schema: pa.Schema, options: KgOptions) -> TableShape:
    """The shape with the datatypes that Parquet has, where none is configured."""
    columns = []
    for column in shape.columns:
        native = native_datatype(schema.field(int(column.field[1:])).type)
        if column.role == "property" and column.name not in options.property_graph.datatypes:
            column = replace(column, datatype=native)
        columns.append(column)
    return replace(shape, columns=tuple(columns), width=None)


_NATIVE: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "double"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "dateTime"),
    (pa.types.is_time, "time"),
)


def _as_text(frame: pl.DataFrame, done: int) -> pl.DataFrame:
    """Rows with their columns as strings or lists of strings, numbered from 1, and their text for rejects."""
    rows = frame.select(_text(frame, name) for name in frame.columns)
    shown = pl.concat_str([pl.col(name).cast(pl.String) if rows.schema[name] == pl.String else pl.lit("[…]")
                           for name in rows.columns], separator=", ", ignore_nulls=True)  # fmt: skip
    return rows.with_columns(
        line=pl.int_range(done + 1, done + 1 + pl.len(), dtype=pl.Int64), text=shown.str.replace_all("\r", " ")
    )


def _text(frame: pl.DataFrame, name: str) -> pl.Expr:
    kind, value = frame.schema[name], pl.col(name)
    if isinstance(kind, pl.List | pl.Array):
        inner = kind.inner
        value = value.arr.to_list() if isinstance(kind, pl.Array) else value
        return value.list.eval(_value_text(pl.element(), inner))
    return _value_text(value, kind)


def _value_text(value: pl.Expr, kind: Any) -> pl.Expr:
    if isinstance(kind, pl.Datetime):
        zone = "Z" if kind.time_zone else ""
        value = value.dt.convert_time_zone("UTC") if kind.time_zone else value
        return value.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.f{zone}")
    if isinstance(kind, pl.Struct):
        return value.struct.json_encode()
    if isinstance(kind, pl.Binary):
        return value.bin.encode("base64")
    return value.cast(pl.String)


FORMAT = FormatSpec(TableFile, "CSV, TSV or Parquet of nodes or of edges, as kg.table says", specific=True)
