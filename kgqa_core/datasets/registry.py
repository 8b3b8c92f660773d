"""The question sets that are known, and which loader reads each.

A new one is a module with a `DatasetSpec`, and a line here.  Nothing here downloads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.datasets import cwq, grailqa, grailqability, metaqa, simplequestions, webqsp, webquestions, zjqa
from kgqa_core.datasets.atlas import questions as atlas
from kgqa_core.datasets.base import DatasetSpec, Loader, path_of
from kgqa_core.datasets.jsonl import question_file, read_question_file
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
    DatasetSpec(
        "Mintaka",
        "nine complexity types in nine languages",
        "Wikidata",
        "20,000",
        "github: amazon-science/mintaka",
        "CC BY 4.0",
        ("mintaka/mintaka_*.json", "mintaka_*.json"),
        language="several",
    ),
    DatasetSpec(
        "LC-QuAD 2",
        "complex questions with SPARQL, some with qualifiers",
        "Wikidata, DBpedia",
        "30,226",
        "github: AskNowQA/LC-QuAD2.0",
        "see its page",
        ("lcquad2/**/*.json", "LC-QuAD2*/**/*.json"),
    ),
    DatasetSpec(
        "LC-QuAD 1",
        "templates over DBpedia, paraphrased",
        "DBpedia",
        "5,000",
        "github: AskNowQA/LC-QuAD",
        "GPL-3.0",
        ("relation_linking/lcquad1/*.json", "lcquad1/*.json"),
    ),
    DatasetSpec(
        "QALD-9",
        "written by people, with SPARQL, several languages",
        "DBpedia",
        "558",
        "github: ag-sc/QALD",
        "see its page",
        ("relation_linking/qald9/*.json", "qald9/*.json", "amr/qald-9-amr/**/*.txt"),
        language="several",
    ),
    simplequestions.SIMPLEQUESTIONS,
    DatasetSpec(
        "PopQA",
        "one fact each, with the popularity of subject and object",
        "Wikidata",
        "14,267",
        "github: AlexTMallen/adaptive-retrieval",
        "MIT",
        ("longtail/**/*[Pp]op[Qq][Aa]*.csv", "popqa/*.tsv", "popQA.tsv"),
    ),
)
"""Benchmarks of the field, in the order of `kgqa datasets`."""

QUESTION_FILE = Loader(
    lambda options: [question_file(path_of(options))],
    lambda options, seed: read_question_file(path_of(options), gold=not options.unscored),
    validated=True,
)
"""Reads a question file of ours (`jsonl`)."""

GENERATED = "generated"
"""`questions.source` of questions that are made from the graph; a path names a few real ones beside them."""

REAL_QUESTIONS = Loader(
    lambda options: [question_file(path_of(options))] if options.path else [],
    lambda options, seed: read_question_file(path_of(options)) if options.path else [],
    validated=True,
)
"""Reads the real questions of `generated`."""

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
