"""How fast one question follows two hops, forward and backward, against dense products and against our own torch path.

    python -m benchmarks.graph.dkg_follow [--scales small metaqa large] [--kg TRIPLES] [--rounds 7] [--threads N]
        [--json OUT]

All roads compute the same loss over the same batch, and their results are compared before anything is timed:

- sparse:   M_right^T [(M_left x) * (M_rel r)], torch.sparse CSR over x [E, B] and r [2R, B] (Cohen et al. 2020, eq. 2)
- coo:      the same three products with torch.sparse COO
- gather:   the same hop as gather, multiply and scatter over all edges, dense [edges, B]
- matrices: the same hop as one weighted CSR matrix per question, x [E]
- torch:    the frontier in plain torch
- kernel:   the compiled frontier

The first four are dense: their cost is the size of the graph; the fastest is named.  Seeds are sampled uniformly
over entities, or in proportion to degree.  Relation weights are a softmax of normal logits, so every relation weighs
something and nothing is skipped.  Roads are timed in turn within each round; the figures are medians of rounds after a
warm-up, in milliseconds per question.  Processor time is given beside wall time: on a machine that others use, wall
time says as much about them.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.pages.performance import follow as follow_table
from benchmarks.results_file import CONDITIONS
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow
from tests.support.reified import sparse_maps

FIELDS = (
    *CONDITIONS, "what", "cores", "machine", "python", "rounds", "seed", "threads", "torch", "graphs/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

Road = Callable[[], tuple[torch.Tensor, torch.Tensor]]


def synthetic(entities: int, triples: int, relations: int, seed: int) -> Dkg:
    """A random graph of the given size whose tails are as skewed as MetaQA's (Zipf exponent 0.9)."""
    draw = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, entities + 1) ** 0.9
    chances = draw.permutation(popularity / popularity.sum())
    found = np.empty((0, 3), dtype=np.int64)
    while len(found) < triples:
        head = draw.integers(0, max(entities * 2 // 5, 1), triples)  # films are two fifths of MetaQA's entities
        more = np.stack([head, draw.integers(0, relations, triples), draw.choice(entities, triples, p=chances)], axis=1)
        found = np.unique(np.concatenate([found, more]), axis=0)
    found = found[np.sort(draw.choice(len(found), triples, replace=False))]
    return Dkg.from_triples(*found.T, entities, relations)


def from_file(path: Path) -> Dkg:
    """The graph of a `head|relation|tail` file, names numbered in sorted order."""
    rows = sorted(
        {tuple(line.split("|")) for line in path.read_text(encoding="utf-8").splitlines() if line.count("|") == 2}
    )
    entity = {name: i for i, name in enumerate(sorted({row[0] for row in rows} | {row[2] for row in rows}))}
    relation = {name: i for i, name in enumerate(sorted({row[1] for row in rows}))}
    ids = np.array([(entity[head], relation[name], entity[tail]) for head, name, tail in rows])
    return Dkg.from_triples(*ids.T, len(entity), len(relation))


class Batch:
    """A batch of questions, one seed entity each, with relation weights for two hops and a random goal."""

    def __init__(self, dkg: Dkg, batch: int, kind: str, seed: int) -> None:
        draw = np.random.default_rng(seed)
        degree = np.diff(dkg.ptr).astype(float)
        chances = degree / degree.sum() if kind == "degree" else (degree > 0) / np.count_nonzero(degree)
        self.seeds = draw.choice(dkg.entities, batch, p=chances)
        torch.manual_seed(seed)
        self.logits = torch.randn(2, batch, 2 * dkg.relations)
        self.goal = torch.rand(dkg.entities)
        self.dkg = dkg

    def relations(self) -> tuple[torch.Tensor, torch.Tensor]:
        """A fresh leaf [2, B, 2R] and the weights of each hop made from it."""
        leaf = self.logits.clone().requires_grad_()
        return leaf, leaf.softmax(-1)

    def ours(self, backend: Any) -> Road:
        """The frontier."""

        def run() -> tuple[torch.Tensor, torch.Tensor]:
            leaf, r = self.relations()
            x = EntityWeights.one_hot([[int(seed)] for seed in self.seeds])
            for hop in range(2):
                x = follow(self.dkg, x, r[hop], backend=backend)
            scores = x.with_weight(x.weight * self.goal.take(x.entity)).sum()
            scores.sum().backward()
            return scores.detach(), leaf.grad  # type: ignore[return-value]

        return run

    def sparse(self, coo: bool = False) -> Road:
        """The reified KB: three sparse matrices times dense [E, B] and [2R, B]."""
        left, rel, right = (_to_torch(matrix, coo) for matrix in sparse_maps(self.dkg))
        left_t, rel_t, right_t = (_to_torch(matrix.T.tocsr(), coo) for matrix in sparse_maps(self.dkg))

        def hop(x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = _Product.apply(
                right_t, right, _Product.apply(left, left_t, x) * _Product.apply(rel, rel_t, r)
            )
            return found

        return self.dense(hop)

    def gather(self) -> Road:
        """Every edge of the graph: take from its source, multiply, add to its end."""
        dkg = self.dkg
        source = torch.from_numpy(np.repeat(np.arange(dkg.entities), np.diff(dkg.ptr)))
        rel, tail = (torch.from_numpy(column.astype(np.int64)) for column in (dkg.rel, dkg.tail))

        def hop(x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
            return torch.zeros_like(x).index_add(0, tail, x.index_select(0, source) * r.index_select(0, rel))

        return self.dense(hop)

    def dense(self, hop: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Road:
        """Two hops over x [E, B] with r [2R, B]."""

        def run() -> tuple[torch.Tensor, torch.Tensor]:
            leaf, r = self.relations()
            x = torch.zeros(self.dkg.entities, len(self.seeds))
            x[torch.from_numpy(self.seeds), torch.arange(len(self.seeds))] = 1
            for number in range(2):
                x = hop(x, r[number].T)
            scores = (x * self.goal[:, None]).sum(0)
            scores.sum().backward()
            return scores.detach(), leaf.grad  # type: ignore[return-value]

        return run

    def matrices(self) -> Road:
        """One weighted CSR matrix per question and hop, times a dense vector."""
        dkg = self.dkg
        order = np.lexsort((np.repeat(np.arange(dkg.entities), np.diff(dkg.ptr)), dkg.tail))
        source = torch.from_numpy(np.repeat(np.arange(dkg.entities), np.diff(dkg.ptr))[order])
        tail, rel = (
            torch.from_numpy(dkg.tail[order].astype(np.int64)),
            torch.from_numpy(dkg.rel[order].astype(np.int64)),
        )
        crow = torch.zeros(dkg.entities + 1, dtype=torch.int64)
        crow[1:] = torch.bincount(tail, minlength=dkg.entities).cumsum(0)
        shape = (dkg.entities, dkg.entities)

        class Hop(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
                ctx.save_for_backward(x, r)
                return torch.sparse_csr_tensor(crow, source, r[rel], shape) @ x

            @staticmethod
            def backward(ctx: Any, *grads: torch.Tensor) -> Any:
                x, r = ctx.saved_tensors
                reach = grads[0][tail]
                to_x = torch.zeros_like(x).index_add_(0, source, reach * r[rel])
                return to_x, torch.zeros_like(r).index_add_(0, rel, reach * x[source])

        def run() -> tuple[torch.Tensor, torch.Tensor]:
            leaf, r = self.relations()
            scores = []
            for number, seed in enumerate(self.seeds):
                x = torch.zeros(dkg.entities)
                x[int(seed)] = 1
                for hop in range(2):
                    x = Hop.apply(x, r[hop, number])
                scores.append((x * self.goal).sum())
            total = torch.stack(scores)
            total.sum().backward()
            return total.detach(), leaf.grad  # type: ignore[return-value]

        return run


class _Product(torch.autograd.Function):
    """Sparse CSR times dense with the transpose at hand for the gradient (autograd would transpose in every step)."""

    @staticmethod
    def forward(ctx: Any, matrix: torch.Tensor, transposed: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        ctx.transposed = transposed
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, ctx.transposed @ grads[0]


def _to_torch(matrix: Any, coo: bool = False) -> torch.Tensor:
    parts = (
        torch.from_numpy(part)
        for part in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
    )
    found = torch.sparse_csr_tensor(*parts, size=matrix.shape)
    return found.to_sparse_coo().coalesce() if coo else found


DENSE = ("sparse", "coo", "gather", "matrices")


@dataclass(frozen=True)
class Scale:
    """A synthetic graph, and the batch size (the dense implementations store edges × batch numbers)."""

    entities: int
    triples: int
    relations: int
    batch: int


SCALES = {
    "small": Scale(8_000, 25_000, 9, 64),
    "metaqa": Scale(43_234, 134_741, 9, 64),
    "large": Scale(500_000, 2_500_000, 200, 8),
}


def measure(dkg: Dkg, kind: str, batch: int, rounds: int, seed: int) -> dict[str, Any]:
    """Median milliseconds per question of each road, and the ratios to the kernel's; results checked first."""
    work = Batch(dkg, batch, kind, seed)
    roads = {
        "sparse": work.sparse(),
        "coo": work.sparse(coo=True),
        "gather": work.gather(),
        "matrices": work.matrices(),
        "torch": work.ours("torch"),
        "kernel": work.ours("numba"),
    }
    scores, grads = roads["kernel"]()
    for name, road in roads.items():
        other_scores, other_grads = road()
        torch.testing.assert_close(other_scores, scores, rtol=1e-3, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}")
        torch.testing.assert_close(other_grads, grads, rtol=1e-3, atol=1e-3, msg=lambda text, n=name: f"{n}: {text}")
    repeats = dict.fromkeys(DENSE, 1) | {"torch": 3, "kernel": 10}
    times: dict[str, list[float]] = {name: [] for name in roads}
    busy: dict[str, list[float]] = {name: [] for name in roads}
    for _ in range(rounds):
        for name, road in roads.items():
            begin, begin_busy = time.perf_counter(), time.process_time()
            for _ in range(repeats[name]):
                road()
            times[name].append((time.perf_counter() - begin) / repeats[name] / batch * 1e3)
            busy[name].append((time.process_time() - begin_busy) / repeats[name] / batch * 1e3)
    medians = {name: statistics.median(values) for name, values in times.items()}
    processor = {name: statistics.median(values) for name, values in busy.items()}
    ratios = {name: medians[name] / medians["kernel"] for name in medians if name != "kernel"}
    best = min(DENSE, key=lambda name: medians[name])
    return {
        "seeds": kind,
        "best_dense": best,
        "best_dense_ratio": ratios[best],
        "ms_per_question": medians,
        "spread_ms": {n: [min(v), max(v)] for n, v in times.items()},
        "ratio_to_kernel": ratios,
        "cpu_ms_per_question": processor,
        "cpu_ratio_to_kernel": {name: processor[name] / processor["kernel"] for name in ratios},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table; writes everything measured where --json says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, help="a head|relation|tail file, instead of synthetic graphs")
    parser.add_argument("--scales", nargs="*", choices=SCALES, default=list(SCALES))
    parser.add_argument("--batch", type=int, help="batch size, for every graph")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args(arguments)
    if args.rounds < 5:
        parser.error("--rounds must be at least 5, so that a median says something")
    warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
    torch.set_num_threads(args.threads)
    out = sys.stdout
    report: dict[str, Any] = {
        "what": "follow, 2 hops, forward and backward", "rounds": args.rounds, "threads": args.threads,
        "seed": args.seed, "cores": os.cpu_count(), "machine": platform.machine(),
        "python": platform.python_version(), "torch": torch.__version__, "graphs": [],
    }  # fmt: skip
    for name in ["file"] if args.kg else args.scales:
        if args.kg:
            dkg, batch = from_file(args.kg), args.batch or 64
        else:
            scale = SCALES[name]
            dkg, batch = synthetic(scale.entities, scale.triples, scale.relations, args.seed), args.batch or scale.batch
        out.write(f"{name}: {dkg}, batch {batch}, median of {args.rounds} rounds, {args.threads} thread(s)\n")
        results = [measure(dkg, kind, batch, args.rounds, args.seed) for kind in ("uniform", "degree")]
        report["graphs"].append(
            {"name": name, "entities": dkg.entities, "triples": dkg.triples, "edges": dkg.edges_stored, "batch": batch,
             "relations": dkg.relations, "largest_degree": int(np.diff(dkg.rows).max()), "results": results}
        )  # fmt: skip
    out.write(follow_table(report))
    if args.json:
        results_file.write(args.json, {"conditions": conditions(args.seed), **report}, FIELDS, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
