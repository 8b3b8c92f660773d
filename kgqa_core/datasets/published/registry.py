"""The question sets that are known, and which loader reads each.

A new one is a module with a `DatasetSpec`, and a line here.  Nothing here downloads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.fields import FIELDS
from kgqa_core.datasets.files.jsonl import question_file, read_question_file
from kgqa_core.datasets.published import (
    atlas,
    cwq,
    grailqa,
    grailqability,
    kqapro,
    lcquad,
    longtail,
    metaqa,
    mintaka,
    qald,
    simplequestions,
    simplequestions_freebase,
    webqsp,
    webquestions,
    zjqa,
)
from kgqa_core.datasets.published.base import DatasetSpec, Loader, path_of
from kgqa_core.datasets.published.documents import FileHead, read_head
from kgqa_core.errors import QuestionFileError, nearest

BENCHMARKS: tuple[DatasetSpec, ...] = (
    atlas.ATLAS,
    metaqa.METAQA,
    zjqa.ZJQA,
    webquestions.WEBQUESTIONS,
    webqsp.WEBQSP,
    cwq.CWQ,
    grailqa.GRAILQA,
    grailqability.GRAILQABILITY,
    mintaka.MINTAKA,
    lcquad.LCQUAD2,
    lcquad.LCQUAD1,
    qald.QALD9,
    qald.QALD10,
    kqapro.KQAPRO,
    simplequestions.SIMPLEQUESTIONS,
    simplequestions_freebase.SIMPLEQUESTIONS_FREEBASE,
    longtail.POPQA,
    longtail.ENTITY_QUESTIONS,
    longtail.WITQA,
)
"""Benchmarks of the field, in the order of `kgqa datasets`."""

QUESTION_FILE = Loader(
    lambda options: [question_file(path_of(options))],
    lambda options, seed: read_question_file(path_of(options), gold=not options.unscored),
)
"""Reads a question file of ours (`jsonl`)."""

OWN_FIELDS = "our JSON Lines (one object a line with id, question, topic_entities, answers)"

GENERATED = "generated"
"""`questions.source` of questions that are made from the graph; a path names a few real ones beside them."""

REAL_QUESTIONS = Loader(
    lambda options: [question_file(path_of(options))] if options.path else [],
    lambda options, seed: read_question_file(path_of(options)) if options.path else [],
)
"""Reads the real questions of `generated`."""

Options = TypeVar("Options", bound=QuestionSource)

LOADERS: Mapping[str, Loader] = (
    {"jsonl": QUESTION_FILE}
    | {spec.source: spec.loader for spec in BENCHMARKS if spec.source is not None and spec.loader is not None}
    | {GENERATED: REAL_QUESTIONS}
)
"""`questions.source` → loader."""


def loader_of(source: str) -> Loader:
    """The loader of a value of `questions.source`.  Raises QuestionFileError for an unknown one."""
    if source not in LOADERS:
        raise QuestionFileError(
            f"questions.source {source!r} is unknown{nearest(source, LOADERS)}; known are {', '.join(LOADERS)}"
        )
    return LOADERS[source]


def source_of(path: Path) -> str:
    """The value of `questions.source` that reads a file, by how it begins: `jsonl`, or that of the benchmark it is of.

    A file that is neither JSON nor a known table is `jsonl`, whose reader names its faults by line.  Raises
    QuestionFileError, in one line, for JSON that is no known question file, and for a file that cannot be read.
    """
    head = read_head(path)
    if head is None:
        return "jsonl"
    for spec in BENCHMARKS:
        if spec.source is not None and spec.recognise is not None and spec.recognise(head):
            return spec.source
    own = any(name in FIELDS for name in head.first)
    if head.shape == "table" or (own and head.shape != "list"):
        return "jsonl"
    raise QuestionFileError(_strange(path, head, own=own))


def resolved(options: Options) -> Options:
    """The options with the source of the benchmark whose file `path` is, where they name a question file.

    Raises QuestionFileError as `source_of` does.
    """
    if options.source != "jsonl" or not options.path:
        return options
    source = source_of(path_of(options))
    return options if source == "jsonl" else options.model_copy(update={"source": source})


def _strange(path: Path, head: FileHead, *, own: bool) -> str:
    kind = {"list": "one JSON list, the first item of which is", "lines": "JSON Lines, the first of which is"}
    what = kind.get(head.shape, "one JSON document,")
    if own:
        return f"{path} is {what} {head.what}; write one object a line, not one array"
    known = [OWN_FIELDS]
    known += [f"{spec.name} ({spec.fields})" for spec in BENCHMARKS if spec.recognise is not None]
    return f"{path} is {what} {head.what}, which is no known question file; known are {'; '.join(known)}"


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Files of a benchmark below a folder, sorted, and their size in bytes."""

    files: tuple[Path, ...]
    size: int


def local_files(folder: Path) -> dict[str, LocalFiles]:
    """Benchmark name → its files below `folder`, for those that have any.  Raises QuestionFileError."""
    if not folder.is_dir():
        raise QuestionFileError(f"{folder} is not a folder; name the folder that holds your data sets")
    matches = {}
    for benchmark in BENCHMARKS:
        files = sorted({path for pattern in benchmark.patterns for path in folder.glob(pattern) if path.is_file()})
        if files:
            matches[benchmark.name] = LocalFiles(tuple(files), sum(path.stat().st_size for path in files))
    return matches


def catalogue(folder: Path | None = None) -> list[dict[str, Any]]:
    """One row a benchmark for the table of `kgqa datasets`; with a folder, what of it lies there.

    Raises QuestionFileError when the folder is none.
    """
    local = local_files(folder) if folder is not None else {}
    rows = []
    for benchmark in BENCHMARKS:
        row: dict[str, Any] = {
            "name": benchmark.name,
            "about": benchmark.about,
            "graph": benchmark.graph,
            "questions": benchmark.questions,
            "where": benchmark.where,
            "licence": benchmark.licence,
            "loader": benchmark.source,
        }
        if folder is not None:
            here = local.get(benchmark.name)
            row["found"] = f"{len(here.files)} files, {here.size / 1e6:.1f} MB" if here else None
        rows.append(row)
    return rows
