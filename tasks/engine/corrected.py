"""Asks two finished runs what was corrected and not trained on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kgqa_core.datasets.derived.splits import near_duplicates
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import ALSO_TRAIN, CORRECTED
from kgqa_core.errors import ArtifactError, KgqaError
from kgqa_core.metrics.text import GoldAnswers, exact
from kgqa_core.runs.champion import Corrected
from kgqa_core.serving.feedback_examples import FEEDBACK_ID
from kgqa_core.store.artifacts import Home
from kgqa_core.types import Question

if TYPE_CHECKING:
    from kgqa_core.system import System

log = logging.getLogger("kgqa")


def corrected(home: Home, questions: Path, runs: tuple[str, str]) -> Corrected | None:
    """How many of the corrected questions that are held out two finished runs answer exactly, each as a user asks it.

    questions: an artifact of the new one's.  runs: the old and the new one.  None where there are no such questions, or
    where a run can no longer be opened.
    """
    if not (questions / CORRECTED).is_dir():
        return None
    wanted = read_questions(questions / CORRECTED)
    from kgqa_core.system import System

    try:
        old, new = (_right(System.from_run(home, run), wanted) for run in runs)
    except KgqaError as fault:
        log.warning("the corrected questions are not asked: %s", fault)
        return None
    return Corrected(len(wanted), old, new)


def nearly_learnt(folder: Path) -> set[str]:
    """Ids of the test questions of an artifact that are near-duplicates of corrected ones that it trains on."""
    questions = read_questions(folder)
    learnt = [question for question in questions if question.source == ALSO_TRAIN]
    return near_duplicates((question for question in questions if question.split != "train"), learnt)


def relations_at_risk(folder: Path) -> dict[str, set[str]]:
    """Relations of each question of an artifact that trains on corrected ones, by id; none of another artifact."""
    questions = read_questions(folder)
    if all(question.source != ALSO_TRAIN for question in questions):
        return {}
    return {question.id: {relation for path in question.relation_paths for relation in path} for question in questions}


def withdrawn(old: Path, new: Path) -> bool:
    """Whether the questions of `old` train on feedback that those of `new` do not have; both are artifacts."""
    try:
        return not _feedback(old) <= _feedback(new) | _feedback(new / CORRECTED)
    except ArtifactError as fault:
        log.warning("whether feedback was withdrawn is not known: %s", fault)
        return False


def _feedback(folder: Path) -> set[tuple[str, frozenset[str]]]:
    questions = read_questions(folder) if folder.is_dir() else []
    return {
        (question.text, frozenset(question.answer_keys))
        for question in questions
        if question.id.startswith(FEEDBACK_ID)
    }


def _right(system: System, wanted: Sequence[Question]) -> int:
    """Of questions, how many a system answers exactly, which is closed then; topics are linked in the text."""
    typed = [Question(question.id, question.text, language=question.language) for question in wanted]
    with system.store:
        answers = system.answer(typed)
    return sum(
        answer.answer is not None and exact(GoldAnswers(question.answer_names), ", ".join(answer.listed)) == 1.0
        for question, answer in zip(wanted, answers, strict=True)
    )
