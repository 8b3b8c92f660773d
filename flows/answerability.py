"""The flow that builds an answerability benchmark from any graph and questions over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.cli.graph_folders import graph_in
from kgqa_core.config import Profile
from kgqa_core.datasets.load import input_files
from kgqa_core.kg.formats.detect import check_format
from kgqa_core.kg.ingest.sources import find_sources
from tasks.answerability import build_benchmark
from tasks.engine.run import completed, tracked_run
from tasks.engine.secrets import take_in
from tasks.kg import build_kg
from tasks.questions import load_questions


@flow(name="kgqa-answerability", flow_run_name="answerability {profile.kg.name}/{profile.questions.name}")
def build_answerability(profile: Profile, graph: str | None = None) -> dict[str, Any]:
    """Build a benchmark of questions of which a graph, with parts taken out, answers a part.

    Args:
        profile: Every parameter of a run; the graph, the questions, `answerability` and the seed count here.
        graph: Folder of a graph that is built already, in place of the files in the profile's section `kg`.
    """
    with tracked_run(profile) as run:
        kg = graph_in(Path(graph)) if graph else build_kg(profile.kg)
        run.home.use_folder(kg.folder)
        questions = load_questions(kg, profile.questions, profile.seed)
        made = build_benchmark(kg, questions, profile.answerability, profile.seed)
        run.save(status="made")
        data = {"run_id": run.id, "kg": kg, "questions": questions, "made": made}
        return completed(f"answerability over {profile.kg.name}", data)


def check(profile: Profile, graph: str | None = None) -> None:
    """Raise the first fault of what a build needs: the graph, and the question files.

    Raises KgInputError, ArtifactError, InputError or QuestionFileError.
    """
    take_in(profile)
    if graph:
        graph_in(Path(graph))
    else:
        find_sources(profile.kg.files)
        check_format(profile.kg.format)
    input_files(profile.questions)
