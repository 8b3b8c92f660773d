"""The flow that makes questions from a graph alone."""

from __future__ import annotations

from typing import Any

from prefect import flow

from kgqa_core.builders.questions.write import TEMPLATE
from kgqa_core.config import Profile
from kgqa_core.llm.factory import parse_spec
from kgqa_core.llm.probe import check_endpoint
from tasks.engine.run import completed, tracked_run
from tasks.kg import check_graph, given_graph
from tasks.questions import generate_questions
from tasks.secrets import load_secrets


@flow(name="kgqa-questions", flow_run_name="questions {profile.kg.name}")
def make_questions(profile: Profile, graph: str | None = None) -> dict[str, Any]:
    """Make questions from a graph alone: forms drawn and run, worded, typed as people type, some without an answer.

    Args:
        profile: Every parameter of a run; the graph, `questions.generated`, `llm` and the seed count here.
        graph: Folder of a graph that is built already, in place of the files in the profile's section `kg`.
    """
    with tracked_run(profile) as run:
        kg = given_graph(graph, profile.kg)
        made = generate_questions(kg, profile.questions.generated, profile.llm, profile.seed)
        run.save(status="made")
        return completed(f"questions over {profile.kg.name}", {"run_id": run.id, "kg": kg, "made": made})


def check(profile: Profile, graph: str | None = None) -> None:
    """Raise the first fault of what the flow needs: graph files, or a graph folder, and the writer's endpoint.

    Raises KgInputError, ArtifactError, ModelError or EndpointError.
    """
    load_secrets(profile)
    check_graph(graph, profile.kg)
    writer = profile.questions.generated.writer
    if writer != TEMPLATE and parse_spec(writer, profile.llm)[0] == "openai":
        check_endpoint(writer, profile.llm)
