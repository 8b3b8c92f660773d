"""Tables as statements, as a mapping says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import CONTROL, StatementBatch
from kgqa_core.kg.formats.csv_rows import CutRows, likely_delimiter
from kgqa_core.kg.formats.property_graph import DATATYPES, ENTITY_DATATYPE
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.table_rows import TableColumn, TableShape, batch_of, with_decimal_commas
from kgqa_core.kg.mapping.model import ColumnMap, Mapping, TableMap
from kgqa_core.kg.mapping.sample import header_of, rows

_TRUTH = {"1": "true", "0": "false", "yes": "true", "no": "false", "y": "true", "n": "false", "t": "true", "f": "false"}
MIDNIGHT = r"[ T]00:00(:00(\.0+)?)?$"
"""How a date ends that a database exports as a time."""


@dataclass
class MappedTable:
    """A table that is read by a mapping.  rows: how many made an entity so far; mended: as of `sample.rows`."""

    source: Source
    name: str
    mapping: Mapping
    rows: int = 0
    mended: int = 0

    @property
    def table(self) -> TableMap:
        """What the mapping says of it."""
        return self.mapping.tables[self.name]

    def batches(self, options: KgOptions) -> Iterator[StatementBatch]:
        """Its statements.  Raises KgInputError."""
        header = header_of(self.source, options)
        shape = self._shape(header, None if self.source.is_parquet else len(header))
        if header and not self.source.is_parquet:
            shape = with_decimal_commas(shape, self.source, likely_delimiter(self.source.head(1)[0], (), options))
        self.rows = self.mended = 0
        for piece in rows(self.source, options):
            frame = self._prepared(piece.frame, header)
            batch = batch_of(CutRows(frame, piece.rejects, piece.ignored, piece.fraction), shape)
            self.rows += frame.height - (batch.rejects.height - piece.rejects.height)
            self.mended += int(frame["mended"].sum()) if "mended" in frame.columns else 0
            yield batch

    def _shape(self, header: Sequence[str], width: int | None) -> TableShape:
        table = self.table
        columns = [
            TableColumn(f"c{header.index(name)}", column.relation or name, "property", _datatype(column))
            for name, column in table.columns.items()
            if not column.omit and name not in table.link
        ]
        if table.link:
            ends = (TableColumn("source", "source", "source"), TableColumn("target", "target", "target"))
            return TableShape((*ends, *columns), True, relation=table.relation, width=width)
        node = (TableColumn("key", "key", "id"), TableColumn("name", "name", "label"))
        return TableShape((*node, *columns), False, (table.type,) if table.type else (), width=width)

    def _prepared(self, frame: pl.DataFrame, header: Sequence[str]) -> pl.DataFrame:
        """Rows without placeholders, with their key and name, or both ends, and values as the datatypes want them."""
        table = self.table
        fields = {name: f"c{index}" for index, name in enumerate(header)}
        used = {*table.key, *table.name, *table.link, *table.columns}
        whole = {fields[name] for name in (*table.key, *table.name, *table.link)}
        lists = [name for name in whole if isinstance(frame.schema[name], pl.List)]
        frame = frame.with_columns(pl.col(name).list.join("; ") for name in lists)
        frame = frame.with_columns(self._text(fields[name]) for name in used if frame.schema[fields[name]] == pl.String)
        if table.link:
            made = [
                (pl.lit(self.mapping.prefix(table.columns[name].table)) + pl.col(fields[name])).alias(end)
                for end, name in zip(("source", "target"), table.link, strict=True)
            ]
        else:
            parts = [pl.col(fields[name]) for name in table.key] or [pl.lit("row ") + pl.col("line").cast(pl.String)]
            key = pl.concat_str(parts, separator="/")
            named = pl.concat_str([pl.col(fields[name]) for name in table.name], separator=" ", ignore_nulls=True)
            name = pl.when(named != "").then(named) if table.name else pl.lit(None, dtype=pl.String)
            made = [
                (pl.lit(self.mapping.prefix(self.name)) + key).alias("key"),
                pl.coalesce(name, pl.lit(f"{table.type or self.name} ") + key).alias("name"),
            ]
        frame = frame.with_columns(made)
        return frame.with_columns(
            _value(frame, fields[name], column, self.mapping)
            for name, column in table.columns.items()
            if not column.omit
        )

    def _text(self, field: str) -> pl.Expr:
        value = pl.col(field).str.strip_chars(" " + CONTROL)
        return pl.when((value != "") & ~value.is_in(list(self.mapping.placeholders))).then(value).alias(field)


def _datatype(column: ColumnMap) -> str:
    return ENTITY_DATATYPE if column.table is not None else DATATYPES[column.datatype]


def _value(frame: pl.DataFrame, field: str, column: ColumnMap, mapping: Mapping) -> pl.Expr:
    """The values of a column: keys begin with their table, truth values and dates are those of XML Schema."""
    value = pl.col(field)
    several = isinstance(frame.schema[field], pl.List)
    if column.separator is not None and not several:
        value, several = value.str.split(column.separator), True
    if several:
        return value.list.eval(_one(pl.element().str.strip_chars(" " + CONTROL), column, mapping)).alias(field)
    return _one(value, column, mapping).alias(field)


def _one(value: pl.Expr, column: ColumnMap, mapping: Mapping) -> pl.Expr:
    kind = _datatype(column)
    if column.table is not None:
        return pl.when(value != "").then(pl.lit(mapping.prefix(column.table)) + value)
    if kind == "boolean":
        return value.str.to_lowercase().replace(_TRUTH)
    if kind == "date":
        value = value.str.replace(MIDNIGHT, "")
        dates = value.str.to_date(column.format or "%Y-%m-%d", strict=False).dt.to_string("iso")
        return pl.coalesce(dates, value)
    if kind == "dateTime":
        return value.str.replace(" ", "T", literal=True)
    return value
