"""The stages that answer: those that compute, and the one that asks the language model."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from kgqa_core.answering.registry import answerer_spec, knowledge_spec, model_spec
from kgqa_core.config import (
    AUTO,
    Answerer,
    AnsweringOptions,
    Execution,
    GeneratedQuestionsOptions,
    Knowledge,
    LabelParserOptions,
    LinkingOptions,
    LlmOptions,
    Options,
    Profile,
    SymbolicOptions,
)
from kgqa_core.datasets.derived.splits import QuestionSample
from kgqa_core.datasets.published.registry import GENERATED
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.runs.finished import SystemParts
from kgqa_core.serving.feedback import confirmed_questions
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest, verify
from kgqa_core.workspace import Workspace
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.context import Call, Counts, folder, folders, group_folders, grouped
from tasks.engine.external_digests import encoder_digest, file_digest, input_digests, model_digest
from tasks.engine.run import current_run
from tasks.engine.stage import stage
from tasks.linking import build_mentions
from tasks.parsing import parsing_examples, train_and_parse
from tasks.questions import generate_questions
from tasks.tracking.traces import close_tracer, open_tracer

log = logging.getLogger("kgqa")


def _merge_answers(workspace: Workspace, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.answering.answer import merge

    return merge(workspace, parts)


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
    workspace: Workspace,
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
        workspace,
        questions=questions.folder,
        knowledge=folder(knowledge),
        name=name,
        options=options,
        llm=llm,
        seed=seed,
    )


UNTRAINED = {"start", "hops", "noise", "calibration_questions", "threshold"}
"""Options of a label parser that count where nothing is trained."""


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
    workspace: Workspace,
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
        workspace,
        kg=kg.folder,
        questions=questions.folder,
        generated=folder(generated),
        mentions=mentions.folder,
        options=options,
        linking=linking,
        seed=seed,
    )


def label_parser_of(kg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef:
    """The label parser of a profile, with the questions that are generated for it where its own are not.

    What became of it is said in the log, the record of the run and its report.
    """
    options, generated, how = profile.label_parser, None, ""
    if not profile.adapts:
        if options.adapt == "auto":
            how = " (label_parser.adapt: questions of your own train it, or the value always)"
        options = LabelParserOptions(adapt="never", steps=0, **options.model_dump(include=UNTRAINED))
    shares = profile.questions.generated.split_shares
    if options.generated and options.steps and (profile.questions.source != GENERATED or not shares[0]):
        changes = {"size": options.generated, "writer": "template", "unanswerable": options.unanswerable}
        changes["read_back"] = 0  # nobody is shown them
        if not shares[0]:
            changes["split_shares"] = GeneratedQuestionsOptions().split_shares
        wanted = profile.questions.generated.model_copy(update=changes)
        generated = generate_questions(kg, wanted, profile.llm, profile.seed)
    mentions = build_mentions(kg)
    ref = train_label_parser(kg, questions, generated, mentions, options, profile.linking, profile.seed)
    outcome = f"Label parser: {read_manifest(ref.folder)['counts']['outcome']}{how}"
    log.info("%s", outcome)
    current_run().decide("label_parser", outcome)
    return ref


@stage(
    "computed",
    variant=lambda call: call.name,
    external=lambda call: {"chooser": model_digest(call.options.chooser)} if call.options.chooser else {},
    packages=("torch", "duckdb"),
    pays=True,
)
def compute(
    workspace: Workspace,
    inputs: dict[str, ArtifactRef],
    name: str,
    sample: QuestionSample,
    options: SymbolicOptions,
    min_confidence: float | None,
    llm: LlmOptions | None,
    failures: int,
) -> Counts:
    """Compute the answers from one retriever's facts, or a parser's forms, with the triples that prove them.

    inputs: artifacts by the names of `ComputeInputs`.  llm: where `options.chooser` is asked.  failures: earlier
    artifacts of the same answers in which it could not be asked about a question.
    """
    from kgqa_core.symbolic import compute as computing

    read = computing.ComputeInputs(**folders(inputs))
    return computing.compute(workspace, read, sample, options, min_confidence, llm)


@stage(
    "answers",
    label=lambda call: f"{call.name} {call.answerer}",
    variant=lambda call: Knowledge.parse(call.name).short,
)
def answer_computed(workspace: Workspace, computed: ArtifactRef, name: str, answerer: str) -> Counts:
    """Write what was computed as answers."""
    from kgqa_core.answering.explored import read_usage
    from kgqa_core.symbolic import answer as computed_answers

    return computed_answers.answer_computed(
        workspace, computed=computed.folder, name=name, answerer=answerer, usage=read_usage(computed.folder)
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
    workspace: Workspace,
    graph: dict[str, ArtifactRef],
    questions: ArtifactRef,
    name: str,
    answerer: str,
    section: Options,
    llm: LlmOptions,
    sample: QuestionSample,
) -> Counts:
    """Have a language model explore the graph from the topics of each question; what it visits proves its answer.

    graph: the artifacts `kg` and `dkg`.
    """
    from kgqa_core.answering import explore as exploring

    return exploring.explore(
        workspace,
        kg=graph["kg"].folder,
        dkg=graph["dkg"].folder,
        questions=questions.folder,
        answerer=answerer,
        section=section,
        llm=llm,
        sample=sample,
    )


class AnsweringRun(Options):
    """The run whose system answers questions, as their traces name it; it decides nothing of the answers."""

    run_id: Execution[str]
    mlflow_run_id: Execution[str | None] = None
    trace_share: Execution[float] = 0.0

    @classmethod
    def of(cls, record: Mapping[str, Any], trace_share: float) -> AnsweringRun:
        """From a run's record.  trace_share: of the questions."""
        return cls(run_id=record["run_id"], mlflow_run_id=record.get("mlflow_run_id"), trace_share=trace_share)


def _merge_answered(workspace: Workspace, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.question_file import merge

    return merge(workspace, parts)


def _loaded_by_name(call: Call) -> dict[str, str]:
    """Digests of the language models and encoders that a system loads by their names, and of the home's corrections."""
    profile, read = call.profile, Knowledge.parse(call.knowledge)
    digests = {}
    if confirmed := confirmed_questions(Home.current()):
        digests["corrections"] = hashlib.sha256(repr(confirmed).encode()).hexdigest()
    if model := Answerer.parse(profile.answering.answerer).model:
        digests["model"] = model_digest(model)
    if chooser := profile.symbolic.chooser:
        digests["chooser"] = model_digest(chooser)
    if knowledge_spec(call.knowledge).rewriter:
        digests["rewriter"] = model_digest(profile.rewriter.base)
    if profile.linking.context == "encoder":
        digests["linking"] = encoder_digest(profile.linking.encoder)
    for name in (read.retriever, *group_folders(call.system, "others")) if not read.graphless else ():
        spec = RETRIEVERS[name]
        digests |= {f"{name} {role}": own for role, own in input_digests(spec.reads(spec.options(profile))).items()}
    return digests


@stage(
    "answered",
    label=lambda call: f"{call.knowledge} {call.profile.answering.answerer}",
    variant=lambda call: call.knowledge,
    external=_loaded_by_name,
    packages=("duckdb", "torch", "transformers", "tokenizers", "openai", "peft", "faiss-cpu", "bm25s"),
    tags=("gpu",),
    retries=1,
    merge=_merge_answered,
    pays=True,
)
def answer_by_system(
    workspace: Workspace,
    questions: ArtifactRef,
    system: dict[str, ArtifactRef],
    knowledge: str,
    profile: Profile,
    llm: LlmOptions,
    failures: int,
    answering: AnsweringRun,
) -> Counts:
    """Answer questions with a system, a batch at a time.

    system: the parts of it by their names in `SystemParts`, further retrievers as `others/NAME`.  failures: earlier
    artifacts of the same answers in which the language model failed on a question.
    """
    from kgqa_core.llm.models import Models
    from kgqa_core.question_file import answer_questions

    parts = SystemParts(
        **group_folders(system),
        others=group_folders(system, "others"),
        knowledge=knowledge,
        profile=profile,
        cache=workspace.cache,
    )
    assert workspace.cache is not None, "a stage has the cache of its home"
    tracer = open_tracer(Home(workspace.cache.parent), answering.trace_share, answering.model_dump(), "answer")
    try:
        return answer_questions(
            workspace,
            questions=questions.folder,
            parts=parts,
            models=Models(llm, workspace.cache, workspace.budget),
            tracer=tracer,
            confirmed=partial(confirmed_questions, Home(workspace.cache.parent)),
        )
    finally:
        close_tracer(tracer)


def answers_of_system(questions: ArtifactRef, parts: SystemParts, answering: AnsweringRun) -> ArtifactRef:
    """The answers of a system to questions; those on which the language model failed before are asked again."""
    paths = {field.name: getattr(parts, field.name) for field in fields(parts) if field.name != "cache"}
    system = {name: verify(path) for name, path in paths.items() if isinstance(path, Path)}
    system |= grouped("others", {name: verify(path) for name, path in parts.others.items()})
    given = (questions, system, parts.knowledge, parts.profile, parts.profile.llm)
    failures = 0
    while (ref := answer_by_system.find(*given, failures, answering)) and read_manifest(ref.folder)["counts"]["failed"]:
        failures += 1
    return answer_by_system(*given, failures, answering)


def answer_all(
    made: RunArtifacts, facts: Mapping[str, ArtifactRef], knowledge: Mapping[str, ArtifactRef], profile: Profile
) -> dict[str, ArtifactRef]:
    """Answers with every configured kind of knowledge, by `retriever/format`.

    facts: of every retriever by name.  Of further answerers the name has the answerer behind it.
    """
    every: dict[str, ArtifactRef] = {}
    for own in profile.each_answerer:
        answers = _answers_of(made, facts, knowledge, own)
        every |= {f"{name}/{own.answering.answerer}" if name in every else name: ref for name, ref in answers.items()}
    return every


def _answers_of(
    made: RunArtifacts, facts: Mapping[str, ArtifactRef], knowledge: Mapping[str, ArtifactRef], profile: Profile
) -> dict[str, ArtifactRef]:
    """Answers of a profile with one answerer: explored, read by a model, or computed."""
    answerer, reading = profile.answering.answerer, (profile.answering, profile.llm, profile.seed)
    variants = {name: str(Knowledge.parse(name).variant) for name in profile.knowledge}
    if profile.explores:
        section, graph = answerer_spec(answerer).section(profile), {"kg": made.kg, "dkg": made.dkg}
        rest = answerer, section, profile.llm, sample_of(profile)
        explored = {
            variant: explore(graph, made.questions_for(variant), variant, *rest) for variant in variants.values()
        }
        return {name: answer_computed(explored[variant], name, answerer) for name, variant in variants.items()}
    if not profile.computes:
        return {name: answer(made.questions, knowledge.get(name), name, *reading) for name in variants}
    computed = compute_all(made, facts, profile)
    return {name: answer_computed(computed[variant], name, AUTO) for name, variant in variants.items()}


def compute_all(made: RunArtifacts, facts: Mapping[str, ArtifactRef], profile: Profile) -> dict[str, ArtifactRef]:
    """What is computed from each retriever's facts that the profile answers from, by the retriever's name."""
    return {name: compute(*call) for name, call in compute_calls(made, facts, profile).items()}


def compute_calls(made: RunArtifacts, facts: Mapping[str, ArtifactRef], profile: Profile) -> dict[str, tuple[Any, ...]]:
    """The arguments of `compute` for each retriever that the profile answers from, by the retriever's name.

    Where a chooser could not be asked about some questions before, it is asked again.
    """
    ranker, options = label_parser_of(made.kg, made.questions, profile), profile.symbolic
    llm = profile.llm if options.chooser else None
    rest = sample_of(profile), options, profile.abstention.min_confidence, llm
    calls = {}
    for name in dict.fromkeys(str(Knowledge.parse(name).variant) for name in profile.knowledge):
        topic_questions, parsed = made.questions_for(name), None
        if profile.symbolic.parser != "none":
            linked = topic_questions if topic_questions is made.linked else None
            examples = parsing_examples(made.kg, made.questions, linked)
            parsed = train_and_parse(profile.symbolic.parser, made.kg, examples, profile)
        inputs = {"kg": made.kg, "questions": topic_questions, "facts": facts[name], "label_parser": ranker}
        inputs |= {"parsed": parsed} if parsed else {}
        failures = 0
        while (ref := compute.find(inputs, name, *rest, failures)) and _failed_choices(ref):
            failures += 1
        calls[name] = (inputs, name, *rest, failures)
    return calls


def _failed_choices(ref: ArtifactRef) -> int:
    return int(read_manifest(ref.folder)["counts"].get("chooser", {}).get("failed", 0))


def sample_of(profile: Profile) -> QuestionSample:
    """The questions that a profile answers."""
    return QuestionSample(split=profile.answering.split, limit=profile.answering.limit, seed=profile.seed)
