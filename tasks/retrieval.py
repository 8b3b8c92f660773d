"""Stages that train the retrievers and collect facts for every question."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import Experiment, LlmOptions, Options, Profile, RetrievalOptions, RetrieverVariant
from kgqa_core.datasets.derived.splits import check_splits
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import InputError
from kgqa_core.retrieval.api import RetrieverInputs, RetrieverSpec, TrainingInputs
from kgqa_core.retrieval.hops import check_hops, needed_hops
from kgqa_core.retrieval.registry import RETRIEVERS, TRAINED, TRAINED_KINDS, trained_by
from kgqa_core.runs.records import choose_run
from kgqa_core.store.artifacts import ArtifactRef, read_manifest, verify
from kgqa_core.workspace import Workspace
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.context import Call, Counts, folder, folders
from tasks.engine.external_digests import input_digests
from tasks.engine.run import current_run
from tasks.engine.stage import Stage, stage
from tasks.linking import build_mentions, link_questions
from tasks.questions import more_questions, training_questions

log = logging.getLogger("kgqa")
DEPLOYMENT = "kgqa-train-retriever/train-retriever"


def _training_stage(spec: RetrieverSpec) -> Stage[Any]:
    """The stage that trains a retriever: its work and its code digest are those of `spec.train`."""
    assert spec.artifact is not None and spec.train is not None
    train = spec.train

    def train_retriever(
        workspace: Workspace,
        kg: ArtifactRef,
        dkg: ArtifactRef,
        questions: ArtifactRef,
        further_sets: dict[str, ArtifactRef],
        feedback: ArtifactRef | None,
        options: Options,
        seed: int,
    ) -> Counts:
        inputs = TrainingInputs(
            dkg=dkg.folder,
            questions=questions.folder,
            options=options,
            seed=seed,
            kg=kg.folder,
            further_sets=folders(further_sets),
            feedback=folder(feedback),
        )
        return train(workspace, inputs)

    train_retriever.__doc__ = train.__doc__
    return stage(
        spec.artifact,
        label=lambda call: spec.training_label(call.options),
        external=lambda call: input_digests(spec.trains_on(call.options)),
        code=lambda call: train,
        packages=spec.training_packages,
        tags=("gpu",),
        trains=True,
        deployment=DEPLOYMENT,
    )(train_retriever)


TRAINING_STAGES = {kind: _training_stage(trained_by(kind)) for kind in TRAINED_KINDS}
"""The stages that train retrievers, by the kind of their artifact."""


@stage("feedback")
def gather_feedback(
    workspace: Workspace,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    facts: ArtifactRef,
    answers: ArtifactRef,
    bare: ArtifactRef | None,
) -> Counts:
    """Collect the relation paths that an earlier run's right answers speak for."""
    from kgqa_core.retrieval.rigel.feedback import gather

    return gather(
        workspace,
        dkg=dkg.folder,
        questions=questions.folder,
        facts=facts.folder,
        answers=answers.folder,
        bare=folder(bare),
    )


def feedback_of(dkg: ArtifactRef, word: str | None) -> ArtifactRef | None:
    """What the run that a word means says of relation paths: by its first answers that read a retriever's facts.

    Raises InputError when there is no such run, no such answers in it, or when it was over another graph, whose facts
    have other numbers.
    """
    if word is None:
        return None
    run_id, artifacts = feedback_sources(current_run().home.root, word)
    artifacts = {name: verify(ref.folder) for name, ref in artifacts.items()}
    over = read_manifest(artifacts["facts"].folder).get("made_of", {}).get("inputs", {}).get("dkg")
    if over != dkg.digest:
        raise InputError(
            f"run {run_id} is over another graph than this one, so that its facts say nothing here; name a run over "
            "this graph in rigel.feedback, or make one"
        )
    return gather_feedback(dkg, artifacts["questions"], artifacts["facts"], artifacts["answers"], artifacts.get("bare"))


def feedback_sources(home: Path, word: str) -> tuple[str, dict[str, ArtifactRef]]:
    """Id of the run that a word means, and what feedback reads of it, by the argument of `gather_feedback`.

    Raises InputError when there is no such run, or no answers with a retriever's facts in it.
    """
    record = choose_run(home, word)
    artifacts = {stage["name"]: stage["artifact"] for stage in record["stages"] if stage.get("artifact")}
    made = {name: ArtifactRef.model_validate(artifact) for name, artifact in artifacts.items()}
    bare = {"bare": made["answers/none"]} if "answers/none" in made else {}
    for name, answers in made.items():
        variant = Experiment.parse(name.removeprefix("answers/")).variant
        facts, spec = f"facts/{variant}", RETRIEVERS.get(variant.retriever)
        if name.startswith("answers/") and facts in made and spec is not None and not spec.baseline:
            return record["run_id"], {"questions": made["questions"], "facts": made[facts], "answers": answers, **bare}
    raise InputError(f"run {record['run_id']} has no answers with a retriever's facts; it has {', '.join(made)}")


def _merge_facts(workspace: Workspace, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.retrieval.collect import merge

    return merge(workspace, parts, name=call.name, options=call.options)


def _spec(call: Call) -> RetrieverSpec:
    return RETRIEVERS[RetrieverVariant.parse(call.name).retriever]


@stage(
    "facts",
    variant=lambda call: call.name,
    external=lambda call: input_digests(_spec(call).reads(call.section)),
    packages=lambda call: _spec(call).packages,
    retries=1,
    merge=_merge_facts,
    divides=lambda call: _spec(call).divisible,
    pays=True,
)
def retrieve(
    workspace: Workspace,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef | None,
    name: str,
    options: RetrievalOptions,
    section: Options | None,
    llm: LlmOptions,
    seed: int,
) -> Counts:
    """Collect each question's facts and ranked entities with one retriever.

    name: with `@linked` for linked topics.  retriever: what was trained.  section: the retriever's own options.  llm:
    of a retriever that asks a language model.
    """
    from kgqa_core.dkg.csr import Dkg  # numba takes 0.4 s to import
    from kgqa_core.retrieval.collect import collect

    inputs = RetrieverInputs(Dkg.open(dkg.folder), options, seed, section, folder(retriever), kg.folder, llm=llm)
    return collect(workspace, questions.folder, name, inputs)


def train_retrievers(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile
) -> dict[str, ArtifactRef]:
    """Those of the configured retrievers that learn, by name.

    Raises QuestionFileError or ConfigError, before any is trained, when the questions leave one nothing to learn from.
    """
    _check_questions(dkg, questions, profile)
    questions = training_questions(kg, questions, profile)
    trained: dict[str, ArtifactRef] = {}
    by_kind: dict[str, ArtifactRef] = {}
    for name, spec in TRAINED.items():
        if name in profile.retrieval.retrievers and spec.artifact is not None:
            if spec.artifact not in by_kind:
                training, call = _training(spec, kg, dkg, questions, profile)
                by_kind[spec.artifact] = training(*call)
            trained[name] = by_kind[spec.artifact]
    return trained


def untrained(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile, steps: int
) -> dict[str, int]:
    """Section of the profile → steps, of the retrievers whose training has more steps than some and is not finished."""
    questions = training_questions(kg, questions, profile)
    long = {}
    for name, spec in TRAINED.items():
        if name in profile.retrieval.retrievers and spec.section is not None:
            wanted = getattr(spec.options(profile), "max_steps", None) or 0
            if wanted > steps:
                training, call = _training(spec, kg, dkg, questions, profile)
                if training.find(*call) is None:
                    long[spec.section] = wanted
    return long


def _training(
    spec: RetrieverSpec, kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile
) -> tuple[Stage[Any], tuple[Any, ...]]:
    """The stage that trains a retriever, and its arguments."""
    options = spec.options(profile)
    further_sets = more_questions(kg, profile.questions, profile.seed) if spec.further_sets else {}
    feedback = feedback_of(dkg, spec.feedback_run(options))
    if spec.learns_links(options):
        mentions = build_mentions(kg)
        questions = link_questions(kg, mentions, questions, profile.linking)
        further_sets = {
            name: link_questions(kg, mentions, further, profile.linking) for name, further in further_sets.items()
        }
    call = (kg, dkg, questions, further_sets, feedback, options, profile.seed)
    return TRAINING_STAGES[str(spec.artifact)], call


def _check_questions(dkg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> None:
    """What preflight can only say of a file with annotated paths, now that questions and graph are joined."""
    everything = read_questions(questions.folder)
    sizes = Counter(question.split for question in everything)
    check_splits(sizes, profile.needed_splits, profile.questions.path or profile.questions.source)
    if any(limit is not None for _, limit in profile.hop_limits):
        from kgqa_core.dkg.csr import Dkg  # numba takes 0.4 s to import

        for warning in check_hops(needed_hops(everything, Dkg.open(dkg.folder)), profile.hop_limits):
            log.warning("%s; leave it unset to cover them", warning)


def retrieve_all(made: RunArtifacts, profile: Profile) -> dict[str, ArtifactRef]:
    """Facts of every configured retriever, by name."""
    return {name: retrieve(*call) for name, call in retrieve_calls(made, profile).items()}


def retrieve_calls(made: RunArtifacts, profile: Profile) -> dict[str, tuple[Any, ...]]:
    """The arguments of `retrieve` for each configured retriever, by name."""
    calls = {}
    for name in profile.retrieval.collected:
        plain = RetrieverVariant.parse(name).retriever
        spec, trained = RETRIEVERS[plain], made.retrievers.get(plain)
        llm = profile.llm if spec.pays else LlmOptions()
        given = (name, profile.retrieval, spec.options(profile), llm, profile.seed)
        calls[name] = (made.kg, made.dkg, made.questions_for(name), trained, *given)
    return calls


def paid_model(name: str, profile: Profile) -> str | None:
    """The language model that a retriever asks, as the profile names it; None for one that asks none."""
    spec = RETRIEVERS[RetrieverVariant.parse(name).retriever]
    read = spec.reads(spec.options(profile)) if spec.pays else ()
    return next((each.name for each in read if each.kind == "model"), None)
