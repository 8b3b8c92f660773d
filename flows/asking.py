"""Answering new questions with a finished run: one at a time (`ask`) or a file of them (`answer`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from prefect import flow

from flows.session import stage_artifact
from kgqa_core.artifacts import ArtifactRef, Home
from kgqa_core.config import Profile, make_profile, split_knowledge
from kgqa_core.errors import InputError, nearest
from kgqa_core.system import System
from tasks.answering import answer
from tasks.questions import load_questions
from tasks.retrieval import retrieve
from tasks.rewriting import write_knowledge
from tasks.run import TRAINED_AS, tracked_run
from tasks.secrets import take_in


def open_system(record: dict[str, Any], knowledge: str | None = None) -> System:
    """The question-answering system that a finished run made.

    knowledge: `retriever/format` that it reads; the run's first that a user can have when absent.
    Raises InputError when the run has not trained what this needs.
    """
    profile = make_profile(record["profile"])
    take_in(profile)
    name, trained, rewriter = _parts(record, profile, knowledge)
    return System.open(
        kg=stage_artifact(record, "kg").folder,
        dkg=stage_artifact(record, "dkg").folder,
        retriever=trained.folder if trained is not None else None,
        retrieval=profile.retrieval,
        answering=profile.answering,
        llm=profile.llm,
        knowledge=name,
        rewriter=rewriter.folder if rewriter is not None else None,
        rewriting=profile.rewriter,
        language=profile.questions.language,
        cache=Home.current().cache,
        seed=profile.seed,
    )


def _parts(
    record: dict[str, Any], profile: Profile, knowledge: str | None
) -> tuple[str, ArtifactRef | None, ArtifactRef | None]:
    """Name of the knowledge, and the trained retriever and rewriter that it needs, of a finished run."""
    choice = [name for name in ("rigel", "hop_path", "kaping") if name in profile.retrieval.retrievers]
    retriever, form = split_knowledge(knowledge or (choice[0] if choice else "none"))
    if retriever not in ("none", *choice):
        raise InputError(
            f"knowledge {knowledge!r}: run {record['run_id']} can answer from {', '.join(choice) or 'nothing'}"
            f"{nearest(retriever, choice)}; oracle and random need gold paths or a seed, not a user's question"
        )
    trained = stage_artifact(record, TRAINED_AS[retriever]) if retriever in TRAINED_AS else None
    rewriter = stage_artifact(record, "rewriter") if form == "rewritten" and profile.rewriter.adapt else None
    return f"{retriever}/{form}", trained, rewriter


def answer_file(record: dict[str, Any], questions: Path, out: Path, knowledge: str | None = None) -> dict[str, Any]:
    """Answer a question file with a finished run's system; the answers are written whole or not at all.

    Raises QuestionFileError for an unusable file, InputError when `out` cannot be written.
    """
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InputError(f"--out {out} must be a file in a folder that exists")
    base = make_profile(record["profile"])
    name, trained, rewriter = _parts(record, base, knowledge)
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
            "answering": {"split": "test", "limit": None, "knowledge": [name]},
        },
    )
    kg, dkg = (stage_artifact(record, kind) for kind in ("kg", "dkg"))
    found = answer_questions(profile, kg, dkg, trained, rewriter, name)
    rows, rejects = _rows(found)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    os.replace(temporary, out)
    return {"answered": len(rows) - len(rejects), "out": str(out), "rejects": rejects, "run_id": record["run_id"]}


@flow(name="kgqa-answer", flow_run_name="answer {profile.questions.name}")
def answer_questions(
    profile: Profile,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    trained: ArtifactRef | None,
    rewriter: ArtifactRef | None,
    name: str,
) -> dict[str, ArtifactRef]:
    """Retrieve facts for new questions, put them into words, and ask the model.  name: `retriever/format`."""
    with tracked_run(profile) as run:
        retriever = split_knowledge(name)[0]
        questions = load_questions(kg, profile.questions, profile.seed)
        facts = retrieve(kg, dkg, questions, trained, retriever, profile.retrieval, profile.seed)
        knowledge = write_knowledge(kg, questions, facts, rewriter, name, profile)
        answers = answer(questions, knowledge, name, profile.answering, profile.llm, profile.seed)
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
