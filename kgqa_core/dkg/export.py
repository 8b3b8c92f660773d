"""The stage `dkg`: the graph in DuckDB becomes the arrays of the differentiable KG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.config import DkgOptions
from kgqa_core.dkg.csr import build_arrays, make_meta
from kgqa_core.errors import KgInputError, StorageError
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor


def export(
    out: Path,
    *,
    kg: Path,
    options: DkgOptions | None = None,
    seed: int = 0,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes ptr.npy, rel.npy, tail.npy and meta.json of the graph in `kg` into `out`; nothing is drawn with the seed.

    Returns counts: entities (with literals), relations, triples, edges (directed), bytes_per_edge, largest_degree.
    Raises KgInputError when the graph has no triples or its ids are not dense and sorted, StorageError when
    `out` cannot be written.
    """
    options = options or DkgOptions()
    monitor.progress(0, 3, "DKG: reading triples")
    with KgStore.open(kg) as store:
        entities, first_literal = _entity_counts(store)
        keys, names = store.relation_keys(), store.relation_names()
        columns = store.connection.execute("SELECT head, relation, tail FROM triples ORDER BY id").fetchnumpy()
    triples = len(columns["head"])
    if not triples:
        raise KgInputError(
            f"the graph in {kg} has no triples, so there is nothing to follow; check what its build rejected"
        )
    monitor.progress(1, 3, "DKG: sorting edges")
    ptr, rel, tail = build_arrays(
        columns["head"],
        columns["relation"],
        columns["tail"],
        entities,
        len(keys),
        first_literal,
        options.literal_inverses,
    )
    monitor.progress(2, 3, "DKG: writing")
    meta = make_meta(ptr, rel, tail, triples, keys, names, first_literal)
    try:
        for name, array in (("ptr", ptr), ("rel", rel), ("tail", tail)):
            np.save(out / f"{name}.npy", array, allow_pickle=False)
        (out / "meta.json").write_text(json.dumps(meta, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    except OSError as fault:
        raise StorageError(
            f"the DKG cannot be written to {out}: {fault}; free space or choose another --home"
        ) from None
    size = ptr.nbytes + rel.nbytes + tail.nbytes
    counts = {
        "entities": entities,
        "relations": len(keys),
        "triples": triples,
        "edges": len(tail),
        "bytes_per_edge": round(size / len(tail), 2),
        "largest_degree": int(np.diff(ptr).max()),
    }
    monitor.progress(3, 3, "DKG: done")
    monitor.note(
        f"DKG: {len(tail):,} directed edges over {entities:,} entities, {counts['bytes_per_edge']} bytes an edge"
    )
    return counts


def _entity_counts(store: KgStore) -> tuple[int, int]:
    """Entities with literals, and the id of the first literal.  Raises KgInputError when ids have gaps."""
    row = store.connection.execute(
        "SELECT count(*), coalesce(max(id), -1), count(*) FILTER (WHERE kind <> 'literal'), "
        "coalesce(min(id) FILTER (WHERE kind = 'literal'), count(*)) FROM entities"
    ).fetchone()
    total, largest, proper, first_literal = (int(value) for value in row or (0, -1, 0, 0))
    if largest + 1 != total or proper != first_literal:
        raise KgInputError(
            f"entity ids of the graph are not dense with literals last ({total} rows, largest id {largest}, "
            f"first literal "
            f"{first_literal}); build the graph again"
        )
    return total, first_literal
