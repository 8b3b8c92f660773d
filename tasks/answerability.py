"""The stage that builds an answerability benchmark from a graph and questions."""

from __future__ import annotations

from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import AnswerabilityOptions
from tasks.stage import stage


@stage(
    "answerability",
    runs="kgqa_core.benchmarks.grailqability.build:build",
    label=lambda arguments: f"p_u {arguments['options'].p_u:g}",
    packages=("duckdb", "numpy", "polars"),
)
def build_benchmark(kg: ArtifactRef, questions: ArtifactRef, options: AnswerabilityOptions, seed: int) -> ArtifactRef:
    """Drop types, relations, entities and facts until a share of the questions cannot be answered; label and split."""
    raise AssertionError
