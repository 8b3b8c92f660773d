"""CSV of triples: `subject,predicate,object` in any order and case, further columns as qualifiers; or without a header.

Known headers are HEADS and RELATIONS.  A table without a header is of triples where every row has three fields and the
middle ones recur: `Mint,grows in,Shade`.  Double quotes protect a field as in RFC 4180.  An object is TEXT, as in
`delimited`, which reads three fields in their order that are cut by tabs or `|`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from kgqa_core.config import KgOptions, TableOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import TEXT, StatementBatch
from kgqa_core.kg.formats.csv_rows import DELIMITERS, cut, listed, note_delimiter, rows_of, tell_header
from kgqa_core.kg.formats.delimited import Delimited, given_delimiter
from kgqa_core.kg.formats.property_graph import DIRECTIONS
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.table_rows import batch_of
from kgqa_core.kg.formats.tables import shape_of

HEADS = (("subject", "object"), ("subj", "obj"), ("s", "o"), ("head", "tail"), ("h", "t"), ("node1", "node2"),
         ("source", "target"), ("from", "to"), ("start", "end"))  # fmt: skip
"""Names of the columns of subjects and objects; the first pair that a header has counts."""

RELATIONS = ("predicate", "pred", "p", "relation", "rel", "r", "relationship", "relation type", "interaction",
             "property", "label", "edge", "type")  # fmt: skip
"""Names of the column of relations; the first that a header has counts."""

EDGE = "edge"
"""The relation of edges whose table names none, only their direction."""

_TRIPLE = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class _TripleColumns:
    """How a table is cut, its columns, those of subject, predicate and object, and whether it has a header.

    direction: the index of the column with Gephi's `Directed` or `Undirected`.
    """

    delimiter: str
    columns: list[str]
    roles: tuple[str, str, str]
    header: bool
    direction: int | None = None


class TripleTable:
    """Reader of tables of triples."""

    name = "triples"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when the first line is a known header, or the lines are triples that commas cut, else 0."""
        return float(_layout(lines, options) is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The triples of a table.  Raises KgInputError when its columns are not known."""
        head = source.head()
        if not head:
            return
        layout = _layout(head, options)
        if layout is None:
            raise KgInputError(
                f"{source.path} has no header of triples, such as subject,predicate,object; its first line has "
                f"{listed(cut(head[0], ','))}; let `kgqa kg map FILE > map.yaml` map them, or set kg.columns"
            )
        note_delimiter(source, layout.delimiter, options, usual=",\t" if layout.header else "\t")
        if layout.header:
            tell_header(source.path, layout.columns, head[0])
            source.found["columns of subject, predicate and object"] = ", ".join(map(repr, layout.roles))
        else:
            source.found["header"] = "none"
        subject, predicate, thing = layout.roles
        table = TableOptions(source=subject, target=thing, relation=predicate)
        shape = shape_of(layout.columns, options.model_copy(update={"table": table}))
        assert shape is not None
        index = {column.field: int(column.field[1:]) for column in shape.columns}
        if layout.direction is not None:
            source.found["direction of edges"] = (
                f"{layout.columns[layout.direction]!r}; undirected ones are two triples"
            )
            index |= {f"c{layout.direction}": layout.direction}
        for rows in rows_of(source, layout.delimiter, index, header=layout.header):
            if layout.direction is not None:
                ends = [f"c{layout.columns.index(name)}" for name in (subject, thing)]
                undirected = rows.frame.filter(pl.col(f"c{layout.direction}").str.to_lowercase() == "undirected")
                swapped = undirected.with_columns(pl.col(ends[1]).alias(ends[0]), pl.col(ends[0]).alias(ends[1]))
                rows = replace(rows, frame=pl.concat([rows.frame, swapped]))
            batch = batch_of(rows, shape)
            triples = batch.statements.with_columns(kind=pl.lit(TEXT, dtype=pl.Int8))
            yield replace(batch, statements=triples)


def _layout(lines: list[str], options: KgOptions) -> _TripleColumns | None:
    if not lines:
        return None
    given = given_delimiter(options)
    for delimiter in DELIMITERS if given is None else (given,):
        columns = cut(lines[0], delimiter)
        roles, direction = roles_of(columns, [cut(line, delimiter) for line in lines[1:]])
        if roles is not None:
            in_order = len(columns) == 3 and tuple(columns) == roles
            plain = in_order and delimiter in "\t|" and Delimited().sniff(lines, options) > 0.5
            return None if plain else _TripleColumns(delimiter, columns, roles, True, direction)
    if given not in (None, ","):
        return None
    if not _recurs(lines):
        columns = cut(lines[0], ",")
        headed = _recurs(lines[1:]) and len({*columns}) == 3 and all(cut(line, ",")[1].islower() for line in lines[1:])
        return _TripleColumns(",", columns, (columns[0], columns[1], columns[2]), True) if headed else None
    return _TripleColumns(",", list(_TRIPLE), _TRIPLE, False)


def roles_of(columns: list[str], rows: list[list[str]]) -> tuple[tuple[str, str, str] | None, int | None]:
    """The columns of subject, predicate and object, None where a header does not say them; and that of directions."""
    names = {re.sub(r"[_\s-]+", " ", column).strip(":~ ").lower(): column for column in reversed(columns)}
    at = columns.index(names["type"]) if "type" in names else len(columns)
    types = {row[at].strip().lower() for row in rows if at < len(row)}
    direction = at if types and types <= DIRECTIONS.keys() else None
    known = [name for name in RELATIONS if name in names and not (name == "type" and direction is not None)]
    if direction is not None:  # Gephi writes a column for labels that may be empty
        used = {at for row in rows for at, field in enumerate(row) if field != f"column {at + 1}"}
        known = [name for name in known if columns.index(names[name]) in used]
    relation = names[known[0]] if known else None if direction is None else f"={EDGE}"
    ends = next(((names[head], names[tail]) for head, tail in HEADS if head in names and tail in names), None)
    return (None if relation is None or ends is None else (ends[0], relation, ends[1])), direction


def _recurs(lines: list[str]) -> bool:
    """Whether commas cut every line into three fields, and the middle ones recur, that of the first line too."""
    rows = [cut(line, ",") for line in lines]
    if len(rows) < 2 or any(len(row) != 3 for row in rows):
        return False
    middles = [row[1] for row in rows]
    return middles[0] in middles[1:] and (2 * len(set(middles)) <= len(middles) or all(map(str.islower, middles)))


FORMAT = FormatSpec(
    TripleTable, "CSV of triples with a header such as subject,predicate,object, or none", specific=True
)
