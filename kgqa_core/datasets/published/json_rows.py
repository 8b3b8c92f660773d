"""Rows of benchmarks that are JSON documents: which file is which split, fields that must be there, rejected rows.

A row with a wrong or missing field is yielded as a `Reject`, so that the stage `questions` lists it and keeps the
others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.fields import kind_of
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import Complete, Loader, Reject, check_rejects, path_of
from kgqa_core.datasets.published.documents import read_list
from kgqa_core.errors import QuestionFileError, nearest

_LOG = logging.getLogger(__name__)

_T = TypeVar("_T")

SplitFiles = list[tuple[str | None, Path]]
"""(split, file), the split None of a file that is read alone, which gets one by topic entity."""


def split_files(path: Path, names: Mapping[str, Sequence[str]], name: str) -> SplitFiles:
    """The files of a data set in a folder or its subfolder `data`, or the one file that `path` is.

    names: split → the names that its file may have.  name: the data set, for the message.  Raises QuestionFileError.
    """
    if not path.is_dir() and path.exists():
        return [(None, path)]
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


def read_each(
    path: Path, rows: Sequence[Any], read: Callable[[dict[str, Any]], _T | None], name: str
) -> Iterator[_T | Reject]:
    """`read` of each row but for None; a row that it raises ValueError for, or whose id was read before, is rejected.

    What `read` returns has an `id`, as attribute or key.  name: the data set, for messages.  Raises QuestionFileError
    where more rows are rejected than read.
    """
    seen: dict[str, str] = {}
    rejects: list[Reject] = []
    for number, value in enumerate(rows, start=1):
        own = row_id(value)
        place = f"row {number}" + (f" ({own})" if own else "")
        try:
            if not isinstance(value, dict):
                raise ValueError(f"an object is needed, but it is {kind_of(value)}")
            record = read(value)
            if record is None:
                continue
            key: str = record["id"] if isinstance(record, dict) else getattr(record, "id", place)
            if key in seen:
                raise ValueError(f"its id is already used in {seen[key]}; give each its own")
        except ValueError as fault:
            rejects.append(Reject(str(path), place, str(fault)))
            yield rejects[-1]
            continue
        seen[key] = place
        yield record
    check_rejects(path, len(rows) - len(rejects), rejects, name)


class AnsweredRow(Protocol):
    """A row whose answers are None where they are not published."""

    @property
    def answers(self) -> tuple[Any, ...] | None:
        """The gold answers."""


_Row = TypeVar("_Row", bound=AnsweredRow)


def read_published(
    options: QuestionSource,
    question_files: Callable[[Path], SplitFiles],
    read_row: Callable[[Mapping[str, Any], str | None], _Row],
    raw_question: Callable[[_Row], RawQuestion],
    name: str,
) -> Iterator[RawQuestion | Reject]:
    """Raw questions of files that are arrays; rows without published answers only where questions are unscored.

    Logs how many rows are left out so.  name: the data set, for messages.  Raises QuestionFileError, also where no row
    is left.
    """
    path = path_of(options)
    hidden = rows = 0

    def raw(value: Mapping[str, Any], split: str | None) -> RawQuestion | None:
        nonlocal hidden
        record = read_row(value, split)
        if record.answers is None and not options.unscored:
            hidden += 1
            return None
        return raw_question(record)

    for split, file in question_files(path):
        for row in read_each(file, read_list(file), partial(raw, split=split), name):
            rows += 1
            yield row
    if hidden and not rows:
        raise QuestionFileError(
            f"the answers of the {hidden:,} questions of {path} are not published, so that they cannot be scored; "
            "answer them by `kgqa answer`, and measure on dev (questions.test_from: dev)"
        )
    if hidden:
        _LOG.info("%d questions have no published answers and are not scored; set questions.test_from: dev", hidden)


def split_loader(
    question_files: Callable[[Path], SplitFiles],
    read: Callable[[QuestionSource], Iterable[RawQuestion | Reject]],
    complete: Complete | None = None,
    *,
    without_dev: bool = False,
) -> Loader:
    """A loader of these files, whose rows `read` has checked."""
    return Loader(
        lambda options: [file for _, file in question_files(path_of(options))],
        lambda options, seed: read(options),
        complete,
        validated=True,
        without_dev=without_dev,
    )


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
