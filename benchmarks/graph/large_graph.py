"""A graph of 200 million lines within 4 GB of memory, and what each line costs against a smaller one.

    python -m benchmarks.graph.large_graph --work DIR [--sizes 10M,200M] [--memory 2GB]
        [--json benchmarks/results/large_graph.json]

Generated N-Triples (`ingest_files`; 200M lines: 24 GB, and as much again for the graph).  Each step is a process of its
own with its wall and processor seconds and its peak resident memory: build (`kg.memory_limit` is --memory, names,
types, numbers and dates included), dkg, mentions.  open: the graph, its arrays and its mention dictionary opened, of
which the page cache knows nothing.  ask: the builtin model on random facts, topics linked; the first, and p50 and p99
of the next.  two_hops: `follow` along all relations twice, from entities in proportion to degree, without and with the
edge budget of a run.  line_us: microseconds of the build a line; ratio: against the first size.  What is finished in
DIR is not made again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.graph import ingest_files
from benchmarks.latency import percentiles
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table
from kgqa_core.workspace import Workspace

FIELDS = (*CONDITIONS, "memory", "sizes/*/lines", "sizes/*/megabytes", "sizes/*/steps/...", "sizes/*/disk_mb/*",
          "sizes/*/line_us", "sizes/*/ratio")  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED, ASKED, HOPS_ASKED, BUDGET = 7, 60, 300, 2_000_000

Json = dict[str, Any]


def build(folder: Path, memory: str) -> Json:
    """The graph."""
    from kgqa_core.config import KgOptions
    from kgqa_core.kg.build import build as build_graph

    options = KgOptions(files=(str(folder / "graph.nt"),), memory_limit=memory)
    counts = build_graph(Workspace(fresh(folder / "kg")), options=options)
    return {name: counts[name] for name in ("triples", "entities", "literals", "relations")}


def dkg(folder: Path, memory: str) -> Json:
    """Its arrays."""
    from kgqa_core.config import DkgOptions
    from kgqa_core.dkg.export import export

    export(Workspace(fresh(folder / "dkg")), kg=folder / "kg", options=DkgOptions())
    return {}


def mentions(folder: Path, memory: str) -> Json:
    """Its mention dictionary."""
    from kgqa_core.linking.dictionary import build as build_mentions

    return {"forms": build_mentions(Workspace(fresh(folder / "mentions")), kg=folder / "kg")["forms"]}


def opening(folder: Path, memory: str) -> Json:
    """All three, with cold files."""
    from kgqa_core.dkg.csr import Dkg
    from kgqa_core.kg.store import KgStore
    from kgqa_core.linking.mentions import MentionDictionary

    for file in (path for name in ("kg", "dkg", "mentions") for path in (folder / name).rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    seconds: Json = {}
    for name, work in (
        ("kg", lambda: KgStore.open(folder / "kg")), ("dkg", lambda: Dkg.open(folder / "dkg")),
        ("mentions", lambda: MentionDictionary(folder / "mentions")),
    ):  # fmt: skip
        began = time.perf_counter()
        work()
        seconds[f"{name}_ms"] = round(1000 * (time.perf_counter() - began), 1)
    return seconds


def ask(folder: Path, memory: str) -> Json:
    """Questions about entities that have names, in a fresh process."""
    from kgqa_core.runs.finished import SystemParts
    from kgqa_core.system import System

    parts = SystemParts(
        kg=folder / "kg", dkg=folder / "dkg", mentions=folder / "mentions", knowledge="random/triples"
    )  # fmt: skip
    system = System.open(parts)
    draw = random.Random(SEED)
    entities = ingest_entities(folder)
    words = ingest_files._WORDS
    seconds = []
    for _ in range(ASKED):
        number = draw.randrange(entities)
        name = f"{words[number % 16]} {words[number // 16 % 16]} {number}"
        began = time.perf_counter()
        system.ask(f"what is relation {draw.randrange(400)} of {name}?")
        seconds.append(time.perf_counter() - began)
    return {"first_ms": round(1000 * seconds[0], 1), **percentiles(seconds[1:])}


def ingest_entities(folder: Path) -> int:
    """Entities that the file draws from."""
    return max(10, int(json.loads((folder / "file.json").read_text(encoding="utf-8"))["lines"]) // 8)


def two_hops(folder: Path, memory: str) -> Json:
    """Two hops along all relations."""
    import torch

    from kgqa_core.dkg.csr import Dkg
    from kgqa_core.dkg.follow import EntityWeights, follow

    graph = Dkg.open(folder / "dkg")
    draw = np.random.default_rng(SEED)
    edges = draw.integers(0, graph.edges_stored, HOPS_ASKED)
    seeds = graph.source_of(edges).tolist()
    torch.manual_seed(SEED)
    weights = [torch.randn(1, 2 * graph.relations).softmax(-1) for _ in range(2)]
    found: Json = {}
    for name, budget in (("all", None), ("budget", BUDGET)):
        seconds = []
        for place, seed in enumerate([seeds[0], *seeds]):
            began = time.perf_counter()
            with torch.inference_mode():
                x = EntityWeights.one_hot([[int(seed)]])
                for hop in range(2):
                    x = follow(graph, x, weights[hop], edge_budget=budget)
            if place:  # the first compiles
                seconds.append(time.perf_counter() - began)
        found[name] = percentiles(seconds)
    return found


STEPS: Mapping[str, Callable[[Path, str], Json]] = {
    "build": build, "dkg": dkg, "mentions": mentions, "open": opening, "ask": ask, "two_hops": two_hops
}  # fmt: skip


def fresh(folder: Path) -> Path:
    """An empty folder."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    folder.mkdir(parents=True)
    return folder


def step(name: str, folder: Path, memory: str) -> None:
    """One step in this process; prints its figures."""
    began, busy = time.perf_counter(), time.process_time()
    found = STEPS[name](folder, memory)
    print(
        json.dumps(
            found
            | {
                "seconds": round(time.perf_counter() - began, 2),
                "cpu_seconds": round(time.process_time() - busy, 2),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


def measure(lines: int, work: Path, memory: str) -> Json:
    """Every step of a size; those that are finished are read from its folder."""
    folder = work / str(lines)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "graph.nt"
    if not (folder / "file.json").is_file():
        ingest_files.write(file, lines, SEED)
        (folder / "file.json").write_text(json.dumps({"lines": lines}), encoding="utf-8")
    record = folder / "steps.json"
    done: Json = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    for name in STEPS:
        if name in done:
            continue
        command = [sys.executable, "-m", "benchmarks.graph.large_graph", "--step", name, "--work", str(folder)]
        printed = subprocess.run([*command, "--memory", memory], check=True, stdout=subprocess.PIPE, text=True).stdout
        done[name] = json.loads(printed.strip().splitlines()[-1])
        print(f"{lines:,}", name, done[name], flush=True)
        record.write_text(json.dumps(done), encoding="utf-8")
    return {
        "lines": lines, "megabytes": round(file.stat().st_size / 1e6), "steps": done,
        "disk_mb": {name: disk_mb(folder / name) for name in ("kg", "dkg", "mentions")},
        "line_us": round(1e6 * done["build"]["seconds"] / lines, 3),
    }  # fmt: skip


def disk_mb(folder: Path) -> int:
    """Megabytes of the files in a folder."""
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6)


TRUTHY = 7_000_000_000
"""Lines of Wikidata's truthy dump: more than 7 billion triples (Willerval et al., Wikidata Workshop 2022)."""
PUBLISHED = (
    ("QLever, a billion triples", "about 1 h", "AMD Ryzen 9 5900X, 12 cores; its quickstart page"),
    ("QLever, all of Wikidata, 18 billion", "less than 24 h, 40 GB of memory", "a standard machine; page of QLever UI"),
    ("qEndpoint, truthy, over 7 billion", "less than 3 h with a ready index, 16 GB",
     "a laptop that downloads it; Willerval et al. 2022"),
    ("Jena, 1.24 billion", "8 h", "dstlr/dstlr issue 10"),
    ("Blazegraph, 1.24 billion", "32 h", "the same"),
)  # fmt: skip
"""What others publish of their own loading: work, time and memory, machine and source."""


def extrapolated(found: Mapping[str, Any]) -> str:
    """Wikidata's truthy dump from the measured sizes: at the rate of the largest, and with its growth continued."""
    first, last = found["sizes"][0], found["sizes"][-1]
    times = TRUTHY / last["lines"]
    growth = math.log(last["line_us"] / first["line_us"]) / math.log(last["lines"] / first["lines"])
    rows = []
    for name in ("build", "dkg", "mentions"):
        hours = last["steps"][name]["seconds"] * times / 3600
        rows.append(
            (name, f"{hours:,.1f}", f"{last['disk_mb']['kg' if name == 'build' else name] * times / 1000:,.0f}")
        )
    build = last["steps"]["build"]["seconds"] * times / 3600
    return (
        "### Wikidata's truthy dump, extrapolated\n\n"
        f"{TRUTHY:,} lines at the cost of a line of the {last['lines']:,} measured; nothing of it was run. A line of "
        f"the build costs {last['ratio']:.2f}× what it costs at {first['lines']:,}; if that growth goes on, the "
        f"build takes {build * times ** max(0.0, growth):,.1f} h. The generated file has an entity to 8 lines and a "
        "label to most of them; Wikidata has fewer, and longer texts.\n\n"
        + table(("step", "hours on this machine", "GB on disk"), rows, right=True)
        + "\nWhat others publish, on other machines, to tables of their own; what they do here, beside ours, is in *N-"
        "Triples to sorted, dictionary-encoded tables* above:\n\n"
        + table(("loading", "takes", "machine and source"), PUBLISHED, right=True)
    )


def tables(found: Mapping[str, Any]) -> str:
    """The table of docs/performance.md."""
    made = found["conditions"]
    rows = []
    for one in found["sizes"]:
        for name in ("build", "dkg", "mentions"):
            own = one["steps"][name]
            rows.append(
                (f"{one['lines']:,}", name, f"{own['seconds']:,.1f}", f"{own['cpu_seconds']:,.1f}",
                 f"{own['peak_mb']:,}", f"{1e6 * own['seconds'] / one['lines']:.2f}")
            )  # fmt: skip
    text = (
        "## A graph of 200 million lines\n\n"
        f"`benchmarks/graph/large_graph.py`, {made['cores']} cores, commit {made['commit'][:8]}, {made['date']}, seed "
        f"{made['seed']}, `kg.memory_limit` {found['memory']}.\n\n"
        + table(("lines", "step", "s", "CPU s", "peak MB", "µs a line"), rows, right=True)
    )
    rows = []
    for one in found["sizes"]:
        own = one["steps"]
        opened = own["open"]
        rows.append(
            (f"{one['lines']:,}", f"{opened['kg_ms']:.0f} + {opened['dkg_ms']:.0f} + {opened['mentions_ms']:.0f}",
             f"{own['ask']['first_ms']:,.0f}", f"{own['ask']['p50_ms']:,.0f} / {own['ask']['p99_ms']:,.0f}",
             *(f"{own['two_hops'][kind]['p50_ms']:,.1f} / {own['two_hops'][kind]['p99_ms']:,.1f}"
               for kind in ("all", "budget")))
        )  # fmt: skip
    head = ("lines", "opening kg + dkg + mentions, cold, ms", "first `ask`, ms", "next p50 / p99",
            "2 hops p50 / p99", f"2 hops, {BUDGET:,} edges at most")  # fmt: skip
    last = found["sizes"][-1]
    text += (
        "\n" + table(head, rows, right=True) + f"\nA line of the largest costs {last['ratio']:.2f}× one of the first.\n"
    )
    return text + "\n" + extrapolated(found)


def main() -> None:
    """Measures every size and writes the JSON after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sizes", default="10M,200M")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, default=RESULTS / "large_graph.json")
    given = parser.parse_args()
    if given.step:
        step(given.step, given.work, given.memory)
        return
    from benchmarks.graph.ingest import lines_of

    sizes: list[Json] = []
    for size in given.sizes.split(","):
        one = measure(lines_of(size), given.work, given.memory)
        sizes.append(one | {"ratio": round(one["line_us"] / (sizes[0] if sizes else one)["line_us"], 3)})
        results_file.write(given.json, {"conditions": conditions(SEED), "memory": given.memory, "sizes": sizes}, FIELDS)


if __name__ == "__main__":
    main()
