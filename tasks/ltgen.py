"""Stages that build an LTGen benchmark: the entities that it is about, its questions or dialogues, the sheet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import LlmOptions, LtgenOptions, PopularityOptions, SamplingOptions, WritingOptions
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import file_digest, model_digest
from tasks.engine.stage import stage


def _views(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files that popularity is read from, with their names: these say which month a file is of."""
    options: PopularityOptions = arguments["popularity"]
    found = {f"views {number} {Path(file).name}": _digest(file) for number, file in enumerate(options.files)}
    return found | ({"titles": _digest(options.titles)} if options.titles else {})


def _digest(file: str) -> str:
    return file_digest(Path(file).expanduser())


@stage(
    "ltgen_entities",
    runs="kgqa_core.builders.ltgen.sample:draw",
    label=lambda arguments: f"{arguments['options'].per_level} a level",
    outside=_views,
    packages=("duckdb", "polars"),
    retries=1,
)
def draw_entities(kg: ArtifactRef, options: SamplingOptions, popularity: PopularityOptions, seed: int) -> ArtifactRef:
    """Draw entities of four levels of popularity, with their informative triples both ways (Huang et al. 2024, 3)."""
    raise AssertionError


@stage(
    "ltgen",
    runs="kgqa_core.builders.ltgen.write:write",
    label=lambda arguments: f"{arguments['kind']} by {arguments['options'].writer}",
    variant=lambda arguments: arguments["kind"],
    outside=lambda arguments: (
        {} if arguments["options"].writer == "template" else {"writer": model_digest(arguments["options"].writer)}
    ),
    packages=("torch", "transformers", "tokenizers", "openai"),
    tags=("gpu",),
    retries=1,
)
def write_questions(
    kg: ArtifactRef, sample: ArtifactRef, kind: str, options: WritingOptions, llm: LlmOptions, seed: int
) -> ArtifactRef:
    """Have questions or dialogues written about the drawn entities, check them, keep the good ones."""
    raise AssertionError


@stage(
    "ltgen_sheet",
    runs="kgqa_core.builders.ltgen.sheet:write_sheet",
    variant=lambda arguments: arguments["kind"],
)
def write_sheet(kg: ArtifactRef, benchmark: ArtifactRef, kind: str, share: float, seed: int) -> ArtifactRef:
    """Draw a sample of a benchmark for two annotators, as CSV and as a page."""
    raise AssertionError


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
