"""JSON documents of benchmarks: which file is which split, the rows of a file, and rows that cannot be read.

A file that is no such document is an error.  A row with a wrong or missing field is yielded as a `RejectedRow`, so that
the stage `questions` lists it and keeps the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kgqa_core.datasets.base import RejectedRow
from kgqa_core.datasets.fields import kind_of
from kgqa_core.errors import QuestionFileError, nearest
from kgqa_core.input_files import read_document

_T = TypeVar("_T")

SplitFiles = list[tuple[str | None, Path]]
"""(split, file), the split None where the name of the file does not say it."""

MOST_BYTES = 1 << 30
"""Bytes of a document; GrailQA's training questions have about 200 MB."""


def split_files(path: Path, names: Mapping[str, Sequence[str]], name: str) -> SplitFiles:
    """The files of a data set in a folder or its subfolder `data`, or the one file that `path` is.

    names: split → the names that its file may have.  name: the data set, for the message.  Raises QuestionFileError.
    """
    if path.is_file():
        split = next((split for split, known in names.items() if path.name in known), None)
        return [(split, path)]
    every = ", ".join(known for group in names.values() for known in group)
    if not path.is_dir():
        raise QuestionFileError(
            f"{path} is neither a file nor a folder; questions.path must name the folder of {name} or one file of it"
        )
    for home in (path, path / "data"):
        files: SplitFiles = [
            (split, file)
            for split, known in names.items()
            if (file := next((home / one for one in known if (home / one).is_file()), None)) is not None
        ]
        if files:
            return files
    raise QuestionFileError(f"{path} holds none of {every}; is it the folder of {name}?")


def read_array(path: Path, of: str, key: str | None = None) -> list[Any]:
    """The rows of a JSON document: an array, or the array under `key` of an object.

    of: what the rows are, for the message.  Raises QuestionFileError.
    """
    wanted = f"an object with `{key}`, {of}" if key else f"an array of {of}"
    try:
        found = json.loads(read_document(path, QuestionFileError, MOST_BYTES, needs=wanted))
    except (ValueError, RecursionError) as fault:
        raise QuestionFileError(f"{path} is no JSON ({fault}); {wanted} is needed") from None
    if key is not None:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise QuestionFileError(f"{path} is another JSON than that of {of}; {wanted} is needed")
    return found


def read_each(
    path: Path, rows: Sequence[Any], read: Callable[[dict[str, Any]], _T | None]
) -> Iterator[_T | RejectedRow]:
    """`read` of each row but for None; a row that it raises ValueError for, or whose id was read before, is rejected.

    What `read` returns has an `id`, as attribute or key.
    """
    seen: dict[str, int] = {}
    for number, value in enumerate(rows, start=1):
        name = row_id(value)
        try:
            if not isinstance(value, dict):
                raise ValueError(f"an object is needed, but it is {kind_of(value)}")
            record = read(value)
        except ValueError as fault:
            yield RejectedRow(path.name, number, name, str(fault))
            continue
        if record is None:
            continue
        key: str = record["id"] if isinstance(record, dict) else getattr(record, "id", name or str(number))
        if key in seen:
            yield RejectedRow(path.name, number, key, f"its id is already used in row {seen[key]}; give each its own")
            continue
        seen[key] = number
        yield record


def row_id(value: Any) -> str | None:
    """The id of a row, whatever the data set calls it."""
    names = ("qid", "ID", "QuestionId", "id") if isinstance(value, dict) else ()
    found = next((value[name] for name in names if isinstance(value.get(name), (str, int))), None)
    return None if found is None else str(found)


def need(value: Mapping[str, Any], name: str, kind: type[Any] | tuple[type[Any], ...], example: str) -> Any:
    """The value of a field that must be there and of a type; ValueError names field and example."""
    if name not in value:
        raise ValueError(f"field '{name}' is missing{nearest(name, value)}; it holds {example}")
    found = value[name]
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ValueError(f"field '{name}' must hold {example}, but it is {kind_of(found)}")
    return found


def need_text(value: Mapping[str, Any], name: str, example: str) -> str:
    """A text that must be there, stripped; numbers as text.  ValueError names field and example."""
    text = str(need(value, name, (str, int, float), example)).strip()
    if not text:
        raise ValueError(f"field '{name}' is empty; it holds {example}")
    return text


def optional_text(value: Mapping[str, Any], name: str) -> str | None:
    """A text that may be absent, null or blank."""
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, (str, int, float)) or isinstance(found, bool):
        raise ValueError(f"field '{name}' must be a string, but it is {kind_of(found)}")
    return str(found).strip() or None


def objects(value: Mapping[str, Any], name: str, example: str) -> list[dict[str, Any]]:
    """A list of objects that must be there.  ValueError names field and example."""
    found: list[dict[str, Any]] = need(value, name, list, example)
    for item in found:
        if not isinstance(item, dict):
            raise ValueError(f"field '{name}' must hold {example}, but one is {kind_of(item)}")
    return found
