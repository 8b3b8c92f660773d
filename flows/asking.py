"""Answering new questions with a finished run: one at a time (`ask`) or a file of them (`answer`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from prefect import flow

from flows.session import stage_artifact
from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import Profile, make_profile
from kgqa_core.errors import InputError
from kgqa_core.system import System
from tasks.answering import answer
from tasks.questions import load_questions
from tasks.retrieval import retrieve, write_knowledge
from tasks.run import tracked_run


def open_system(record: dict[str, Any]) -> System:
    """The question-answering system that a finished run made."""
    profile = make_profile(record["profile"])
    return System.open(
        kg=stage_artifact(record, "kg").folder,
        dkg=stage_artifact(record, "dkg").folder,
        retriever=stage_artifact(record, "retriever").folder,
        retrieval=profile.retrieval,
        answering=profile.answering,
    )


def answer_file(record: dict[str, Any], questions: Path, out: Path) -> dict[str, Any]:
    """Answer a question file with a finished run's system; the answers are written whole or not at all.

    Raises QuestionFileError for an unusable file, InputError when `out` cannot be written.
    """
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InputError(f"--out {out} must be a file in a folder that exists")
    base = make_profile(record["profile"])
    profile = make_profile(
        base.model_dump(mode="json"),
        {
            "name": "answer",
            "questions": {
                "name": questions.stem,
                "source": "jsonl",
                "path": str(questions),
                "unscored": True,
                "language": base.questions.language,
            },
            "answering": {"split": "test", "limit": None},
        },
    )
    kg, dkg, retriever = (stage_artifact(record, name) for name in ("kg", "dkg", "retriever"))
    found = answer_questions(profile, kg, dkg, retriever)
    rows, rejects = _rows(found)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    os.replace(temporary, out)
    return {"answered": len(rows) - len(rejects), "out": str(out), "rejects": rejects, "run_id": record["run_id"]}


@flow(name="kgqa-answer", flow_run_name="answer {profile.questions.name}")
def answer_questions(
    profile: Profile, kg: ArtifactRef, dkg: ArtifactRef, retriever: ArtifactRef
) -> dict[str, ArtifactRef]:
    """Retrieve facts for new questions and ask the model."""
    with tracked_run(profile) as run:
        questions = load_questions(kg, profile.questions, profile.seed)
        facts = retrieve(kg, dkg, questions, retriever, "rigel", profile.retrieval, profile.seed)
        knowledge = write_knowledge(kg, questions, facts, "rigel", profile.answering.qualifiers)
        answers = answer(questions, knowledge, "rigel", profile.answering, profile.seed)
        run.save(status="answered")
        return {"questions": questions, "knowledge": knowledge, "answers": answers}


def _rows(found: dict[str, ArtifactRef]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    import polars as pl

    from kgqa_core.datasets.question import read_questions

    output = dict(pl.read_parquet(found["answers"].folder / "answers.parquet").select("question", "output").rows())
    text = dict(pl.read_parquet(found["knowledge"].folder / "knowledge.parquet").select("question", "text").rows())
    rows: list[dict[str, Any]] = []
    rejects: list[dict[str, str]] = []
    for question in read_questions(found["questions"].folder):
        unknown = None if question.topic_entities else (question.unlinkable or "no topic entity")
        if unknown:
            rejects.append({"id": question.id, "reason": unknown})
        rows.append(
            {
                "id": question.id,
                "question": question.text,
                "answer": None if unknown else output.get(question.id),
                "facts": text.get(question.id, ""),
                "reject": unknown,
            }
        )
    return rows, rejects
