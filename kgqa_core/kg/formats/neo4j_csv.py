"""CSV of nodes and of relationships for `neo4j-admin database import`: the header says what each column is.

    personId:ID,name,born:int,:LABEL            :START_ID,role:string[],:END_ID,:TYPE
    keanu,"Keanu Reeves",1964,Actor;Person      keanu,Neo;Thomas,matrix,ACTED_IN

Ids of a space, `:ID(Actor)`, are the keys `Actor/1`; several columns of ids are one key, `a/b`.  `:IGNORE` columns are
left out, `;` stands between the values of an array.  A header in a file of its own belongs before its rows:
`kgqa kg build <(cat header.csv rows.csv)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.csv_rows import DELIMITERS, cut, note_delimiter, tell_header
from kgqa_core.kg.formats.delimited import given_delimiter
from kgqa_core.kg.formats.property_graph import datatype_of, declared
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.table_rows import Role, TableColumn, TableShape, batches_of, with_decimal_commas

ARRAY = ";"

_COLUMN = re.compile(r"(?P<name>[^:]*)(?::(?P<kind>[A-Za-z_]+)(?:\((?P<space>[^)]*)\))?(?:\{[^}]*\})?(?P<array>\[\])?"
                     r"(?:\{[^}]*\})?)?")  # fmt: skip
_ROLES: dict[str, Role] = {
    "ID": "id", "LABEL": "types", "START_ID": "source", "END_ID": "target", "TYPE": "relation",
}  # fmt: skip


class Neo4jCsv:
    """Reader of CSV for Neo4j's import."""

    name = "neo4j-csv"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when the first line has a field `:ID`, or `:START_ID` and `:END_ID`, else 0."""
        return float(bool(lines) and _delimiter(lines[0], options) is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a file.  Raises KgInputError for a header that is none."""
        head = source.head()
        if not head:
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


FORMAT = FormatSpec(Neo4jCsv, "CSV of neo4j-admin's import: :ID, :LABEL, :START_ID, :END_ID, :TYPE", specific=True)
