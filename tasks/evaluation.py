"""Stages that score: responses against references by a classifier, and every metric of every experiment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from kgqa_core.config import (
    TOPICS,
    EntailmentOptions,
    EvaluationOptions,
    LlmOptions,
    Price,
    Profile,
    RetrieverVariant,
)
from kgqa_core.evaluation.entailment import has_references
from kgqa_core.evaluation.nli import fetch, hub_name
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.context import Counts, folders, group_folders, grouped
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.run import current_run
from tasks.engine.stage import stage

log = logging.getLogger("kgqa")


@stage("scores", packages=("numpy", "scipy"))
def score(
    workspace: Workspace,
    inputs: dict[str, ArtifactRef],
    options: EvaluationOptions,
    seed: int,
    limit: int | None = None,
    prices: dict[str, Price] | None = None,
) -> Counts:
    """Score every question of every experiment, with bootstrap intervals and without leaked questions.

    inputs: artifacts by the names of `ScoringInputs`; in the groups `facts`, `knowledge`, `answers`, `entailment` and
    `judged` as `group/NAME`.
    """
    from kgqa_core.evaluation import score as scoring

    parts = scoring.ScoringInputs(
        **group_folders(inputs),
        facts=group_folders(inputs, "facts"),
        knowledge=group_folders(inputs, "knowledge"),
        answers=group_folders(inputs, "answers"),
        entailment=group_folders(inputs, "entailment"),
        judged=group_folders(inputs, "judged"),
    )
    return scoring.score(workspace, parts, options, seed, limit, prices)


def score_all(
    made: RunArtifacts,
    facts: Mapping[str, ArtifactRef],
    knowledge: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    profile: Profile,
) -> ArtifactRef:
    """Scores of a profile's experiments; topics alone, which are no facts, have no scores of their own."""
    scored = {name: ref for name, ref in facts.items() if RetrieverVariant.parse(name).retriever != TOPICS}
    options = profile.evaluation
    inputs = {
        "kg": made.kg,
        "questions": made.questions,
        **({"linked": made.linked} if made.linked is not None else {}),
        **grouped("facts", scored),
        **grouped("knowledge", knowledge),
        **grouped("answers", answers),
        **grouped("entailment", entail_all(made.questions, answers, options)),
        **grouped("judged", judge_all(made.questions, answers, options, profile.llm)),
    }
    return score(inputs, options, profile.seed, profile.answering.limit, dict(profile.llm.prices))


@stage("set_tables", packages=("numpy", "scipy"))
def table_sets(
    workspace: Workspace, scores: dict[str, ArtifactRef], questions: dict[str, ArtifactRef], seed: int
) -> Counts:
    """Put the scores of several question sets into one table, with paired tests on each."""
    from kgqa_core.evaluation import set_tables

    return set_tables.tables(workspace, scores=folders(scores), questions=folders(questions), seed=seed)


@stage(
    "entailment",
    variant=lambda call: call.name,
    external=lambda call: {"model": classifier_digest(call.model)},
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
)
def entail(
    workspace: Workspace,
    questions: ArtifactRef,
    answers: ArtifactRef,
    name: str,
    model: str,
    options: EntailmentOptions,
) -> Counts:
    """Judge whether the responses of one experiment entail, or contradict, their references."""
    from kgqa_core.evaluation import entailment

    return entailment.entail(
        workspace, questions=questions.folder, answers=answers.folder, name=name, model=model, options=options
    )


def entail_all(
    questions: ArtifactRef, answers: dict[str, ArtifactRef], options: EvaluationOptions
) -> dict[str, ArtifactRef]:
    """Judgements of all answers, by their key in `answers`; none where no classifier is wanted, needed or to be had."""
    if options.nli is None:
        return {}
    why = None
    if not has_references(questions.folder):
        why = "no question has a reference response"
    else:
        try:
            fetch(options.nli)
        except FileNotFoundError as fault:
            reason = str(fault).split(". ")[0]
            why = f"the classifier {hub_name(options.nli)} is not on this machine and cannot be fetched ({reason})"
    if why is not None:
        log.warning("entailment scores are left out: %s; all other scores are made", why)
        current_run().decide("nli", f"left out: {why}")
        return {}
    return {name: entail(questions, ref, name, options.nli, options.entailment) for name, ref in answers.items()}


@stage(
    "judged",
    label=lambda call: f"{call.name} by {call.model}",
    variant=lambda call: call.name,
    external=lambda call: {"model": model_digest(call.model)},
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
    pays=True,
)
def judge_answers(
    workspace: Workspace, questions: ArtifactRef, answers: ArtifactRef, name: str, model: str, llm: LlmOptions
) -> Counts:
    """Let a language model decide whether the answers of one experiment mean a gold answer."""
    from kgqa_core.evaluation import judge

    return judge.judge_answers(
        workspace, questions=questions.folder, answers=answers.folder, model=model, llm=llm, name=name
    )


def judge_all(
    questions: ArtifactRef, answers: dict[str, ArtifactRef], options: EvaluationOptions, llm: LlmOptions
) -> dict[str, ArtifactRef]:
    """Verdicts on all answers, by `retriever/format`; none without `evaluation.judge`."""
    if options.judge is None:
        return {}
    return {name: judge_answers(questions, ref, name, options.judge, llm) for name, ref in answers.items()}


def classifier_digest(model: str) -> str:
    """Digest of a classifier: the weights of a folder, the commit of what the hub had."""
    folder = fetch(model)
    return file_digest(folder) if Path(model).expanduser().is_dir() else f"hub {folder.name}"
