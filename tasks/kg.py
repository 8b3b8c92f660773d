"""Stages that make the graph: dump → DuckDB → differentiable KG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import DkgOptions, KgOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.ingest.popularity import views_source
from kgqa_core.kg.ingest.sources import find_sources
from tasks.outside import UNREADABLE, file_digest
from tasks.stage import stage


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


@stage("dkg", runs="kgqa_core.dkg.export:export", packages=("duckdb", "numpy"))
def export_dkg(kg: ArtifactRef, options: DkgOptions) -> ArtifactRef:
    """Export the graph as memory-mapped sparse arrays with inverse edges."""
    raise AssertionError
