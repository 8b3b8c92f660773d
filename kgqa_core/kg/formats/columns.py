"""CSV and TSV with a header, to whose columns `kg.columns` gives roles: subject, predicate, object, and if wanted
language, datatype, rank.

A role's value is the name of a column, or `=text` for a constant in every row; `=label`, `=alias` and `=description`
stand for the usual predicates of names.  A row with a datatype (an IRI, or `xsd:` and a name) or with a language has a
literal as object; `iri` as datatype says that it is a key; other objects are TEXT.  A row without an object is
filtered as `empty object`.  Double quotes protect a field as in RFC 4180, also over line ends.  A quote that is not
closed within MAX_ROW_LINES lines (`csv_rows`), or whose partner stands within another field, rejects the line that it
stands on, and the lines after it are read as rows of their own.  Rows without a quote are cut set-wise, the others by
Python's csv.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from polars.expr.whenthen import ChainedThen

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import (
    BLANKS,
    ENTITY,
    LITERAL,
    STATEMENTS,
    TEXT,
    StatementBatch,
    divided,
    filled,
    odd_text,
)
from kgqa_core.kg.formats.csv_rows import CutRows, column_index, cut, likely_delimiter, listed, rows_of
from kgqa_core.kg.formats.names import ALIAS, DESCRIPTION, LABEL
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.vocabulary import XSD

ROLES = ("subject", "predicate", "object", "language", "datatype", "rank")
RANKS = {"": 0, "normal": 0, "preferred": 1, "deprecated": -1, "0": 0, "1": 1, "-1": -1}
_NAMES = {"label": LABEL, "alias": ALIAS, "description": DESCRIPTION}
_TAG = "^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*$"


class Columns:
    """Reader of tables with roles."""

    name = "columns"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when kg.columns is set and the first line names all its columns, else 0."""
        return float(bool(options.columns) and bool(lines) and not _lacking(lines[0], options)[1])

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a table.  Raises KgInputError when a role or a column is missing."""
        roles = check_roles(options)
        head = source.head()
        if not head:
            return
        delimiter, lacking = _lacking(head[0], options)
        if lacking:
            raise KgInputError(f"{source.path} {_complaint(head[0], delimiter, lacking)}")
        header = cut(head[0], delimiter)
        for rows in rows_of(source, delimiter, _indexes(header, roles)):
            yield _batch(rows, roles, len(header))


def check_roles(options: KgOptions) -> dict[str, str]:
    """The roles of kg.columns.  Raises KgInputError for an unknown one, or when one that is needed is missing."""
    for role in options.columns:
        if role not in ROLES:
            raise KgInputError(f"kg.columns has a role {role!r}{nearest(role, ROLES)}; roles are {', '.join(ROLES)}")
    needed = [role for role in ROLES[:3] if not options.columns.get(role)]
    if needed:
        raise KgInputError(
            f"kg.columns says no {' and no '.join(needed)}; name a column of the header for each, or a constant: "
            "`--set kg.columns.subject=id --set kg.columns.predicate==label --set kg.columns.object=name`"
        )
    return dict(options.columns)


def header_fault(lines: list[str], options: KgOptions, share: float) -> str | None:
    """What is wrong with a header that has some but not all columns of kg.columns; None where nothing is.

    share: how much of the file another reader understands.  A table without any of the columns is left to that one.
    """
    if not options.columns or not lines:
        return None
    check_roles(options)
    delimiter, lacking = _lacking(lines[0], options)
    named = {column for column in options.columns.values() if not column.startswith("=")}
    if not lacking or (set(lacking) == named and share >= 0.5):
        return None
    return _complaint(lines[0], delimiter, lacking)


def _lacking(header: str, options: KgOptions) -> tuple[str, list[str]]:
    """The delimiter under which a header has most of the columns, and the columns that it lacks."""
    named = list(dict.fromkeys(column for column in options.columns.values() if not column.startswith("=")))
    delimiter = likely_delimiter(header, named, options)
    columns = cut(header, delimiter)
    return delimiter, [name for name in named if name not in columns]


def _complaint(header: str, delimiter: str, lacking: list[str]) -> str:
    columns = cut(header, delimiter)
    what = " and ".join(repr(column) for column in lacking)
    return f"has no column {what} of kg.columns{nearest(lacking[0], columns)}; its first line has {listed(columns)}"


def _indexes(header: list[str], roles: dict[str, str]) -> dict[str, int]:
    """Indexes of the columns by role.  Raises KgInputError where two columns have the name of one."""
    return {role: column_index(header, f"kg.columns.{role}", name) for role, name in roles.items() if name[:1] != "="}


def _batch(cut_rows: CutRows, roles: dict[str, str], width: int) -> StatementBatch:
    """The statements of some rows.  width: how many columns the table has."""

    def value(role: str) -> pl.Expr:
        spec = roles.get(role, "=")
        if not spec.startswith("="):
            return pl.col(role)
        constant = spec[1:]
        return pl.lit(_NAMES.get(constant, constant) if role == "predicate" else constant, dtype=pl.String)

    datatype = pl.col("datatype")
    rank = pl.col("rank").str.to_lowercase()
    rows = cut_rows.frame.with_columns(**{role: value(role) for role in ROLES})
    # A literal is its text; whatever may be a key loses the line ends that quotes have protected.
    literal = (pl.col("language") != "") | ((datatype != "") & (datatype.str.to_lowercase() != "iri"))
    keys = pl.col("subject", "predicate").str.strip_chars(BLANKS)
    trimmed = pl.when(literal).then(pl.col("object")).otherwise(pl.col("object").str.strip_chars(BLANKS))
    rows = rows.with_columns(keys, object=trimmed)
    rows = rows.with_columns(
        language=pl.col("language").str.strip_prefix("@").str.to_lowercase(),
        datatype=pl.when(datatype.str.starts_with("xsd:")).then(pl.lit(XSD) + datatype.str.slice(4)).otherwise(
            datatype.str.strip_prefix("<").str.strip_suffix(">")
        ),
    )  # fmt: skip
    wrong_width = pl.format("{} field(s) instead of {}", "n", pl.lit(width))
    reason: ChainedThen = odd_text("row").when(pl.col("n") != width).then(wrong_width)
    for role in ROLES[:2]:
        reason = reason.when(pl.col(role) == "").then(pl.lit(f"no {role}"))
    reason = (
        reason.when((pl.col("language") != "") & ~pl.col("language").str.contains(_TAG))
        .then(pl.format("'{}' is no language", "language"))
        .when(~rank.is_in(list(RANKS)))
        .then(pl.format("'{}' is no rank", "rank"))
    )
    valid, rejects = divided(rows.with_columns(reason=reason))
    good = valid.filter(pl.col("object") != "")
    nothing = valid.height - good.height
    key = datatype.str.to_lowercase() == "iri"
    typed = (datatype != "") & ~key
    statements = good.select(
        "subject",
        "predicate",
        "object",
        kind=pl.when(key).then(ENTITY).when(typed | (pl.col("language") != "")).then(LITERAL).otherwise(TEXT),
        datatype=pl.when(pl.col("language") != "").then(pl.lit("@") + pl.col("language")).when(typed).then(datatype),
        rank=rank.replace_strict(RANKS, default=0),
    )
    return StatementBatch(
        filled(statements, STATEMENTS),
        pl.concat([cut_rows.rejects, rejects]),
        cut_rows.ignored,
        cut_rows.fraction,
        filtered={"empty object": nothing} if nothing else {},
    )


FORMAT = FormatSpec(Columns, "CSV or TSV with a header, its columns given roles by kg.columns", specific=True)
