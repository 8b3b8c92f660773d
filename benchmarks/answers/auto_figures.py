"""Figures of the answerer `auto` on a question set: exactness, Hits@1 and shares with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.answers.people import normal, share
from kgqa_core.answering.reply import Answer
from kgqa_core.metrics.confidence import expected_calibration_error
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question


def is_exact(question: Question, keys: Sequence[str], answers: Sequence[str]) -> bool:
    """Whether the whole answer is the gold one: the same entities, or the same values, numbers compared by value.

    keys, answers: of what was answered, as `ComputedAnswer` has them.  Entities are compared by key, so that two of one
    name differ; values by key or by name.  Nothing is never exact.
    """
    if not keys or not question.answer_keys:
        return False
    if normal(list(keys)) == normal(list(question.answer_keys)):
        return True
    names = [own[0] for own in question.answer_names if own]
    return question.answer_type != "entities" and normal(list(answers)) == normal(names)


def is_hit(question: Question, keys: Sequence[str]) -> bool:
    """Whether the first of the answers is a gold one (Hits@1)."""
    return bool(normal(list(keys[:1])) & normal(list(question.answer_keys)))


def reply_of(question: Question, solved: ComputedAnswer, calibrated: bool) -> Answer:
    """A computed answer as the typed reply that `people.measure` reads."""
    return Answer(
        id=question.id, question=question.text, output=", ".join(solved.answers) or None,
        answers=solved.answers, road=solved.road, answerable=bool(solved.answers), confidence=solved.confidence,
        calibrated=calibrated, reason=solved.reason, missing=solved.missing,
    )  # fmt: skip


def figures(questions: Sequence[Question], solved: Sequence[ComputedAnswer]) -> dict[str, Any]:
    """Shares of the questions, each with its interval.

    ece: of the confidence of what was answered, that the answer is exact; None where no confidence was learnt.
    """
    exact = [is_exact(q, one.keys, one.answers) for q, one in zip(questions, solved, strict=True)]
    sure = [(one.confidence, good) for one, good in zip(solved, exact, strict=True) if one.keys]
    known = [(confidence, float(good)) for confidence, good in sure if confidence is not None]
    return {
        "exact": share(exact),
        "hits_at_1": share([is_hit(q, one.keys) for q, one in zip(questions, solved, strict=True)]),
        "declined": share([not one.keys for one in solved]),
        "exact_of_answered": share([good for _, good in sure]),
        "ece": round(expected_calibration_error(*zip(*known, strict=True)), 4) if known else None,
    }
