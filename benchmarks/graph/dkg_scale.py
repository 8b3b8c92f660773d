"""What size costs: single-question latency up to 500M edges, opening, export, and the lazy last hop on a hub.

    python -m benchmarks.graph.dkg_scale --work DIR [--edges 5000000 50000000 500000000] [--questions 2000] [--json OUT]

- latency: one question at a time, one topic entity, no gradient, relation weights of a softmax over all 1,000 directed
  relations, so that no relation is skipped.  1 hop without budget; 2 hops with each budget.  Graphs take turns within a
  run, questions of all of them in one loop, so that what disturbs the machine disturbs them alike.  warm: the files are
  in the page cache and the question ran once before it is timed.  cold: the graph's
  files dropped from the page cache (posix_fadvise) and mapped anew before the question.
- opening: `Dkg.open`.
- export: a synthetic graph of --triples triples and the bundled Atlas, from their DuckDB files, in a process of its
  own, with its peak memory and the bytes an edge takes.
- last hop: loss and gradient of one question whose topic is a hub, and of a batch of them, lazily and by expansion.

Graphs are made on first use, in DIR (500M edges: 3.3 GB).  Medians and ratios; processor time beside wall time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import torch

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.graph.dkg_graphs import RELATIONS, draw_seeds, generate
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import DkgOptions, KgOptions, RetrievalOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.dkg.follow import EntityWeights, follow
from kgqa_core.dkg.last_hop import last_hop
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.workspace import Workspace

FIELDS = (
    *CONDITIONS, "what", "cores", "machine", "python", "rounds", "seed", "torch", "epsilon", "graphs/*/*",
    "graphs/*/opening/*", "latency/*/*", "latency/*/cold/*", "?export/*/*", "last_hop/*/*", "last_hop/*/ms/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

EPSILON = 1e-5
"""As in the retriever."""
COLD = 15
HUB_BATCHES = (1, 32)
"""Batch sizes of questions about a hub: one, and a batch of training."""


def ask(dkg: Dkg, entity: int, relations: Sequence[torch.Tensor], budget: int | None) -> EntityWeights:
    """One question."""
    with torch.inference_mode():
        x = EntityWeights.one_hot([[entity]])
        for r in relations:
            x = follow(dkg, x, r, epsilon=EPSILON, edge_budget=budget)
    return x


def latency(graphs: dict[int, Dkg], hops: int, budget: int | None, kind: str, questions: int, seed: int) -> list[Any]:
    """Milliseconds per question of each graph, warm: every question runs once before it is timed."""
    torch.manual_seed(seed)
    weights = [[torch.randn(1, 2 * RELATIONS).softmax(-1) for _ in range(hops)] for _ in range(16)]
    seeds = {edges: draw_seeds(dkg, kind, questions, seed).tolist() for edges, dkg in graphs.items()}
    times: dict[int, list[float]] = {edges: [] for edges in graphs}
    busy: dict[int, list[float]] = {edges: [] for edges in graphs}
    cut: dict[int, int] = dict.fromkeys(graphs, 0)
    for number in range(questions):
        relations = weights[number % len(weights)]
        for edges, dkg in graphs.items():
            entity = seeds[edges][number]
            ask(dkg, entity, relations, budget)
            begin, begin_busy = time.perf_counter(), time.thread_time()
            x = ask(dkg, entity, relations, budget)
            times[edges].append((time.perf_counter() - begin) * 1e3)
            busy[edges].append((time.thread_time() - begin_busy) * 1e3)
            cut[edges] += bool(x.truncated is not None and int(x.truncated[0]) > 0)
    return [
        {"edges": edges, "hops": hops, "budget": budget, "seeds": kind, "questions": questions, "cut": cut[edges]}
        | {f"p{p}_ms": float(np.percentile(times[edges], p)) for p in (50, 90, 99)}
        | {f"cpu_p{p}_ms": float(np.percentile(busy[edges], p)) for p in (50, 90, 99)}
        for edges in graphs
    ]


def drop(folder: Path) -> None:
    """Takes a folder's files out of the page cache."""
    for path in folder.iterdir():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def warm(folder: Path) -> None:
    """Reads a folder's files into the page cache."""
    for path in folder.iterdir():
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def cold(folder: Path, hops: int, budget: int | None, kind: str, seed: int) -> dict[str, Any]:
    """Milliseconds of the first question after opening, from the disk."""
    times = []
    torch.manual_seed(seed)
    relations = [torch.randn(1, 2 * RELATIONS).softmax(-1) for _ in range(hops)]
    for entity in draw_seeds(Dkg.open(folder), kind, COLD, seed).tolist():
        drop(folder)
        begin = time.perf_counter()
        ask(Dkg.open(folder), entity, relations, budget)
        times.append((time.perf_counter() - begin) * 1e3)
    return {"hops": hops, "budget": budget, "seeds": kind, "rounds": COLD, "median_ms": statistics.median(times),
            "worst_ms": max(times)}  # fmt: skip


def opening(folder: Path, rounds: int = 101) -> dict[str, float]:
    """Milliseconds to open: warm, and with meta and headers from the disk."""

    def once() -> float:
        begin = time.perf_counter()
        Dkg.open(folder)
        return (time.perf_counter() - begin) * 1e3

    warm = [once() for _ in range(rounds)]
    from_disk = []
    for _ in range(COLD):
        drop(folder)
        from_disk.append(once())
    return {"warm_ms": statistics.median(warm), "from_disk_ms": statistics.median(from_disk)}


def synthetic_store(folder: Path, triples: int, seed: int) -> Path:
    """A graph store of so many triples, a quarter of the tails literals, with skewed heads and tails."""
    path = folder / "kg.duckdb"
    if path.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    entities, literals = triples // 6, triples // 10
    found = np.empty((0, 3), dtype=np.int32)
    while len(found) < triples:
        n = triples + triples // 10 - len(found)
        head = (entities * draw.random(n) ** 2).astype(np.int32)
        relation = (400 * draw.random(n) ** 3).astype(np.int32)
        near = (entities * draw.random(n) ** 3).astype(np.int32)
        tail = np.where(draw.random(n) < 0.25, entities + (literals * draw.random(n)).astype(np.int32), near)
        found = np.concatenate([found, np.stack([head, relation, tail], axis=1)])
        found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
        found = found[np.concatenate([[True], (np.diff(found, axis=0) != 0).any(1)])]
    found = found[np.sort(draw.choice(len(found), triples, replace=False))]
    columns = {"head": found[:, 0].copy(), "relation": found[:, 1].copy(), "tail": found[:, 2].copy()}
    scratch = folder / "kg.duckdb.tmp"
    scratch.unlink(missing_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{scratch}' AS kg")
        create_tables(connection, "kg")
        connection.register("columns_", dict(columns) | {"id": np.arange(triples)})
        connection.execute(
            "INSERT INTO kg.triples(id, head, relation, tail) SELECT id, head, relation, tail FROM columns_"
        )
        connection.execute(
            f"INSERT INTO kg.entities(id, key, kind) SELECT i, 'e' || i, CASE WHEN i < {entities} THEN 'entity' "
            f"ELSE 'literal' END FROM range({entities + literals}) t(i)"
        )
        connection.execute(
            "INSERT INTO kg.relations(id, key) SELECT i, 'http://example.org/r' || i FROM range(400) t(i)"
        )
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    scratch.rename(path)
    return folder


def _export(out: Path, kg: Path, pipe: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, begin_busy = time.perf_counter(), time.process_time()
    counts = export(Workspace(out), kg=kg, options=DkgOptions())
    pipe.send(
        counts
        | {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - begin_busy}
        | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "before_mb": before / 1024}
    )


def exported(work: Path, name: str, kg: Path, rounds: int) -> dict[str, Any]:
    """Export in fresh processes: median seconds, peak memory, bytes per edge."""
    found = []
    for _ in range(rounds + 1):  # the first one compiles
        out = work / f"dkg-{name}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=_export, args=(out, kg, there))
        process.start()
        there.close()
        found.append(here.recv())  # EOFError when the process failed, which has printed the reason
        process.join()
    measured_runs = found[1:]
    middle = {
        name: statistics.median(run[name] for run in measured_runs)
        for name in ("seconds", "cpu_seconds", "peak_mb", "before_mb")
    }
    return {"graph": name, "rounds": rounds} | measured_runs[0] | middle


def hub(edges: int, batch: int, rounds: int, seed: int) -> dict[str, Any]:
    """Milliseconds of loss and gradient for questions at a hub of so many edges: lazily and by expansion."""
    draw = np.random.default_rng(seed)
    spokes = np.stack([np.zeros(edges, np.int64), draw.integers(0, 50, edges), np.arange(1, edges + 1)], axis=1)
    more = edges // 4
    others = np.stack([draw.integers(1, edges, more) for _ in range(3)], axis=1) % [edges, 50, edges] + [1, 0, 1]
    dkg = Dkg.from_triples(*np.unique(np.concatenate([spokes, others]), axis=0).T, edges + 1, 50)
    torch.manual_seed(seed)
    logits = torch.randn(batch, 100)
    x = EntityWeights.one_hot([[0]] * batch)
    answers = EntityWeights.one_hot([draw.integers(1, edges, 3).tolist() for _ in range(batch)])
    row = answers.row

    def lazy(kind: torch.dtype = torch.float32) -> torch.Tensor:
        leaf = logits.to(kind, copy=True).requires_grad_()
        found = last_hop(dkg, x, leaf.softmax(-1), answers)
        mass = torch.zeros_like(found.total).index_add(0, row, found.mass)
        (-torch.log(mass / found.total.clamp(min=1)).sum()).backward()
        return leaf.grad  # type: ignore[return-value]

    def expanded(kind: torch.dtype = torch.float32) -> torch.Tensor:
        leaf = logits.to(kind, copy=True).requires_grad_()
        y = follow(dkg, x, leaf.softmax(-1))
        total = y.sum()
        mass = torch.zeros_like(total).index_add(0, row, y.lookup(answers.ptr, answers.entity))
        (-torch.log(mass / total.clamp(min=1)).sum()).backward()
        return leaf.grad  # type: ignore[return-value]

    torch.testing.assert_close(lazy(torch.float64), expanded(torch.float64))
    lazy(), expanded()
    roads: dict[str, tuple[Callable[[], torch.Tensor], int]] = {"lazy": (lazy, 20), "expanded": (expanded, 1)}
    times: dict[str, list[float]] = {name: [] for name in roads}
    busy: dict[str, list[float]] = {name: [] for name in roads}
    for _ in range(rounds):
        for name, (road, repeats) in roads.items():
            begin, begin_busy = time.perf_counter(), time.thread_time()
            for _ in range(repeats):
                road()
            times[name].append((time.perf_counter() - begin) / repeats * 1e3)
            busy[name].append((time.thread_time() - begin_busy) / repeats * 1e3)
    wall = {name: statistics.median(values) for name, values in times.items()}
    return {"hub_edges": int(np.diff(dkg.rows).max()), "batch": batch, "edges": dkg.edges_stored, "rounds": rounds,
            "ms": wall, "ratio": wall["expanded"] / wall["lazy"]}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what it measures; writes everything where --json says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of the graphs")
    parser.add_argument("--edges", type=int, nargs="*", default=[5_000_000, 50_000_000, 500_000_000])
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--budget", type=int, nargs="*", default=[RetrievalOptions().edge_budget])
    parser.add_argument("--triples", type=int, default=5_000_000, help="of the synthetic graph that is exported")
    parser.add_argument("--hub", type=int, nargs="*", default=[1_000_000, 4_000_000], help="edges of the hubs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args(arguments)
    if args.rounds < 5:
        parser.error("--rounds must be at least 5, so that a median says something")
    torch.set_num_threads(1)

    def say(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    threads = os.cpu_count() or 1
    folders = {edges: generate(args.work / f"dkg-{edges}", edges, args.seed, threads) for edges in args.edges}
    graphs = {edges: Dkg.open(folder) for edges, folder in folders.items()}
    report: dict[str, Any] = {
        "what": "size", "seed": args.seed, "rounds": args.rounds, "cores": threads, "machine": platform.machine(),
        "python": platform.python_version(), "torch": torch.__version__, "epsilon": EPSILON, "graphs": [],
        "latency": [],
    }  # fmt: skip
    for edges, dkg in graphs.items():
        size = sum(array.nbytes for array in (dkg.rows, dkg.rel, dkg.tail, dkg.forward))
        row = {"edges": dkg.edges_stored, "entities": dkg.entities, "largest_degree": int(np.diff(dkg.rows).max())}
        row |= {"bytes_per_edge": size / dkg.edges_stored, "opening": opening(folders[edges])}
        report["graphs"].append(row)
        say(f"{row['edges']:>12,} edges  {row['entities']:>11,} entities  largest degree {row['largest_degree']:,}  "
            f"{row['bytes_per_edge']:.2f} bytes/edge  open {row['opening']['warm_ms']:.2f} ms warm, "
            f"{row['opening']['from_disk_ms']:.2f} ms from disk\n")  # fmt: skip
    for hops, budget in [(1, None), *((2, budget) for budget in args.budget)]:
        for kind in ("degree", "uniform"):
            for folder in folders.values():
                warm(folder)
            rows = latency(graphs, hops, budget, kind, args.questions, args.seed) if graphs else []
            for row in rows:
                row["ratio_p50"] = row["p50_ms"] / rows[0]["p50_ms"]
                row["cpu_ratio_p50"] = row["cpu_p50_ms"] / rows[0]["cpu_p50_ms"]
                row["cold"] = cold(folders[row["edges"]], hops, budget, kind, args.seed)
                say(f"{row['edges']:>12,} edges  {hops} hop(s)  {kind:<8} budget {budget or 'none':<8} "
                    f"p50 {row['p50_ms']:.3f}  p99 {row['p99_ms']:.3f} ms  (cpu {row['cpu_p50_ms']:.3f}, "
                    f"{row['cpu_p99_ms']:.3f})  p50 ratio {row['ratio_p50']:.2f}x (cpu {row['cpu_ratio_p50']:.2f}x)  "
                    f"cut {row['cut']}  cold {row['cold']['median_ms']:.1f} ms\n")  # fmt: skip
            report["latency"] += rows
    if args.triples:
        atlas = args.work / "atlas"
        if not (atlas / "kg.duckdb").exists():
            shutil.rmtree(atlas, ignore_errors=True)
            atlas.mkdir(parents=True)
            from kgqa_core.kg.build import build

            build(Workspace(atlas), options=KgOptions(files=("bundled:atlas",)))
        stores = {
            "atlas": atlas,
            "synthetic": synthetic_store(args.work / f"kg-{args.triples}", args.triples, args.seed),
        }
        report["export"] = [exported(args.work, name, kg, args.rounds) for name, kg in stores.items()]
        for row in report["export"]:
            say(f"export {row['graph']}: {row['triples']:,} triples, {row['edges']:,} edges in {row['seconds']:.2f} s "
                f"(cpu {row['cpu_seconds']:.2f}), {row['bytes_per_edge']} bytes/edge, peak {row['peak_mb']:.0f} MB "
                f"(before: {row['before_mb']:.0f})\n")  # fmt: skip
    report["last_hop"] = [hub(edges, batch, args.rounds, args.seed) for edges in args.hub for batch in HUB_BATCHES]
    for row in report["last_hop"]:
        say(
            f"last hop, hub of {row['hub_edges']:,} edges, batch {row['batch']}: "
            f"lazy {row['ms']['lazy']:.3f} ms, expanded "
            f"{row['ms']['expanded']:.1f} ms, {row['ratio']:.0f}x\n"
        )
    if args.json:
        results_file.write(args.json, {"conditions": conditions(args.seed), **report}, FIELDS, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
