"""What a data set of the registry is: its description, and the loader that reads its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question

Complete = Callable[[Sequence[Question], KgStore], list[Question]]
"""Questions with the answers that their file leaves to the graph."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A row of a question file that cannot be read.  file: its path.  row: its line, number or id.  reason: why not."""

    file: str
    row: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file} {self.row}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Loader:
    """How the questions of a data set are read; the functions raise QuestionFileError.

    files: input files, whose content decides the result.  read: raw questions (`jsonl.RawQuestion`) for options and
    seed, and a `Reject` in the place of a row that cannot be read.  complete: linked questions with the answers that
    the file leaves to the graph.  validated: `read` has checked every question and names its line.  without_dev: the
    set has no dev split, so a tenth of train is held out.
    """

    files: Callable[[QuestionSource], list[Path]]
    read: Callable[[QuestionSource, int], Iterable[Mapping[str, Any] | Reject]]
    complete: Complete | None = None
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
    recognise: whether a file that begins so is one of this data set, which its loader reads alone; None where its files
    are recognised by their folder only.  fields: what such a file has, in a few words.
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
    recognise: Callable[[FileHead], bool] | None = None
    fields: str = ""


def path_of(options: QuestionSource) -> Path:
    """The file or folder of a question set.  Raises QuestionFileError when none is named."""
    if not options.path:
        raise QuestionFileError(f"questions.path is not set; the source '{options.source}' needs a file or folder")
    return Path(options.path).expanduser()


def folder_loader(
    question_files: Callable[[Path], Mapping[Any, Path]],
    read: Callable[[Path], Iterable[Mapping[str, Any]]],
    complete: Complete | None = None,
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


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """The files of a data set as its makers publish them, in a folder, or one of them alone.

    name: of the data set.  splits: split → patterns of its files, relative to the folder; files of the split `""` have
    none.  read: raw questions of one
    file in a language, with a `Reject` for each row that cannot be read.  prefixed: ids of different splits are
    alike, so that those of a folder get the split in front.
    """

    name: str
    splits: Mapping[str, Sequence[str]]
    read: Callable[[Path, str], Iterable[Mapping[str, Any] | Reject]]
    prefixed: bool = False

    def files(self, options: QuestionSource) -> dict[Path, str | None]:
        """File → split, in the order of splits and names; a file alone has no split.  Raises QuestionFileError."""
        path = path_of(options)
        if not path.is_dir():
            return {path: None}
        found: dict[Path, str | None] = {}
        for split, patterns in self.splits.items():
            for pattern in patterns:
                found.update({file: split or None for file in sorted(path.glob(pattern)) if file.is_file()})
        if not found:
            names = ", ".join(pattern for patterns in self.splits.values() for pattern in patterns)
            raise QuestionFileError(f"{path} holds none of {names}; is it the folder of {self.name}?")
        return found

    def rows(self, options: QuestionSource) -> Iterator[Mapping[str, Any] | Reject]:
        """Canonical raw questions of all files, each id once.

        Raises QuestionFileError for a file in which most rows cannot be read.
        """
        seen: set[str] = set()
        for file, split in self.files(options).items():
            rejects: list[Reject] = []
            rows = 0
            for raw in self.read(file, options.language):
                row = self._checked(raw, file, split, seen, gold=not options.unscored)
                if isinstance(row, Reject):
                    rejects.append(row)
                rows += not isinstance(row, Reject)
                yield row
            check_rejects(file, rows, rejects, self.name)

    def _checked(
        self, raw: Mapping[str, Any] | Reject, file: Path, split: str | None, seen: set[str], *, gold: bool
    ) -> Mapping[str, Any] | Reject:
        if isinstance(raw, Reject):
            return raw
        own = f"{split}-{raw['id']}" if self.prefixed and split else str(raw["id"])
        if own in seen:
            return Reject(str(file), f"question {own}", "its id is used by another question")
        try:
            row = canonical({**raw, "id": own, "split": split}, gold=gold)
        except ValueError as fault:
            return Reject(str(file), f"question {own}", str(fault))
        seen.add(own)
        return row

    def loader(self, complete: Complete | None = None, *, without_dev: bool = False) -> Loader:
        """The loader of these files."""
        return Loader(
            lambda options: list(self.files(options)),
            lambda options, seed: self.rows(options),
            complete,
            validated=True,
            without_dev=without_dev,
        )


def check_rejects(file: Path, rows: int, rejects: Sequence[Reject], name: str) -> None:
    """Raises QuestionFileError for a file without rows, or in which more rows are rejected than read."""
    if not rows and not rejects:
        raise QuestionFileError(f"{file} holds no questions; is it a file of {name}?")
    if len(rejects) > rows:
        raise QuestionFileError(
            f"{file}: {len(rejects):,} of its {rows + len(rejects):,} rows cannot be read, so that it is no file of "
            f"{name}, or of another version; the first is {rejects[0].row}: {rejects[0].reason}"
        )


def convert_rows(
    file: Path, rows: Iterable[tuple[str, Any]], convert: Callable[[Any], Mapping[str, Any]]
) -> Iterator[Mapping[str, Any] | Reject]:
    """Each row converted, or a `Reject` with the message of the ValueError that `convert` raises.

    rows: where a row is (its line or number) and its value.
    """
    for place, value in rows:
        try:
            yield convert(value)
        except ValueError as fault:
            yield Reject(str(file), place, str(fault))


def numbered(rows: Iterable[Any], id_field: str | None = None) -> Iterator[tuple[str, Any]]:
    """Rows of a document with their place: `question 17 (id 9ace9041)`."""
    for number, row in enumerate(rows, start=1):
        own = row.get(id_field) if isinstance(row, dict) and id_field else None
        known = isinstance(own, str | int) and not isinstance(own, bool)
        yield f"question {number}" + (f" (id {own})" if known else ""), row
