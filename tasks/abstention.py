"""Stages that learn when a graph does not hold an answer, judge questions by it, and measure that."""

from __future__ import annotations

from kgqa_core.config import AbstentionOptions
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace
from tasks.engine.context import Counts, folder, folders
from tasks.engine.stage import stage


@stage(
    "questions",
    packages=("duckdb", "polars"),
)
def unpack_benchmark(workspace: Workspace, benchmark: ArtifactRef, kg: ArtifactRef) -> Counts:
    """Write the questions of an answerability benchmark as retrieval takes them, and which are answerable."""
    from kgqa_core.papers.grailqability.builder.questions import questions_and_labels

    return questions_and_labels(workspace, benchmark=benchmark.folder, kg=kg.folder)


@stage(
    "abstainer",
    label=lambda call: call.name,
    packages=("numpy", "scipy", "duckdb"),
)
def train_abstainer(
    workspace: Workspace,
    kg: ArtifactRef,
    questions: ArtifactRef,
    labels: ArtifactRef,
    facts: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    name: str,
    options: AbstentionOptions,
) -> Counts:
    """Learn from answerable and unanswerable questions when the graph holds an answer, and why it does not."""
    from kgqa_core.abstention.train import train

    return train(
        workspace,
        kg=kg.folder,
        questions=questions.folder,
        labels=labels.folder,
        facts=folders(facts),
        answers=folders(answers),
        name=name,
        options=options,
    )


@stage(
    "confidence",
    packages=("numpy", "scipy", "duckdb"),
)
def judge(
    workspace: Workspace,
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    abstainer: ArtifactRef | None,
    min_confidence: float | None = None,
) -> Counts:
    """Say of each question how sure it is that the graph holds its answer, and else why not."""
    from kgqa_core.abstention.apply import apply

    return apply(
        workspace,
        kg=kg.folder,
        questions=questions.folder,
        facts=folders(facts),
        answers=folders(answers),
        abstainer=folder(abstainer),
        min_confidence=min_confidence,
    )


@stage("abstention_scores", packages=("numpy", "scipy"))
def score_abstention(
    workspace: Workspace,
    questions: ArtifactRef,
    labels: ArtifactRef,
    confidence: ArtifactRef,
    answers: ArtifactRef,
    seed: int,
    bootstrap: int = 1000,
) -> Counts:
    """Measure how well answerable questions are told from others, what the confidence is worth, and the reasons."""
    from kgqa_core.evaluation.abstention import score

    return score(
        workspace,
        questions=questions.folder,
        labels=labels.folder,
        confidence=confidence.folder,
        answers=answers.folder,
        seed=seed,
        bootstrap=bootstrap,
    )
