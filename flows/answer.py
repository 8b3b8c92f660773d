"""Answering a file of new questions with the system that a finished run made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from kgqa_core.config import Profile, make_profile
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.question_file import write_answers
from kgqa_core.runs.finished import SystemParts, system_parts, with_mentions
from kgqa_core.store.artifacts import ArtifactRef, Home, verify
from kgqa_core.store.outputs import claim_file
from tasks.answering import AnsweringRun, answers_of_system
from tasks.engine.run import tracked_run
from tasks.linking import build_mentions
from tasks.questions import load_questions


def answer_file(
    record: dict[str, Any],
    questions: Path,
    out: Path,
    knowledge: str | None = None,
    min_confidence: float | None = None,
    *,
    force: bool = False,
    trace_share: float | None = None,
) -> dict[str, Any]:
    """Answer a question file with a finished run's system; the answers are written whole or not at all.

    What a question without `topic_entities` is about is linked in its text.  knowledge, min_confidence: as of
    `system_parts`.  force: replace an earlier file.  trace_share: of the questions that are traced in MLflow; the
    run's own when absent.  Raises QuestionFileError for an unusable file, OutputError when `out` exists, is an input
    or cannot be written.
    """
    claim = claim_file(out, inputs=(questions,), force=force)
    parts = system_parts(Home.current(), record, knowledge, min_confidence)
    share = parts.profile.tracking.trace_share if trace_share is None else trace_share
    source = {"name": questions.stem, "source": "jsonl", "path": str(questions), "unscored": True}
    profile = make_profile(parts.profile.model_dump(mode="json"), {"name": "answer", "questions": source})
    loaded, answered = answer_questions(profile, parts, AnsweringRun.of(record, share))
    return write_answers(claim, out, loaded.folder, answered.folder, record["run_id"])


@flow(name="kgqa-answer", flow_run_name="answer {profile.questions.name}")
def answer_questions(profile: Profile, parts: SystemParts, answering: AnsweringRun) -> tuple[ArtifactRef, ArtifactRef]:
    """Read new questions, and answer them with the system of a run; both artifacts.

    Args:
        profile: Of the run, with the new questions.
        parts: Folders of the artifacts of its system.
        answering: The run, as traces name it.
    """
    with tracked_run(profile) as run:
        kg = verify(parts.kg)
        questions = load_questions(kg, profile.questions, profile.seed)
        if parts.reads_graph and not all(question.topic_keys for question in read_questions(questions.folder)):
            parts = with_mentions(parts, build_mentions(kg).folder)
        answered = answers_of_system(questions, parts, answering)
        run.save(status="answered")
        return questions, answered
