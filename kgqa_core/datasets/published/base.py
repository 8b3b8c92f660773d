"""What a data set of the registry is: its description, and the loader that reads its questions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical, check_faults
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.rows import Rows, read_row
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question

_LOG = logging.getLogger(__name__)

_Row = TypeVar("_Row")

FindFiles = Callable[[QuestionSource], Mapping[Path, str | None]]
"""From options to the files of a data set and their splits, in order.  Raises QuestionFileError."""

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

    files: input files, whose content decides the result.  read: raw questions in canonical form (`jsonl.canonical`) for
    options and seed, and a `Reject` in the place of a row that cannot be read.  complete: linked questions with the
    answers that the file leaves to the graph.  without_dev: the set has no dev split, so a tenth of train is held out.
    """

    files: Callable[[QuestionSource], list[Path]]
    read: Callable[[QuestionSource, int], Iterable[RawQuestion | Reject]]
    complete: Complete | None = None
    without_dev: bool = False


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """One data set of the registry.

    name: title in tables.  about: what its questions are.  graph: what they are about.  questions: how many there are.
    where: project page or repository.  licence: the one that this place states; `see its page` means that we have not
    found one that is beyond doubt.  patterns: its question files, relative to a folder that holds data sets or to the
    data set's own folder.  source: value of `questions.source` that reads it, with `loader`; both None where nothing
    does.  language: of the questions; `several` where there are translations.
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
    recognise: Callable[[FileHead], bool] | None = None
    fields: str = ""


def path_of(options: QuestionSource) -> Path:
    """The file or folder of a question set.  Raises QuestionFileError when none is named."""
    if not options.path:
        raise QuestionFileError(f"questions.path is not set; the source '{options.source}' needs a file or folder")
    return Path(options.path).expanduser()


def folder_files(name: str, splits: Mapping[str, Sequence[str]]) -> FindFiles:
    """Finds the files of a data set in a folder or its subfolder `data`, or the one file that is named.

    name: of the data set, for messages.  splits: split → patterns of its files, of which the first that any file
    matches counts; files of the split `""` have none.
    """

    def find(options: QuestionSource) -> dict[Path, str | None]:
        path = path_of(options)
        if not path.is_dir():
            if not path.exists():
                raise QuestionFileError(
                    f"{path} is neither a file nor a folder; questions.path must name the folder of {name} or one file "
                    "of it"
                )
            return {path: None}
        for home in (path, path / "data"):
            files: dict[Path, str | None] = {}
            for split, patterns in splits.items():
                matches = (sorted(file for file in home.glob(pattern) if file.is_file()) for pattern in patterns)
                files |= dict.fromkeys(next(filter(None, matches), ()), split or None)
            if files:
                return files
        names = ", ".join(pattern for patterns in splits.values() for pattern in patterns)
        raise QuestionFileError(f"{path} holds none of {names}; is it the folder of {name}?")

    return find


@dataclass(frozen=True, slots=True)
class RowSource:
    """Where a row comes from.  split: of its file, None where that does not say it.  number: in the file, from 1."""

    file: Path
    split: str | None
    number: int
    options: QuestionSource


@dataclass(frozen=True, slots=True)
class PublishedFiles(Generic[_Row]):
    """The files of a data set as its makers publish them.

    name: of the data set.  files: finds its files, with their splits.  rows: of a file.  struct: what a row has.
    question: the raw question of a row, None where its answers are not published; raises ValueError.  prefixed: ids of
    different splits are alike, so that those of a folder get the split in front.  strict: a row that cannot be read is
    a fault of its file.  forms_given: the rows say their forms, or why they have none, so that their queries are kept
    and not read.
    """

    name: str
    files: FindFiles
    rows: Callable[[Path], Rows]
    struct: type[_Row]
    question: Callable[[_Row, RowSource], RawQuestion | None]
    prefixed: bool = False
    strict: bool = False
    forms_given: bool = False

    def records(self, path: Path) -> Iterator[tuple[RowSource, _Row | Reject]]:
        """The rows of a folder or file as structs, and where each comes from.  Raises QuestionFileError."""
        options = QuestionSource(path=str(path))
        for file, split in self.files(options).items():
            for number, (where, value) in enumerate(self.rows(file), start=1):
                source = RowSource(file, split, number, options)
                try:
                    yield source, read_row(value, self.struct)
                except ValueError as fault:
                    yield source, Reject(str(file), where, str(fault))

    def read(self, options: QuestionSource) -> Iterator[RawQuestion | Reject]:
        """Canonical raw questions of all files, each id once; those without published answers only where unscored.

        Raises QuestionFileError for a file in which most rows cannot be read, and where no question is left.
        """
        seen: dict[str, str] = {}
        unanswered = 0
        for file, split in self.files(options).items():
            rejects: list[Reject] = []
            rows = 0
            for rows, (where, value) in enumerate(self.rows(file), start=1):
                try:
                    row = self._question(RowSource(file, split, rows, options), value)
                    if row is not None and row["id"] in seen:
                        raise ValueError(f"its id is already used in {seen[row['id']]}; give each its own")
                except ValueError as fault:
                    rejects.append(Reject(str(file), where, str(fault)))
                    if not self.strict:
                        yield rejects[-1]
                    continue
                if row is None:
                    unanswered += 1
                else:
                    seen[row["id"]] = where
                    yield row
            if self.strict:
                check_faults(file, [f"{reject.row}: {reject.reason}" for reject in rejects])
            _check_rejects(file, rows, rejects, self.name)
        if unanswered and not seen:
            raise QuestionFileError(
                f"the answers of the {unanswered:,} questions of {path_of(options)} are not published, so that they "
                "cannot be scored; answer them by `kgqa answer`, and measure on dev (questions.test_from: dev)"
            )
        if unanswered:
            _LOG.info(
                "%d questions have no published answers and are not scored; set questions.test_from: dev", unanswered
            )

    def loader(self, complete: Complete | None = None, *, without_dev: bool = False) -> Loader:
        """The loader of these files."""
        return Loader(
            lambda options: list(self.files(options)),
            lambda options, seed: self.read(options),
            complete,
            without_dev=without_dev,
        )

    def _question(self, source: RowSource, value: Any) -> RawQuestion | None:
        raw = self.question(read_row(value, self.struct), source)
        if raw is None:
            return None
        given = {name: raw[name] for name in ("sparql", "without_form") if self.forms_given and raw.get(name)}
        given |= {name: raw[name] for name in ("topic_names",) if raw.get(name)}
        raw = {name: item for name, item in raw.items() if name not in given} | {"split": source.split}
        if self.prefixed and source.split:
            raw["id"] = f"{source.split}-{raw['id']}"
        return canonical(raw, gold=not source.options.unscored) | given


def _check_rejects(file: Path, rows: int, rejects: Sequence[Reject], name: str) -> None:
    """Raises QuestionFileError for a file without rows, or in which more rows are rejected than read."""
    if not rows:
        raise QuestionFileError(f"{file} holds no questions; is it a file of {name}?")
    if 2 * len(rejects) > rows:
        raise QuestionFileError(
            f"{file}: {len(rejects):,} of its {rows:,} rows cannot be read, so that it is no file of {name}, or of "
            f"another version; the first is {rejects[0].row}: {rejects[0].reason}"
        )
