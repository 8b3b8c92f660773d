"""The stages that answer: those that compute, and the one that asks the language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa_core.answering.registry import answerer_spec, model_spec, wording_model
from kgqa_core.config import (
    Answerer,
    AnsweringOptions,
    Knowledge,
    LabelParserOptions,
    LinkingOptions,
    LlmOptions,
    OperationClassifierOptions,
    Options,
    Profile,
    RetrieverVariant,
    SymbolicOptions,
)
from kgqa_core.datasets.published.registry import GENERATED
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.context import Call, Counts, StageContext, folder
from tasks.engine.external_digests import encoder_digest, file_digest, model_digest
from tasks.engine.stage import stage
from tasks.linking import build_mentions
from tasks.parsing import parsing_examples, train_and_parse
from tasks.questions import generate_questions


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


def _head_start(options: LabelParserOptions) -> dict[str, str]:
    """Digests of what training starts from."""
    from kgqa_core.symbolic.by_labels.packaged import HEAD_START

    packaged = options.start == "packaged" and HEAD_START.is_dir()
    return {"encoder": encoder_digest("minilm")} | ({"head_start": file_digest(HEAD_START)} if packaged else {})


@stage(
    "label_parser",
    label=lambda call: "forms by labels",
    variant=lambda call: "",
    external=lambda call: _head_start(call.options),
    packages=("torch", "transformers", "tokenizers", "duckdb"),
    tags=("gpu",),
)
def train_label_parser(
    stage: StageContext,
    kg: ArtifactRef,
    questions: ArtifactRef,
    generated: ArtifactRef | None,
    mentions: ArtifactRef,
    options: LabelParserOptions,
    linking: LinkingOptions,
    seed: int,
) -> Counts:
    """Adapt the ranker of forms to the graph, by its questions and by generated ones."""
    from kgqa_core.symbolic.by_labels.stage import train

    return train(
        stage.out,
        kg=kg.folder,
        questions=questions.folder,
        generated=folder(generated),
        mentions=mentions.folder,
        options=options,
        linking=linking,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
    )


def ranker_of(
    kg: ArtifactRef, questions: ArtifactRef, profile: Profile
) -> tuple[ArtifactRef | None, ArtifactRef | None]:
    """The operator, or for `auto` the label parser, that the profile's answerer ranks forms with."""
    if profile.ranks_all_roads:
        return None, label_parser_of(kg, questions, profile)
    return train_operator(kg, questions, profile.operation_classifier, profile.seed), None


def label_parser_of(kg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef:
    """The label parser of a profile, with the questions that are generated for it where its own are not."""
    options, generated = profile.label_parser, None
    if options.generated and options.steps and profile.questions.source != GENERATED:
        changes = {"size": options.generated, "writer": "template", "unanswerable": options.unanswerable}
        wanted = profile.questions.generated.model_copy(update=changes)
        generated = generate_questions(kg, wanted, profile.llm, profile.seed)
    mentions = build_mentions(kg)
    return train_label_parser(kg, questions, generated, mentions, options, profile.linking, profile.seed)


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
    operator: ArtifactRef | None,
    label_parser: ArtifactRef | None,
    parsed: ArtifactRef | None,
    name: str,
    split: str,
    limit: int | None,
    options: SymbolicOptions,
    min_confidence: float | None,
    seed: int,
) -> Counts:
    """Compute the answers from one retriever's facts, or a parser's forms, with the triples that prove them."""
    from kgqa_core.symbolic import compute as computing

    return computing.compute(
        stage.out,
        kg=kg.folder,
        questions=questions.folder,
        facts=facts.folder,
        operator=folder(operator),
        label_parser=folder(label_parser),
        min_confidence=min_confidence,
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
    label=lambda call: f"{call.name} {call.answerer}",
    variant=lambda call: Knowledge.parse(call.name).short,
)
def answer_computed(stage: StageContext, computed: ArtifactRef, name: str, answerer: str) -> Counts:
    """Write what was computed as answers."""
    from kgqa_core.answering.explored import read_usage
    from kgqa_core.symbolic import answer as computed_answers

    return computed_answers.answer_computed(
        stage.out,
        computed=computed.folder,
        name=name,
        answerer=answerer,
        usage=read_usage(computed.folder),
        monitor=stage.monitor,
        work=stage.work,
    )


@stage(
    "computed",
    label=lambda call: f"{call.name} {call.answerer}",
    variant=lambda call: call.name,
    external=lambda call: {"model": model_digest(str(Answerer.parse(call.answerer).model))},
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
    pays=True,
)
def explore(
    stage: StageContext,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    name: str,
    answerer: str,
    section: Options,
    llm: LlmOptions,
    split: str,
    limit: int | None,
    seed: int,
) -> Counts:
    """Have a language model explore the graph from the topics of each question; what it visits proves its answer."""
    from kgqa_core.answering import explore as exploring

    return exploring.explore(
        stage.out,
        kg=kg.folder,
        dkg=dkg.folder,
        questions=questions.folder,
        answerer=answerer,
        section=section,
        llm=llm,
        split=split,
        limit=limit,
        seed=seed,
        monitor=stage.monitor,
        cache=stage.cache,
        budget=stage.budget,
    )


def explore_with(kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, name: str, profile: Profile) -> ArtifactRef:
    """What the profile's answerer, which explores, finds for questions with their topics.  name: of the variant."""
    answering = profile.answering
    section = answerer_spec(answering.answerer).section(profile)
    return explore(
        kg, dkg, questions, name, answering.answerer, section, profile.llm, answering.split, answering.limit,
        profile.seed,
    )  # fmt: skip


@stage(
    "computed_knowledge",
    variant=lambda call: call.name,
)
def add_computed(stage: StageContext, computed: ArtifactRef, knowledge: ArtifactRef, name: str) -> Counts:
    """Put computed results before the facts that the model reads."""
    from kgqa_core.symbolic import hybrid

    return hybrid.add_computed(
        stage.out,
        computed=computed.folder,
        knowledge=knowledge.folder,
        name=name,
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
    dkg: ArtifactRef | None = None,
) -> dict[str, ArtifactRef]:
    """Answers with every configured kind of knowledge, by `retriever/format`.

    kg, facts of every retriever by name, linked: what computes needs them; what explores needs the dkg.  Of further
    answerers the name has the answerer behind it.
    """
    made: dict[str, ArtifactRef] = {}
    for own in profile.each_answerer:
        answers = _answers_of(questions, knowledge, own, kg, facts, linked, dkg)
        made |= {f"{name}/{own.answering.answerer}" if name in made else name: ref for name, ref in answers.items()}
    return made


def _answers_of(
    questions: ArtifactRef,
    knowledge: dict[str, ArtifactRef],
    profile: Profile,
    kg: ArtifactRef | None,
    facts: dict[str, ArtifactRef] | None,
    linked: ArtifactRef | None,
    dkg: ArtifactRef | None,
) -> dict[str, ArtifactRef]:
    """Answers of a profile with one answerer."""
    if profile.explores:
        assert kg is not None and dkg is not None, f"{profile.answering.answerer} explores the graph"
        made = {}
        for name in profile.knowledge:
            variant = Knowledge.parse(name).variant
            started = linked if variant.linked else questions
            assert started is not None, f"{name} needs linked questions"
            found = explore_with(kg, dkg, started, str(variant), profile)
            made[name] = answer_computed(found, name, profile.answering.answerer)
        return made
    if not profile.computes:
        return {
            name: answer(questions, knowledge.get(name), name, profile.answering, profile.llm, profile.seed)
            for name in profile.knowledge
        }
    assert kg is not None and facts is not None, f"{profile.answering.answerer} computes from facts"
    operator, label_parser = ranker_of(kg, questions, profile)
    computed = compute_all(kg, questions, linked, facts, operator, profile, label_parser=label_parser)
    return {
        name: answer_from(questions, computed[str(Knowledge.parse(name).variant)], knowledge[name], name, profile)
        for name in profile.knowledge
    }


def answer_from(
    questions: ArtifactRef, computed: ArtifactRef, knowledge: ArtifactRef, name: str, profile: Profile
) -> ArtifactRef:
    """Answers from computed results, alone or as the language model reads them above its facts."""
    if not answerer_spec(profile.answering.answerer).reads:
        return answer_computed(computed, name, Answerer.parse(profile.answering.answerer).kind)
    read = add_computed(computed, knowledge, name)
    return answer(questions, read, name, profile.answering, profile.llm, profile.seed)


def worded(
    questions: ArtifactRef, computed: ArtifactRef, knowledge: ArtifactRef, name: str, profile: Profile
) -> ArtifactRef | None:
    """Computed answers as the language model of `auto:MODEL` puts them; None where the answerer has none."""
    model = wording_model(profile.answering.answerer)
    if model is None:
        return None
    read = add_computed(computed, knowledge, name)
    options = profile.answering.model_copy(update={"answerer": model})
    return answer(questions, read, name, options, profile.llm, profile.seed)


def compute_all(
    kg: ArtifactRef,
    questions: ArtifactRef,
    linked: ArtifactRef | None,
    facts: dict[str, ArtifactRef],
    operator: ArtifactRef | None,
    profile: Profile,
    *,
    parses: bool = True,
    label_parser: ArtifactRef | None = None,
) -> dict[str, ArtifactRef]:
    """What is computed from each retriever's facts that the profile answers from, by the retriever's name.

    linked: the questions of retrievers that start from linked topics.  parses: whether the profile's parser, where it
    names one, is trained on these questions and asked first.  label_parser: ranks what all roads propose, in place of
    the operator.
    """
    least = profile.abstention.min_confidence if label_parser is not None else None
    rest = profile.answering.split, profile.answering.limit, profile.symbolic, least, profile.seed
    found = {}
    for name in dict.fromkeys(str(Knowledge.parse(name).variant) for name in profile.knowledge):
        topic_questions = linked if RetrieverVariant.parse(name).linked else questions
        assert topic_questions is not None, f"{name} needs linked questions"
        parsed = None
        if parses and profile.symbolic.parser != "none":
            examples = parsing_examples(kg, questions, linked if topic_questions is linked else None)
            parsed = train_and_parse(profile.symbolic.parser, kg, examples, profile)
        found[name] = compute(kg, topic_questions, facts[name], operator, label_parser, parsed, name, *rest)
    return found
