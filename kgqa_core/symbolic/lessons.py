"""What the classifier of operations learns from: questions with the operation of their gold form.

The form is the data set's own, or one made of relation paths and type whose result is the annotated answer
(`datasets.gold_forms`).  A question without one teaches nothing and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.datasets.gold_forms import FormCandidate, candidates
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.logic.forms import Count, Form, Holds
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.symbolic.operator import Operation, operation_of
from kgqa_core.symbolic.said import read
from kgqa_core.types import Question

TOLD = 500
"""Questions between two words on the progress."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A masked question and what it asks for.  number: of questions that say just this."""

    text: str
    operation: Operation
    number: int = 1


def lessons(
    questions: Sequence[Question], graph: MemoryGraph, token: str, monitor: Monitor = QUIET
) -> tuple[list[Lesson], int]:
    """Distinct lessons in order, and how many questions had no gold form.  token: stands for a mention."""
    topics = sorted({entity for question in questions for entity in question.topic_entities})
    keys, names = graph.store.entity_keys(topics), graph.store.surface_forms(topics)
    graph.know(keys.values())
    found: Counter[tuple[str, Operation]] = Counter()
    for number, question in enumerate(questions, 1):
        form = gold_form(question, keys, graph)
        if form is not None:
            said = read(question, keys, names, token)
            mentioned = [key for mention in said.mentions for key, _ in mention.entities]
            found[said.masked, operation_of(form, mentioned)] += 1
        if number % TOLD == 0 or number == len(questions):
            monitor.progress(number, len(questions), "gold operations")
    order = sorted(found, key=lambda pair: (pair[0], str(pair[1])))
    return [Lesson(text, operation, found[text, operation]) for text, operation in order], len(
        questions
    ) - found.total()


def gold_form(question: Question, keys: Mapping[int, str], graph: MemoryGraph) -> Form | None:
    """The form of a question, None where it has none; one that must be computed is run, the others are not."""
    try:
        made = candidates(question, [keys[entity] for entity in question.topic_entities if entity in keys])
    except FormError:
        return None
    return next((one.form for one in made if not one.exact or _answers(one, question, graph)), None)


def _answers(candidate: FormCandidate, question: Question, graph: MemoryGraph) -> bool:
    """Whether a form finds, in time, just what is annotated."""
    try:
        result = graph.execute(candidate.form)
    except (FormError, FormTimeout):
        return False
    said = question.answer_keys[0].casefold() if question.answer_keys else ""
    if isinstance(candidate.form, Holds):
        return said in (("yes", "true") if result.value else ("no", "false"))
    if isinstance(candidate.form, Count):
        return said.replace(",", "").removesuffix(".0") == str(result.value)
    return bool(result.nodes) and set(result.nodes) == set(question.answers)
