"""GrailQAbility as its authors publish it, in the records of our benchmarks.

The files say which kinds of elements a question misses, not which elements, and not in which order they were dropped:
steps are None and `missing` is empty.  Lists beside them divide the zero-shot questions of dropped types and relations
into partial (`*_npuua.json`) and full (`*_ncuua.json`); other zero-shot questions are in no part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.jsonl import check_faults, read_json_lines
from kgqa_core.datasets.published.base import Reject
from kgqa_core.datasets.published.documents import read_head, read_list
from kgqa_core.datasets.published.grailqa import LEVELS as GRAILQA_LEVELS
from kgqa_core.datasets.published.grailqa import form_of
from kgqa_core.datasets.published.grailqability import FILES, AbilityRow, raw_question
from kgqa_core.errors import FormError, InputError, QuestionFileError
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.builder.records import (
    FULL,
    IID,
    PARTIAL,
    STATISTICS,
    Benchmark,
    BenchmarkQuestion,
    IdealRecord,
    write_benchmark,
)
from kgqa_core.papers.grailqability.builder.score import read_predicted
from kgqa_core.papers.grailqability.builder.statistics import statistics
from kgqa_core.papers.grailqability.metrics import NO_FORM, Predicted
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import SPLITS
from kgqa_core.workspace import Workspace

ORIGIN = "GrailQAbility"
ZERO_SHOT = "zero-shot"
"""Level of a zero-shot question that no list divides."""
PARTS = {"npuua": PARTIAL, "ncuua": FULL}
"""End of the name of a list of question ids → level of its questions."""


@dataclass(frozen=True, slots=True)
class PublishedBenchmark:
    """Questions with their ideal records, and the rows that could not be read."""

    benchmark: Benchmark
    rejects: tuple[Reject, ...]


def read_published(path: Path, split: str = "test") -> PublishedBenchmark:
    """The questions of a folder of GrailQAbility or of one of its files.

    split: of a file whose name does not say it.  Raises QuestionFileError, also where no row can be read.
    """
    parts = _parts(path) if path.is_dir() else {}
    pairs: dict[str, tuple[BenchmarkQuestion, IdealRecord]] = {}
    rejects: list[Reject] = []
    for source, row in FILES.records(path):
        if isinstance(row, Reject):
            rejects.append(row)
            continue
        try:
            if row.id in pairs:
                raise ValueError("its id is already used")
            pairs[row.id] = _question(row, source.split or split), _ideal(row, parts)
        except ValueError as fault:
            rejects.append(Reject(str(source.file), f"row {source.number} ({row.id})", str(fault)))
    if not pairs:
        first = f"; the first row: {rejects[0]}" if rejects else ""
        raise QuestionFileError(f"{path} has no question of GrailQAbility that can be read{first}")
    questions, ideal = zip(*pairs.values(), strict=True)
    return PublishedBenchmark(Benchmark(path, questions, ideal, (), {}), tuple(rejects))


def _parts(folder: Path) -> dict[str, str]:
    """Level of each question that the lists of a folder name, by id.  Raises QuestionFileError."""
    lists = {file: level for part, level in PARTS.items() for file in sorted(folder.rglob(f"*_{part}.json"))}
    return {str(item): level for file, level in lists.items() for item in read_list(file)}


def _question(row: AbilityRow, split: str) -> BenchmarkQuestion:
    """Raises ValueError where an answerable question has no form."""
    raw = raw_question(row)
    if row.answerable and row.s_expression is None:
        raise ValueError("it is answerable, but field 's_expression' is missing")
    return BenchmarkQuestion(
        id=row.id,
        question=row.text,
        split=split,
        answerable=row.answerable,
        s_expression=row.s_expression,
        answers=tuple(answer.argument for answer in row.answers or ()),
        answer_type=raw.get("answer_type") or "entities",
        topic_entities=tuple(raw["topic_entities"]),
        complexity=raw.get("complexity"),
        hops=raw.get("hops"),
    )


def _ideal(row: AbilityRow, parts: dict[str, str]) -> IdealRecord:
    """Raises ValueError where the row has no ideal form."""
    try:
        form = row.ideal_form or row.s_expression or str(form_of(None, row.graph_query))
    except FormError as fault:
        raise ValueError(f"its ideal form is not known: {fault}") from None
    drops = row.missing
    level = GRAILQA_LEVELS.get(row.level_name or "")
    lost = {
        "drop": drops[0] if drops else None,
        "more_drops": drops[1:],
        "level": None if level is None else parts.get(row.id, ZERO_SHOT) if level == ZERO_SHOT else IID,
    }
    return IdealRecord(
        id=row.id,
        s_expression=form,
        answers=tuple(answer.argument for answer in row.ideal_answers or row.answers or ()),
        origin=ORIGIN,
        **({"generalization": level} if row.answerable else lost),  # type: ignore[arg-type]
    )


def write_published(workspace: Workspace, path: Path) -> dict[str, Any]:
    """Writes the published questions as the files of a benchmark and returns counts.

    Rows that cannot be read, and questions whose forms cannot, are left out and listed.  Raises QuestionFileError.
    """
    read = read_published(path)
    left_out = [{"id": reject.row, "reason": reject.reason} for reject in read.rejects]
    pairs: list[tuple[BenchmarkQuestion, IdealRecord]] = []
    for question, ideal in zip(read.benchmark.questions, read.benchmark.ideal, strict=True):
        try:
            for form in filter(None, (question.s_expression, ideal.s_expression)):
                parse(form)
            pairs.append((question, ideal))
        except FormError as fault:
            left_out.append({"id": question.id, "reason": f"its form cannot be read: {fault}"})
    pairs.sort(key=lambda pair: (SPLITS.index(pair[0].split), pair[0].id))
    write_benchmark(workspace.out, pairs, (), left_out)
    table = statistics(
        [question for question, _ in pairs], [ideal for _, ideal in pairs], (), goals={"quotas": {}},
        full_zero_shot={"wanted": 0}, left_out={"cannot be read": len(left_out)} if left_out else {}, graphs={},
        agreeing=len(pairs),
    )  # fmt: skip
    write_json(workspace.out / STATISTICS, table)
    return {
        "questions": {row["split"]: row["questions"] for row in table["splits"]},
        "answerable": table["splits"][-1]["A"],
        "unanswerable": table["splits"][-1]["U"],
        "left_out": len(left_out),
    }


def read_official_predictions(path: Path) -> dict[str, Predicted]:
    """Predictions by question id, of a file as the published evaluation reads it, or of ours.

    One object `{qid: {"logical_form": …, "answer": […]}}`; JSON lines with `qid`, `logical_form` and `answer`; or JSON
    lines as of `score.read_predicted`.  Raises QuestionFileError, which lists the first five faults.
    """
    head, faults = read_head(path), list[str]()
    rows: list[tuple[str, Any, Any]]
    if head is not None and head.shape == "object" and not head.has("qid") and not head.has("id"):
        rows = [(f"question {key!r}", key, value) for key, value in head.first.items()]
    else:
        if head is not None and not head.has("qid"):
            return read_predicted(path)
        rows = [(f"line {number}", value.get("qid"), value) for number, value in read_json_lines(path, faults)]
    predictions: dict[str, Predicted] = {}
    for where, key, value in rows:
        try:
            if not key or not isinstance(key, int | str):
                raise ValueError("field 'qid' is missing")
            name = str(key)
            if name in predictions:
                raise ValueError(f"question '{name}' is predicted twice")
            predictions[name] = _predicted(value)
        except ValueError as fault:
            faults.append(f"{where}: {fault}")
    check_faults(path, faults)
    if not predictions:
        raise QuestionFileError(f"{path} has no predictions; {PREDICTIONS}")
    return predictions


PREDICTIONS = (
    'one object {"qid": {"logical_form": "…", "answer": […]}}, or JSON lines with qid, logical_form and answer, is read'
)


def _predicted(value: Any) -> Predicted:
    """Raises ValueError that names the field."""
    if not isinstance(value, dict):
        raise ValueError(f"an object with logical_form and answer is needed, but it is {json.dumps(value)[:60]}")
    form, answers = value.get("logical_form"), value.get("answer")
    if not isinstance(form, str):
        raise ValueError(f"field 'logical_form' must be a text, but it is {json.dumps(form)[:60]}")
    if not isinstance(answers, list) or not all(isinstance(answer, str | int | float) for answer in answers):
        raise ValueError(f"field 'answer' must be a list of texts, but it is {json.dumps(answers)[:60]}")
    return Predicted(None if form.strip() in NO_FORM else form, frozenset(map(str, answers)))


def of_split(read: PublishedBenchmark, split: str) -> Benchmark:
    """The questions of one split.  Raises InputError where there are none."""
    pairs = [
        (question, ideal)
        for question, ideal in zip(read.benchmark.questions, read.benchmark.ideal, strict=True)
        if question.split == split
    ]
    if not pairs:
        there = sorted({question.split for question in read.benchmark.questions})
        raise InputError(f"{read.benchmark.folder} has no {split} questions, only {', '.join(there)}; give --split")
    questions, ideal = zip(*pairs, strict=True)
    return replace(read.benchmark, questions=questions, ideal=ideal)
