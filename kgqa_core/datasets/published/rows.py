"""Rows of question files of others as the struct that declares them; ValueError names the field that does not fit.

A struct (`msgspec.Struct`) has a field for each of the row that is read, others are ignored.  Fields that are null or
blank count as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kgqa_core.datasets.files.fields import kind_of
from kgqa_core.datasets.files.jsonl import check_faults, read_json_lines, read_lines
from kgqa_core.datasets.published.documents import read_head, read_list, read_table
from kgqa_core.errors import nearest

Rows = Iterator[tuple[str, Any]]
"""Where a row is, such as `line 17`, and its value, or the ValueError that says why it has none."""

ID_FIELDS = ("qid", "ID", "QuestionId", "uid", "_id", "q_id", "id")

KINDS = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}

_T = TypeVar("_T")


class Text(str):
    """A text, stripped; numbers as text."""

    __slots__ = ()


def read_row(value: Any, struct: type[_T]) -> _T:
    """The value as a struct.  Raises ValueError that names the field, and the value where it is one."""
    if isinstance(value, ValueError):
        raise value
    present = _present(value)
    try:
        return msgspec.convert(present, struct, dec_hook=_read_text)
    except msgspec.ValidationError as fault:
        raise ValueError(_explained(str(fault), present)) from None


def choose(name: str, value: str, known: Iterable[str]) -> None:
    """Raises ValueError where the value of the field `name` is none of the known ones."""
    known = tuple(known)
    if value not in known:
        near = nearest(value, known)
        raise ValueError(f"field '{name}' must be one of {', '.join(known)}, but it is {value!r}{near}")


def list_rows(path: Path, within: str | None = None) -> Rows:
    """Rows of a JSON list, or of the list in a field of an object.  Raises QuestionFileError where a file is none."""
    for number, value in enumerate(read_list(path, within), start=1):
        names = ID_FIELDS if isinstance(value, dict) else ()
        key = next((value[name] for name in names if isinstance(value.get(name), (str, int))), None)
        yield f"row {number}" + ("" if key is None else f" ({key})"), value


def list_or_line_rows(path: Path) -> Rows:
    """Rows of a JSON list, or of JSON Lines.  Raises QuestionFileError, also for a malformed line."""
    head = read_head(path)
    if head is None or head.shape == "list":
        yield from list_rows(path)
        return
    faults: list[str] = []
    for number, value in read_json_lines(path, faults):
        yield f"line {number}", value
    check_faults(path, faults)


def table_rows(path: Path) -> Rows:
    """Rows of a table with a header."""
    return ((f"line {line}", row) for line, row in read_table(path))


def tabbed_rows(*names: str) -> Callable[[Path], Rows]:
    """Reads a file without header whose lines have these fields, separated by tabs; `line` is the line's number."""

    def read(path: Path) -> Rows:
        for number, line in enumerate(read_lines(path), start=1):
            fields = [field.strip() for field in line.decode("utf-8", errors="replace").strip("\r\n").split("\t")]
            if not any(fields):
                continue
            good = len(fields) == len(names) and all(fields)
            fault = ValueError(f"{len(names)} fields ({', '.join(names)}) are needed, got {fields!r}")
            yield f"line {number}", {"line": number, **dict(zip(names, fields, strict=True))} if good else fault

    return read


def _present(value: Any) -> Any:
    """The value without fields that are null or blank."""
    if isinstance(value, dict):
        return {name: _present(item) for name, item in value.items() if item is not None and not _is_blank(item)}
    return [_present(item) for item in value] if isinstance(value, list) else value


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _read_text(kind: type[Any], value: Any) -> Any:
    """A `Text`, for msgspec."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("Expected `str`")
    return kind(str(value).strip())


def _explained(message: str, row: Any) -> str:
    """A message of msgspec in our words."""
    what, _, path = message.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    value = row
    for index, name in re.findall(r"\[(\d+)\]|(\w+)", path):
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, TypeError):  # of an object by any name, msgspec does not say which
            value = None
    if missing := re.match(r"Object missing required field `(.+)`", what):
        name = missing[1]
        return f"field '{path}{'.' if path else ''}{name}' is missing{nearest(name, value or ())}"
    if expected := re.match(r"Expected `(.+?)`", what):
        kinds = " or ".join(dict.fromkeys(KINDS.get(kind, kind) for kind in expected[1].split(" | ") if kind != "null"))
        subject = f"field '{path}'" if path else "a row"
        return f"{subject} must be {kinds}, but it is {kind_of(value)}"
    if path and what.startswith("field '"):
        return what.replace("field '", f"field '{path}.", 1)
    return f"field '{path}': {what}" if path else what
