"""Stage `examples` of a benchmark: its questions for a semantic parser over the modified graph.

Trained on `A`, a parser sees answerable questions only; on `A+U` it also sees that some have no form (NK), and the
forms of those that find nothing (NA).  Test questions come without forms, so that nothing can look at them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from kgqa_core.builders.answerability.records import Asked, read_benchmark
from kgqa_core.config import Training
from kgqa_core.datasets.question import read_questions
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.parsing.examples import ParseExample, Topic, write_examples
from kgqa_core.parsing.of_questions import gold_topics, linked_topics
from kgqa_core.types import SPLITS

TEST = SPLITS[2]


def benchmark_examples(
    out: Path,
    *,
    benchmark: Path,
    kg: Path,
    questions: Path,
    training: Training,
    linked: Path | None = None,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes examples.parquet and returns counts.

    kg: the modified graph.  questions: `benchmark_questions` of it.  linked: the same with linked topics, which then
    are the topics; an entity that was dropped cannot be found.  Raises InputError, ArtifactError.
    """
    asked = read_benchmark(benchmark).asked
    with KgStore.open(kg) as store:
        topics = _gold(questions, store) if linked is None else linked_topics(linked, store)
    missing = sorted({one.id for one in asked} - {question.id for question in read_questions(questions)})
    if missing:
        raise InputError(f"{len(missing)} questions of {benchmark} are not in {questions}, such as {missing[0]!r}")
    made = [_example(one, topics.get(one.id, ()), training) for one in asked]
    write_examples(out, made)
    monitor.progress(len(made), len(made), "examples")
    return {
        "questions": len(made),
        "with_topics": sum(bool(one.topics) for one in made),
        "with_form": dict(sorted(Counter(one.split for one in made if one.form is not None).items())),
        "without_form": dict(sorted(Counter(one.split for one in made if one.known and one.form is None).items())),
    }


def _gold(questions: Path, store: KgStore) -> dict[str, tuple[Topic, ...]]:
    every = read_questions(questions)
    ids = sorted({entity for question in every for entity in question.topic_entities})
    keys, names, labels = store.entity_keys(ids), store.surface_forms(ids), store.names(ids)
    return {question.id: gold_topics(question, keys, names, labels) for question in every}


def _example(asked: Asked, topics: tuple[Topic, ...], training: Training) -> ParseExample:
    form, known = _shown(asked, training)
    return ParseExample(
        id=asked.id, text=asked.question, split=asked.split, language=asked.language, topics=topics, form=form,
        known=known,
    )  # fmt: skip


def _shown(asked: Asked, training: Training) -> tuple[str | None, bool]:
    """The form that a parser is shown, and whether it is told anything at all."""
    if asked.split == TEST or (training == "A" and not asked.answerable):
        return None, False
    return asked.s_expression, True
