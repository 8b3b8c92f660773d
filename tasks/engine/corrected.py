"""Asks two finished runs what people corrected."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kgqa_core.datasets.load import ALSO_TRAIN
from kgqa_core.datasets.question import read_questions
from kgqa_core.errors import KgqaError
from kgqa_core.metrics.normalise import normalise
from kgqa_core.metrics.text import GoldAnswers, exact
from kgqa_core.runs.champion import Corrected
from kgqa_core.store.artifacts import Home
from kgqa_core.types import Question

if TYPE_CHECKING:
    from kgqa_core.system import System

log = logging.getLogger("kgqa")


def corrected(home: Home, questions: Path, runs: tuple[str, str]) -> Corrected | None:
    """How many of the questions of `questions.also_train` two finished runs answer exactly, each as a user asks it.

    questions: an artifact of them.  runs: the old and the new one.  None where there are no such questions, or where a
    run can no longer be opened.
    """
    wanted = corrected_questions(questions)
    if not wanted:
        return None
    from kgqa_core.system import System

    try:
        old, new = (_right(System.from_run(home, run), wanted) for run in runs)
    except KgqaError as fault:
        log.warning("the corrected questions are not asked: %s", fault)
        return None
    return Corrected(len(wanted), old, new)


def corrected_questions(folder: Path) -> list[Question]:
    """The questions of `questions.also_train` that the graph can answer, once each, in order of id."""
    found: dict[tuple[str, tuple[str, ...]], Question] = {}
    for question in sorted(read_questions(folder), key=lambda one: one.id):
        if question.source == ALSO_TRAIN and question.unlinkable is None:
            found.setdefault((normalise(question.text), question.topic_keys), question)
    return list(found.values())


def _right(system: System, wanted: Sequence[Question]) -> int:
    """Of questions, how many a system answers exactly, which is closed then; topics are linked in the text."""
    typed = [Question(question.id, question.text, language=question.language) for question in wanted]
    with system.store:
        answers = system.answer(typed)
    return sum(
        answer.answer is not None and exact(GoldAnswers(question.answer_names), ", ".join(answer.listed)) == 1.0
        for question, answer in zip(wanted, answers, strict=True)
    )
