"""Stages of answerability benchmarks: their building, their questions for parsers, and the scores of parsers."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import AnswerabilityOptions, Training
from kgqa_core.errors import ArtifactError
from kgqa_core.store.artifacts import MANIFEST, ArtifactRef, read_manifest, verify
from tasks.engine.stage import stage


@stage(
    "answerability",
    runs="kgqa_core.builders.answerability.build:build",
    label=lambda arguments: f"p_u {arguments['options'].p_u:g}",
    packages=("duckdb", "numpy", "polars"),
)
def build_benchmark(kg: ArtifactRef, questions: ArtifactRef, options: AnswerabilityOptions, seed: int) -> ArtifactRef:
    """Drop types, relations, entities and facts until a share of the questions cannot be answered; label and split."""
    raise AssertionError


@stage(
    "questions",
    runs="kgqa_core.builders.answerability.questions:benchmark_questions",
    packages=("duckdb", "polars"),
)
def benchmark_questions(benchmark: ArtifactRef, kg: ArtifactRef) -> ArtifactRef:
    """Write the questions of a benchmark as its modified graph has them."""
    raise AssertionError


@stage(
    "examples",
    runs="kgqa_core.builders.answerability.examples:benchmark_examples",
    variant=lambda arguments: arguments["training"],
    packages=("duckdb", "polars"),
)
def benchmark_examples(
    benchmark: ArtifactRef,
    kg: ArtifactRef,
    questions: ArtifactRef,
    training: Training,
    linked: ArtifactRef | None = None,
) -> ArtifactRef:
    """Give parsers the questions of a benchmark, with the forms that they may learn from."""
    raise AssertionError


@stage(
    "answerability_scores",
    runs="kgqa_core.builders.answerability.evaluate:evaluate",
    packages=("numpy", "polars"),
)
def score_parsers(benchmark: ArtifactRef, parsed: dict[str, ArtifactRef], seed: int) -> ArtifactRef:
    """Tune the thresholds of parsers on dev, and score them with and without, by label, drop and level."""
    raise AssertionError


def benchmark_in(folder: Path) -> tuple[ArtifactRef, ArtifactRef]:
    """A benchmark and its modified graph, in a folder that `kgqa answerability build` wrote.  Raises ArtifactError."""
    folder = folder.expanduser().resolve()
    for place, kind in ((folder, "answerability"), (folder / "kg", "kg")):
        if not (place / MANIFEST).is_file() or read_manifest(place)["kind"] != kind:
            raise ArtifactError(
                f"{folder} is no answerability benchmark; `kgqa answerability build --out DIR` makes one"
            )
    return verify(folder), verify(folder / "kg")
