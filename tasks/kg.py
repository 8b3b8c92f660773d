"""Stages that make the graph: dump → DuckDB → differentiable KG."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from kgqa_core.config import DkgOptions, KgOptions
from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.kg.formats.registry import check_format
from kgqa_core.kg.ingest.popularity import views_source
from kgqa_core.kg.ingest.sources import find_sources, named_files
from kgqa_core.store.artifacts import MANIFEST, ArtifactRef, read_manifest, verify
from kgqa_core.workspace import Workspace
from tasks.engine.context import Call, Counts
from tasks.engine.external_digests import UNREADABLE, file_digest
from tasks.engine.run import current_run
from tasks.engine.stage import stage


def _dump_files(call: Call) -> dict[str, str]:
    options = call.options
    try:
        files, views = named_files(options.files, options), views_source(options)
    except InputError:
        return {"files": UNREADABLE}
    digests = {f"file {number}": file_digest(source.path) for number, source in enumerate(files)}
    digests |= {name: file_digest(Path(file).expanduser()) for name, file in options.reading_files().items()}
    return digests if views is None else digests | {"page views": file_digest(views.path)}


@stage(
    "kg",
    label=lambda call: call.options.name,
    external=_dump_files,
    packages=("duckdb", "polars"),
)
def build_kg(workspace: Workspace, options: KgOptions) -> Counts:
    """Read the dump into DuckDB: entities, literals, labels, relations, triples, types, and what was rejected."""
    from kgqa_core.kg.build import build

    return build(workspace, options=options)


@stage(
    "kg",
    label=lambda call: f"{call.options.name} updated",
    external=_dump_files,
    packages=("duckdb", "polars"),
)
def update_kg(workspace: Workspace, old: ArtifactRef, options: KgOptions) -> Counts:
    """Read a newer dump into a graph that keeps the ids of the old one, and count what came, went and changed."""
    from kgqa_core.kg.update.delta import update

    return update(workspace, old=old.folder, options=options)


@stage("dkg", packages=("duckdb", "numpy"))
def export_dkg(workspace: Workspace, kg: ArtifactRef, options: DkgOptions) -> Counts:
    """Export the graph as memory-mapped sparse arrays with inverse edges."""
    from kgqa_core.dkg.export import export

    return export(workspace, kg=kg.folder, options=options)


@stage("dkg", label=lambda call: "updated", packages=("duckdb", "numpy"))
def update_dkg(workspace: Workspace, kg: ArtifactRef, old_dkg: ArtifactRef, options: DkgOptions) -> Counts:
    """Bring the sparse arrays up to date with an updated graph; the outcome is that of a whole export."""
    from kgqa_core.dkg.export import update

    return update(workspace, kg=kg.folder, old_dkg=old_dkg.folder, options=options)


def dump_digests(options: KgOptions) -> dict[str, str]:
    """Digests of the files that a graph would be read from, as they enter its key."""
    return _dump_files(SimpleNamespace(options=options))


def graph_in(folder: Path) -> ArtifactRef:
    """The graph in a folder that `kgqa kg build` wrote.  Raises ArtifactError where there is none, or it is damaged."""
    folder = folder.expanduser()
    what = f"there is no graph folder {folder}"
    if (folder / MANIFEST).is_file():
        if (kind := read_manifest(folder)["kind"]) == "kg":
            return verify(folder.resolve())
        what = f"{folder} holds an artifact of kind {kind}, not a graph"
    raise ArtifactError(f"{what}; `kgqa kg build FILE… --out DIR` makes one")


def given_graph(folder: str | None, options: KgOptions) -> ArtifactRef:
    """The graph of a flow that takes a graph folder or files: in the folder where one is given, else built."""
    kg = graph_in(Path(folder)) if folder else build_kg(options)
    current_run().home.use_folder(kg.folder)
    return kg


def check_graph(folder: str | None, options: KgOptions) -> None:
    """Raise the first fault of what `given_graph` needs.  Raises KgInputError or ArtifactError."""
    if folder:
        graph_in(Path(folder))
    else:
        find_sources(options.files, options)
        check_format(options.format)
