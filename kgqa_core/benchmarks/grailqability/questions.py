"""Stage `questions` of a benchmark: its questions as the modified graph has them, to be linked, parsed and answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa_core.benchmarks.grailqability.records import Asked, read_benchmark
from kgqa_core.datasets.jsonl import RawQuestion, canonical
from kgqa_core.datasets.link import link
from kgqa_core.datasets.question import write_questions
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Question

SOURCE = "answerability"
NO_ANSWER = "the graph does not answer it"


def benchmark_questions(
    out: Path, *, benchmark: Path, kg: Path, monitor: Monitor = QUIET, work: Path | None = None
) -> dict[str, Any]:
    """Writes `questions.parquet` and returns counts.

    kg: the benchmark's modified graph.  Topics that were dropped are not there; what cannot be answered has no answers
    and is unlinkable.  Raises InputError when the folder is no benchmark.
    """
    asked = read_benchmark(benchmark).asked
    with KgStore.open(kg) as store:
        topics = _topics(asked, store)
        made = link([_raw(one, topics) for one in asked], store, source=SOURCE, gold=False).questions
    questions = [_there(one, topics, question) for one, question in zip(asked, made, strict=True)]
    write_questions(out, questions)
    monitor.progress(len(questions), len(questions), "questions")
    return {
        "questions": dict(sorted(Counter(question.split for question in questions).items())),
        "answerable": sum(one.answerable for one in asked),
        "with_topics": sum(bool(question.topic_entities) for question in questions),
    }


def _raw(asked: Asked, topics: dict[str, int]) -> RawQuestion:
    return canonical(
        {
            "id": asked.id, "question": asked.question, "split": asked.split, "language": asked.language,
            "topic_entities": [key for key in asked.topic_entities if key in topics],
            "answers": list(asked.answers) if asked.answerable else [],
            "answer_type": asked.answer_type, "s_expression": asked.s_expression, "complexity": asked.complexity,
            "hops": asked.hops,
        },
        gold=False,
    )  # fmt: skip


def _topics(asked: tuple[Asked, ...], store: KgStore) -> dict[str, int]:
    """Key → id of the topics that are left; a dropped one is not looked for by its name."""
    wanted = sorted({key for one in asked for key in one.topic_entities})
    rows = store.connection.execute(
        "SELECT key, id FROM entities WHERE kind = 'entity' AND key IN (SELECT unnest($1::VARCHAR[]))", [wanted]
    ).fetchall()
    return dict(rows)


def _there(asked: Asked, topics: dict[str, int], question: Question) -> Question:
    found = tuple(topics[key] for key in asked.topic_entities if key in topics)
    keys = tuple(key for key in asked.topic_entities if key in topics)
    lost = None if asked.answerable else NO_ANSWER
    return replace(question, topic_keys=keys, topic_entities=found, unlinkable=lost)
