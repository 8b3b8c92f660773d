"""The stage that reads questions and links them to the graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionsOptions
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import file_digest
from tasks.engine.stage import stage


def _question_files(arguments: Mapping[str, Any]) -> dict[str, str]:
    options = arguments["options"]
    if options.source == "atlas":
        return {"atlas": file_digest(find_sources(("bundled:atlas",))[0].path)}
    return {"questions": file_digest(Path(options.path).expanduser())} if options.path else {}


@stage(
    "questions",
    runs="kgqa_core.datasets.load:load",
    label=lambda arguments: arguments["options"].name,
    outside=_question_files,
)
def load_questions(kg: ArtifactRef, options: QuestionsOptions, seed: int) -> ArtifactRef:
    """Read the questions, link topics and answers to the graph, list what cannot be linked, measure leakage."""
    raise AssertionError


@stage(
    "questions",
    runs="kgqa_core.datasets.load:load",
    variant=lambda arguments: f"more/{arguments['options'].name}",
    outside=_question_files,
)
def load_more(kg: ArtifactRef, options: QuestionsOptions, seed: int) -> ArtifactRef:
    """Read a further question set that the retriever learns from."""
    raise AssertionError


def more_questions(kg: ArtifactRef, options: QuestionsOptions, seed: int) -> dict[str, ArtifactRef]:
    """The further question sets, by name."""
    return {one.name: load_more(kg, QuestionsOptions(**one.model_dump()), seed) for one in options.more}


def question_digests(options: QuestionsOptions) -> dict[str, str]:
    """Digests of the files that questions would be read from, as they enter their key."""
    return _question_files({"options": options})
