"""Scores of a system on a benchmark, broken down as the paper's Table 3 and its appendix."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.jsonl import check_faults, read_json_lines
from kgqa_core.errors import FormError, InputError
from kgqa_core.logic.forms import Form
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.builder.records import IID, KINDS, LEVELS, Benchmark, BenchmarkQuestion, IdealRecord
from kgqa_core.papers.grailqability.metrics import METRICS, GoldForm, Predicted, Rules, SameForm, scores
from kgqa_core.types import GENERALIZATION

Holds = Callable[[BenchmarkQuestion, IdealRecord], bool]


def _of_drop(kind: str) -> Holds:
    return lambda question, ideal: kind in (ideal.drop, *ideal.more_drops)


def _of_entities(known: bool) -> Holds:
    of_drop = _of_drop("entity")
    return lambda question, ideal: of_drop(question, ideal) and (question.s_expression is not None) == known


def _of_level(level: str) -> Holds:
    return lambda question, ideal: ideal.level == level


def _of_generalization(level: str) -> Holds:
    return lambda question, ideal: question.answerable and ideal.generalization == level


GROUPS: Mapping[str, Holds] = {
    "all": lambda question, ideal: True,
    "A": lambda question, ideal: question.answerable,
    "U": lambda question, ideal: not question.answerable,
    "NK": lambda question, ideal: question.s_expression is None,
    "NA": lambda question, ideal: not question.answerable and question.s_expression is not None,
    **{f"{kind} drop": _of_drop(kind) for kind in KINDS},
    "entity drop, NK": _of_entities(False),
    "entity drop, NA": _of_entities(True),
    **{f"{level}{'' if level == IID else ' zero-shot'}": _of_level(level) for level in LEVELS},
    "zero-shot": lambda question, ideal: ideal.level not in (None, IID),
    **{f"A, {level}": _of_generalization(level) for level in GENERALIZATION},
}
"""Rows of the table: which questions each is about.  NA: the form is known and finds nothing."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A question with the value of each metric, by name, in [0, 1]."""

    question: BenchmarkQuestion
    ideal: IdealRecord
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """What predictions are compared by.  same: when two forms are equal.  rules: whose F1 counts."""

    same: SameForm
    rules: Rules = "script"


def score(
    benchmark: Benchmark, predicted: Mapping[str, Predicted], split: str = "test", by: Evaluator | None = None
) -> list[Scored]:
    """The questions of a split, scored, in their order; predicted: by id, a question without one scores 0.

    by: None compares forms by `logic.normalise.isomorphic`.
    """
    by = by or Evaluator(same_form)
    return [
        Scored(question, ideal, scores(gold(question, ideal), predicted.get(question.id), by.same, by.rules))
        for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True)
        if question.split == split
    ]


def by_group(scored: Sequence[Scored]) -> dict[str, list[Scored]]:
    """The groups that have questions, in the order of the table."""
    groups = {
        name: [answer for answer in scored if holds(answer.question, answer.ideal)] for name, holds in GROUPS.items()
    }
    return {name: members for name, members in groups.items() if members}


def table(
    benchmark: Benchmark, predicted: Mapping[str, Predicted], split: str = "test", by: Evaluator | None = None
) -> list[dict[str, Any]]:
    """A row a group that has questions: `group`, `questions`, and each metric in percent, F1(L), F1(R), EM.

    predicted, by: as of `score`.
    """
    return [
        {"group": name, "questions": len(members), **{metric: _mean(members, metric) for metric in METRICS}}
        for name, members in by_group(score(benchmark, predicted, split, by)).items()
    ]


def gold(question: BenchmarkQuestion, ideal: IdealRecord) -> GoldForm:
    """What a question is scored against."""
    return GoldForm(question.s_expression, frozenset(question.answers), frozenset(ideal.answers))


def same_form(one: str, other: str) -> bool:
    """Whether two forms, as text, are isomorphic; False for what cannot be read."""
    first, second = _read(one), _read(other)
    return first is not None and second is not None and isomorphic(first, second)


def read_predicted(path: Path) -> dict[str, Predicted]:
    """Predictions by question id: JSON lines `{"id": …, "s_expression": … or null, "answers": […]}`.

    null says that there is no form (NK); a line without `s_expression` is of a system that has none, and EM is 0.

    Raises QuestionFileError, which lists the first five faults with their lines.
    """
    faults: list[str] = []
    predictions: dict[str, Predicted] = {}
    for number, value in read_json_lines(path, faults):
        name, form, answers = value.get("id"), value.get("s_expression"), value.get("answers", [])
        if not isinstance(name, str) or not name:
            faults.append(f"line {number}: field 'id' is missing")
        elif form is not None and not isinstance(form, str):
            faults.append(f"line {number}: field 's_expression' must be a text or null, but it is {form!r}")
        elif not isinstance(answers, list):
            faults.append(f"line {number}: field 'answers' must be a list, but it is {answers!r}")
        elif name in predictions:
            faults.append(f"line {number}: id '{name}' is already used")
        else:
            texts = frozenset(_text(answer) for answer in answers)
            predictions[name] = Predicted(form, texts, formless="s_expression" not in value)
    check_faults(path, faults)
    return predictions


def check_predicted(benchmark: Benchmark, predicted: Mapping[str, Predicted], split: str) -> int:
    """How many questions of a split have no prediction.

    Raises InputError for ids that the benchmark has not, and where no question of the split has a prediction.
    """
    ids = {row.id for row in benchmark.questions}
    there = {row.id for row in benchmark.questions if row.split == split}
    strange = sorted(set(predicted) - ids)
    if strange:
        some = ", ".join(repr(name) for name in strange[:3])
        raise InputError(f"{len(strange):,} predictions are of no question of {benchmark.folder}, as {some}")
    if not there & set(predicted):
        raise InputError(f"no prediction is of the {len(there):,} {split} questions of {benchmark.folder}")
    return len(there - set(predicted))


def _text(answer: Any) -> str:
    """As answers are written: `yes`, `5`, a text."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if isinstance(answer, float) and answer.is_integer():
        return str(int(answer))
    return answer if isinstance(answer, str) else json.dumps(answer)


@lru_cache(maxsize=65_536)
def _read(text: str) -> Form | None:
    try:
        return parse(text)
    except FormError:
        return None


def _mean(scored: Sequence[Scored], metric: str) -> float:
    return round(100 * sum(answer.values[metric] for answer in scored) / len(scored), 2)
