"""Flows that build benchmarks from a graph: LTGen, questions and dialogues about what is little known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import flow

from kgqa_core.config import PopularityOptions, Profile
from kgqa_core.llm.factory import parse_spec
from kgqa_core.llm.probe import check_endpoint
from tasks.benchmarks import draw_entities, write_kinds, write_sheets
from tasks.engine.run import completed, tracked_run
from tasks.kg import check_graph, given_graph
from tasks.secrets import load_secrets


@flow(name="kgqa-ltgen", flow_run_name="ltgen {profile.kg.name}")
def build_ltgen(profile: Profile, graph: str | None = None) -> dict[str, Any]:
    """Build LTGen-QA and LTGen-Conv from a graph: draw entities by popularity, write, check, count, draw a sheet.

    Page views and completions are kept as they come: a killed run goes on where it was.

    Args:
        profile: Every parameter of a run; the graph, `ltgen`, `llm` and the seed count here.
        graph: Folder of a graph that is built already, in place of the files in the profile's section `kg`.
    """
    with tracked_run(profile) as run:
        kg = given_graph(graph, profile.kg)
        popularity = with_titles(profile.ltgen.popularity, () if graph else profile.kg.files)
        sample = draw_entities(kg, profile.ltgen.sampling, popularity, profile.seed)
        made = write_kinds(kg, sample, profile.ltgen, profile.llm, profile.seed)
        sheets = write_sheets(kg, made, profile.seed)
        run.save(status="made")
        data = {"run_id": run.id, "kg": kg, "sample": sample, "made": made, "sheets": sheets}
        return completed(f"LTGen by {profile.ltgen.writing.writer}: {', '.join(made)}", data)


def with_titles(options: PopularityOptions, files: Sequence[str]) -> PopularityOptions:
    """The options with the graph's own dump of Wikidata as the source of titles, where page views are had by title."""
    from kgqa_core.papers.ltgen.popularity import dump_of

    by_title = options.source in ("api", "dump") or (options.source == "auto" and options.files)
    if options.titles or not by_title:
        return options
    return options.model_copy(update={"titles": dump_of(files)})


def check(profile: Profile, graph: str | None = None) -> None:
    """Raise the first fault of what a build needs: graph files, or a graph folder, and the writer's endpoint.

    Raises KgInputError, ArtifactError, ModelError or EndpointError.
    """
    load_secrets(profile)
    check_graph(graph, profile.kg)
    writer = profile.ltgen.writing.writer
    if writer != "template" and parse_spec(writer, profile.llm)[0] == "openai":
        check_endpoint(writer, profile.llm)
