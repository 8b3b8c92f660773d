"""What a run is going to ask of its language models, before anything is paid.

Stages that ask no model are run and kept, so that the prompts of the others are known; these are only counted.  Where a
prompt depends on a text that is not written yet, sentences by rule stand for it, and the forecast says so.  A pilot
asks a few of the questions first, under the budget and on the accounts of the stages, and is kept for the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
from prefect import flow

from kgqa_core.answering.forecast import forecast_answers, forecast_exploration, pilot_answers
from kgqa_core.answering.registry import answerer_spec, knowledge_spec
from kgqa_core.config import Answerer, Knowledge, Profile
from kgqa_core.evaluation.judge_forecast import forecast_verdicts
from kgqa_core.llm.forecast import StagePlan
from kgqa_core.rewriting.forecast import Rewriting, pilot_corpus, plan_corpus
from kgqa_core.store.artifacts import ArtifactRef
from tasks.answering import add_computed, answer, compute_all, explore
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.run import Run, tracked_run
from tasks.kg import build_kg, export_dkg
from tasks.linking import link_topics
from tasks.passages import passages_of
from tasks.questions import questions_of
from tasks.retrieval import retrieve_all, train_retrievers
from tasks.rewriting import finetune_rewriter, generate_corpus, sentence_options, write_knowledge, write_sentences

FINISHED = "the stage is finished"


@flow(name="kgqa-forecast", flow_run_name="forecast {profile.kg.name}/{profile.questions.name}")
def forecast(profile: Profile, pilot: int = 0) -> list[StagePlan]:
    """The plan of every stage of a profile that asks a language model, in the order of the pipeline.

    Of several question sets the plans of each follow each other, with the set's name; what is paid for one is not
    planned again for the next.  pilot: questions of each stage that are asked first, at endpoints only.
    Raises what the stages raise, with a pilot also BudgetReached and EndpointError.
    """
    with tracked_run(profile, several=True) as run:
        plans: list[StagePlan] = []
        planned: dict[str, set[str]] = {}
        for own in profile.each_set:
            found = _plans(own, run, planned, pilot)
            named = (replace(plan, stage=f"{own.questions.name}: {plan.stage}") for plan in found)
            plans += named if profile.further_questions else found
        run.save(status="forecast")
        return plans


def _agent(made: RunArtifacts, name: str, profile: Profile) -> StagePlan:
    """The plan of an agent's exploration from the topics of one variant."""
    options, variant = profile.answering, str(Knowledge.parse(name).variant)
    started = made.questions_for(variant)
    given = (made.kg, made.dkg, started, variant, options.answerer, profile.agent, profile.llm)
    if explore.find(*given, options.split, options.limit, profile.seed) is not None:
        return _finished(f"answers {name}", options.answerer)
    return forecast_exploration(
        questions=started.folder, name=name, options=options, agent=profile.agent, llm=profile.llm, seed=profile.seed
    )


def _plans(profile: Profile, run: Run, planned: dict[str, set[str]], pilot: int) -> list[StagePlan]:
    """The plans of one question set.  planned: prompts that are planned already, by answerer; this set's are added."""
    kg = build_kg(profile.kg)
    dkg = export_dkg(kg, profile.dkg)
    questions = questions_of(kg, profile)
    retrievers = train_retrievers(kg, dkg, questions, profile)
    artifacts = link_topics(RunArtifacts(kg, dkg, questions, retrievers), profile)
    facts = retrieve_all(artifacts, profile)
    corpus = _finished_corpus(kg, dkg, questions, profile)
    rewriter = finetune_rewriter.find(corpus, profile.rewriter, profile.seed) if corpus else None
    plans: list[StagePlan] = []
    if corpus is not None:
        plans.append(_finished("corpus", profile.corpus.teacher))
    elif profile.trains_rewriter:
        folders = (kg.folder, dkg.folder, questions.folder)
        given = (profile.corpus, profile.llm, profile.seed)
        if pilot:
            budget = run.budget(generate_corpus.account(kg, dkg, questions, *given))
            with run.monitor("pilot") as monitor:
                pilot_corpus(*folders, *given, run.home.cache, pilot, budget, monitor)
        plans += plan_corpus(*folders, *given, run.home.cache)
    passages = passages_of(questions, profile)
    for own in profile.each_answerer:
        computed: dict[str, ArtifactRef] = {}
        if own.computes:
            computed = compute_all(artifacts, facts, own)
        if Answerer.parse(own.answering.answerer).kind == "agent":
            plans += [_agent(artifacts, name, own) for name in own.knowledge]
        asked = planned.setdefault(own.answering.answerer, set())
        for name in own.knowledge if answerer_spec(own.answering.answerer).reads else ():
            plans += _experiment(kg, questions, facts, passages, rewriter, name, own, run, asked, pilot, computed)
    if profile.evaluation.judge is not None:
        plans.append(
            forecast_verdicts(
                questions=questions.folder,
                experiments=sum(len(own.knowledge) for own in profile.each_answerer),
                options=profile.answering,
                model=profile.evaluation.judge,
                llm=profile.llm,
                seed=profile.seed,
                cache=run.home.cache,
            )
        )
    return plans


def _finished_corpus(kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef | None:
    if not profile.trains_rewriter:
        return None
    return generate_corpus.find(kg, dkg, questions, profile.corpus, profile.llm, profile.seed)


def _experiment(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: dict[str, ArtifactRef],
    passages: ArtifactRef | None,
    rewriter: ArtifactRef | None,
    name: str,
    profile: Profile,
    run: Run,
    planned: set[str],
    pilot: int,
    computed: dict[str, ArtifactRef],
) -> list[StagePlan]:
    """Plans of putting one retriever's facts into words, where a model does it, and of the answers from them.

    computed: of each retriever, where the model reads computed results too.
    """
    read = Knowledge.parse(name)
    retriever, form = str(read.variant), read.format
    full = f"{retriever}/{form}"
    plans: list[StagePlan] = []
    knowledge: ArtifactRef | None = None
    texts: dict[str, str] = {}
    spec = knowledge_spec(name)
    if not spec.rewriter and (spec.facts or spec.passages):
        knowledge = write_knowledge(kg, questions, facts.get(retriever), passages, None, name, profile)
    elif spec.rewriter:
        common = sentence_options(profile)
        if rewriter is not None or not profile.rewriter.adapt:
            knowledge = write_sentences.find(kg, questions, facts[retriever], rewriter, retriever, form, *common)
        if knowledge is not None:
            plans.append(_finished(f"knowledge {full}", profile.rewriter.base))
        else:
            sentences = write_sentences(kg, questions, facts[retriever], None, retriever, "template", *common)
            table = pl.read_parquet(sentences.folder / "knowledge.parquet", columns=["question", "text"], glob=False)
            texts = dict(table.iter_rows())
            rewriting = Rewriting(
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
                cache=run.home.cache,
            )
            if pilot:
                account = write_sentences.account(kg, questions, facts[retriever], None, retriever, form, *common)
                with run.monitor("pilot") as monitor:
                    rewriting.pilot(pilot, run.budget(account), monitor)
            plans.append(rewriting.plan())
    if knowledge is not None and retriever in computed:
        knowledge = add_computed(computed[retriever], knowledge, name)
    folder = knowledge.folder if knowledge else None
    given: dict[str, Any] = {
        "questions": questions.folder, "knowledge": folder, "name": full, "options": profile.answering,
        "llm": profile.llm, "seed": profile.seed, "cache": run.home.cache,
    }  # fmt: skip
    if knowledge is not None or form == "none":
        stage = (questions, knowledge, full, profile.answering, profile.llm, profile.seed)
        if answer.find(*stage) is not None:
            return [*plans, _finished(f"answers {full}", profile.answering.answerer)]
        if pilot:
            budget = run.budget(answer.account(*stage))
            with run.monitor("pilot") as monitor:
                pilot_answers(**given, number=pilot, budget=budget, monitor=monitor)
    return [*plans, forecast_answers(**given, texts=texts, planned=planned)]


def _finished(stage: str, model: str) -> StagePlan:
    """The plan of a stage whose artifact is there."""
    return StagePlan(stage, model, 0, 0, 0, 0, 0.0, 0.0, True, (FINISHED,))
