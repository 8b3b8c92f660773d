"""Graphs for the benchmarks of the DKG: of any size, written straight as rows of edges, the same for the same seed.

Degrees follow a power law (exponent 2.2 from 2 on, up to 100,000) at every size, and four hubs hold 1.6 % of all edges,
so that seeds in proportion to degree look alike in a small and in a large graph.  Ends of edges are sampled in
proportion to degree too.  Rows are sorted by (relation, tail); they are not each other's inverse, which nothing that
is measured on these graphs asks for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.dkg import layout
from kgqa_core.dkg.build import relation_dtype, row_dtype
from kgqa_core.dkg.csr import Dkg

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
RELATIONS = 500
"""Relations of the graph, followed both ways."""
MEAN = 9.9
"""Mean degree of the power law below."""
HUBS = (0.008, 0.004, 0.002, 0.002)
"""Shares of all edges that lead out of the hubs."""
SAMPLE = 1 << 24


@_jit
def _random(seed: int, number: int) -> np.uint64:
    """A 64-bit hash of two numbers (splitmix64): randomness that does not depend on who draws first."""
    z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_jit
def _degrees(entities: int, seed: int) -> Array:
    degree = np.empty(entities, dtype=np.int64)
    for entity in range(entities):
        u = (np.float64(_random(seed, entity) >> np.uint64(11)) + 1.0) / 9007199254740993.0
        degree[entity] = np.int64(min(100_000.0, 2.0 * u ** (-1 / 1.2)))
    return degree


@_jit
def _sample(ptr: Array, step: int, out: Array) -> None:
    """The source of each `step`th edge: entities in proportion to degree."""
    row = 0
    for j in range(out.shape[0]):
        edge = j * step
        while np.int64(ptr[row + 1]) <= edge:
            row += 1
        out[j] = row


@_jit
def _fill(first: int, last: int, ptr: Array, sample: Array, both: int, seed: int, rel: Array, tail: Array) -> None:
    """The edges of rows [first, last)."""
    kinds, counts = np.empty(64, dtype=np.int64), np.empty(65, dtype=np.int64)
    size = np.uint64(sample.shape[0])
    for row in range(first, last):
        start, stop = np.int64(ptr[row]), np.int64(ptr[row + 1])
        degree = stop - start
        if degree == 0:
            continue
        some = min(degree, 1 + np.int64(2 * np.log2(degree + 1)), 64)
        for k in range(some):
            u = np.float64(_random(seed + 1, start + k) >> np.uint64(11)) / 9007199254740992.0
            kinds[k] = min(np.int64(u * u * both), both - 1)
        kinds[:some].sort()
        counts[: some + 1] = 0
        for e in range(start, stop):
            counts[np.int64(_random(seed + 2, e) % np.uint64(some)) + 1] += 1
        e = start
        for k in range(some):
            for _ in range(counts[k + 1]):
                rel[e] = kinds[k]
                tail[e] = sample[_random(seed + 3, e) % size]
                e += 1
        begin = start
        while begin < stop:
            end = begin + 1
            while end < stop and rel[end] == rel[begin]:
                end += 1
            if end - begin > 24:
                tail[begin:end].sort()
            else:
                for i in range(begin + 1, end):
                    t = tail[i]
                    j = i
                    while j > begin and tail[j - 1] > t:
                        tail[j] = tail[j - 1]
                        j -= 1
                    tail[j] = t
            begin = end


def generate(folder: Path, edges: int, seed: int, threads: int) -> Path:
    """A DKG of about `edges` directed edges in a folder, which later runs reuse."""
    if (folder / "meta.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    degree = _degrees(int(edges * (1 - sum(HUBS)) / MEAN), seed)
    degree[np.random.default_rng(seed).choice(len(degree), len(HUBS), replace=False)] = [
        edges * share for share in HUBS
    ]
    ptr = np.zeros(len(degree) + 1, dtype=np.int64)
    np.cumsum(degree, out=ptr[1:])
    total = int(ptr[-1])
    ptr = ptr.astype(row_dtype(total))
    step = max(1, total // SAMPLE)
    sample = np.empty((total + step - 1) // step, dtype=np.int32)
    _sample(ptr, step, sample)
    rel = np.lib.format.open_memmap(folder / "rel.npy", "w+", relation_dtype(RELATIONS), (total,))
    tail = np.lib.format.open_memmap(folder / "tail.npy", "w+", np.int32, (total,))
    rows = np.searchsorted(ptr, np.linspace(0, total, 65).astype(ptr.dtype)[1:-1])
    bounds = [0, *rows.tolist(), len(degree)]
    with ThreadPoolExecutor(threads) as pool:
        work = [
            pool.submit(
                _fill, first, last, ptr, sample, 2 * RELATIONS, seed, rel.view(np.ndarray), tail.view(np.ndarray)
            )
            for first, last in zip(bounds[:-1], bounds[1:], strict=True)
        ]
        for part in work:
            part.result()
    rel.flush()
    tail.flush()
    forward = layout.forward_blocks(layout.compact(ptr), rel.view(np.ndarray), RELATIONS)
    names = [f"r{number}" for number in range(RELATIONS)]
    meta = {
        "entities": len(degree), "relations": RELATIONS, "triples": int(forward[-1]), "edges": total, "literals": [],
        "relation_keys": names, "relation_names": names, "digest": f"benchmark {edges} {seed}",
    }  # fmt: skip
    layout.save(folder, {"ptr": layout.compact(ptr), "forward": forward}, meta)
    return folder


def draw_seeds(dkg: Dkg, kind: str, count: int, seed: int) -> Array:
    """Entities sampled uniformly over those with edges, or in proportion to `degree`; int64 [count]."""
    draw = np.random.default_rng(seed)
    if kind == "degree":
        return dkg.source_of(draw.integers(0, dkg.edges_stored, count))
    entities = draw.integers(0, dkg.entities, 4 * count)
    start, stop = dkg.row_bounds(entities)
    return entities[stop > start][:count]
