"""Answering a file of new questions with the system that a finished run made."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow

from kgqa_core.answering.registry import answerer_spec
from kgqa_core.answering.reply import Answer
from kgqa_core.config import Knowledge, Profile, make_profile
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import read_rejects
from kgqa_core.runs.answer_traces import answer_traces, steps_of
from kgqa_core.runs.answers import read_answers
from kgqa_core.runs.finished import SystemParts, system_parts
from kgqa_core.store.artifacts import ArtifactRef, Home, verify
from kgqa_core.store.outputs import claim_file
from kgqa_core.tracing import QuestionTracer
from tasks.abstention import judge
from tasks.answering import answer, answer_computed, answer_from, compute_all, explore_with, worded
from tasks.engine.run import latest_run, tracked_run
from tasks.linking import build_mentions, link_questions
from tasks.passages import retrieve_passages
from tasks.questions import load_questions
from tasks.retrieval import facts_of
from tasks.rewriting import write_knowledge
from tasks.tracking.traces import close_tracer, open_tracer


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
    parts = replace(parts, profile=profile_of(parts, questions))
    tracer = open_tracer(
        Home.current(), parts.profile.tracking.trace_share if trace_share is None else trace_share, record, "answer"
    )
    started = time.time()
    made = answer_questions(parts)
    folders = {name: ref.folder for name, ref in made.items()}
    facts, loaded = folders.pop("facts", None), folders.pop("loaded")
    answers = read_answers(**folders, needs_topics=parts.reads_graph)
    answers += [Answer(one.row, "", None, reject=one.reason) for one in read_rejects(loaded)]
    _trace(tracer, answers, parts, started, folders, facts)
    with claim.writing() as path, path.open("w", encoding="utf-8") as stream:
        for one in answers:
            stream.write(json.dumps(one.to_row(), ensure_ascii=False) + "\n")
    rejects = [{"id": one.id, "reason": one.reject} for one in answers if one.reject]
    return {"answered": len(answers) - len(rejects), "out": str(out), "rejects": rejects, "run_id": record["run_id"]}


def _trace(
    tracer: QuestionTracer,
    answers: Sequence[Answer],
    parts: SystemParts,
    started: float,
    folders: Mapping[str, Path],
    facts: Path | None,
) -> None:
    """Let a sample of the answers be traced.  started: when their stages began, in seconds since 1970."""
    wanted = {one.id for one in answers if not one.reject and tracer.wants()}
    if not wanted:
        return
    run = latest_run()
    clock = steps_of([(stage.name, stage.seconds) for stage in run.stages] if run is not None else (), started)
    traces = answer_traces(
        answers, wanted, parts.profile, parts.knowledge, clock, kg=parts.kg, questions=folders["questions"],
        answered=folders["answers"], facts=facts,
    )  # fmt: skip
    for trace in traces:
        tracer.record(trace)
    close_tracer(tracer)


def profile_of(parts: SystemParts, questions: Path) -> Profile:
    """The profile by which the stages answer a question file: that of the system, with these questions."""
    base = parts.profile
    layers = {
        "name": "answer",
        "questions": {
            "name": questions.stem,
            "source": "jsonl",
            "path": str(questions),
            "unscored": True,
            "language": base.questions.language,
        },
        # Topics are named in the file or linked in its text: one variant, whatever the run compared
        "retrieval": {"training": False, "topics": "gold"},
        "answering": {
            "split": "test",
            "limit": None,
            "knowledge": [parts.knowledge],
            "log_probabilities": parts.abstainer is not None,
        },
    }
    return make_profile(base.model_dump(mode="json"), layers)


@flow(name="kgqa-answer", flow_run_name="answer {parts.profile.questions.name}")
def answer_questions(parts: SystemParts) -> dict[str, ArtifactRef]:
    """Retrieve facts for new questions, write knowledge, answer, and judge whether the graph holds the answers.

    Args:
        parts: Folders of the artifacts of the system that answers, with a profile as `profile_of` makes it.
    """
    profile = parts.profile
    with tracked_run(profile) as run:
        name, spec = parts.knowledge, answerer_spec(profile.answering.answerer)
        retriever = str(Knowledge.parse(name).variant)
        kg, dkg = verify(parts.kg), verify(parts.dkg)
        questions = loaded = load_questions(kg, profile.questions, profile.seed)
        facts = passages = knowledge = computed = wording = None
        if parts.reads_graph:
            questions = _with_topics(kg, questions, profile)
            facts = facts_of(kg, dkg, questions, _verified(parts.retriever), retriever, profile)
        if parts.passages is not None:
            passages = retrieve_passages(verify(parts.passages), questions, profile.passages)
        if facts is not None or passages is not None:
            knowledge = write_knowledge(kg, questions, facts, passages, _verified(parts.rewriter), name, profile)
        if spec.explores:
            computed = explore_with(kg, dkg, questions, retriever, profile)
            answers = answer_computed(computed, name, profile.answering.answerer)
        elif spec.computes and facts is not None and knowledge is not None:
            given = (kg, questions, questions, {retriever: facts}, _verified(parts.operator), profile)
            computed = compute_all(*given, parses=False, label_parser=_verified(parts.label_parser))[retriever]
            answers = answer_from(questions, computed, knowledge, name, profile)
            wording = worded(questions, computed, knowledge, name, profile)
        else:
            answers = answer(questions, knowledge, name, profile.answering, profile.llm, profile.seed)
        made = {
            "loaded": loaded,
            "questions": questions,
            "answers": answers,
            "knowledge": knowledge,
            "computed": computed,
            "facts": facts,
        }
        made["wording"] = wording
        if facts is not None:
            read = {retriever: facts}
            for other, folder in parts.others.items():
                read[other] = facts_of(kg, dkg, questions, verify(folder), other, profile)
            made["confidence"] = judge(
                kg, questions, read, {"test": answers}, _verified(parts.abstainer), computed=computed,
                min_confidence=profile.abstention.min_confidence,
            )  # fmt: skip
        run.save(status="answered")
        return {kind: ref for kind, ref in made.items() if ref is not None}


def _verified(folder: Path | None) -> ArtifactRef | None:
    return verify(folder) if folder is not None else None


def _with_topics(kg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef:
    """The questions, with linked topics where the file names none."""
    if all(question.topic_keys for question in read_questions(questions.folder)):
        return questions
    return link_questions(kg, build_mentions(kg), questions, profile.linking, only_missing=True)
