"""Abstention scores: AUROC, calibration and risk against coverage on an answerability benchmark.

Test questions that the graph does not answer have no right answer: any answer is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgqa_core.abstention.apply import Verdict, read_verdicts
from kgqa_core.abstention.labels import ENTITY, FACT, REASONS, RELATION, AnswerabilityLabel, read_labels
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.metrics.confidence import (
    area_under_risk,
    auroc,
    best_area,
    expected_calibration_error,
    reliability,
    risk_coverage,
)
from kgqa_core.metrics.text import GoldAnswers, contains
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import UNSURE, Question
from kgqa_core.workspace import Workspace

SCORES = "abstention.json"
POINTS = 100
"""Most points of a stored curve."""

WANTED = {"entity": ENTITY, "fact": FACT, "relation": RELATION, "type": RELATION}
"""Reason that each kind of drop calls for."""


def score(
    workspace: Workspace,
    *,
    questions: Path,
    labels: Path,
    confidence: Path,
    answers: Path,
    seed: int,
    bootstrap: int = 1000,
) -> dict[str, Any]:
    """Writes abstention.json and returns its main numbers.

    questions: with the gold answers.  confidence, answers: of the test questions.
    """
    known = read_labels(labels)
    verdicts = {question: own for question, own in read_verdicts(confidence).items() if question in known}
    if not verdicts:
        raise ArtifactError("no question that was judged has a label; judge questions of the benchmark")
    names = sorted(verdicts)
    output = dict(pl.read_parquet(answers / "answers.parquet", glob=False).select("question", "output").iter_rows())
    questions_by_id = {question.id: question for question in read_questions(questions)}
    wrong = np.array([_wrong(questions_by_id[name], known[name], output.get(name) or "") for name in names])
    results = measure([known[name] for name in names], [verdicts[name] for name in names], wrong, seed, bootstrap)
    meta = json.loads((answers / "meta.json").read_text(encoding="utf-8"))
    write_json(workspace.out / SCORES, {"experiment": meta["experiment"], **results})
    summary_names = ("auroc", "ece", "area", "accuracy", "wrong_reasons")
    return {"questions": len(names), **{name: results[name] for name in summary_names if results[name] is not None}}


def _wrong(question: Question, label: AnswerabilityLabel, output: str) -> float:
    return 1.0 if not label.answerable else 1.0 - contains(GoldAnswers(question.answer_names), output)


def measure(
    labels: Sequence[AnswerabilityLabel], verdicts: Sequence[Verdict], wrong: Any, seed: int, bootstrap: int
) -> dict[str, Any]:
    """All that the report shows of questions, their verdicts, and 1 where the model's output is wrong, else 0.

    AUROC is null where all questions are of one kind; bootstrap samples of one kind are left out of its interval.
    """
    good = np.array([label.answerable for label in labels])
    sure = np.array(
        [float(verdict.answerable) if verdict.confidence is None else verdict.confidence for verdict in verdicts]
    )
    given = np.array([verdict.answerable for verdict in verdicts])
    generator = np.random.default_rng(seed)
    samples = [generator.integers(0, len(good), len(good)) for _ in range(bootstrap)]
    areas = [auroc(sure[sample], good[sample]) for sample in samples if _both(good[sample])]
    groups: dict[str, dict[str, list[bool]]] = {"drop": {}, "level": {}, "why": {}}
    for key, own in groups.items():
        for value in sorted({group for label in labels if (group := getattr(label, key))}):
            own[value] = [getattr(label, key) == value for label in labels]
    return {
        "n": {"answerable": int(good.sum()), "unanswerable": int((~good).sum())},
        "calibrated": any(verdict.calibrated for verdict in verdicts),
        "auroc": round(auroc(sure, good), 6) if _both(good) else None,
        "auroc_interval": np.quantile(areas, [0.025, 0.975]).round(6).tolist() if areas else None,
        "auroc_by": {
            key: {name: _against(sure, good, np.array(held)) for name, held in own.items() if good.any()}
            for key, own in groups.items()
        },
        "ece": round(expected_calibration_error(sure, good), 6),
        "reliability": [asdict(one) for one in reliability(sure, good)],
        "curves": {"answerable": _curve(sure, 1.0 - good), "answer": _curve(sure, wrong)},
        "area": round(area_under_risk(sure, wrong), 6),
        "best_area": round(best_area(wrong), 6),
        "accuracy": round(float((given == good).mean()), 6),
        "answered": round(float(given.mean()), 6),
        "answered_of_answerable": _mean(given[good]),
        "declined_of_unanswerable": _mean(~given[~good]),
        "risk": _mean(wrong[given]),
        "risk_without": _mean(wrong),
        **_reasons(labels, verdicts),
    }


def _both(good: Any) -> bool:
    return bool(good.any() and not good.all())


def _against(sure: Any, good: Any, held: Any) -> dict[str, float | int]:
    """The answerable questions against a group of the others."""
    own = good | held
    return {"auroc": round(auroc(sure[own], good[own]), 6), "n": int(held.sum())}


def _curve(sure: Any, wrong: Any) -> list[dict[str, float]]:
    points = risk_coverage(sure, wrong)
    indices = np.unique(np.linspace(0, len(points) - 1, min(POINTS, len(points))).round().astype(int))
    return [{name: round(value, 6) for name, value in asdict(points[index]).items()} for index in indices.tolist()]


def _reasons(labels: Sequence[AnswerabilityLabel], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """How often the reason is not that of what is missing, among unanswerable questions that were not answered.

    One that is not sure gives no reason, and counts in the table alone.
    """
    pairs = [
        (label, verdict.reason.kind)
        for label, verdict in zip(labels, verdicts, strict=True)
        if not label.answerable and verdict.reason is not None
    ]
    given = [(label, kind) for label, kind in pairs if kind != UNSURE]
    by_drop = [(WANTED[label.drop], system_verdict) for label, system_verdict in given if label.drop in WANTED]
    kinds = (*REASONS, *sorted({kind for _, kind in pairs} - set(REASONS)))
    table: Mapping[str, dict[str, int]] = {
        why: {
            system_verdict: sum(label.why == why and summary_names == system_verdict for label, summary_names in pairs)
            for system_verdict in kinds
        }
        for why in REASONS
    }
    explained = [(label.why, system_verdict) for label, system_verdict in given if label.why is not None]
    return {
        "reasons": table,
        "wrong_reasons": _mean(np.array([why != system_verdict for why, system_verdict in explained])),
        "wrong_reasons_by_drop": _mean(np.array([wanted != system_verdict for wanted, system_verdict in by_drop])),
    }


def _mean(values: Any) -> float | None:
    return round(float(values.mean()), 6) if len(values) else None
