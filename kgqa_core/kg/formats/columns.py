"""CSV and TSV with a header, to whose columns `kg.columns` gives roles: subject, predicate, object, and if wanted
language, datatype, rank.

A role's value is the name of a column, or `=text` for a constant in every row; `=label`, `=alias` and `=description`
stand for the usual predicates of names.  A row with a datatype (an IRI, or `xsd:` and a name) or with a language has a
literal as object; `iri` as datatype says that it is a key; other objects are TEXT.  A row without an object is
filtered as `empty object`.  Double quotes protect a field as in RFC 4180, also over line ends.  A quote that is not
closed within MAX_ROW_LINES lines, or whose partner stands within another field, rejects the line that it stands on,
and the lines after it are read as rows of their own.  Rows without a quote are cut set-wise, the others by Python's
csv.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import (
    BLANKS,
    ENTITY,
    LITERAL,
    MAX_REJECT_TEXT,
    REJECTS,
    STATEMENTS,
    TEXT,
    StatementBatch,
    empty,
)
from kgqa_core.kg.formats.delimited import given_delimiter
from kgqa_core.kg.formats.names import ALIAS, DESCRIPTION, LABEL
from kgqa_core.kg.formats.source import Block, Source
from kgqa_core.kg.vocabulary import XSD

ROLES = ("subject", "predicate", "object", "language", "datatype", "rank")
CANDIDATES = (",", "\t", ";", "|")
MAX_ROW_LINES = 10_000
"""Lines of one row."""

UNCLOSED = "a double quote is never closed"

RANKS = {"": 0, "normal": 0, "preferred": 1, "deprecated": -1, "0": 0, "1": 1, "-1": -1}
_PLAIN, _WHOLE, _OTHER = 0, 1, 2
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
        header = _cut(head[0], delimiter)
        table = Table(delimiter, header, roles)
        for block in source.blocks():
            yield table.read(block)
        yield from table.finish()


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


def missing(lines: list[str], options: KgOptions, share: float) -> str | None:
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
    given = given_delimiter(options)
    best: tuple[str, list[str]] = (",", named)
    for delimiter in CANDIDATES if given is None else (given,):
        there = _cut(header, delimiter)
        lacking = [column for column in named if column not in there]
        if len(lacking) < len(best[1]) or (len(lacking) == len(best[1]) and len(there) > len(_cut(header, best[0]))):
            best = delimiter, lacking
    return best


def _complaint(header: str, delimiter: str, lacking: list[str]) -> str:
    there = _cut(header, delimiter)
    columns = ", ".join(repr(column) for column in there[:30])
    what = " and ".join(repr(column) for column in lacking)
    return f"has no column {what} of kg.columns{nearest(lacking[0], there)}; its first line has {columns}"


def _cut(line: str, delimiter: str) -> list[str]:
    return [field.strip(" ") for field in next(csv.reader([line], delimiter=delimiter), [])]


@dataclass(frozen=True, slots=True)
class _Open:
    """A row whose quotes are not closed yet: numbers and texts of its lines."""

    lines: list[tuple[int, str]]

    def reject(self) -> tuple[int, str, str]:
        """Of its first line."""
        line, text = self.lines[0]
        return line, UNCLOSED, text[:MAX_REJECT_TEXT]


class Table:
    """A table that is being read: rows may go on from block to block."""

    def __init__(self, delimiter: str, header: list[str], roles: dict[str, str]) -> None:
        self.delimiter, self.header, self.roles = delimiter, header, roles
        self.place = {role: header.index(name) for role, name in roles.items() if not name.startswith("=")}
        self._open: _Open | None = None
        self._headed = False

    def read(self, block: Block) -> StatementBatch:
        """The statements of some lines; a row that is not ended waits for the next ones."""
        lines, ignored = block.lines, 0
        text = pl.col("text")
        if not self._headed and lines.height:
            first = lines.with_row_index("at").filter(text.str.strip_chars() != "").head(1)
            if first.height:
                self._headed = True
                ignored += int(first["at"][0]) + 1
                lines = lines.slice(int(first["at"][0]) + 1)
        blank = text.str.strip_chars(" \t") == ""
        if self._open is None and not lines["text"].str.contains('"', literal=True).any():
            ignored += int(lines.select(blank.sum()).item())
            return self._batch(self._split(lines.filter(~blank)), block, empty(REJECTS), ignored)
        plain, rows, bad = self._quoted(lines)
        parts = [self._split(plain.filter(~blank)), self._frame([row for row in rows if row[1].strip(" \t")])]
        ignored += int(plain.select(blank.sum()).item()) + sum(not text.strip(" \t") for _, text, _ in rows)
        return self._batch(pl.concat(parts).sort("line"), block, bad, ignored)

    def finish(self) -> Iterator[StatementBatch]:
        """The last batches: where the file ends within quotes, the lines after the one that opened them."""
        while self._open is not None:
            begun, self._open = self._open, None
            lines = pl.DataFrame(begun.lines[1:], schema={"line": pl.Int64, "text": pl.String}, orient="row")
            yield self.read(Block(lines, pl.DataFrame([begun.reject()], schema=REJECTS, orient="row"), 1.0))

    def _split(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Rows without quotes: line, text, n (fields) and the field of each role."""
        parts = lines.with_columns(fields=pl.col("text").str.split(self.delimiter))
        return parts.select(
            "line",
            "text",
            n=pl.col("fields").list.len().cast(pl.Int64),
            **{
                role: pl.col("fields").list.get(place, null_on_oob=True).str.strip_chars(" \t")
                for role, place in self.place.items()
            },
        )

    def _frame(self, rows: list[tuple[int, str, list[str]]]) -> pl.DataFrame:
        """Rows with quotes, cut by csv, in the form of `_split`."""
        data: dict[str, Any] = {
            "line": [line for line, _, _ in rows],
            "text": [text for _, text, _ in rows],
            "n": [len(fields) for _, _, fields in rows],
        }
        for role, place in self.place.items():
            data[role] = [fields[place].strip(" \t") if place < len(fields) else None for _, _, fields in rows]
        return pl.DataFrame(data, schema={"line": pl.Int64, "text": pl.String, "n": pl.Int64} |
                            {role: pl.String for role in self.place})  # fmt: skip

    def _quoted(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[int, str, list[str]]], pl.DataFrame]:
        """Lines that are rows without quotes; the other rows; rejects."""
        text = pl.col("text")
        field = rf'(?:"(?:[^"]|"")*"|[^"{re.escape(self.delimiter)}]*)'
        kinds = pl.when(~text.str.contains('"', literal=True)).then(_PLAIN).when(
            text.str.contains(f"^{field}(?:{re.escape(self.delimiter)}{field})*$")
        ).then(_WHOLE).otherwise(_OTHER).alias("kind")  # fmt: skip
        plain: list[int] = []
        whole: list[tuple[int, str]] = []
        bad: list[tuple[int, str, str]] = []
        again: deque[tuple[int, str]] = deque()  # lines that a quote had swallowed
        following = enumerate(lines.select("line", "text", kinds).iter_rows())
        while True:
            if again:
                (number, one), at, kind = again.popleft(), -1, _OTHER
            elif (row := next(following, None)) is not None:
                at, (number, one, kind) = row
            else:
                break
            if self._open is None and kind == _PLAIN:
                plain.append(at)
            elif self._open is None and kind == _WHOLE:
                whole.append((number, one))
            else:
                begun, opened = self._open or _Open([]), self._open is not None
                begun.lines.append((number, one))
                within = _within_quotes(one, self.delimiter, opened)
                self._open = begun if within else None
                if (within and len(begun.lines) >= MAX_ROW_LINES) or (opened and within is None):
                    self._open = None
                    bad.append(begun.reject())
                    again.extendleft(reversed(begun.lines[1:]))
                elif not within:
                    whole.append((begun.lines[0][0], "\n".join(text for _, text in begun.lines)))
        rows = []
        try:
            fields = csv.reader([one for _, one in whole], delimiter=self.delimiter)
            rows = [(line, one, cut) for (line, one), cut in zip(whole, fields, strict=True)]
        except csv.Error:
            for line, one in whole:
                try:
                    rows.append((line, one, next(csv.reader([one], delimiter=self.delimiter))))
                except csv.Error as fault:
                    bad.append((line, str(fault), one[:MAX_REJECT_TEXT]))
        return lines[plain], rows, pl.DataFrame(bad, schema=REJECTS, orient="row")

    def _batch(self, rows: pl.DataFrame, block: Block, bad: pl.DataFrame, ignored: int) -> StatementBatch:
        def value(role: str) -> pl.Expr:
            spec = self.roles.get(role, "=")
            if not spec.startswith("="):
                return pl.col(role)
            constant = spec[1:]
            return pl.lit(_NAMES.get(constant, constant) if role == "predicate" else constant, dtype=pl.String)

        datatype = pl.col("datatype")
        rank = pl.col("rank").str.to_lowercase()
        rows = rows.with_columns(**{role: value(role) for role in ROLES})
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
        reason = (
            pl.when(pl.col("text").str.contains("[\0\r]"))
            .then(pl.lit("a NUL or a carriage return within the row"))
            .when(pl.col("n") != len(self.header))
            .then(pl.format("{} field(s) instead of {}", "n", pl.lit(len(self.header))))
        )
        for role in ROLES[:2]:
            reason = reason.when(pl.col(role) == "").then(pl.lit(f"no {role}"))
        reason = (
            reason.when((pl.col("language") != "") & ~pl.col("language").str.contains(_TAG))
            .then(pl.format("'{}' is no language", "language"))
            .when(~rank.is_in(list(RANKS)))
            .then(pl.format("'{}' is no rank", "rank"))
        )
        rows = rows.with_columns(reason=reason)
        good = rows.filter(pl.col("reason").is_null() & (pl.col("object") != ""))
        nothing = rows.height - good.height - rows["reason"].count()
        wrong = rows.filter(pl.col("reason").is_not_null())
        key = datatype.str.to_lowercase() == "iri"
        typed = (datatype != "") & ~key
        statements = good.select(
            "subject",
            "predicate",
            "object",
            kind=pl.when(key).then(ENTITY).when(typed | (pl.col("language") != "")).then(LITERAL).otherwise(TEXT),
            datatype=pl.when(pl.col("language") != "")
            .then(pl.lit("@") + pl.col("language"))
            .when(typed)
            .then(datatype),
            detail=pl.lit(None),
            rank=rank.replace_strict(RANKS, default=0),
            statement=pl.lit(None),
        ).cast(pl.Schema(STATEMENTS))
        rejects = wrong.select("line", "reason", pl.col("text").str.slice(0, MAX_REJECT_TEXT)).cast(pl.Schema(REJECTS))
        return StatementBatch(
            statements,
            pl.concat([block.rejects, bad, rejects]),
            ignored,
            block.fraction,
            filtered={"empty object": nothing} if nothing else {},
        )


def _within_quotes(text: str, delimiter: str, within: bool) -> bool | None:
    """Whether a line ends within quotes; quotes open only at the beginning of a field, as for csv.

    None where the quotes that it began within are closed, but not at the end of a field: it is another's that closes.
    """
    at, start, first = 0, not within, within
    while at < len(text):
        if within:
            close = text.find('"', at)
            if close < 0:
                return True
            if text.startswith('""', close):
                at = close + 2
                continue
            within, at = False, close + 1
            rest = text[at:].lstrip(" \t" if delimiter != "\t" else " ")
            if first and rest and not rest.startswith(delimiter):
                return None
            first = False
        elif start and text[at] == '"':
            within, at, start = True, at + 1, False
            continue
        following = text.find(delimiter, at)
        if following < 0:
            return False
        at, start = following + len(delimiter), True
    return within


FORMAT = FormatSpec(Columns, "CSV or TSV with a header, its columns given roles by kg.columns", specific=True)
