"""A graph brought up to date: with the new dump, or with the statements that came and went.

The new graph is that of a build from the new dump, up to ids: terms and relations of the old graph keep theirs, new
ones follow after every id that was ever given, and those of removed ones stay free.  The short way changes a copy of
the old graph (`patch`, for a dump after `patch_dump`).  Where that does not do, both ways go through the build
itself: with a dump its statements are read as always; with a pair of files the old graph restates what it was built
from (`kg.ingest.restate`), and the pair is added and removed before the meaning is worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.attach import shut_out
from kgqa_core.kg.build import Part, build_parts, part_of, parts_of
from kgqa_core.kg.formats.registry import check_format
from kgqa_core.kg.ingest import restate
from kgqa_core.kg.ingest.encode import assign_ids
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.kg.mapping import model
from kgqa_core.kg.sql import quoted
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.update import diff
from kgqa_core.kg.update.patch import CAME, WENT, NotPatchable, Pair, check_pair, marked, patch
from kgqa_core.kg.update.patch_dump import patch_from_dump
from kgqa_core.kg.update.patch_lists import LISTS
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.workspace import Workspace

DIFF = LISTS


def update(
    workspace: Workspace, *, old: Path, options: KgOptions, added: Sequence[str] = (), removed: Sequence[str] = ()
) -> dict[str, Any]:
    """Builds the graph of the new dump `options.files`, or of `old` without `removed` and with `added`.

    Returns the counts of a build and `changes`, the summary of `diff.compare`; with a pair also `not_found`, removed
    statements that `old` does not hold (never held, or left out by a filter), and `already_there`, added ones that it
    does; what `old` left out stays counted in `filtered`.  A statement in both files of a pair ends up in the graph.
    Page views are those of `old` where no file of them is given.  Raises KgInputError where neither or both ways are
    given, where `old` cannot take a pair, and for whatever a build raises it.
    """
    if bool(options.files) == bool(added or removed):
        raise KgInputError("an update takes either the new dump, or files of added and removed statements; name one")
    check_format(options.format)
    if options.files:
        with scratch_folder(workspace.work, "kgqa-map") as folder:
            options = _as_mapped(workspace, folder / "map.yaml", old, options)
            sources = find_sources(options.files, options)
            try:
                parts, _ = parts_of(sources, options)
                return patch_from_dump(workspace, parts, old=old, options=options)
            except NotPatchable as reason:
                workspace.monitor.note(f"the whole graph is made anew: {reason}")
            parts, _ = parts_of(sources, options)
            return update_parts(workspace, parts, old, options)
    with KgStore.open(old) as store:
        check_pair(store, options)
        path = store.path
    parts = list(_parts_of_pair(added, removed, options))
    try:
        return patch(workspace, old=path, options=options, parts=parts)
    except NotPatchable as reason:
        workspace.monitor.note(f"the whole graph is made anew: {reason}")
    return _rebuild(workspace, path, old, options, added, removed)


def _as_mapped(workspace: Workspace, path: Path, old: Path, options: KgOptions) -> KgOptions:
    """The options with the mapping, at `path`, that `old` was built by, where it was given one and they name none."""
    with KgStore.open(old) as store:
        tables = dict(store.meta.get("tables", {}))
    tables.pop("notes", None)
    if options.map is not None or not tables.pop("given", False):
        return options
    path.write_text(model.write_mapping(model.Mapping.model_validate(tables), []), encoding="utf-8")
    workspace.monitor.note("tables are read by the mapping that the old graph was built by (`--map` names another)")
    return options.model_copy(update={"map": str(path)})


def _rebuild(
    workspace: Workspace, path: Path, old: Path, options: KgOptions, added: Sequence[str], removed: Sequence[str]
) -> dict[str, Any]:
    """An update with a pair that restates the whole old graph."""
    pair = Pair()
    batches = restate.statements(path, memory_limit=options.memory_limit, work=workspace.work)
    whole = Part("the old graph", "graph", batches, path.stat().st_size, path)
    parts = [whole, *_parts_of_pair(added, removed, options)]
    counts = update_parts(workspace, parts, old, options, adjust=pair.take_out)
    return counts | {"not_found": pair.not_found, "already_there": pair.already_there}


def _parts_of_pair(added: Sequence[str], removed: Sequence[str], options: KgOptions) -> Iterator[Part]:
    """The files of a pair, their statements marked."""
    for files, mark in ((added, CAME), (removed, WENT)):
        for source in find_sources(files, options) if files else ():
            part = part_of(source, options)
            # A format of another name: statement nodes of full Wikidata RDF are not put together here.
            yield replace(part, format=f"{part.format}, {mark[1:]}", batches=marked(part, mark))


def update_parts(
    workspace: Workspace,
    parts: Sequence[Part],
    old: Path,
    options: KgOptions,
    *,
    adjust: Callable[[duckdb.DuckDBPyConnection], int] | None = None,
) -> dict[str, Any]:
    """Builds a graph from parts with the ids of `old`, and lists what differs from it in DIFF beside it."""
    old_ids = _OldIds(old, options)
    counts = build_parts(workspace, parts, options, adjust=adjust, assign=old_ids.assign, complete=old_ids.complete)
    changes = diff.compare(
        Workspace(workspace.out / DIFF, workspace.work, monitor=workspace.monitor),
        old,
        workspace.out,
        memory_limit=options.memory_limit,
        threads=options.threads,
    )
    for what, change in changes.items():
        workspace.monitor.note(f"{what}: " + ", ".join(f"{count:,} {name}" for name, count in change.items()))
    return counts | {"changes": changes}


def options_of(old: Path) -> dict[str, Any]:
    """The keys of the section `kg` that a graph was built with: its name, and what decides what statements mean."""
    with KgStore.open(old) as store:
        return {"name": store.meta.get("name", "kg"), **store.meta["options"]}


class _OldIds:
    """Ids and page views of the old graph, for the new one."""

    def __init__(self, old: Path, options: KgOptions) -> None:
        self._views = not options.page_views
        with KgStore.open(old) as store:
            self._path = store.path
            self._next: Mapping[str, int] = store.meta["next_ids"]

    def assign(self, connection: duckdb.DuckDBPyConnection) -> None:
        """`ids` and `relation_ids` as of a build, then with the ids of the old graph."""
        assign_ids(connection)
        connection.execute(f"ATTACH {quoted(self._path)} AS old (READ_ONLY)")
        shut_out(connection)
        literal = "CASE tag WHEN 0 THEN 'entity' ELSE 'literal' END"
        _pin(
            connection,
            "ids",
            f"SELECT tid, key, {literal} AS kind, datatype, detail FROM terms JOIN tags USING (tag)",
            "old.entities",
            ("kind", "key", "datatype", "detail"),
            self._next["entities"],
        )
        _pin(
            connection, "relation_ids", "SELECT tid, key FROM relation_terms", "old.relations", ("key",),
            self._next["relations"],
        )  # fmt: skip

    def complete(self, connection: duckdb.DuckDBPyConnection, meta: dict[str, Any]) -> None:
        """Ids are never given again; page views stay."""
        for table, first in self._next.items():
            meta["next_ids"][table] = max(meta["next_ids"][table], first)
        if self._views:
            connection.execute(
                "UPDATE kg.entities SET views = o.views FROM old.entities o "
                "WHERE o.id = kg.entities.id AND o.views IS NOT NULL"
            )
        connection.execute("DETACH old")


def _pin(
    connection: duckdb.DuckDBPyConnection, table: str, terms: str, old: str, identity: Sequence[str], first: int
) -> None:
    """Changes `table(tid, id)`: terms that are in `old` have its ids, the others follow from `first` in their order."""
    equal = " AND ".join(f"t.{column} IS NOT DISTINCT FROM o.{column}" for column in identity)
    run = connection.execute
    run(f"ALTER TABLE {table} RENAME TO dense")
    run(
        f"CREATE TABLE pinned AS SELECT t.tid, o.id FROM ({terms}) t SEMI JOIN dense USING (tid) "
        f"JOIN {old} o ON {equal}"
    )
    run(
        f"""
        CREATE TABLE {table} AS
        SELECT tid, id FROM pinned UNION ALL
        SELECT tid, ({first} + row_number() OVER (ORDER BY id) - 1)::INTEGER FROM dense ANTI JOIN pinned USING (tid)"""
    )
    run("DROP TABLE dense; DROP TABLE pinned")
