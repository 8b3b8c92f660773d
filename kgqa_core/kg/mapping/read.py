"""Tables as statements, as a mapping says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import CONTROL, StatementBatch
from kgqa_core.kg.formats.csv_rows import CutRows, likely_delimiter
from kgqa_core.kg.formats.nested_json import BLANK
from kgqa_core.kg.formats.property_graph import DATATYPES, ENTITY_DATATYPE
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.table_rows import TableColumn, TableShape, batch_of, with_decimal_commas
from kgqa_core.kg.mapping.model import ColumnMap, Mapping, TableMap
from kgqa_core.kg.mapping.sample import header_of, rows

_TRUTH = {"1": "true", "0": "false", "yes": "true", "no": "false", "y": "true", "n": "false", "t": "true", "f": "false"}
MIDNIGHT = r"[ T]00:00(:00(\.0+)?)?$"
"""How a date ends that a database exports as a time."""


_Keys = dict[tuple[str, str], pl.DataFrame]  # of a table and column


@dataclass
class MappedTable:
    """A table that is read by a mapping.

    sources: those of all tables of the mapping, by name.  rows: how many made an entity so far; mended: as of
    `sample.rows`.
    """

    sources: dict[str, Source]
    name: str
    mapping: Mapping
    rows: int = 0
    mended: int = 0

    @property
    def source(self) -> Source:
        """Its file."""
        return self.sources[self.name]

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
        keys = self._keys(options)
        for piece in rows(self.source, options):
            frame = self._prepared(piece.frame, header, keys)
            batch = batch_of(CutRows(frame, piece.rejects, piece.ignored, piece.fraction), shape)
            self.rows += frame.height - (batch.rejects.height - piece.rejects.height)
            self.mended += int(frame["mended"].sum()) if "mended" in frame.columns else 0
            yield batch

    def _keys(self, options: KgOptions) -> _Keys:
        """The `key` of the first row that has a `value`, for the columns of other tables that columns refer to."""
        keys = {}
        for name, column in {(c.table, c.column) for c in self.table.columns.values() if c.table and c.column}:
            other = MappedTable(self.sources, name, self.mapping)
            fields = {each: f"c{index}" for index, each in enumerate(header_of(other.source, options))}
            used = [other._text(fields[each]) for each in {column, *other.table.key}]
            frames = (piece.frame.with_columns(used) for piece in rows(other.source, options))
            pairs = [frame.select(value=fields[column], key=other._key(fields)).drop_nulls() for frame in frames]
            keys[name, column] = pl.concat(pairs).unique("value", keep="first")
        return keys

    def _key(self, fields: dict[str, str]) -> pl.Expr:
        """The keys of its entities."""
        parts = [pl.col(fields[name]) for name in self.table.key] or [pl.lit("row ") + pl.col("line").cast(pl.String)]
        return pl.lit(self.mapping.prefix(self.name)) + pl.concat_str(parts, separator="/")

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

    def _prepared(self, frame: pl.DataFrame, header: Sequence[str], keys: _Keys) -> pl.DataFrame:
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
                _one(pl.col(fields[name]), table.columns[name], self.mapping, keys).alias(end)
                for end, name in zip(("source", "target"), table.link, strict=True)
            ]
        else:
            key, prefix = self._key(fields), self.mapping.prefix(self.name)
            kind = pl.lit(f"{table.type or self.name} ")
            named = pl.concat_str([pl.col(fields[name]) for name in table.name], separator=" ", ignore_nulls=True)
            name = pl.when(named != "").then(named) if table.name else pl.lit(None, dtype=pl.String)
            made = [
                key.alias("key"),
                (name if prefix == BLANK else pl.coalesce(name, kind + key.str.strip_prefix(prefix))).alias("name"),
            ]
        frame = frame.with_columns(made)
        return frame.with_columns(
            _value(frame, fields[name], column, self.mapping, keys)
            for name, column in table.columns.items()
            if not column.omit
        )

    def _text(self, field: str) -> pl.Expr:
        value = pl.col(field).str.strip_chars(" " + CONTROL)
        return pl.when((value != "") & ~value.is_in(list(self.mapping.placeholders))).then(value).alias(field)


def _datatype(column: ColumnMap) -> str:
    return ENTITY_DATATYPE if column.table is not None else DATATYPES[column.datatype]


def _value(frame: pl.DataFrame, field: str, column: ColumnMap, mapping: Mapping, keys: _Keys) -> pl.Expr:
    """The values of a column: keys begin with their table, truth values and dates are those of XML Schema."""
    value = pl.col(field)
    several = isinstance(frame.schema[field], pl.List)
    if column.separator is not None and not several:
        value, several = value.str.split(column.separator), True
    if several:
        return value.list.eval(_one(pl.element().str.strip_chars(" " + CONTROL), column, mapping, keys)).alias(field)
    return _one(value, column, mapping, keys).alias(field)


def _one(value: pl.Expr, column: ColumnMap, mapping: Mapping, keys: _Keys) -> pl.Expr:
    kind = _datatype(column)
    if column.table is not None:
        key = pl.lit(mapping.prefix(column.table)) + value
        if (known := keys.get((column.table, column.column or ""))) is not None:
            key = value.replace_strict(known["value"], known["key"], default=key)
        return pl.when(value != "").then(key)
    if kind == "boolean":
        return value.str.to_lowercase().replace(_TRUTH)
    if kind == "date":
        value = value.str.replace(MIDNIGHT, "")
        dates = value.str.to_date(column.format or "%Y-%m-%d", strict=False).dt.to_string("iso")
        return pl.coalesce(dates, value)
    if kind == "dateTime":
        return value.str.replace(" ", "T", literal=True)
    return value
