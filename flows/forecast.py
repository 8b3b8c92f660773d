"""What a run is going to ask of its language models, before anything is paid.

Stages that ask no model are run and kept, so that the prompts of the others are known; these are only counted.  Where a
prompt depends on a text that is not written yet, sentences by rule stand for it, and the forecast says so.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from prefect import flow

from kgqa_core.answering.plan import plan_answers
from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import Profile, split_knowledge
from kgqa_core.llm.plan import StagePlan
from kgqa_core.rewriting.forecast import plan_rewriting
from kgqa_core.rewriting.plan import plan_corpus
from tasks.answering import answer
from tasks.kg import build_kg, export_dkg
from tasks.questions import load_questions
from tasks.retrieval import retrieve_all, train_retrievers
from tasks.rewriting import finetune_rewriter, generate_corpus, sentence_options, write_knowledge, write_sentences
from tasks.run import tracked_run

FINISHED = "the stage is finished"


@flow(name="kgqa-forecast", flow_run_name="forecast {profile.kg.name}/{profile.questions.name}")
def forecast(profile: Profile) -> list[StagePlan]:
    """The plan of every stage of a profile that asks a language model, in the order of the pipeline."""
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = load_questions(kg, profile.questions, profile.seed)
        retrievers = train_retrievers(kg, dkg, questions, profile)
        facts = retrieve_all(kg, dkg, questions, retrievers, profile.retrieval, profile.seed)
        corpus = _finished_corpus(kg, dkg, questions, profile)
        rewriter = finetune_rewriter.find(corpus, profile.rewriter, profile.seed) if corpus else None
        plans: list[StagePlan] = []
        if corpus is not None:
            plans.append(_finished("corpus", profile.corpus.teacher))
        elif profile.rewrites:
            folders = (kg.folder, dkg.folder, questions.folder)
            plans += plan_corpus(*folders, profile.corpus, profile.llm, profile.seed, run.cache)
        planned: set[str] = set()
        for name in profile.answering.knowledge:
            plans += _experiment(kg, questions, facts, rewriter, name, profile, run.cache, planned)
        run.save(status="forecast")
        return plans


def _finished_corpus(kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef | None:
    if not profile.rewrites:
        return None
    return generate_corpus.find(kg, dkg, questions, profile.corpus, profile.llm, profile.seed)


def _experiment(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: dict[str, ArtifactRef],
    rewriter: ArtifactRef | None,
    name: str,
    profile: Profile,
    cache: Path,
    planned: set[str],
) -> list[StagePlan]:
    """Plans of putting one retriever's facts into words, where a model does it, and of the answers from them."""
    retriever, form = split_knowledge(name)
    full = f"{retriever}/{form}"
    plans: list[StagePlan] = []
    knowledge: ArtifactRef | None = None
    texts: dict[str, str] = {}
    if form in ("triples", "template"):
        knowledge = write_knowledge(kg, questions, facts[retriever], None, name, profile)
    elif form == "rewritten":
        common = sentence_options(profile)
        if rewriter is not None or not profile.rewriter.adapt:
            knowledge = write_sentences.find(kg, questions, facts[retriever], rewriter, retriever, form, *common)
        if knowledge is not None:
            plans.append(_finished(f"knowledge {full}", profile.rewriter.base))
        else:
            told = write_sentences(kg, questions, facts[retriever], None, retriever, "template", *common)
            table = pl.read_parquet(told.folder / "knowledge.parquet", columns=["question", "text"])
            texts = dict(table.iter_rows())
            plans.append(
                plan_rewriting(
                    kg=kg.folder,
                    questions=questions.folder,
                    facts=facts[retriever].folder,
                    retriever=retriever,
                    options=profile.rewriter,
                    llm=profile.llm,
                    language=profile.questions.language,
                    trained=profile.rewriter.adapt,
                    split=profile.answering.split,
                    limit=profile.answering.limit,
                    seed=profile.seed,
                )  # fmt: skip
            )
    if knowledge is not None or form == "none":
        done = answer.find(questions, knowledge, full, profile.answering, profile.llm, profile.seed)
        if done is not None:
            return [*plans, _finished(f"answers {full}", profile.answering.answerer)]
    found = plan_answers(
        questions=questions.folder, knowledge=knowledge.folder if knowledge else None, name=full,
        options=profile.answering, llm=profile.llm, seed=profile.seed, cache=cache, texts=texts, planned=planned,
    )  # fmt: skip
    return [*plans, found]


def _finished(stage: str, model: str) -> StagePlan:
    """The plan of a stage whose artifact is there."""
    return StagePlan(stage, model, 0, 0, 0, 0, 0.0, 0.0, True, (FINISHED,))
