"""The DKG of an updated graph from the old DKG: what did not change is copied, the rest is merged in.

The result is that of `export`, byte for byte, whatever the two graphs have in common; it is quicker the more that is.
The new triples are compared with the old arrays themselves, so no record of what changed has to be trusted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import DkgOptions
from kgqa_core.dkg import layout
from kgqa_core.dkg import merge_kernels as kernels
from kgqa_core.dkg.build import Ranges, relation_dtype
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import array_file, check_triples, export, id_space, read_schema, write
from kgqa_core.dkg.layout import DkgSchema
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.store import KgStore
from kgqa_core.store.artifacts import storage_faults
from kgqa_core.workspace import Workspace

IntArray = NDArray[np.int64]

CHUNK = 1 << 20
"""Triples that are compared at once."""

ROOM = 1 << 18
"""Changed triples that are collected between two copies."""

IN_MEMORY = 1 << 27
"""Edges that are merged in memory; more are merged into the files."""

MOST = 0.2
"""Share of changed triples above which a full export is quicker."""


@dataclass(frozen=True, slots=True)
class _Delta:
    """Triples (head, relation, tail) of one graph only, int64 [n, 3], sorted."""

    removed: IntArray
    added: IntArray


def update(workspace: Workspace, *, kg: Path, old_dkg: Path, options: DkgOptions | None = None) -> dict[str, Any]:
    """Writes the DKG of the graph in `kg` into `out`, with the help of the DKG of an earlier state of the graph.

    Returns the counts of `export` and how it was made: `made` is `kept` (no triple changed), `merged`, or `exported`
    where too much changed; `triples_added`, `triples_removed`.  Raises what `export` raises.
    """
    options = options or DkgOptions()
    workspace.monitor.progress(0, 3, "DKG: comparing triples")
    try:
        old = Dkg.open(old_dkg)
    except ArtifactError as fault:
        workspace.monitor.note(f"the old DKG is of no use ({fault}); the new one is exported in full")
        return _export(workspace, kg, options)
    with KgStore.open(kg) as store:
        entities, schema = id_space(store), read_schema(store)
        delta = _compare(store, old, entities, schema.literals, options)
    if delta is None:
        return _export(workspace, kg, options)
    workspace.monitor.progress(1, 3, "DKG: merging")
    triples = old.triples + len(delta.added) - len(delta.removed)
    check_triples(kg, triples)
    changed = len(delta.added) + len(delta.removed)
    if not changed and old.entities == entities and old.relation_keys[: old.relations] == schema.keys:
        return _reuse(workspace, old, old_dkg, schema)
    merged = _merge(workspace.out, old, delta, entities, schema, options)
    if merged is None:
        return _export(workspace, kg, options)
    workspace.monitor.progress(2, 3, "DKG: writing")
    ptr, rel, tail = merged
    saved = {"rel": rel, "tail": tail} if isinstance(rel, np.memmap) else {}
    arrays = ptr, rel.view(np.ndarray), tail.view(np.ndarray)
    counts = write(workspace.out, *arrays, triples=triples, schema=schema, saved=saved)
    workspace.monitor.progress(3, 3, "DKG: done")
    workspace.monitor.note(f"DKG: {changed:,} of {triples:,} triples merged into the old arrays")
    return {**counts, "made": "merged", "triples_added": len(delta.added), "triples_removed": len(delta.removed)}


def _reuse(workspace: Workspace, old: Dkg, old_dkg: Path, schema: DkgSchema) -> dict[str, Any]:
    """The old arrays again: the same files under another name where the disk allows it, else copies."""
    files = sorted(old_dkg.glob("*.npy"))
    with storage_faults(workspace.out):
        for file in files:
            try:
                os.link(file, workspace.out / file.name)
            except OSError:
                shutil.copyfile(file, workspace.out / file.name)
    named = {"literals": schema.literals, "relation_keys": schema.keys, "relation_names": schema.names}
    layout.save(workspace.out, {}, {**old.meta, **named})
    workspace.monitor.progress(3, 3, "DKG: done")
    workspace.monitor.note(f"DKG: none of {old.triples:,} triples changed; the arrays are those of {old_dkg}")
    arrays = [np.load(file, mmap_mode="r", allow_pickle=False) for file in files]
    return {
        "entities": old.entities,
        "relations": old.relations,
        "triples": old.triples,
        "edges": old.edges_stored,
        "bytes_per_edge": round(sum(array.nbytes for array in arrays) / max(old.edges_stored, 1), 2),
        "largest_degree": int(np.diff(old.rows).max(initial=0)),
        "made": "kept",
        "triples_added": 0,
        "triples_removed": 0,
    }


def _export(workspace: Workspace, kg: Path, options: DkgOptions) -> dict[str, Any]:
    return {**export(workspace, kg=kg, options=options), "made": "exported"}


def _compare(
    store: KgStore, old: Dkg, entities: int, literals: Ranges, options: DkgOptions, order: str = ""
) -> _Delta | None:
    """What differs between the old arrays and the new triples; None where the arrays are no help."""
    size = max(old.entities, entities)
    before, after = _mask(old.literals, size), _mask(literals, size)
    state = np.zeros(12, dtype=np.int64)
    state[kernels.BEFORE :] = -1
    most = int(MOST * old.triples) + 1000
    room = np.empty((ROOM, 3), dtype=np.int64), np.empty((ROOM, 3), dtype=np.int64)
    removed: list[IntArray] = []
    added: list[IntArray] = []
    result = 0
    for head, relation, tail, last in _chunks(store, order):
        state[kernels.INPUT] = 0
        done = False
        while not done:
            done = kernels.compare(
                old.rows, old.rel, old.tail, old.relations, before, after, head, relation, tail, last, state, *room
            )
            for parts, buffer, place in ((removed, room[0], kernels.REMOVED), (added, room[1], kernels.ADDED)):
                if state[place]:
                    parts.append(buffer[: state[place]].copy())
            result += int(state[kernels.REMOVED] + state[kernels.ADDED])
            if state[kernels.UNSORTED]:  # the table is not stored in order
                return None if order else _compare(store, old, entities, literals, options, " ORDER BY id")
            if result > most:
                return None
    gone_rows, new_rows = (np.concatenate([np.empty((0, 3), np.int64), *parts]) for parts in (removed, added))
    unchanged, literal, turned = (int(state[place]) for place in (kernels.UNCHANGED, kernels.LITERAL, kernels.TURNED))
    whole = unchanged + len(gone_rows) == old.triples
    inverses = old.triples if options.literal_inverses else old.triples - literal
    turned = 0 if options.literal_inverses else turned
    if not whole or turned or old.edges_stored != old.triples + inverses:
        return None
    return _Delta(gone_rows, new_rows)


def _chunks(store: KgStore, order: str) -> Iterator[tuple[IntArray, IntArray, IntArray, bool]]:
    """The triples, and whether these are the last; at least one chunk."""
    reader = store.connection.execute(f"SELECT head, relation, tail FROM triples{order}").to_arrow_reader(CHUNK)
    before: list[IntArray] | None = None
    for batch in reader:
        if before is not None:
            yield before[0], before[1], before[2], False
        before = [column.to_numpy() for column in batch.columns]
    head, relation, tail = before or [np.empty(0, dtype=np.int32)] * 3
    yield head, relation, tail, True


def _merge(
    out: Path, old: Dkg, delta: _Delta, entities: int, schema: DkgSchema, options: DkgOptions
) -> tuple[IntArray, NDArray[Any], NDArray[Any]] | None:
    """ptr, rel and tail of the new graph; None where the old arrays hold something else.

    Small arrays are made in memory, which is quicker, others in their files in `out`.
    """
    size, relations = max(old.entities, entities), len(schema.keys)
    base = max(old.relations, relations)
    less = _directed(delta.removed, base, None if options.literal_inverses else _mask(old.literals, size))
    more = _directed(delta.added, base, None if options.literal_inverses else _mask(schema.literals, size))
    degree = np.zeros(size, dtype=np.int64)
    degree[: len(old.rows) - 1] = np.diff(old.rows)
    np.add.at(degree, more[:, 0], 1)
    np.subtract.at(degree, less[:, 0], 1)
    if degree[entities:].any() or (degree < 0).any():
        return None
    ptr = np.zeros(entities + 1, dtype=np.int64)
    np.cumsum(degree[:entities], out=ptr[1:])
    edges = int(ptr[-1])
    types = {"rel": relation_dtype(relations), "tail": np.dtype(np.int32)}
    rel, tail = (
        np.empty(edges, dtype) if edges <= IN_MEMORY else array_file(out, name, edges, dtype)
        for name, dtype in types.items()
    )
    places = rel.view(np.ndarray), tail.view(np.ndarray)
    merged = kernels.merge(old.rows, old.rel, old.tail, old.relations, relations, less, more, ptr, *places)
    return (ptr, rel, tail) if merged else None


def _directed(triples: IntArray, base: int, literal: NDArray[np.bool_] | None) -> IntArray:
    """The edges of triples both ways as (row, relation, tail), sorted, inverse relations from `base` on.

    literal: mask of literals, out of which there are none; None for a DKG with edges out of literals.
    """
    back = triples if literal is None else triples[~literal[triples[:, 2]]]
    edges = np.concatenate([triples, np.stack([back[:, 2], back[:, 1] + base, back[:, 0]], axis=1)])
    return np.ascontiguousarray(edges[np.lexsort((edges[:, 2], edges[:, 1], edges[:, 0]))])


def _mask(ranges: Ranges, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=np.bool_)
    for start, stop in ranges:
        mask[start:stop] = True
    return mask
