"""The metrics of `kgqa_core.metrics` as scorers of `mlflow.genai.evaluate`.

    from tasks.tracking.scorers import predict_with, scorers
    rows = [{"inputs": {"question": "What is the capital of Fiji?"}, "expectations": {"answers": ["Suva"]}}]
    mlflow.genai.evaluate(data=rows, predict_fn=predict_with("models:/kgqa-atlas-own@champion"), scorers=scorers())

Each scorer gives a number in [0, 1]; higher is better, and the mean is the metric `NAME/mean` of the evaluation's run.
A gold answer is a name, or a list of a name and its aliases.  Outputs are what `predict_with` gives, or a text of any
other system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mlflow
from mlflow.genai.scorers import Scorer, scorer

from kgqa_core.answering.answer import ABSTENTIONS
from kgqa_core.errors import InputError, nearest
from kgqa_core.metrics.text import KNOWLEDGE_METRICS, TEXT_METRICS, GoldAnswers

METRICS: Mapping[str, Callable[[GoldAnswers, str], float]] = {**TEXT_METRICS, **KNOWLEDGE_METRICS}
"""Metrics of an output, by name."""
ANSWERED = "answered"
"""Scorer that is 1 where the system answered, right or wrong."""
STANDARD = ("exact", "contains", "hits_at_1", "f1", ANSWERED)


def scorers(names: Sequence[str] = STANDARD) -> list[Scorer]:
    """A scorer for each metric.  Raises InputError for an unknown name."""
    known = [*METRICS, ANSWERED]
    for name in names:
        if name not in known:
            raise InputError(f"no metric {name!r}; there are {', '.join(known)}{nearest(name, known)}")
    return [_scorer(name) for name in names]


def _scorer(name: str) -> Scorer:
    def score(outputs: Any, expectations: dict[str, Any] | None = None) -> float:
        text = output_text(outputs)
        if name == ANSWERED:
            return float(text.strip().rstrip(".").lower() not in ABSTENTIONS)
        return METRICS[name](gold_answers(expectations), text)

    described = f"kgqa metric {name}: range 0 to 1, higher is better"
    return scorer(score, name=name, description=described, aggregations=["mean"])


def gold_answers(expectations: Mapping[str, Any] | None) -> GoldAnswers:
    """The gold answers of a row.  Raises InputError where it has none, or they are no list."""
    answers = (expectations or {}).get("answers")
    if not isinstance(answers, Sequence) or isinstance(answers, str) or not answers:
        raise InputError(
            f"expectations.answers is {answers!r}; give a list of names, or of lists of a name and its aliases"
        )  # fmt: skip
    return GoldAnswers([[one] if isinstance(one, str) else [str(name) for name in one] for one in answers])


def output_text(outputs: Any) -> str:
    """What metrics read of an output: a text as it is, of an answer its names or values; empty where it declines."""
    if outputs is None:
        return ""
    if isinstance(outputs, Mapping):
        listed = outputs.get("answers")
        if outputs.get("answer") is None and not listed:
            return ""
        return ", ".join(map(str, listed)) if listed else str(outputs["answer"])
    return str(outputs)


def predict_with(model: Any) -> Callable[..., dict[str, Any]]:
    """The `predict_fn` of a system's model: its answer as `kgqa ask --json` gives it.

    model: loaded by `mlflow.pyfunc.load_model`, or its address, such as `models:/kgqa-atlas-own@champion`.
    The function takes the keys of a row's inputs: question, and optionally topics and min_confidence.
    """
    loaded = mlflow.pyfunc.load_model(model) if isinstance(model, str) else model

    def predict(question: str, **custom: Any) -> dict[str, Any]:
        request: dict[str, Any] = {"input": [{"role": "user", "content": question}]}
        reply = loaded.predict(request | ({"custom_inputs": custom} if custom else {}))
        return dict(reply["custom_outputs"]["answer"])

    return predict
