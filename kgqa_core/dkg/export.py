"""The stage `dkg`: the graph in DuckDB becomes the arrays of the differentiable KG."""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import DkgOptions
from kgqa_core.dkg import layout
from kgqa_core.dkg.build import Builder, Unsorted
from kgqa_core.dkg.layout import DkgSchema
from kgqa_core.errors import KgInputError
from kgqa_core.kg.sql import number
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import Monitor
from kgqa_core.workspace import Workspace

Array = NDArray[Any]
CHUNK = 1 << 19
"""Rows that are read from the graph at once."""


def export(workspace: Workspace, *, kg: Path, options: DkgOptions | None = None) -> dict[str, Any]:
    """Writes ptr.npy, rel.npy, tail.npy, forward.npy, relations.json and meta.json of the graph in `kg` into `out`.

    Memory: 16 bytes an entity and a chunk of triples; the edges are written to the files themselves.
    Returns counts: entities (with literals), relations, triples, edges (directed), bytes_per_edge, largest_degree.
    Raises KgInputError when the graph has no triples or they are not numbered by (head, relation, tail), StorageError
    when `out` cannot be written.
    """
    options = options or DkgOptions()
    with KgStore.open(kg) as store:
        entities = number(store.connection, "SELECT coalesce(max(id), -1) + 1 FROM entities")  # not all are in use
        schema = DkgSchema(store.relation_keys(), store.relation_names(), literal_ranges(store))
        triples = number(store.connection, "SELECT count(*) FROM triples")
        if not triples:
            raise KgInputError(
                f"the graph in {kg} has no triples, so there is nothing to follow; check what its build rejected"
            )
        files: dict[str, Array] = {}

        def empty(name: str, length: int, dtype: np.dtype[Any]) -> Array:
            files[name] = array_file(workspace.out, name, length, dtype)
            return files[name].view(np.ndarray)

        def new_builder() -> Builder:
            return Builder(entities, len(schema.keys), schema.literals, options.literal_inverses, empty)

        builder, order = new_builder(), ""
        try:
            _pass(store, order, builder.count, workspace.monitor, 0, triples)
        except Unsorted:  # the table is not stored in order
            order = " ORDER BY id"
            builder = new_builder()
            _pass(store, order, builder.count, workspace.monitor, 0, triples)
        _pass(store, order, builder.place, workspace.monitor, triples, triples)
    share = triples / max(entities, 1)
    ptr, rel, tail = builder.sort(
        lambda rows: workspace.monitor.progress(2 * triples + rows * share, 3 * triples, _SORTING)
    )
    counts = write(workspace.out, ptr, rel, tail, triples=triples, schema=schema, saved=files)
    workspace.monitor.progress(3 * triples, 3 * triples, "DKG: done")
    workspace.monitor.note(
        f"DKG: {len(tail):,} directed edges over {entities:,} entities, {counts['bytes_per_edge']} bytes an edge"
    )
    return counts


def update(workspace: Workspace, *, kg: Path, old_dkg: Path, options: DkgOptions | None = None) -> dict[str, Any]:
    """Writes the DKG of the graph in `kg` as `export` does; arrays equal to those of `old_dkg` share its files.

    Returns the counts of `export` and `made`: `kept` where no array changed, else `exported`.  Files are hard-linked
    where the disk allows it.
    """
    counts = export(workspace, kg=kg, options=options)
    arrays = sorted(workspace.out.glob("*.npy"))
    old = {file.name for file in old_dkg.glob("*.npy")}
    same = [file for file in arrays if file.name in old and filecmp.cmp(old_dkg / file.name, file, shallow=False)]
    for file in same:
        link = file.with_suffix(".link")
        with contextlib.suppress(OSError):
            os.link(old_dkg / file.name, link)
            os.replace(link, file)
    if len(same) < len(arrays):
        return counts | {"made": "exported"}
    workspace.monitor.note(f"DKG: none of {counts['triples']:,} triples changed; the arrays are those of {old_dkg}")
    return counts | {"made": "kept"}


def write(
    out: Path, ptr: Array, rel: Array, tail: Array, *, triples: int, schema: DkgSchema, saved: dict[str, Array]
) -> dict[str, Any]:
    """Writes rows that exist as `export` does, ptr: [entities + 1], and returns its counts.

    saved: arrays of `array_file`, by name, that are in their files already.
    """
    entities = len(ptr) - 1
    degree = int(np.diff(ptr).max(initial=0))
    rows = layout.compact(ptr)
    arrays = {"ptr": rows, "rel": rel, "tail": tail, "forward": layout.forward_blocks(rows, rel, len(schema.keys))}
    meta = layout.make_meta(rows, rel, tail, entities, triples, schema)
    for array in saved.values():
        array.flush()  # type: ignore[attr-defined]
    layout.save(out, {name: array for name, array in arrays.items() if name not in saved}, meta)
    return {
        "entities": entities,
        "relations": len(schema.keys),
        "triples": triples,
        "edges": len(tail),
        "bytes_per_edge": round(sum(array.nbytes for array in arrays.values()) / max(len(tail), 1), 2),
        "largest_degree": degree,
    }


def literal_ranges(store: KgStore) -> list[list[int]]:
    """Ranges [start, stop) of ids that are literals: each reaches from a first to a last with no entity between."""
    ranges: list[list[int]] = []
    open_ = False
    for ids, literal in _chunks(store, "SELECT id, kind = 'literal' FROM entities ORDER BY id"):
        edges = np.flatnonzero(np.diff(literal.astype(np.int8), prepend=np.int8(open_)))
        for at in edges.tolist():
            if literal[at]:
                ranges.append([int(ids[at]), int(ids[at]) + 1])
            else:
                ranges[-1][1] = int(ids[at - 1]) + 1 if at else ranges[-1][1]
        if len(ids):
            open_ = bool(literal[-1])
            if open_:
                ranges[-1][1] = int(ids[-1]) + 1
    return ranges


_SORTING = "DKG: edges in order"


def _pass(store: KgStore, order: str, take: Any, monitor: Monitor, done: int, triples: int) -> None:
    """Hands every triple to `take`.  Raises Unsorted where their numbers do not count from 0."""
    number = 0
    for ids, *columns in _chunks(store, f"SELECT id, head, relation, tail FROM triples{order}"):
        if not np.array_equal(ids, np.arange(number, number + len(ids))):
            raise Unsorted("triples are not numbered by (head, relation, tail); build the graph again")
        take(*columns)
        number += len(ids)
        monitor.progress(done + number, 3 * triples, "DKG: triples counted, then placed")


def _chunks(store: KgStore, query: str) -> Iterator[list[Array]]:
    """The columns of a query's result, chunk by chunk."""
    for batch in store.connection.execute(query).to_arrow_reader(CHUNK):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def array_file(out: Path, name: str, length: int, dtype: np.dtype[Any]) -> Array:
    """An array in its own file, whose space is reserved at once: a full disk raises here, not as a signal later."""
    path = out / f"{name}.npy"
    try:
        array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(length,))
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, max(path.stat().st_size, 1))
    except OSError as fault:
        raise layout.cannot_write(out, fault) from None
    return array
