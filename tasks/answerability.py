"""Stages of answerability benchmarks: their building, their questions for parsers, and the scores of parsers."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import AnswerabilityOptions, Training
from kgqa_core.errors import ArtifactError
from kgqa_core.store.artifacts import MANIFEST, ArtifactRef, read_manifest, verify
from tasks.engine.stage import Counts, StageContext, folder, folders, stage


@stage(
    "answerability",
    label=lambda call: f"p_u {call.options.p_u:g}",
    packages=("duckdb", "numpy", "polars"),
)
def build_benchmark(
    stage: StageContext, kg: ArtifactRef, questions: ArtifactRef, options: AnswerabilityOptions, seed: int
) -> Counts:
    """Drop types, relations, entities and facts until a share of the questions cannot be answered; label and split."""
    from kgqa_core.builders.answerability.build import build

    return build(
        stage.out,
        kg=kg.folder,
        questions=questions.folder,
        options=options,
        seed=seed,
        monitor=stage.monitor,
        work=stage.work,
    )


@stage(
    "questions",
    packages=("duckdb", "polars"),
)
def benchmark_questions(stage: StageContext, benchmark: ArtifactRef, kg: ArtifactRef) -> Counts:
    """Write the questions of a benchmark as its modified graph has them."""
    from kgqa_core.builders.answerability import questions

    return questions.benchmark_questions(
        stage.out, benchmark=benchmark.folder, kg=kg.folder, monitor=stage.monitor, work=stage.work
    )


@stage(
    "examples",
    variant=lambda call: call.training,
    packages=("duckdb", "polars"),
)
def benchmark_examples(
    stage: StageContext,
    benchmark: ArtifactRef,
    kg: ArtifactRef,
    questions: ArtifactRef,
    training: Training,
    linked: ArtifactRef | None = None,
) -> Counts:
    """Give parsers the questions of a benchmark, with the forms that they may learn from."""
    from kgqa_core.builders.answerability import examples

    return examples.benchmark_examples(
        stage.out,
        benchmark=benchmark.folder,
        kg=kg.folder,
        questions=questions.folder,
        training=training,
        linked=folder(linked),
        monitor=stage.monitor,
        work=stage.work,
    )


@stage(
    "answerability_scores",
    packages=("numpy", "polars"),
)
def score_parsers(stage: StageContext, benchmark: ArtifactRef, parsed: dict[str, ArtifactRef], seed: int) -> Counts:
    """Tune the thresholds of parsers on dev, and score them with and without, by label, drop and level."""
    from kgqa_core.builders.answerability.evaluate import evaluate

    return evaluate(
        stage.out, benchmark=benchmark.folder, parsed=folders(parsed), seed=seed, monitor=stage.monitor, work=stage.work
    )


def benchmark_in(folder: Path) -> tuple[ArtifactRef, ArtifactRef]:
    """A benchmark and its modified graph, in a folder that `kgqa answerability build` wrote.  Raises ArtifactError."""
    folder = folder.expanduser().resolve()
    for place, kind in ((folder, "answerability"), (folder / "kg", "kg")):
        if not (place / MANIFEST).is_file() or read_manifest(place)["kind"] != kind:
            raise ArtifactError(
                f"{folder} is no answerability benchmark; `kgqa answerability build --out DIR` makes one"
            )
    return verify(folder), verify(folder / "kg")
