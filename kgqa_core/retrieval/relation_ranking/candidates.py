"""The relations of an entity in the graph, and seeded draws of the triples behind them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.dkg.csr import Dkg

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """The directed relations of one entity, ascending by id.

    relation, first, count: int64 [n]; the edges of relation i are first[i] … first[i] + count[i] - 1.
    cut: edges of relations that were left out.
    """

    entity: int
    relation: IntArray
    first: IntArray
    count: IntArray
    cut: int = 0


def candidates(dkg: Dkg, entity: int, most: int) -> Candidates:
    """The relations that lead out of an entity and, as inverses, into it: at most `most`, those of most triples.

    Ties go to the smaller id.  Raises GraphMismatch for an entity that the graph has not.
    """
    starts, stops = dkg.row_bounds(np.array([entity], dtype=np.int64))
    start, stop = int(starts[0]), int(stops[0])
    row = dkg.rel[start:stop]
    inner = np.flatnonzero(row[1:] != row[:-1]) + 1
    first = np.concatenate([[0], inner]).astype(np.int64) if len(row) else np.empty(0, dtype=np.int64)
    count = np.diff(np.concatenate([first, [len(row)]])).astype(np.int64) if len(row) else first
    kept = np.sort(np.argsort(-count, kind="stable")[:most])
    cut = len(row) - int(count[kept].sum())
    return Candidates(entity, row[first[kept]].astype(np.int64), start + first[kept], count[kept], cut)


def draw_edges(found: Candidates, place: int, most: int, seed: int, question: str) -> IntArray:
    """At most `most` edges of one relation, ascending; which ones depends on seed, question, entity and relation."""
    first, count = int(found.first[place]), int(found.count[place])
    if count <= most:
        return first + np.arange(count, dtype=np.int64)
    named = f"{seed}\n{question}\n{found.entity}\n{int(found.relation[place])}"
    digest = hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    return first + np.sort(generator.choice(count, size=most, replace=False)).astype(np.int64)
