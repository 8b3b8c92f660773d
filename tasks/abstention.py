"""Stages that learn when a graph does not hold an answer, judge questions by it, and measure that."""

from __future__ import annotations

from kgqa_core.config import AbstentionOptions
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.stage import stage


@stage(
    "questions",
    runs="kgqa_core.builders.answerability.questions:questions_and_labels",
    packages=("duckdb", "polars"),
)
def unpack_benchmark(benchmark: ArtifactRef, kg: ArtifactRef) -> ArtifactRef:
    """Write the questions of an answerability benchmark as retrieval takes them, and which are answerable."""
    raise AssertionError


@stage(
    "abstainer",
    runs="kgqa_core.abstention.train:train",
    label=lambda arguments: arguments["name"],
    packages=("numpy", "scipy", "duckdb"),
)
def train_abstainer(
    kg: ArtifactRef,
    questions: ArtifactRef,
    labels: ArtifactRef,
    facts: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    name: str,
    options: AbstentionOptions,
) -> ArtifactRef:
    """Learn from answerable and unanswerable questions when the graph holds an answer, and why it does not."""
    raise AssertionError


@stage(
    "confidence",
    runs="kgqa_core.abstention.apply:apply",
    packages=("numpy", "scipy", "duckdb"),
)
def judge(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    abstainer: ArtifactRef | None,
    parsed: ArtifactRef | None = None,
    computed: ArtifactRef | None = None,
    min_confidence: float | None = None,
) -> ArtifactRef:
    """Say of each question how sure it is that the graph holds its answer, and else why not."""
    raise AssertionError


@stage("abstention_scores", runs="kgqa_core.evaluation.abstention:score", packages=("numpy", "scipy"))
def score_abstention(
    questions: ArtifactRef,
    labels: ArtifactRef,
    confidence: ArtifactRef,
    answers: ArtifactRef,
    seed: int,
    bootstrap: int = 1000,
) -> ArtifactRef:
    """Measure how well answerable questions are told from others, what the confidence is worth, and the reasons."""
    raise AssertionError
