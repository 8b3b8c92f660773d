"""Rows of CSV and TSV, cut set-wise: a fault of quoting costs its line, not the lines after it.

Double quotes protect a field that begins with one, as in Python's csv; a row may go on over several lines.
"""

from __future__ import annotations

import csv
import logging
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.base import MAX_REJECT_TEXT, REJECTS
from kgqa_core.kg.formats.delimited import given_delimiter
from kgqa_core.kg.formats.source import Block, Source
from kgqa_core.spool import shorten

log = logging.getLogger("kgqa")

MAX_ROW_LINES = 10_000
"""Lines of one row."""

UNCLOSED = "a double quote is never closed"

_PLAIN, _WHOLE, _OTHER = 0, 1, 2


DELIMITERS = (",", "\t", ";", "|")
"""Delimiters that are tried on a header, in this order."""


@dataclass(frozen=True, slots=True)
class CutRows:
    """Rows of a table: `line`, `text`, `n` (fields), and the fields by name; rejects; how many lines are ignored.

    fraction: share of the file's bytes read so far.
    """

    frame: pl.DataFrame
    rejects: pl.DataFrame
    ignored: int
    fraction: float


def rows_of(source: Source, delimiter: str, index: Mapping[str, int], header: bool = True) -> Iterator[CutRows]:
    """The rows of a table behind its header.  index: of the fields that are used, by the names of their columns."""
    rows = CsvRows(delimiter, index, header)
    for block in source.blocks():
        yield rows.read(block)
    for block in rows.finish():
        yield rows.read(block)


def cut(line: str, delimiter: str) -> list[str]:
    """The columns of a header: its fields, spaces around them stripped, `column 3` for the third where it has no name.

    The line itself where it cannot be cut.
    """
    try:
        fields = next(csv.reader([line], delimiter=delimiter), [])
    except (csv.Error, TypeError):  # a carriage return within, a field too long for csv, a delimiter of two characters
        return [line]
    return [field.strip(" ") or f"column {number}" for number, field in enumerate(fields, start=1)]


def tell_header(path: Path, header: Sequence[str], text: str) -> None:
    """Logs which columns of a header are read under another name than their own, or under one together."""
    for number, name in enumerate(header, start=1):
        if name == f"column {number}" and name not in text:
            log.warning(
                "%s: column %d has no name; it is read as %r, and left out where it is empty", path, number, name
            )
    for name in sorted({name for name in header if header.count(name) > 1}):
        log.warning("%s: %d columns are called %r; their values are read as several of one property",
                    path, header.count(name), shorten(name, 40))  # fmt: skip


def note_delimiter(source: Source, delimiter: str, options: KgOptions, usual: str = ",\t") -> None:
    """Notes a delimiter that was guessed and is none of the usual ones."""
    if given_delimiter(options) is None and delimiter not in usual:
        source.found["delimiter"] = repr(delimiter)


def likely_delimiter(header: str, names: Collection[str], options: KgOptions) -> str:
    """The configured delimiter, or the one under which a header has most of the names, and then most columns."""
    given = given_delimiter(options)
    if given is not None:
        return given

    def rank(delimiter: str) -> tuple[int, int]:
        columns = cut(header, delimiter)
        return len(set(names) & set(columns)), len(columns)

    return max(DELIMITERS, key=rank)


def column_index(header: Sequence[str], option: str, name: str) -> int:
    """The index of the column that an option names.  Raises KgInputError where several have that name."""
    if header.count(name) > 1:
        raise KgInputError(
            f"{option} is {name!r}, and {header.count(name)} columns have that name; rename those that are not meant"
        )
    return header.index(name)


def listed(names: Sequence[str]) -> str:
    """The first names, quoted and cut, for a message."""
    more = f" and {len(names) - 15:,} more" if len(names) > 15 else ""
    return ", ".join(repr(shorten(name, 40)) for name in names[:15]) + more


@dataclass(frozen=True, slots=True)
class _Open:
    """A row whose quotes are not closed yet: numbers and texts of its lines."""

    lines: list[tuple[int, str]]

    def reject(self) -> tuple[int, str, str]:
        """Of its first line."""
        line, text = self.lines[0]
        return line, UNCLOSED, text[:MAX_REJECT_TEXT]


class CsvRows:
    """A table that is being read: rows may go on from block to block.  index: of the fields that are used, by name.

    header: the first line that is not blank is no row.
    """

    def __init__(self, delimiter: str, index: Mapping[str, int], header: bool = True) -> None:
        if len(delimiter) != 1:
            raise KgInputError(f"kg.delimiter is {delimiter!r}; the rows of a table are cut at a single character")
        self.delimiter, self.index = delimiter, dict(index)
        self._open: _Open | None = None
        self._headed = not header

    def read(self, block: Block) -> CutRows:
        """The rows of some lines; the header is left out."""
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
            return CutRows(self._split(lines.filter(~blank)), block.rejects, ignored, block.fraction)
        plain, rows, bad = self._quoted(lines)
        parts = [self._split(plain.filter(~blank)), self._frame([row for row in rows if row[1].strip(" \t")])]
        ignored += int(plain.select(blank.sum()).item()) + sum(not text.strip(" \t") for _, text, _ in rows)
        return CutRows(pl.concat(parts).sort("line"), pl.concat([block.rejects, bad]), ignored, block.fraction)

    def finish(self) -> Iterator[Block]:
        """The lines that are left where the file ends within quotes, which may be rows: those after the opening one."""
        while self._open is not None:
            row, self._open = self._open, None
            lines = pl.DataFrame(row.lines[1:], schema={"line": pl.Int64, "text": pl.String}, orient="row")
            yield Block(lines, pl.DataFrame([row.reject()], schema=REJECTS, orient="row"), 1.0)

    def _split(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Rows without quotes: line, text, n (fields) and the fields that are used."""
        parts = lines.with_columns(fields=pl.col("text").str.split(self.delimiter))
        return parts.select(
            "line",
            "text",
            n=pl.col("fields").list.len().cast(pl.Int64),
            **{
                name: pl.col("fields").list.get(index, null_on_oob=True).str.strip_chars(" \t")
                for name, index in self.index.items()
            },
        )

    def _frame(self, rows: list[tuple[int, str, list[str]]]) -> pl.DataFrame:
        """Rows with quotes, cut by csv, in the form of `_split`."""
        data: dict[str, Any] = {
            "line": [line for line, _, _ in rows],
            "text": [text for _, text, _ in rows],
            "n": [len(fields) for _, _, fields in rows],
        }
        for name, index in self.index.items():
            data[name] = [fields[index].strip(" \t") if index < len(fields) else None for _, _, fields in rows]
        schema = {"line": pl.Int64, "text": pl.String, "n": pl.Int64} | dict.fromkeys(self.index, pl.String)
        return pl.DataFrame(data, schema=schema)

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
                (number, line), at, kind = again.popleft(), -1, _OTHER
            elif (row := next(following, None)) is not None:
                at, (number, line, kind) = row
            else:
                break
            if self._open is None and kind == _PLAIN:
                plain.append(at)
            elif self._open is None and kind == _WHOLE:
                whole.append((number, line))
            else:
                # A row over several lines.  It is given up where its quote closes within another field, or never in
                # MAX_ROW_LINES: then the line that opened the quote is at fault, and those after it are read again.
                opened = self._open is not None
                unclosed = self._open or _Open([])
                unclosed.lines.append((number, line))
                within = _within_quotes(line, self.delimiter, opened)
                self._open = unclosed if within else None
                if (within and len(unclosed.lines) >= MAX_ROW_LINES) or (opened and within is None):
                    self._open = None
                    bad.append(unclosed.reject())
                    again.extendleft(reversed(unclosed.lines[1:]))
                elif not within:
                    whole.append((unclosed.lines[0][0], "\n".join(text for _, text in unclosed.lines)))
        rows = []
        try:
            cuts = csv.reader([row_text for _, row_text in whole], delimiter=self.delimiter)
            rows = [(number, row_text, fields) for (number, row_text), fields in zip(whole, cuts, strict=True)]
        except csv.Error:
            for number, row_text in whole:
                try:
                    rows.append((number, row_text, next(csv.reader([row_text], delimiter=self.delimiter))))
                except csv.Error as fault:
                    bad.append((number, str(fault), row_text[:MAX_REJECT_TEXT]))
        return lines[plain], rows, pl.DataFrame(bad, schema=REJECTS, orient="row")


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
