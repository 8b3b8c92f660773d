"""Stages that make the graph: dump → DuckDB → differentiable KG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.config import DkgOptions, KgOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.ingest.popularity import views_source
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import UNREADABLE, file_digest
from tasks.engine.stage import stage


def _dump_files(arguments: Mapping[str, Any]) -> dict[str, str]:
    options = arguments["options"]
    try:
        sources, views = find_sources(options.files), views_source(options)
    except InputError:
        return {"files": UNREADABLE}
    digests = {f"file {number}": file_digest(source.path) for number, source in enumerate(sources)}
    return digests if views is None else digests | {"page views": file_digest(views.path)}


@stage(
    "kg",
    runs="kgqa_core.kg.build:build",
    label=lambda arguments: arguments["options"].name,
    outside=_dump_files,
    packages=("duckdb", "polars"),
)
def build_kg(options: KgOptions) -> ArtifactRef:
    """Read the dump into DuckDB: entities, literals, labels, relations, triples, types, and what was rejected."""
    raise AssertionError  # the decorator runs the library function


@stage(
    "kg",
    runs="kgqa_core.kg.delta:update",
    label=lambda arguments: f"{arguments['options'].name} updated",
    outside=_dump_files,
    packages=("duckdb", "polars"),
)
def update_kg(old: ArtifactRef, options: KgOptions) -> ArtifactRef:
    """Read a newer dump into a graph that keeps the ids of the old one, and count what came, went and changed."""
    raise AssertionError


@stage("dkg", runs="kgqa_core.dkg.export:export", packages=("duckdb", "numpy"))
def export_dkg(kg: ArtifactRef, options: DkgOptions) -> ArtifactRef:
    """Export the graph as memory-mapped sparse arrays with inverse edges."""
    raise AssertionError


@stage("dkg", runs="kgqa_core.dkg.update:update", label=lambda arguments: "updated", packages=("duckdb", "numpy"))
def update_dkg(kg: ArtifactRef, old_dkg: ArtifactRef, options: DkgOptions) -> ArtifactRef:
    """Bring the sparse arrays up to date with an updated graph; the outcome is that of a whole export."""
    raise AssertionError


def dump_digests(options: KgOptions) -> dict[str, str]:
    """Digests of the files that a graph would be read from, as they enter its key."""
    return _dump_files({"options": options})
