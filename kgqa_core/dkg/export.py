"""The stage `dkg`: the graph in DuckDB becomes the arrays of the differentiable KG."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import DkgOptions
from kgqa_core.dkg import layout
from kgqa_core.dkg.build import Builder, Ranges, Unsorted
from kgqa_core.errors import KgInputError
from kgqa_core.kg.sql import number
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor

Array = NDArray[Any]
CHUNK = 1 << 19
"""Rows that are read from the graph at once."""


def export(
    out: Path,
    *,
    kg: Path,
    options: DkgOptions | None = None,
    seed: int = 0,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes ptr.npy, rel.npy, tail.npy, forward.npy, relations.json and meta.json of the graph in `kg` into `out`.

    Memory: 16 bytes an entity and a chunk of triples; the edges are put in place in the files themselves.  The seed
    has no effect.
    Returns counts: entities (with literals), relations, triples, edges (directed), bytes_per_edge, largest_degree.
    Raises KgInputError when the graph has no triples or they are not numbered by (head, relation, tail), StorageError
    when `out` cannot be written.
    """
    options = options or DkgOptions()
    with KgStore.open(kg) as store:
        entities, literals = id_space(store), literal_ranges(store)
        keys, names = store.relation_keys(), store.relation_names()
        triples = number(store.connection, "SELECT count(*) FROM triples")
        if not triples:
            raise KgInputError(
                f"the graph in {kg} has no triples, so there is nothing to follow; check what its build rejected"
            )
        files: dict[str, Array] = {}

        def empty(name: str, length: int, dtype: np.dtype[Any]) -> Array:
            files[name] = array_file(out, name, length, dtype)
            return files[name].view(np.ndarray)

        builder = Builder(entities, len(keys), literals, options.literal_inverses, empty)
        order = ""
        try:
            _pass(store, order, builder.count, monitor, 0, triples)
        except Unsorted:  # the table is not stored in order
            order = " ORDER BY id"
            builder = Builder(entities, len(keys), literals, options.literal_inverses, empty)
            _pass(store, order, builder.count, monitor, 0, triples)
        _pass(store, order, builder.place, monitor, triples, triples)
    share = triples / max(entities, 1)
    ptr, rel, tail = builder.sort(lambda rows: monitor.progress(2 * triples + rows * share, 3 * triples, _SORTING))
    counts = _finish(out, ptr, rel, tail, triples, keys, names, literals, saved=files)
    monitor.progress(3 * triples, 3 * triples, "DKG: done")
    monitor.note(
        f"DKG: {len(tail):,} directed edges over {entities:,} entities, {counts['bytes_per_edge']} bytes an edge"
    )
    return counts


def write(
    out: Path, ptr: Array, rel: Array, tail: Array, *, triples: int, keys: Sequence[str], names: Sequence[str],
    literals: Ranges, saved: dict[str, Array] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Writes rows that exist as `export` does, ptr: [entities + 1], and returns its counts.

    saved: arrays of `array_file`, by name, that are in their files already.
    """
    return _finish(out, ptr, rel, tail, triples, keys, names, literals, saved=saved or {})


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


def id_space(store: KgStore) -> int:
    """One more than the largest id; an updated graph has holes below it."""
    return number(store.connection, "SELECT coalesce(max(id), -1) + 1 FROM entities")


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


def _finish(
    out: Path, ptr: Array, rel: Array, tail: Array, triples: int, keys: Sequence[str], names: Sequence[str],
    literals: Ranges, saved: dict[str, Array],
) -> dict[str, Any]:  # fmt: skip
    """Writes what is not in its file yet, and counts."""
    entities = len(ptr) - 1
    degree = int(np.diff(ptr).max(initial=0))
    rows = layout.compact(ptr)
    arrays = {"ptr": rows, "rel": rel, "tail": tail, "forward": layout.forward_blocks(rows, rel, len(keys))}
    meta = layout.make_meta(
        rows, rel, tail, entities=entities, triples=triples, keys=keys, names=names, literals=literals
    )
    for array in saved.values():
        array.flush()  # type: ignore[attr-defined]
    layout.save(out, {name: array for name, array in arrays.items() if name not in saved}, meta)
    return {
        "entities": entities,
        "relations": len(keys),
        "triples": triples,
        "edges": len(tail),
        "bytes_per_edge": round(sum(array.nbytes for array in arrays.values()) / max(len(tail), 1), 2),
        "largest_degree": degree,
    }
