"""GrailQAbility as its authors publish it, in the records of our benchmarks.

It says which kinds of elements each question misses, not which elements, and not in which order they were dropped, so
that steps are None and `missing` is empty.  Its folders divide the zero-shot questions of dropped types and relations
into partial and full; the level of those that miss an entity or fact is `zero-shot`, which no part of it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgqa_core.datasets.published.base import Reject
from kgqa_core.datasets.published.grailqability import AbilityQuestion, raw_question, read_records
from kgqa_core.papers.grailqability.builder.records import BenchmarkQuestion, IdealRecord

ORIGIN = "GrailQAbility"


@dataclass(frozen=True, slots=True)
class PublishedBenchmark:
    """Questions as the modified graph has them and their ideal records, in one order, and what was left out.

    without_form: ids of answerable questions without a form, or of any without an ideal one.
    """

    questions: tuple[BenchmarkQuestion, ...]
    ideal: tuple[IdealRecord, ...]
    without_form: tuple[str, ...]
    rejects: tuple[Reject, ...]


def read_published(path: Path) -> PublishedBenchmark:
    """The questions of a folder of GrailQAbility.  Raises QuestionFileError."""
    questions: list[BenchmarkQuestion] = []
    ideal: list[IdealRecord] = []
    without: list[str] = []
    rejects: list[Reject] = []
    for record in read_records(path):
        if isinstance(record, Reject):
            rejects.append(record)
        elif record.ideal_form is None or (record.answerable and record.question.s_expression is None):
            without.append(record.id)
        else:
            questions.append(_question(record))
            ideal.append(_ideal(record, record.ideal_form))
    return PublishedBenchmark(tuple(questions), tuple(ideal), tuple(without), tuple(rejects))


def _question(record: AbilityQuestion) -> BenchmarkQuestion:
    row = raw_question(record)
    question = record.question
    return BenchmarkQuestion(
        id=record.id,
        question=question.text,
        split=question.split or "test",
        answerable=record.answerable,
        s_expression=question.s_expression,
        answers=tuple(answer.argument for answer in question.answers or ()),
        answer_type="number" if question.function == "count" else row["answer_type"] or "entities",
        topic_entities=tuple(row["topic_entities"]),
        complexity=row["complexity"],
        hops=row["hops"],
    )


def _ideal(record: AbilityQuestion, form: str) -> IdealRecord:
    drops = record.drops or record.missing
    return IdealRecord(
        id=record.id,
        s_expression=form,
        answers=tuple(answer.argument for answer in record.ideal_answers),
        drop=drops[0] if drops and not record.answerable else None,
        level=record.novelty if not record.answerable else None,
        origin=ORIGIN,
    )
