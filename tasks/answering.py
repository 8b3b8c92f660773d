"""The stages that answer: those that compute, and the one that asks the language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa_core.answering.registry import answerer_spec, model_spec
from kgqa_core.config import (
    SYMBOLIC,
    AnsweringOptions,
    Knowledge,
    LlmOptions,
    OperationClassifierOptions,
    Profile,
    RetrieverVariant,
    SymbolicOptions,
)
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.context import Call, Counts, StageContext, folder
from tasks.engine.external_digests import encoder_digest, model_digest
from tasks.engine.stage import stage
from tasks.parsing import parsing_examples, train_and_parse


def _merge_answers(stage: StageContext, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.answering.answer import merge

    return merge(stage.out, parts)


@stage(
    "answers",
    label=lambda call: f"{call.name} {call.options.answerer}",
    variant=lambda call: Knowledge.parse(call.name).short,
    external=lambda call: {"model": model_digest(model_spec(call.options.answerer))},
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
    merge=_merge_answers,
    pays=True,
)
def answer(
    stage: StageContext,
    questions: ArtifactRef,
    knowledge: ArtifactRef | None,
    name: str,
    options: AnsweringOptions,
    llm: LlmOptions,
    seed: int,
) -> Counts:
    """Ask the model every question, with one retriever's facts in one format or with none."""
    from kgqa_core.answering import answer as answering

    return answering.answer(
        stage.out,
        questions=questions.folder,
        knowledge=folder(knowledge),
        name=name,
        options=options,
        llm=llm,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
        cache=stage.cache,
        budget=stage.budget,
        part=stage.part,
    )


@stage(
    "operator",
    label=lambda call: "operations",
    variant=lambda call: "",
    external=lambda call: {"encoder": encoder_digest(call.options.encoder)},
    packages=("torch", "transformers", "tokenizers", "duckdb"),
    tags=("gpu",),
)
def train_operator(
    stage: StageContext, kg: ArtifactRef, questions: ArtifactRef, options: OperationClassifierOptions, seed: int
) -> Counts:
    """Train the classifier that picks the operation of a question."""
    from kgqa_core.symbolic.train import train

    return train(
        stage.out,
        kg=kg.folder,
        questions=questions.folder,
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
    )


@stage(
    "computed",
    variant=lambda call: call.name,
    packages=("torch", "duckdb"),
)
def compute(
    stage: StageContext,
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: ArtifactRef,
    operator: ArtifactRef,
    parsed: ArtifactRef | None,
    name: str,
    split: str,
    limit: int | None,
    options: SymbolicOptions,
    seed: int,
) -> Counts:
    """Compute the answers from one retriever's facts, or a parser's forms, with the triples that prove them."""
    from kgqa_core.symbolic import compute as computing

    return computing.compute(
        stage.out,
        kg=kg.folder,
        questions=questions.folder,
        facts=facts.folder,
        operator=operator.folder,
        parsed=folder(parsed),
        name=name,
        split=split,
        limit=limit,
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
    )


@stage(
    "answers",
    label=lambda call: f"{call.name} {SYMBOLIC}",
    variant=lambda call: Knowledge.parse(call.name).short,
)
def answer_computed(stage: StageContext, computed: ArtifactRef, name: str) -> Counts:
    """Write what was computed as answers."""
    from kgqa_core.symbolic import answer as computed_answers

    return computed_answers.answer_computed(
        stage.out, computed=computed.folder, name=name, monitor=stage.monitor, work=stage.work
    )


@stage(
    "computed_knowledge",
    variant=lambda call: call.name,
)
def add_computed(
    stage: StageContext, computed: ArtifactRef, knowledge: ArtifactRef, name: str, options: SymbolicOptions
) -> Counts:
    """Put computed results before the facts that the model reads."""
    from kgqa_core.symbolic import hybrid

    return hybrid.add_computed(
        stage.out,
        computed=computed.folder,
        knowledge=knowledge.folder,
        name=name,
        options=options,
        monitor=stage.monitor,
        work=stage.work,
    )


def answer_all(
    questions: ArtifactRef,
    knowledge: dict[str, ArtifactRef],
    profile: Profile,
    kg: ArtifactRef | None = None,
    facts: dict[str, ArtifactRef] | None = None,
    linked: ArtifactRef | None = None,
) -> dict[str, ArtifactRef]:
    """Answers with every configured kind of knowledge, by `retriever/format`.

    kg, facts of every retriever by name, linked: what computes needs them.
    """
    if not profile.computes:
        return {
            name: answer(questions, knowledge.get(name), name, profile.answering, profile.llm, profile.seed)
            for name in profile.knowledge
        }
    assert kg is not None and facts is not None, f"{profile.answering.answerer} computes from facts"
    operator = train_operator(kg, questions, profile.operation_classifier, profile.seed)
    computed = compute_all(kg, questions, linked, facts, operator, profile)
    return {
        name: answer_from(questions, computed[str(Knowledge.parse(name).variant)], knowledge[name], name, profile)
        for name in profile.knowledge
    }


def answer_from(
    questions: ArtifactRef, computed: ArtifactRef, knowledge: ArtifactRef, name: str, profile: Profile
) -> ArtifactRef:
    """Answers from computed results, alone or as the language model reads them above its facts."""
    if not answerer_spec(profile.answering.answerer).reads:
        return answer_computed(computed, name)
    read = add_computed(computed, knowledge, name, profile.symbolic)
    return answer(questions, read, name, profile.answering, profile.llm, profile.seed)


def compute_all(
    kg: ArtifactRef,
    questions: ArtifactRef,
    linked: ArtifactRef | None,
    facts: dict[str, ArtifactRef],
    operator: ArtifactRef,
    profile: Profile,
    *,
    parses: bool = True,
) -> dict[str, ArtifactRef]:
    """What is computed from each retriever's facts that the profile answers from, by the retriever's name.

    linked: the questions of retrievers that start from linked topics.  parses: whether the profile's parser, where it
    names one, is trained on these questions and asked first.
    """
    rest = profile.answering.split, profile.answering.limit, profile.symbolic, profile.seed
    found = {}
    for name in dict.fromkeys(str(Knowledge.parse(name).variant) for name in profile.knowledge):
        topic_questions = linked if RetrieverVariant.parse(name).linked else questions
        assert topic_questions is not None, f"{name} needs linked questions"
        parsed = None
        if parses and profile.symbolic.parser != "none":
            examples = parsing_examples(kg, questions, linked if topic_questions is linked else None)
            parsed = train_and_parse(profile.symbolic.parser, kg, examples, profile)
        found[name] = compute(kg, topic_questions, facts[name], operator, parsed, name, *rest)
    return found
