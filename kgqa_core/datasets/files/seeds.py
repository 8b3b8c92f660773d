"""The entities of a question set: topics, and gold answers that are entities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgqa_core.datasets.files.jsonl import RawQuestion


@dataclass(frozen=True, slots=True)
class QuestionSeeds:
    """keys: of topics and answers, in the order of the questions, each once.  topics, answers: how many of each."""

    keys: list[str]
    topics: int
    answers: int


def seeds_of(rows: Iterable[RawQuestion]) -> QuestionSeeds:
    """Seeds of canonical raw questions.  Answers that are numbers, dates, truth values or texts are none."""
    topics: dict[str, None] = {}
    answers: dict[str, None] = {}
    for row in rows:
        topics.update(dict.fromkeys(row["topic_entities"]))
        if row["answer_type"] in (None, "entities"):
            answers.update(dict.fromkeys(row["answers"]))
    return QuestionSeeds(list(topics | answers), len(topics), len(answers))
