"""Rows of a table of nodes or edges as statements, set-wise: for Neo4j's CSV, CSV with a mapping, and Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from kgqa_core.kg.formats.base import (
    CONTROL,
    ENTITY,
    LITERAL,
    PLAIN,
    QUALIFIERS,
    STATEMENTS,
    StatementBatch,
    divided,
    empty,
    filled,
    odd_text,
)
from kgqa_core.kg.formats.csv_rows import CutRows, cut, listed, rows_of
from kgqa_core.kg.formats.property_graph import ENTITY_DATATYPE, INFINITE, NUMERALS
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.vocabulary import LABEL, RDF_TYPE, STRING, XSD

Role = Literal["id", "label", "types", "source", "target", "relation", "property"]

FRACTIONS = ("decimal", "double")
"""Datatypes of numbers that may have a decimal mark."""

COMMA_NUMBER = r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+"
"""A number with a decimal comma, perhaps with points between thousands."""

_NONE = pl.lit(None, dtype=pl.String)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column that is used.

    field: its name in frames.  name: that of the property.  role: what it is.  datatype: the last part of an IRI, or
    `entity`.  separator: what stands between values, where it may have several.  space: a prefix of keys.
    decimal_comma: its numbers are written as `1.234,5`.
    """

    field: str
    name: str
    role: Role
    datatype: str = "string"
    separator: str | None = None
    space: str = ""
    decimal_comma: bool = False


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a table is.  types: of every node; relation: of every edge; names: properties that may be labels."""

    columns: tuple[TableColumn, ...]
    edges: bool
    types: tuple[str, ...] = ()
    relation: str | None = None
    names: tuple[str, ...] = ()
    width: int | None = None
    """Fields of a row, where rows can have another number."""

    def of(self, role: Role) -> list[TableColumn]:
        """The columns of a role."""
        return [column for column in self.columns if column.role == role]


def with_decimal_commas(shape: TableShape, source: Source, delimiter: str) -> TableShape:
    """The shape with the columns of decimal numbers marked whose first rows write them with a comma; they are noted.

    A comma before three digits may stand between thousands: it counts only beside another that does not.
    """
    rows = [cut(line, delimiter) for line in source.head()[1:]]
    columns = []
    for column in shape.columns:
        if column.role == "property" and column.datatype in FRACTIONS and column.separator is None:
            at = int(column.field[1:])
            values = [row[at] for row in rows if at < len(row)]
            commas = [value for value in values if re.fullmatch(COMMA_NUMBER, value)]
            points = any(re.fullmatch(r"[+-]?[\d,]*\.\d+", value) for value in values)
            sure = any(not re.fullmatch(r"[+-]?\d{1,3},\d{3}", value) for value in commas)
            column = replace(column, decimal_comma=sure and not points)
        columns.append(column)
    if names := [column.name for column in columns if column.decimal_comma]:
        source.found["decimal comma"] = listed(names)
    return replace(shape, columns=tuple(columns))


def batches_of(source: Source, delimiter: str, shape: TableShape) -> Iterator[StatementBatch]:
    """The statements of a CSV file."""
    index = {column.field: int(column.field[1:]) for column in shape.columns}
    for piece in rows_of(source, delimiter, index):
        yield batch_of(piece, shape)


def batch_of(piece: CutRows, shape: TableShape) -> StatementBatch:
    """The statements of some rows: of each column of the shape String or List(String); an empty string is no value."""
    rows = piece.frame
    # A column may have two roles, so that each has its cleaned values.
    used = tuple(replace(column, field=f"{column.field} {column.role}") for column in shape.columns)
    rows = rows.with_columns(_clean(rows, old).alias(new.field) for old, new in zip(shape.columns, used, strict=True))
    shape = replace(shape, columns=used)
    rows = rows.with_columns(reason=_reason(rows, shape))
    good, rejects = divided(rows)
    good = good.with_row_index("row")
    statements, qualifiers = _edges(good, shape) if shape.edges else (_nodes(good, shape), None)
    return StatementBatch(statements, pl.concat([piece.rejects, rejects]), piece.ignored, piece.fraction, qualifiers)


def _clean(rows: pl.DataFrame, column: TableColumn) -> pl.Expr:
    """A column without empty values; of several values the list of those that are not empty, null where none is."""
    value = pl.col(column.field)
    key = column.role != "property" or column.datatype == ENTITY_DATATYPE
    if column.separator is not None and rows.schema[column.field] == pl.String:
        value = value.str.split(column.separator)
    elif rows.schema[column.field] == pl.String:
        value = value.str.strip_chars(" " + CONTROL) if key and column.role != "label" else value
        if column.decimal_comma:
            number = value.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
            value = pl.when(value.str.contains(f"^ *{COMMA_NUMBER} *$")).then(number).otherwise(value)
        if column.space:
            value = pl.when(value != "").then(pl.lit(f"{column.space}/") + value)
        return pl.when(value != "").then(value)
    element = pl.element().str.strip_chars(" " + CONTROL) if key else pl.element()
    several = value.list.eval(element.filter(element.is_not_null() & (element != "")))
    return pl.when(several.list.len() > 0).then(several)


def _reason(rows: pl.DataFrame, shape: TableShape) -> pl.Expr:
    """Why a row is rejected, or null."""
    reasons = [odd_text("row")]
    if shape.width is not None:
        wrong = pl.format("{} field(s) instead of {}", "n", pl.lit(shape.width))
        reasons.append(pl.when(pl.col("n") != shape.width).then(wrong))
    needed: tuple[Role, ...] = ("source", "target", "relation") if shape.edges else ("id",)
    for role in needed:
        if columns := shape.of(role):
            absent = pl.all_horizontal(pl.col(column.field).is_null() for column in columns)
            reasons.append(pl.when(absent).then(pl.lit(f"no {role}")))
    for column in shape.of("property"):
        kind = column.datatype
        if kind not in NUMERALS and kind != "boolean":
            continue
        pattern = NUMERALS.get(kind, "^(?i:true|false)$")
        value = pl.col(column.field)
        if isinstance(rows.schema[column.field], pl.List) or column.separator is not None:
            misfit = value.list.eval(pl.element().filter(_misfit(pl.element(), pattern, kind))).list.first()
        else:
            misfit = pl.when(_misfit(value, pattern, kind)).then(value)
        text = pl.format("column '{}': '{}' is no {}", pl.lit(column.name), misfit.str.slice(0, 60), pl.lit(kind))
        reasons.append(pl.when(misfit.is_not_null()).then(text))
    return pl.coalesce(reasons)


def _misfit(value: pl.Expr, pattern: str, kind: str) -> pl.Expr:
    wrong = ~value.str.strip_chars(" ").str.contains(pattern)
    return wrong & ~value.str.strip_chars(" ").is_in(list(INFINITE)) if kind == "double" else wrong


def _nodes(good: pl.DataFrame, shape: TableShape) -> pl.DataFrame:
    """Types, labels and properties of nodes."""
    good = good.with_columns(subject=pl.concat_str([pl.col(c.field) for c in shape.of("id")], separator="/"))
    parts = []
    for type_key in shape.types:
        parts.append(good.select("subject", *_term(RDF_TYPE, pl.lit(type_key), ENTITY_DATATYPE)))
    for column in shape.of("types"):
        parts.append(_of_column(good, replace(column, datatype=ENTITY_DATATYPE), "subject", RDF_TYPE))
    labels = shape.of("label")
    properties = shape.of("property")
    if labels:
        parts.append(_of_column(good, replace(labels[0], datatype="string"), "subject", LABEL))
    else:
        candidates = [c for name in shape.names for c in properties if c.name == name and c.separator is None]
        candidates = [c for c in candidates if good.schema[c.field] == pl.String and c.datatype == "string"]
        before: list[TableColumn] = []
        for column in candidates:
            first = pl.all_horizontal([pl.lit(True), *(pl.col(c.field).is_null() for c in before)])
            parts.append(_of_column(good.filter(first), column, "subject", LABEL))
            parts.append(_of_column(good.filter(~first), column, "subject", column.name))
            before.append(column)
        properties = [column for column in properties if column not in candidates]
    parts += [_of_column(good, column, "subject", column.name) for column in properties]
    nothing = empty({name: STATEMENTS[name] for name in PLAIN})
    return pl.concat([nothing, *(filled(part, STATEMENTS, PLAIN) for part in parts)])


def _edges(good: pl.DataFrame, shape: TableShape) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The triples of edges, and their qualifiers."""
    relation = pl.lit(shape.relation) if shape.relation is not None else pl.col(shape.of("relation")[0].field)
    source, target = (
        pl.concat_str([pl.col(c.field) for c in shape.of(role)], separator="/")
        for role in ("source", "target")  # type: ignore[arg-type]
    )
    triples = good.select(subject=source, predicate=relation, object=target, kind=pl.lit(ENTITY))
    statements = filled(triples, STATEMENTS, PLAIN)
    parts = [_of_column(good, column, "row", column.name) for column in shape.of("property")]
    parts = [part for part in parts if part.height]
    if not parts:
        return statements, None
    return statements, filled(pl.concat(parts), QUALIFIERS)


def _of_column(good: pl.DataFrame, column: TableColumn, owner: str, predicate: str) -> pl.DataFrame:
    """A statement or qualifier for each value of a column."""
    rows = good.select(owner, value=pl.col(column.field)).filter(pl.col("value").is_not_null())
    if isinstance(rows.schema["value"], pl.List):
        rows = rows.explode("value")
    return rows.select(owner, *_term(predicate, pl.col("value"), column.datatype))


def _term(predicate: str, value: pl.Expr, datatype: str) -> list[pl.Expr]:
    if datatype in NUMERALS or datatype == "boolean":
        value = value.str.strip_chars(" ")
        value = value.str.to_lowercase() if datatype == "boolean" else value
        value = value.replace(INFINITE) if datatype == "double" else value
    entity = datatype == ENTITY_DATATYPE
    return [
        pl.lit(predicate).alias("predicate"),
        value.alias("object"),
        pl.lit(ENTITY if entity else LITERAL, dtype=pl.Int8).alias("kind"),
        (_NONE if entity else pl.lit(STRING if datatype == "string" else XSD + datatype)).alias("datatype"),
    ]
