"""Answers of a system in the forms that the evaluation scripts of Freebase benchmarks read.

format    document
webqsp    [{"QuestionId": …, "Answers": [ids or values]}, …]                (`eval.py` of WebQSP)
grailqa   {qid: {"logical_form": s-expression, "answer": [ids or values]}}  (GrailQA, and GrailQAbility)
cwq       [{"ID": …, "answer": name}, …]                                    (ComplexWebQuestions, which scores one)

Answers come from a file of `kgqa answer`, or from another of JSON Lines with `id` and `answers` or `prediction`.  They
are names; with a graph those that it knows become its keys.  A name of several entities becomes the key of the most
popular one, ties by id, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kgqa_core.datasets.fields import read_id, read_literal
from kgqa_core.datasets.jsonl import check_faults, read_json_lines
from kgqa_core.errors import QuestionFileError, nearest
from kgqa_core.kg.store import KgStore


@dataclass(frozen=True, slots=True)
class PredictedAnswers:
    """What a system answered.  answers: names, keys or values, best first; empty where it declined.  form: or None."""

    id: str
    answers: tuple[str, ...]
    form: str | None = None


def read_predicted(path: Path) -> list[PredictedAnswers]:
    """The answers of a file, in its order.  Raises QuestionFileError that names lines and fields."""
    faults: list[str] = []
    seen: dict[str, int] = {}
    found = []
    for number, value in read_json_lines(path, faults):
        try:
            key = read_id(value)
            if key in seen:
                raise ValueError(f"id '{key}' is already used on line {seen[key]}")
            found.append(PredictedAnswers(key, _answers(value), _form(value)))
        except ValueError as fault:
            faults.append(f"line {number}: {fault}")
            continue
        seen[key] = number
    check_faults(path, faults)
    if not found:
        raise QuestionFileError(f"{path} is empty; write one JSON object a line with id and answers")
    return found


def _answers(value: Mapping[str, Any]) -> tuple[str, ...]:
    name = next((name for name in ("answers", "prediction", "output", "answer") if name in value), None)
    if name is None:
        raise ValueError("field 'answers' is missing; it lists the answers, or field 'prediction' has one")
    given = value[name]
    if given is None or value.get("reject"):
        return ()
    texts = given if isinstance(given, list) else [given]
    return tuple(dict.fromkeys(text for item in texts if (text := read_literal(name, item))))


def _form(value: Mapping[str, Any]) -> str | None:
    form = next((value[name] for name in ("form", "s_expression", "logical_form") if value.get(name)), None)
    if form is not None and not isinstance(form, str):
        raise ValueError(f"field 'form' must be an s-expression, but it is {form!r}")
    return form


@dataclass(frozen=True, slots=True)
class KeyedPredictions:
    """Predictions whose answers are keys where the graph knows them.

    unknown: answers that it does not.  ambiguous: names of several entities.
    """

    predictions: list[PredictedAnswers]
    unknown: int
    ambiguous: int


def with_keys(predictions: Iterable[PredictedAnswers], store: KgStore) -> KeyedPredictions:
    """The predictions with the keys of the entities and literals that their answers name."""
    given = list(predictions)
    ids = store.resolve(sorted({text for one in given for text in one.answers}))
    every = sorted({entity for own in ids.values() for entity in own})
    rows = store.connection.execute(
        "SELECT id, key, coalesce(popularity, 0) FROM entities WHERE id IN (SELECT unnest(?::BIGINT[]))", [every]
    ).fetchall()
    keys = {entity: key for entity, key, _ in rows}
    popularity = {entity: popular for entity, _, popular in rows}
    chosen = {
        text: keys[min(own, key=lambda entity: (-popularity[entity], entity))] for text, own in ids.items() if own
    }
    keyed = [
        replace(one, answers=tuple(dict.fromkeys(chosen.get(text, text) for text in one.answers))) for one in given
    ]
    texts = [text for one in given for text in one.answers]
    return KeyedPredictions(
        keyed,
        sum(text not in chosen for text in texts),
        sum(len(ids[text]) > 1 for text in texts),
    )


def webqsp_document(predictions: Sequence[PredictedAnswers]) -> list[dict[str, Any]]:
    """The document that WebQSP's evaluation reads."""
    return [{"QuestionId": one.id, "Answers": list(one.answers)} for one in predictions]


def grailqa_document(predictions: Sequence[PredictedAnswers]) -> dict[str, dict[str, Any]]:
    """The document that GrailQA's evaluation reads; an empty form says that there is none (NK)."""
    return {one.id: {"logical_form": one.form or "", "answer": list(one.answers)} for one in predictions}


def cwq_document(predictions: Sequence[PredictedAnswers]) -> list[dict[str, Any]]:
    """The document that ComplexWebQuestions' evaluation reads: the first answer, `""` where there is none."""
    return [{"ID": one.id, "answer": one.answers[0] if one.answers else ""} for one in predictions]


@dataclass(frozen=True, slots=True)
class PredictionFormat:
    """A form of predictions.  document: makes it.  keyed: whether answers are compared as keys of the graph."""

    document: Callable[[Sequence[PredictedAnswers]], Any]
    keyed: bool


FORMATS: Mapping[str, PredictionFormat] = {
    "webqsp": PredictionFormat(webqsp_document, keyed=True),
    "grailqa": PredictionFormat(grailqa_document, keyed=True),
    "cwq": PredictionFormat(cwq_document, keyed=False),
}
"""Name of a form → how it is written."""


def format_of(name: str) -> PredictionFormat:
    """The form of a name.  Raises QuestionFileError for an unknown one."""
    if name not in FORMATS:
        raise QuestionFileError(
            f"format {name!r} of predictions is unknown{nearest(name, FORMATS)}; known are {', '.join(FORMATS)}"
        )
    return FORMATS[name]
