"""Stages that build benchmarks from a graph: LTGen's questions and dialogues, and GrailQAbility's answerability.

Huang et al. 2024 and Patidar et al. 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kgqa_core.config import (
    AnswerabilityOptions,
    LlmOptions,
    LtgenOptions,
    PopularityOptions,
    QuestionsOptions,
    SamplingOptions,
    Training,
    WritingOptions,
)
from kgqa_core.datasets.published.base import path_of
from kgqa_core.errors import ArtifactError
from kgqa_core.store.artifacts import MANIFEST, ArtifactRef, read_manifest, verify
from kgqa_core.workspace import Workspace
from tasks.engine.context import Call, Counts, folder, folders
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.stage import stage

if TYPE_CHECKING:
    from kgqa_core.papers.ltgen.write import Kind


def _views(call: Call) -> dict[str, str]:
    """Digests of the files that popularity is read from, with their names: these say which month a file is of."""
    options: PopularityOptions = call.popularity
    found = {f"views {number} {Path(file).name}": _digest(file) for number, file in enumerate(options.files)}
    return found | ({"titles": _digest(options.titles)} if options.titles else {})


def _digest(file: str) -> str:
    return file_digest(Path(file).expanduser())


@stage(
    "ltgen_entities",
    label=lambda call: f"{call.options.per_level} a level",
    external=_views,
    packages=("duckdb", "polars"),
    retries=1,
)
def draw_entities(
    workspace: Workspace, kg: ArtifactRef, options: SamplingOptions, popularity: PopularityOptions, seed: int
) -> Counts:
    """Draw entities of four levels of popularity, with their informative triples both ways (Huang et al. 2024, 3)."""
    from kgqa_core.papers.ltgen.sample import draw

    return draw(workspace, kg=kg.folder, options=options, popularity=popularity, seed=seed)


@stage(
    "ltgen",
    label=lambda call: f"{call.kind} by {call.options.writer}",
    variant=lambda call: call.kind,
    external=lambda call: {} if call.options.writer == "template" else {"writer": model_digest(call.options.writer)},
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
    pays=True,
)
def write_questions(
    workspace: Workspace,
    kg: ArtifactRef,
    sample: ArtifactRef,
    kind: Kind,
    options: WritingOptions,
    llm: LlmOptions,
    seed: int,
) -> Counts:
    """Have questions or dialogues written about the drawn entities, check them, keep the good ones."""
    from kgqa_core.papers.ltgen.write import write

    return write(workspace, kg=kg.folder, sample=sample.folder, kind=kind, options=options, llm=llm, seed=seed)


@stage(
    "ltgen_sheet",
    variant=lambda call: call.kind,
)
def write_sheet(workspace: Workspace, kg: ArtifactRef, benchmark: ArtifactRef, kind: str, seed: int) -> Counts:
    """Draw a sample of a benchmark for two annotators, as CSV and as a page."""
    from kgqa_core.papers.ltgen import sheet

    return sheet.write_sheet(
        workspace.out, benchmark=benchmark.folder, kg=kg.folder, share=sheet.SHARE, seed=seed, kind=kind
    )


def write_kinds(
    kg: ArtifactRef, sample: ArtifactRef, options: LtgenOptions, llm: LlmOptions, seed: int
) -> dict[str, ArtifactRef]:
    """The benchmarks that are asked for, by kind."""
    kinds = dict.fromkeys(options.writing.kinds)
    return {kind: write_questions(kg, sample, kind, options.writing, llm, seed) for kind in kinds}


def write_sheets(kg: ArtifactRef, made: Mapping[str, ArtifactRef], seed: int) -> dict[str, ArtifactRef]:
    """An annotation sheet of each benchmark, by kind."""
    return {kind: write_sheet(kg, benchmark, kind, seed) for kind, benchmark in made.items()}


@stage(
    "answerability",
    label=lambda call: f"p_u {call.options.p_u:g}",
    packages=("duckdb", "numpy", "polars"),
)
def build_benchmark(
    workspace: Workspace, kg: ArtifactRef, questions: ArtifactRef, options: AnswerabilityOptions, seed: int
) -> Counts:
    """Drop types, relations, entities and facts until a share of the questions cannot be answered; label and split."""
    from kgqa_core.papers.grailqability.builder.build import build

    return build(workspace, kg=kg.folder, questions=questions.folder, options=options, seed=seed)


@stage(
    "questions",
    packages=("duckdb", "polars"),
)
def benchmark_questions(workspace: Workspace, benchmark: ArtifactRef, kg: ArtifactRef) -> Counts:
    """Write the questions of a benchmark as its modified graph has them."""
    from kgqa_core.papers.grailqability.builder import questions

    return questions.benchmark_questions(workspace, benchmark=benchmark.folder, kg=kg.folder)


@stage(
    "examples",
    variant=lambda call: call.training,
    packages=("duckdb", "polars"),
)
def benchmark_examples(
    workspace: Workspace,
    benchmark: ArtifactRef,
    kg: ArtifactRef,
    questions: ArtifactRef,
    training: Training,
    linked: ArtifactRef | None = None,
) -> Counts:
    """Give parsers the questions of a benchmark, with the forms that they may learn from."""
    from kgqa_core.papers.grailqability.builder import questions as of_benchmark

    return of_benchmark.benchmark_examples(
        workspace,
        benchmark=benchmark.folder,
        kg=kg.folder,
        questions=questions.folder,
        training=training,
        linked=folder(linked),
    )


@stage(
    "answerability",
    label=lambda call: f"{call.options.name} as published",
    external=lambda call: {"questions": _digest(call.options.path or "")},
)
def published_benchmark(workspace: Workspace, options: QuestionsOptions) -> Counts:
    """Read the questions of GrailQAbility's own files, with what the modified and the ideal graph say of each."""
    from kgqa_core.papers.grailqability.builder.published import write_published

    return write_published(workspace, path_of(options))


@stage(
    "answerability_scores",
    external=lambda call: {"ontology": _digest(call.ontology)} if call.ontology else {},
    packages=("numpy", "polars"),
)
def score_parsers(
    workspace: Workspace, benchmark: ArtifactRef, parsed: dict[str, ArtifactRef], seed: int, ontology: str | None
) -> Counts:
    """Tune the thresholds of parsers on dev, and score them with and without, by label, drop and level."""
    from kgqa_core.papers.grailqability.builder.evaluate import evaluate
    from kgqa_core.papers.grailqability.freebase_match import evaluator

    return evaluate(workspace, benchmark=benchmark.folder, parsed=folders(parsed), seed=seed, by=evaluator(ontology))


def benchmark_in(folder: Path) -> tuple[ArtifactRef, ArtifactRef]:
    """A benchmark and its modified graph, in a folder that `kgqa answerability build` wrote.  Raises ArtifactError."""
    folder = folder.expanduser().resolve()
    for place, kind in ((folder, "answerability"), (folder / "kg", "kg")):
        if not (place / MANIFEST).is_file() or read_manifest(place)["kind"] != kind:
            raise ArtifactError(
                f"{folder} is no answerability benchmark; `kgqa answerability build --out DIR` makes one"
            )
    return verify(folder), verify(folder / "kg")
