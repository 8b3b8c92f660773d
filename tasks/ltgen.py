"""Stages that build an LTGen benchmark: the entities that it is about, its questions or dialogues, the sheet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kgqa_core.config import LlmOptions, LtgenOptions, PopularityOptions, SamplingOptions, WritingOptions
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.stage import Call, Counts, StageContext, stage

if TYPE_CHECKING:
    from kgqa_core.builders.ltgen.write import Kind


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
    stage: StageContext, kg: ArtifactRef, options: SamplingOptions, popularity: PopularityOptions, seed: int
) -> Counts:
    """Draw entities of four levels of popularity, with their informative triples both ways (Huang et al. 2024, 3)."""
    from kgqa_core.builders.ltgen.sample import draw

    return draw(
        stage.out,
        kg=kg.folder,
        options=options,
        popularity=popularity,
        seed=seed,
        monitor=stage.monitor,
        cache=stage.cache,
    )


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
    stage: StageContext,
    kg: ArtifactRef,
    sample: ArtifactRef,
    kind: Kind,
    options: WritingOptions,
    llm: LlmOptions,
    seed: int,
) -> Counts:
    """Have questions or dialogues written about the drawn entities, check them, keep the good ones."""
    from kgqa_core.builders.ltgen.write import write

    return write(
        stage.out,
        kg=kg.folder,
        sample=sample.folder,
        kind=kind,
        options=options,
        llm=llm,
        seed=seed,
        monitor=stage.monitor,
        cache=stage.cache,
        budget=stage.budget,
    )


@stage(
    "ltgen_sheet",
    variant=lambda call: call.kind,
)
def write_sheet(
    stage: StageContext, kg: ArtifactRef, benchmark: ArtifactRef, kind: str, share: float, seed: int
) -> Counts:
    """Draw a sample of a benchmark for two annotators, as CSV and as a page."""
    from kgqa_core.builders.ltgen import sheet

    return sheet.write_sheet(stage.out, benchmark=benchmark.folder, kg=kg.folder, share=share, seed=seed, kind=kind)


def write_kinds(
    kg: ArtifactRef, sample: ArtifactRef, options: LtgenOptions, llm: LlmOptions, seed: int
) -> dict[str, ArtifactRef]:
    """The benchmarks that are asked for, by kind."""
    kinds = dict.fromkeys(options.writing.kinds)
    return {kind: write_questions(kg, sample, kind, options.writing, llm, seed) for kind in kinds}


def write_sheets(
    kg: ArtifactRef, made: Mapping[str, ArtifactRef], options: LtgenOptions, seed: int
) -> dict[str, ArtifactRef]:
    """An annotation sheet of each benchmark, by kind."""
    share = options.writing.sheet_share
    return {kind: write_sheet(kg, benchmark, kind, share, seed) for kind, benchmark in made.items()}
