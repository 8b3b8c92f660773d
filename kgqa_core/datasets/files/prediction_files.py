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

from kgqa_core.datasets.files.answer_files import nodes_named, read_answer_file
from kgqa_core.datasets.files.fields import read_literal
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
    return list(read_answer_file(path, _predicted).values())


def _predicted(key: str, value: Mapping[str, Any], name: str) -> PredictedAnswers:
    given = value[name]
    absent = given is None or value.get("reject")
    texts = [] if absent else given if isinstance(given, list) else [given]
    answers = tuple(dict.fromkeys(text for item in texts if (text := read_literal(name, item))))
    return PredictedAnswers(key, answers, _form(value))


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
    nodes = nodes_named((text for prediction in given for text in prediction.answers), store)
    chosen = {text: meanings[0].key for text, meanings in nodes.items() if meanings}
    keyed = [
        replace(prediction, answers=tuple(dict.fromkeys(chosen.get(text, text) for text in prediction.answers)))
        for prediction in given
    ]
    texts = [text for prediction in given for text in prediction.answers]
    return KeyedPredictions(
        keyed,
        sum(text not in chosen for text in texts),
        sum(len(nodes[text]) > 1 for text in texts),
    )


def webqsp_document(predictions: Sequence[PredictedAnswers]) -> list[dict[str, Any]]:
    """The document that WebQSP's evaluation reads."""
    return [{"QuestionId": prediction.id, "Answers": list(prediction.answers)} for prediction in predictions]


def grailqa_document(predictions: Sequence[PredictedAnswers]) -> dict[str, dict[str, Any]]:
    """The document that GrailQA's evaluation reads; an empty form says that there is none (NK)."""
    return {
        prediction.id: {"logical_form": prediction.form or "", "answer": list(prediction.answers)}
        for prediction in predictions
    }


def cwq_document(predictions: Sequence[PredictedAnswers]) -> list[dict[str, Any]]:
    """The document that ComplexWebQuestions' evaluation reads: the first answer, `""` where there is none."""
    return [
        {"ID": prediction.id, "answer": prediction.answers[0] if prediction.answers else ""}
        for prediction in predictions
    ]


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
