"""The answers to a file of questions, as the stages wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kgqa_core.abstention.apply import Verdict, read_verdicts
from kgqa_core.answering.reply import Answer
from kgqa_core.datasets.question import read_questions
from kgqa_core.store.tables import read_frame
from kgqa_core.symbolic.compute import replies


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Fields of `Answer` that say whether the graph holds the answer."""
    reason = verdict.reason
    return {
        "answerable": verdict.answerable,
        "confidence": verdict.confidence,
        "calibrated": verdict.calibrated,
        "reason": reason and reason.kind,
        "missing": reason and reason.missing,
        "nearest": reason and reason.nearest,
    }


def read_answers(
    questions: Path,
    answers: Path,
    knowledge: Path | None = None,
    confidence: Path | None = None,
    computed: Path | None = None,
    *,
    needs_topics: bool = True,
) -> list[Answer]:
    """The answer to each question of a file, in its order, from the artifact folders of the stages.

    needs_topics: a question without a topic is rejected, unless the graph is held to answer it all the same.
    Raises ArtifactError when an artifact is damaged.
    """
    outputs = dict(read_frame(answers / "answers.parquet", ("question", "output")).select("question", "output").rows())
    texts: dict[str, str] = {}
    if knowledge is not None:
        frame = read_frame(knowledge / "knowledge.parquet", ("question", "text"))
        texts = dict(frame.select("question", "text").rows())
    verdicts = read_verdicts(confidence) if confidence is not None else {}
    results = replies(computed) if computed is not None else {}
    found = []
    for question in read_questions(questions):
        verdict = verdicts.get(question.id)
        answered = question.topic_entities or not needs_topics or (verdict is not None and verdict.answerable)
        found.append(
            Answer(
                id=question.id,
                question=question.text,
                output=outputs.get(question.id),
                text=texts.get(question.id, ""),
                reject=None if answered else (question.unlinkable or "no topic entity"),
                **results.get(question.id, {}),
                **(verdict_fields(verdict) if verdict is not None else {}),
            )
        )
    return found
