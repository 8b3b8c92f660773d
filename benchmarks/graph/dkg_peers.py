"""Following two hops without gradients against libraries of sparse matrices: scipy and python-graphblas.

    python -m benchmarks.graph.dkg_peers [--scales small metaqa large] [--rounds 5] [--json OUT]

A question is one entity with weights of all relations for two hops, and is scored by the weight that reaches its
candidates, a tenth of the entities.  All roads must give the same scores before anything is timed.

- kernel:               ours, a batch of questions at a time
- scipy, edges:         (X M_left) * (entries of r by edge), times M_right, scipy CSR with sparse X [batch, E]
- scipy, relations:     the sum over relations of (diag(r) X) A_relation, scipy CSR
- graphblas, mxm:       that sum with python-graphblas, X [batch, E]
- graphblas, masked:    a question at a time, x A_relation as vxm; the last hop is masked by the candidates, and the
                        method is Gustavson's: SuiteSparse's own choice, hash tables, did not end on the graph `metaqa`

python-graphblas is no requirement of this project: without it its roads are left out.  Roads run in turn within each
round; figures are medians, in milliseconds a question.  Matrices by relation are made before anything is timed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.graph.dkg_follow import SCALES, synthetic
from benchmarks.results_file import CONDITIONS
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow

FIELDS = (
    *CONDITIONS, "rounds", "packages/*", "graphs/*/name", "graphs/*/entities", "graphs/*/edges", "graphs/*/relations",
    "graphs/*/batch", "graphs/*/followed", "graphs/*/ms/*", "graphs/*/ratio/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
CANDIDATES = 0.1

Road = Callable[[], np.ndarray]


class Questions:
    """A batch on one graph.  seeds: int [B].  r: float32 [2, B, 2R].  goal: float32 [E], 1 for candidates, else 0."""

    def __init__(self, dkg: Dkg, batch: int) -> None:
        draw = np.random.default_rng(SEED)
        degree = np.diff(dkg.ptr).astype(float)
        self.dkg, self.batch = dkg, batch
        self.seeds = draw.choice(dkg.entities, batch, p=degree / degree.sum())
        logits = draw.standard_normal((2, batch, 2 * dkg.relations)).astype(np.float32)
        weights = np.exp(logits)
        self.r = weights / weights.sum(-1, keepdims=True)
        self.goal = (draw.random(dkg.entities) < CANDIDATES).astype(np.float32)

    def kernel(self) -> Road:
        """Ours."""
        r = torch.from_numpy(self.r)
        goal = torch.from_numpy(self.goal)

        def run() -> np.ndarray:
            with torch.no_grad():
                x = EntityWeights.one_hot([[int(seed)] for seed in self.seeds])
                for hop in range(2):
                    x = follow(self.dkg, x, r[hop], backend="numba")
                return np.asarray(x.with_weight(x.weight * goal.take(x.entity)).sum())

        return run

    def followed(self) -> float:
        """Edges that a question follows in both hops, on average."""
        degree = np.diff(self.dkg.ptr)
        first = self._start()
        reached = first @ self._any()
        reached.data[:] = 1
        return float((degree[self.seeds].sum() + (reached @ degree).sum()) / self.batch)

    def _any(self) -> sparse.csr_matrix:
        edges = self.dkg.edges_stored
        adjacent = sparse.csr_matrix(
            (np.ones(edges, np.float32), np.array(self.dkg.tail), np.array(self.dkg.ptr)),
            shape=(len(self.dkg.ptr) - 1, self.dkg.entities),
        )
        adjacent.sum_duplicates()
        return adjacent

    def _start(self) -> sparse.csr_matrix:
        shape = (self.batch, self.dkg.entities)
        ones = np.ones(self.batch, np.float32)
        return sparse.csr_matrix((ones, self.seeds.astype(np.int32), np.arange(self.batch + 1)), shape=shape)

    def scipy_edges(self) -> Road:
        """Entities to edges, weighed by their relations, to entities."""
        edges = self.dkg.edges_stored
        left = sparse.csr_matrix(
            (np.ones(edges, np.float32), np.arange(edges, dtype=np.int32), self.dkg.ptr),
            shape=(self.dkg.entities, edges),
        )
        right = sparse.csr_matrix(
            (np.ones(edges, np.float32), np.asarray(self.dkg.tail), np.arange(edges + 1)),
            shape=(edges, self.dkg.entities),
        )
        rel = np.asarray(self.dkg.rel).astype(np.int64)

        def run() -> np.ndarray:
            x = self._start()
            for hop in range(2):
                out = x @ left
                rows = np.repeat(np.arange(self.batch), np.diff(out.indptr))
                out.data *= self.r[hop][rows, rel[out.indices]]
                x = out @ right
            return np.asarray(x @ self.goal)

        return run

    def _by_relation(self) -> list[tuple[int, sparse.csr_matrix]]:
        source = np.repeat(np.arange(self.dkg.entities), np.diff(self.dkg.ptr))
        rel, tail = np.asarray(self.dkg.rel), np.asarray(self.dkg.tail)
        shape = (self.dkg.entities, self.dkg.entities)
        found = []
        for relation in range(2 * self.dkg.relations):
            own = np.flatnonzero(rel == relation)
            if own.size:
                ones = np.ones(own.size, np.float32)
                found.append((relation, sparse.csr_matrix((ones, (source[own], tail[own])), shape=shape)))
        return found

    def scipy_relations(self) -> Road:
        """A product for each relation."""
        matrices = self._by_relation()

        def run() -> np.ndarray:
            x = self._start()
            for hop in range(2):
                rows = np.repeat(np.arange(self.batch), np.diff(x.indptr))
                total = None
                for relation, matrix in matrices:
                    scaled = sparse.csr_matrix(
                        (x.data * self.r[hop][rows, relation], x.indices, x.indptr), shape=x.shape
                    )
                    part = scaled @ matrix
                    total = part if total is None else total + part
                x = total
            return np.asarray(x @ self.goal)

        return run

    def graphblas_mxm(self) -> Road:
        """A product for each relation, all questions together."""
        gb = importlib.import_module("graphblas")

        matrices = [(relation, gb.io.from_scipy_sparse(matrix)) for relation, matrix in self._by_relation()]
        goal = gb.Vector.from_dense(self.goal)

        def run() -> np.ndarray:
            x = gb.io.from_scipy_sparse(self._start())
            for hop in range(2):
                total = gb.Matrix(gb.dtypes.FP32, *x.shape)
                for relation, matrix in matrices:
                    scale = gb.Vector.from_dense(self.r[hop][:, relation].copy()).diag()
                    total(accum=gb.binary.plus) << (scale.mxm(x).new()).mxm(matrix)
                x = total
            return np.asarray(x.mxv(goal).new().to_dense(fill_value=0.0))

        return run

    def graphblas_masked(self) -> Road:
        """A product for each relation and question; the last hop only at candidates."""
        gb = importlib.import_module("graphblas")

        matrices = [(relation, gb.io.from_scipy_sparse(matrix)) for relation, matrix in self._by_relation()]
        places = np.flatnonzero(self.goal)
        candidates = gb.Vector.from_coo(places, np.ones(len(places), np.bool_), size=self.dkg.entities)

        def run() -> np.ndarray:
            scores = np.zeros(self.batch, np.float32)
            for number, seed in enumerate(self.seeds):
                x = gb.Vector.from_coo([int(seed)], np.ones(1, np.float32), size=self.dkg.entities)
                for hop in range(2):
                    total = gb.Vector(gb.dtypes.FP32, self.dkg.entities)
                    for relation, matrix in matrices:
                        scaled = x.apply(gb.binary.times, right=float(self.r[hop, number, relation])).new()
                        if hop:
                            total(mask=candidates.S, accum=gb.binary.plus, axb_method="gustavson") << scaled.vxm(matrix)
                        else:
                            total(accum=gb.binary.plus) << scaled.vxm(matrix)
                    x = total
                scores[number] = float(x.reduce(gb.monoid.plus).get(0.0))
            return scores

        return run


def measure(dkg: Dkg, batch: int, rounds: int, graphblas: bool) -> dict[str, Any]:
    """Medians of every road, and their ratios to the kernel's."""
    work = Questions(dkg, batch)
    roads: dict[str, Road] = {
        "kernel": work.kernel(), "scipy, edges": work.scipy_edges(), "scipy, relations": work.scipy_relations()
    }  # fmt: skip
    if graphblas:
        roads |= {"graphblas, mxm": work.graphblas_mxm(), "graphblas, masked": work.graphblas_masked()}
    expected = roads["kernel"]()
    for name, road in roads.items():
        np.testing.assert_allclose(road(), expected, rtol=2e-3, atol=1e-6, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in roads}
    for _ in range(rounds):
        for name, road in roads.items():
            repeats = 10 if name == "kernel" else 1
            began = time.perf_counter()
            for _ in range(repeats):
                road()
            times[name].append((time.perf_counter() - began) / repeats / batch * 1000)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "entities": dkg.entities, "edges": dkg.edges_stored, "relations": dkg.relations, "batch": batch,
        "followed": round(work.followed(), 1), "ms": {name: round(value, 5) for name, value in medians.items()},
        "ratio": {name: round(value / medians["kernel"], 1) for name, value in medians.items()},
    }  # fmt: skip


def main() -> None:
    """Measures each graph and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", nargs="*", choices=SCALES, default=list(SCALES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=RESULTS / "dkg_peers.json")
    given = parser.parse_args()
    graphblas = importlib.util.find_spec("graphblas") is not None
    packages = {"scipy": importlib.metadata.version("scipy")}
    if graphblas:
        packages["python-graphblas"] = importlib.metadata.version("python-graphblas")
    found: dict[str, Any] = {
        "conditions": conditions(SEED), "rounds": given.rounds, "packages": packages, "graphs": []
    }  # fmt: skip
    for name in given.scales:
        scale = SCALES[name]
        dkg = synthetic(scale.entities, scale.triples, scale.relations, SEED)
        found["graphs"].append({"name": name, **measure(dkg, scale.batch, given.rounds, graphblas)})
        print(json.dumps(found["graphs"][-1]), flush=True)
    results_file.write(given.json, found, FIELDS)


if __name__ == "__main__":
    main()
