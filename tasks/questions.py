"""The stage that reads questions and links them to the graph."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from kgqa_core.config import QuestionsOptions
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.context import Call, Counts, StageContext
from tasks.engine.external_digests import file_digest
from tasks.engine.stage import stage


def _question_files(call: Call) -> dict[str, str]:
    options = call.options
    if options.source == "atlas":
        return {"atlas": file_digest(find_sources(("bundled:atlas",))[0].path)}
    return {"questions": file_digest(Path(options.path).expanduser())} if options.path else {}


@stage(
    "questions",
    label=lambda call: call.options.name,
    external=_question_files,
    packages=("rdflib",),
)
def load_questions(stage: StageContext, kg: ArtifactRef, options: QuestionsOptions, seed: int) -> Counts:
    """Read the questions, link topics and answers to the graph, list what cannot be linked, measure leakage."""
    from kgqa_core.datasets.load import load

    return load(stage.out, kg=kg.folder, options=options, seed=seed, monitor=stage.monitor, work=stage.work)


@stage(
    "questions",
    variant=lambda call: f"more/{call.options.name}",
    external=_question_files,
    packages=("rdflib",),
)
def load_more(stage: StageContext, kg: ArtifactRef, options: QuestionsOptions, seed: int) -> Counts:
    """Read a further question set that the retriever learns from."""
    from kgqa_core.datasets.load import load

    return load(stage.out, kg=kg.folder, options=options, seed=seed, monitor=stage.monitor, work=stage.work)


def more_questions(kg: ArtifactRef, options: QuestionsOptions, seed: int) -> dict[str, ArtifactRef]:
    """The further question sets, by name."""
    return {one.name: load_more(kg, QuestionsOptions(**one.model_dump()), seed) for one in options.more}


def question_digests(options: QuestionsOptions) -> dict[str, str]:
    """Digests of the files that questions would be read from, as they enter their key."""
    return _question_files(SimpleNamespace(options=options))
