"""Answering new questions with a finished run: one at a time (`ask`) or a file of them (`answer`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow

from flows.cli._session import stage_artifact
from flows.linking import mentions_of
from kgqa_core.config import PASSAGES, Profile, make_profile, split_knowledge, split_retriever
from kgqa_core.errors import InputError, nearest
from kgqa_core.store.artifacts import ArtifactRef, Home
from kgqa_core.store.outputs import claim_file
from kgqa_core.system import System
from tasks.abstention import judge
from tasks.answering import answer, answer_from, compute_all
from tasks.engine.run import TRAINED_AS, tracked_run
from tasks.engine.secrets import load_secrets
from tasks.linking import build_mentions, link_questions
from tasks.passages import retrieve_passages
from tasks.questions import load_questions
from tasks.retrieval import facts_of
from tasks.rewriting import write_knowledge

GRAPHLESS = ("none", PASSAGES)
"""Knowledge for which no question is linked and no fact is retrieved."""

if TYPE_CHECKING:
    from kgqa_core.abstention.apply import Verdict


def find_mentions(record: dict[str, Any], knowledge: str | None = None) -> ArtifactRef | None:
    """The dictionary by which a finished run's system finds out what a question is about; None where nothing asks.

    It is made where there is none, with a progress bar of its own.
    """
    name, _, _ = _parts(record, make_profile(record["profile"]), knowledge)
    return mentions_of(record) if split_knowledge(name)[0] not in GRAPHLESS else None


def open_system(
    record: dict[str, Any],
    knowledge: str | None = None,
    mentions: ArtifactRef | None = None,
    min_confidence: float | None = None,
) -> System:
    """The question-answering system that a finished run made.

    knowledge: `retriever/format` that it reads; the run's first that a user can have when absent.
    mentions: of `find_mentions`; without, it must be told what a question is about.  min_confidence: that the graph
    holds the answer, below which it is not given; the run's own, or its abstainer's threshold, when absent.
    Raises InputError when the run has not trained what this needs.
    """
    home = Home.current()
    profile = make_profile(record["profile"])
    load_secrets(profile)
    name, trained, rewriter = _parts(record, profile, knowledge)
    index = _index(record, name)
    abstainer, others = _abstention(record, name)
    least = profile.abstention.min_confidence if min_confidence is None else min_confidence
    return System.open(
        kg=stage_artifact(record, "kg").folder,
        dkg=stage_artifact(record, "dkg").folder,
        retriever=trained.folder if trained is not None else None,
        retrieval=profile.retrieval,
        ranking=profile.relation_ranking,
        answering=profile.answering,
        llm=profile.llm,
        knowledge=name,
        rewriter=rewriter.folder if rewriter is not None else None,
        rewriting=profile.rewriter,
        language=profile.questions.language,
        mentions=mentions.folder if mentions is not None else None,
        linking=profile.linking,
        passages=index.folder if index is not None else None,
        searching=profile.passages,
        cache=home.cache if home.writable else None,
        seed=profile.seed,
        operator=stage_artifact(record, "operator").folder if profile.computes else None,
        symbolic=profile.symbolic,
        abstainer=abstainer.folder if abstainer is not None else None,
        others={other: own.folder for other, own in others.items()},
        min_confidence=least,
    )


def _parts(
    record: dict[str, Any], profile: Profile, knowledge: str | None
) -> tuple[str, ArtifactRef | None, ArtifactRef | None]:
    """Name of the knowledge, and the trained retriever and rewriter that it needs, of a finished run."""
    ranked = ("rank_llm", "rank_embedding", "rank_pair", "rank_amr")
    choice = [name for name in ("rigel", "hop_path", "kaping", *ranked) if name in profile.retrieval.retrievers]
    retriever, form = split_knowledge(knowledge or (choice[0] if choice else "none"))
    if profile.computes and retriever in GRAPHLESS:
        raise InputError(
            f"knowledge {retriever!r} holds no facts, but the answerer {profile.answering.answerer!r} of run "
            f"{record['run_id']} computes from facts; name one of {', '.join(choice) or 'no retriever of it'}"
        )
    if retriever == PASSAGES:
        return f"{retriever}/{form}", None, None
    retriever = split_retriever(retriever)[0]  # what nobody names is linked in any case
    if retriever not in ("none", *choice):
        raise InputError(
            f"knowledge {knowledge!r}: run {record['run_id']} can answer from {', '.join(choice) or 'nothing'}"
            f"{nearest(retriever, choice)}; oracle and random need gold paths or a seed, not a user's question"
        )
    trained = stage_artifact(record, TRAINED_AS[retriever]) if retriever in TRAINED_AS else None
    rewriter = stage_artifact(record, "rewriter") if form == "rewritten" and profile.rewriter.adapt else None
    return f"{retriever}/{form}", trained, rewriter


def _abstention(record: dict[str, Any], name: str) -> tuple[ArtifactRef | None, dict[str, ArtifactRef]]:
    """What a run has learnt of when not to answer from this knowledge, and the further retrievers that it reads."""
    if not any(stage["name"].partition("/")[0] == "abstainer" for stage in record["stages"]):
        return None, {}
    from kgqa_core.abstention.model import load_abstainer

    ref = stage_artifact(record, "abstainer")
    learnt = load_abstainer(ref.folder)
    retriever, form = split_knowledge(learnt.knowledge)
    if f"{split_retriever(retriever)[0]}/{form}" != name:
        return None, {}
    others = [other for other in learnt.retrievers if other != split_retriever(retriever)[0]]
    return ref, {other: stage_artifact(record, TRAINED_AS[other]) for other in others}


def _index(record: dict[str, Any], name: str) -> ArtifactRef | None:
    """The passage index of a run, where the knowledge `name` holds passages.  Raises InputError when it has none."""
    return stage_artifact(record, "passage_index") if split_knowledge(name)[1] in ("both", PASSAGES) else None


def answer_file(
    record: dict[str, Any],
    questions: Path,
    out: Path,
    knowledge: str | None = None,
    min_confidence: float | None = None,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Answer a question file with a finished run's system; the answers are written whole or not at all.

    What a question without `topic_entities` is about is found in its text.  min_confidence: as of `open_system`.
    force: replace an earlier file.  Raises QuestionFileError for an unusable file, OutputError when `out` exists, is an
    input or cannot be written.
    """
    claim = claim_file(out, inputs=(questions,), force=force)
    base = make_profile(record["profile"])
    name, trained, rewriter = _parts(record, base, knowledge)
    abstainer, others = _abstention(record, name)
    least = base.abstention.min_confidence if min_confidence is None else min_confidence
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
            # What a question is about is named in the file or found in its text: one variant, whatever the run compared
            "retrieval": {"training": False, "topics": "gold"},
            "answering": {
                "split": "test",
                "limit": None,
                "knowledge": [name],
                "log_probabilities": abstainer is not None,
            },
            "abstention": {"min_confidence": least},
        },
    )
    kg, dkg = (stage_artifact(record, kind) for kind in ("kg", "dkg"))
    operator = stage_artifact(record, "operator") if profile.computes else None
    found = answer_questions(
        profile, kg, dkg, trained, rewriter, name, _index(record, name), abstainer, others, operator
    )
    rows, rejects = _rows(found, needs_topics=split_knowledge(name)[0] not in GRAPHLESS)
    with claim.writing() as path, path.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {"answered": len(rows) - len(rejects), "out": str(out), "rejects": rejects, "run_id": record["run_id"]}


@flow(name="kgqa-answer", flow_run_name="answer {profile.questions.name}")
def answer_questions(
    profile: Profile,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    trained: ArtifactRef | None,
    rewriter: ArtifactRef | None,
    name: str,
    index: ArtifactRef | None = None,
    abstainer: ArtifactRef | None = None,
    others: dict[str, ArtifactRef] | None = None,
    operator: ArtifactRef | None = None,
) -> dict[str, ArtifactRef]:
    """Retrieve facts for new questions, put them into words, ask the model, and judge whether the graph holds answers.

    name: `retriever/format`.  index: of passages, where the model reads some.  abstainer: of when not to answer.
    others: further trained retrievers that it reads, by name.  operator: of what computes answers.
    """
    with tracked_run(profile) as run:
        retriever = split_knowledge(name)[0]
        questions = load_questions(kg, profile.questions, profile.seed)
        reads_graph = retriever not in GRAPHLESS
        questions = _with_topics(kg, questions, profile) if reads_graph else questions
        passages = retrieve_passages(index, questions, profile.passages) if index is not None else None
        facts = facts_of(kg, dkg, questions, trained, retriever, profile) if reads_graph else None
        knowledge = None
        if facts is not None or passages is not None:
            knowledge = write_knowledge(kg, questions, facts, passages, rewriter, name, profile)
        computed = None
        if operator is not None and facts is not None and knowledge is not None:
            given = (kg, questions, questions, {retriever: facts}, operator, profile)
            computed = compute_all(*given, parses=False)[retriever]
            answers = answer_from(questions, computed, knowledge, name, profile)
        else:
            answers = answer(questions, knowledge, name, profile.answering, profile.llm, profile.seed)
        made = {"questions": questions, "answers": answers}
        made |= {"knowledge": knowledge} if knowledge is not None else {}
        made |= {"computed": computed} if computed is not None else {}
        if facts is not None:
            heard = {other: facts_of(kg, dkg, questions, own, other, profile) for other, own in (others or {}).items()}
            least = profile.abstention.min_confidence
            made["confidence"] = judge(
                kg, questions, {retriever: facts, **heard}, {"test": answers}, abstainer, computed=computed,
                min_confidence=least,
            )  # fmt: skip
        run.save(status="answered")
        return made


def _with_topics(kg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef:
    """The questions, with linked topics where the file names none."""
    from kgqa_core.datasets.question import read_questions

    if all(question.topic_keys for question in read_questions(questions.folder)):
        return questions
    return link_questions(kg, build_mentions(kg), questions, profile.linking, only_missing=True)


def _rows(
    found: dict[str, ArtifactRef], *, needs_topics: bool = True
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """A row a question, and those without a topic that are not answered."""
    import polars as pl

    from kgqa_core.abstention.apply import read_verdicts
    from kgqa_core.datasets.question import read_questions
    from kgqa_core.symbolic.asking import replies

    output = dict(
        pl.read_parquet(found["answers"].folder / "answers.parquet", glob=False).select("question", "output").rows()
    )
    text: dict[str, str] = {}
    if "knowledge" in found:
        text = dict(
            pl.read_parquet(found["knowledge"].folder / "knowledge.parquet", glob=False)
            .select("question", "text")
            .rows()
        )
    verdicts = read_verdicts(found["confidence"].folder) if "confidence" in found else {}
    computed = replies(found["computed"].folder) if "computed" in found else {}
    rows: list[dict[str, Any]] = []
    rejects: list[dict[str, str]] = []
    for question in read_questions(found["questions"].folder):
        verdict, said = verdicts.get(question.id), output.get(question.id)
        there = question.topic_entities or not needs_topics or (verdict is not None and verdict.answerable)
        unknown = None if there else (question.unlinkable or "no topic entity")
        if unknown:
            rejects.append({"id": question.id, "reason": unknown})
        row = {
            "id": question.id,
            "question": question.text,
            "answer": None if unknown else said,
            "facts": text.get(question.id, ""),
            "reject": unknown,
        }
        row |= computed.get(question.id, {})
        rows.append(row | (_judged(verdict, said) if verdict is not None else {}))
    return rows, rejects


def _judged(verdict: Verdict, said: str | None) -> dict[str, Any]:
    """What a row says of whether the graph holds the answer, as `System.ask` says it."""
    reason = verdict.reason
    told = {
        "answerable": verdict.answerable,
        "confidence": verdict.confidence,
        "calibrated": verdict.calibrated,
        "reason": reason and reason.kind,
        "missing": reason and reason.missing,
        "nearest": reason and reason.nearest,
    }
    return told if verdict.answerable else {**told, "answer": None, "model_answer": said}
