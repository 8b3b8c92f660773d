"""What a data set of the registry is: its description, and the loader that reads its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionSource
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row of a question file that is left out.  row: its number from 1.  reason: what is wrong, with the way out."""

    file: str
    row: int
    id: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.file} row {self.row}{f' ({self.id})' if self.id else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Loader:
    """How the questions of a data set are read; the functions raise QuestionFileError.

    files: input files, whose content decides the result.  read: raw questions (`jsonl.RawQuestion`) for options and
    seed, and the rows that cannot be read.  complete: linked questions with the answers that the file leaves to the
    graph.  validated: `read` yields canonical questions, whose lines or rows it names.  without_dev: the set has no dev
    split, so a tenth of train is held out.
    """

    files: Callable[[QuestionSource], list[Path]]
    read: Callable[[QuestionSource, int], Iterable[Mapping[str, Any] | RejectedRow]]
    complete: Callable[[Sequence[Question], KgStore], list[Question]] | None = None
    validated: bool = False
    without_dev: bool = False


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """One data set of the registry.

    name: title in tables.  about: what its questions are.  graph: what they are about.  questions: how many there are.
    where: project page or repository.  licence: the one that this place states; `see its page` means that we have not
    found one that is beyond doubt.  patterns: its question files, relative to a folder that holds data sets or to the
    data set's own folder.  source: value of `questions.source` that reads it, with `loader`; both None where nothing
    does.  language: of the questions; `several` where there are translations.  bundled: it comes with this package.
    """

    name: str
    about: str
    graph: str
    questions: str
    where: str
    licence: str
    patterns: tuple[str, ...] = ()
    source: str | None = None
    loader: Loader | None = None
    language: str = "en"
    bundled: bool = False


def path_of(options: QuestionSource) -> Path:
    """The file or folder of a question set.  Raises QuestionFileError when none is named."""
    if not options.path:
        raise QuestionFileError(f"questions.path is not set; the source '{options.source}' needs a file or folder")
    return Path(options.path).expanduser()


def folder_loader(
    question_files: Callable[[Path], Mapping[str, Path]],
    read: Callable[[Path], Iterable[Mapping[str, Any]]],
    complete: Callable[[Sequence[Question], KgStore], list[Question]] | None = None,
    *,
    without_dev: bool = False,
) -> Loader:
    """A loader of a folder with a file for each split.  question_files: split → file, for those that are there."""
    return Loader(
        lambda options: list(question_files(path_of(options)).values()),
        lambda options, seed: read(path_of(options)),
        complete,
        without_dev=without_dev,
    )
