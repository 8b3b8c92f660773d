"""CSV of nodes and of relationships for `neo4j-admin database import`: the header says what each column is.

`all.csv` of `apoc.export.csv` has both in one file: rows with an `_id` are nodes, the others relationships.

    personId:ID,name,born:int,:LABEL            :START_ID,role:string[],:END_ID,:TYPE
    keanu,"Keanu Reeves",1964,Actor;Person      keanu,Neo;Thomas,matrix,ACTED_IN

Ids of a space, `:ID(Actor)`, are the keys `Actor/1`; several columns of ids are one key, `a/b`.  `:IGNORE` columns are
left out, `;` stands between the values of an array.  A header in a file of its own belongs before its rows:
`kgqa kg build <(cat header.csv rows.csv)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.csv_rows import DELIMITERS, CutRows, cut, note_delimiter, rows_of, tell_header
from kgqa_core.kg.formats.delimited import given_delimiter
from kgqa_core.kg.formats.property_graph import DATATYPES, datatype_of, declared
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.table_rows import Role, TableColumn, TableShape, batch_of, batches_of, with_decimal_commas

ARRAY = ";"

_COLUMN = re.compile(r"(?P<name>[^:]*)(?::(?P<kind>[A-Za-z_]+)(?:\((?P<space>[^)]*)\))?(?:\{[^}]*\})?(?P<array>\[\])?"
                     r"(?:\{[^}]*\})?)?")  # fmt: skip
_ROLES: dict[str, Role] = {
    "ID": "id", "LABEL": "types", "START_ID": "source", "END_ID": "target", "TYPE": "relation",
}  # fmt: skip
_APOC: dict[str, Role] = {"_id": "id", "_labels": "types", "_start": "source", "_end": "target", "_type": "relation"}
_LIST = r"^\[.*\]$"


class Neo4jCsv:
    """Reader of CSV for Neo4j's import."""

    name = "neo4j-csv"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when the first line has a field `:ID`, or `:START_ID` and `:END_ID`, or those of APOC, else 0."""
        return float(bool(lines) and (_delimiter(lines[0], options) or _apoc_delimiter(lines[0], options)) is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a file.  Raises KgInputError for a header that is none."""
        head = source.head()
        if not head:
            return
        if (apoc := _apoc_delimiter(head[0], options)) is not None:
            yield from _read_apoc(source, apoc, options)
            return
        delimiter = _delimiter(head[0], options)
        if delimiter is None:
            raise KgInputError(
                f"{source.path} has no header of neo4j-admin's import (a column :ID, or :START_ID and :END_ID); its "
                f"first line is {head[0][:80]!r}; put the header before the rows, `<(cat header.csv rows.csv)`"
            )
        shape = shape_of(cut(head[0], delimiter), options, str(source.path))
        tell_header(source.path, [column.name for column in shape.columns], head[0])
        note_delimiter(source, delimiter, options)
        yield from batches_of(source, delimiter, with_decimal_commas(shape, source, delimiter))


def shape_of(header: list[str], options: KgOptions, path: str) -> TableShape:
    """What the columns of a header are.  Raises KgInputError for one that lacks what it needs."""
    kinds = declared(options.property_graph)
    columns = []
    for index, text in enumerate(header):
        match = _COLUMN.fullmatch(text)
        if match is None:
            raise KgInputError(f"{path}: the column {text!r} of the header is not of the form name:TYPE")
        name, kind = match["name"], match["kind"] or "string"
        if kind == "IGNORE":
            continue
        if kind in _ROLES:
            role = _ROLES[kind]
            array = ARRAY if role == "types" else None
            columns.append(TableColumn(f"c{index}", name, role, separator=array, space=match["space"] or ""))
        elif name:
            datatype = kinds.get(name) or datatype_of(kind, f"{path}: column {text!r}")
            columns.append(TableColumn(f"c{index}", name, "property", datatype, ARRAY if match["array"] else None))
    roles = {column.role for column in columns}
    edges = "source" in roles or "target" in roles
    lacking = [role for role in ("source", "target", "relation") if edges and role not in roles]
    if lacking:
        wanted = " and no ".join(":" + next(k for k, r in _ROLES.items() if r == role) for role in lacking)
        raise KgInputError(f"{path} has no column {wanted}; a file of relationships has :START_ID, :END_ID and :TYPE")
    return TableShape(tuple(columns), edges, names=options.property_graph.names, width=len(header))


def _delimiter(header: str, options: KgOptions) -> str | None:
    """The delimiter under which a line is a header of neo4j-admin; None where there is none."""
    given = given_delimiter(options)
    for delimiter in DELIMITERS if given is None else (given,):
        matches = [_COLUMN.fullmatch(field) for field in cut(header, delimiter)]
        kinds = {match["kind"] for match in matches if match is not None}
        if None not in matches and ("ID" in kinds or {"START_ID", "END_ID"} <= kinds):
            return delimiter
    return None


def _apoc_delimiter(header: str, options: KgOptions) -> str | None:
    """The delimiter under which a line is the header of APOC's `all.csv`; None where there is none."""
    given = given_delimiter(options)
    for delimiter in DELIMITERS if given is None else (given,):
        if set(_APOC) <= {field.partition(":")[0] for field in cut(header, delimiter)}:
            return delimiter
    return None


def _read_apoc(source: Source, delimiter: str, options: KgOptions) -> Iterator[StatementBatch]:
    """The statements of `all.csv`; a value that is a list of JSON is several."""
    header = cut(source.head()[0], delimiter)
    kinds = declared(options.property_graph)
    start = next(at for at, text in enumerate(header) if text.partition(":")[0] == "_start")
    shapes: dict[bool, list[TableColumn]] = {False: [], True: []}
    for at, text in enumerate(header):
        name, _, kind = text.partition(":")
        if name in _APOC:
            column = TableColumn(f"c{at}", name, _APOC[name], separator=":" if name == "_labels" else None)
            shapes[name not in ("_id", "_labels")].append(column)
        elif name:
            datatype = kinds.get(name) or DATATYPES.get(kind.removesuffix("[]") or "string", "string")
            shapes[at > start].append(TableColumn(f"c{at}", name, "property", datatype))
    index = {column.field: int(column.field[1:]) for columns in shapes.values() for column in columns}
    node = f"c{next(at for at, text in enumerate(header) if text.partition(':')[0] == '_id')}"
    for rows in rows_of(source, delimiter, index):
        frame, rejects, ignored = rows.frame, rows.rejects, rows.ignored
        for edges, columns in shapes.items():
            part = frame.filter((pl.col(node).fill_null("") == "") == edges)
            lists = [c.field for c in columns if c.role == "property" and part[c.field].str.contains(_LIST).any()]
            part = part.with_columns(pl.Series(name, list(map(_listed, part[name]))) for name in lists)
            names = options.property_graph.names
            shape = TableShape(tuple(columns), edges, names=() if edges else names, width=len(header))
            yield batch_of(CutRows(part, rejects, ignored, rows.fraction), shape)
            rejects, ignored = rejects.clear(), 0


def _listed(value: str | None) -> list[str] | None:
    """The elements of a list of JSON; what is none is one element."""
    try:
        elements = msgspec.json.decode(value or "[]")
    except (msgspec.DecodeError, RecursionError):
        elements = None
    if not isinstance(elements, list):
        elements = [value]
    texts = [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in elements]
    return texts or None


FORMAT = FormatSpec(
    Neo4jCsv,
    "CSV of neo4j-admin's import (:ID, :START_ID, :END_ID, …) or of apoc.export.csv",
    specific=True,
)
