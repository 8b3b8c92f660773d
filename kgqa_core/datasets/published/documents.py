"""Question files that are one JSON document or a table: how they begin, and their rows.

A question file is JSON Lines, a JSON document (a list of questions, or an object that holds one) or a table (columns
separated by tabs or commas).  All may be packed (gzip, bzip2, zstd), be a pipe and start with a byte-order mark.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kgqa_core.datasets.files.fields import kind_of
from kgqa_core.datasets.files.jsonl import max_bytes, question_stream, read_lines
from kgqa_core.errors import QuestionFileError
from kgqa_core.input_files import MAX_DOCUMENT
from kgqa_core.spool import regular_file

Shape = Literal["lines", "list", "object", "table"]

START = 4 << 20
"""Bytes of a file that are read to find its first row; a document whose first row is longer is read whole."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FileHead:
    """How a question file begins.

    shape: of the file.  first: its first object; of an object, the object itself.  columns: fields of a table's first
    line.  what: the first item in words.
    """

    shape: Shape
    first: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    what: str = ""

    def has(self, *names: str) -> bool:
        """Whether the first object, or the table, has these fields."""
        known = self.columns if self.shape == "table" else self.first
        return all(name in known for name in names)


def read_head(path: Path) -> FileHead | None:
    """How a file begins; None where it is neither JSON nor a table, or damaged JSON.  Raises QuestionFileError."""
    with question_stream(path) as stream:
        data = stream.read(START)
    whole = len(data) < START
    text = data.removeprefix(_BOM).lstrip()
    line, newline, rest = text.partition(b"\n")
    if text[:1] == b"[":
        items = _first_of_list(text.decode("utf-8", errors="replace"))
        if items is None and not whole:
            document = _document(path)
            items = document[:1] if isinstance(document, list) else None
        if items is None:
            return None
        item = items[0] if items and isinstance(items[0], dict) else {}
        return FileHead("list", item, what=described(items[0]) if items else "nothing")
    if text[:1] == b"{":
        first = _object(line.decode("utf-8", errors="replace"))
        if first is not None and (rest.strip() or (newline and not whole)):
            return FileHead("lines", first, what=described(first))
        whole_document = _document(path)
        if not isinstance(whole_document, dict):
            return None
        return FileHead("object", whole_document, what=described(whole_document))
    columns = _columns(line.decode("utf-8", errors="replace"))
    return FileHead("table", columns=columns) if len(columns) > 1 else None


def read_json(path: Path) -> Any:
    """The JSON document of a file, plain or packed.

    Raises QuestionFileError in one line when it is none, or has more than MAX_DOCUMENT bytes.
    """
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as fault:
        where = f" at line {fault.lineno}, column {fault.colno}" if isinstance(fault, json.JSONDecodeError) else ""
        what = fault.msg if isinstance(fault, json.JSONDecodeError) else str(fault)
        raise QuestionFileError(f"{path} is not JSON{where}: {what}; fetch it again") from None


def read_list(path: Path, within: str | None = None) -> list[Any]:
    """The rows of a JSON document: a list, or the list in a field of an object.  Raises QuestionFileError."""
    value = read_json(path)
    if within is not None:
        if not isinstance(value, dict) or within not in value:
            raise QuestionFileError(f"{path} must be an object with `{within}`, but it is {described(value)}")
        value = value[within]
    if not isinstance(value, list):
        where = f"`{within}` of {path}" if within else str(path)
        raise QuestionFileError(f"{where} must be a list of questions, but it is {described(value)}")
    return value


def read_table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, row by column) of a table with a header, separated by tabs or commas.  Raises QuestionFileError."""

    def texts() -> Iterator[str]:
        for number, line in enumerate(read_lines(path)):
            yield (line.removeprefix(_BOM) if not number else line).decode("utf-8", errors="replace")

    lines = texts()
    header = next(lines, "")
    separator = _separator(header)
    columns = _columns(header)
    reader = csv.reader(lines, delimiter=separator)
    try:
        for row in reader:
            if row:
                yield reader.line_num + 1, dict(zip(columns, row, strict=False))
    except csv.Error as fault:
        raise QuestionFileError(
            f"{path} line {reader.line_num + 1}: {fault}; write it again as UTF-8 with quotes in pairs"
        ) from None


def described(value: Any) -> str:
    """What a JSON value is and which fields it has, in a few words."""
    if isinstance(value, dict):
        names = ", ".join(_short(name) for name in list(value)[:8])
        more = f" and {len(value) - 8} more" if len(value) > 8 else ""
        return f"an object with {names}{more}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {described(value[0])}" if value else "an empty list"
    return kind_of(value)


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


def _first_of_list(text: str) -> list[Any] | None:
    """The first item of a list in JSON, in a list, empty for an empty one; None where its text is not complete."""
    start = re.match(r"\[\s*", text)
    assert start is not None
    if text[start.end() : start.end() + 1] == "]":
        return []
    try:
        return [json.JSONDecoder().raw_decode(text, start.end())[0]]
    except (ValueError, RecursionError):
        return None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _document(path: Path) -> Any | None:
    """The document of a file, None where it is none."""
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError):
        return None


def _text(path: Path) -> str:
    """The whole text of a file, unpacked.  Raises QuestionFileError, and ValueError for what is no UTF-8."""
    with question_stream(path) as stream:
        packed = regular_file(path).stat().st_size
        most = min(MAX_DOCUMENT, max(max_bytes(packed), packed))
        parts: list[bytes] = []
        size = 0
        while data := stream.read(1 << 20):
            size += len(data)
            if size > most:
                raise QuestionFileError(
                    f"{path} has more than {most:,} bytes, the most that is read of a JSON document; write one "
                    "question a line"
                )
            parts.append(data)
    return b"".join(parts).decode("utf-8-sig")


def _separator(line: str) -> str:
    return "\t" if "\t" in line else ","


def _columns(line: str) -> tuple[str, ...]:
    line = line.rstrip("\r\n")
    try:
        return tuple(name.strip() for name in next(csv.reader([line], delimiter=_separator(line)), []))
    except csv.Error:  # a line longer than any field, such as zero bytes: the reader of the file says what it is
        return ()
