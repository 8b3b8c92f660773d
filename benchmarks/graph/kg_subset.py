"""Subsets of dumps: lines a second and peak memory beside a plain loop, and what real question sets find.

    python -m benchmarks.graph.kg_subset --json benchmarks/results/kg_subset.json

speed: two hops around 200 entities out of generated N-Triples (`ingest_files`), plain and as gzip, and out of a dump
that repeats the 49 real entities of the Wikidata samples under new ids; each in a process of its own, whose peak
memory is given.  loop: the plain Python road for the same lines (three readings, `str.split`, sets, no counts and no
limit of degree), which must keep the same edges.

questions: Mintaka's dev split over the Wikidata samples and over the small Wikidata of the shared data; WebQSP's train
split over a Freebase RDF file made of its own parses (`sparql_road`), and over that Wikidata with the P646 of
FB15k-237's map: which topics, answers and relations survive.  No test split is read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import DATA, conditions
from benchmarks.graph import ingest_files, wikidata_json
from benchmarks.questions.sparql_road_sets import webqsp_queries
from kgqa_core.config import KgOptions, QuestionSource, SubsetOptions
from kgqa_core.datasets.derived.bridge import Bridge, bridge, ids_of_graph
from kgqa_core.datasets.derived.bridge_paths import learn_paths
from kgqa_core.datasets.files.seeds import seeds_of
from kgqa_core.datasets.load import read_source
from kgqa_core.kg.build import build
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.subset.subset import SubsetResult, subset_of_dump
from kgqa_core.kg.vocabulary import FREEBASE, WIKIDATA, WIKIDATA_ENTITY
from kgqa_core.workspace import Workspace

FIELDS = ("seed", "commit", "date", "cores", "threads", "machine", "load/*", "speed/...", "questions/...")
"""What the result file holds (benchmarks/results_file.py)."""
RESOURCE = "http://example.org/resource/E"
SEEDS = 200

Json = dict[str, Any]


def subset(files: Sequence[Path], seeds: Sequence[str], folder: Path, **options: Any) -> tuple[SubsetResult, Path]:
    """A subset, written to a file in `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        result = subset_of_dump([str(file) for file in files], seeds, SubsetOptions(**options), PassFolder(Path(work)))
        out = folder / ("subset.json" if result.counts["format"] == "wikidata-json" else "subset.nt")
        result.write(out)
    return result, out


def loop(path: Path, seeds: Sequence[str], hops: int) -> int:
    """The edges that a plain loop keeps; both directions, every relation."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    frontier = {f"<{seed}>" for seed in seeds}
    reached, expanded = set(frontier), set[str]()
    for hop in range(hops + 1):
        if hop < hops:
            expanded |= frontier
        ends: set[str] = set()
        edges = 0
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                subject, _, rest = line.split(" ", 2)
                thing = rest[: rest.rindex(" .")]
                if not thing.startswith("<"):
                    continue
                if hop < hops:
                    if subject in frontier:
                        ends.add(thing)
                    if thing in frontier:
                        ends.add(subject)
                elif subject in expanded or thing in expanded:
                    edges += 1
        frontier = ends - reached
        reached |= frontier
    return edges


def seeds_of_dump(lines: int, seed: int) -> list[str]:
    """Entities of the generated dump."""
    entities = max(10, lines // 8)
    return [f"{RESOURCE}{number}" for number in np.random.default_rng(seed).integers(0, entities, SEEDS).tolist()]


def run_part(name: str, path: Path, lines: int, seed: int) -> Json:
    """One road over one dump, in this process."""
    started, busy = time.perf_counter(), time.process_time()
    if name == "loop":
        edges = loop(path, seeds_of_dump(lines, seed), 2)
        counts: Json = {"edges_kept": edges}
    else:
        own = path.with_suffix(".seeds")
        seeds = json.loads(own.read_text()) if name == "json" else seeds_of_dump(lines, seed)
        with tempfile.TemporaryDirectory() as folder:
            result, out = subset([path], seeds, Path(folder), hops=2, max_degree=1000 if name == "json" else 0)
            counts = {
                "edges_kept": result.counts["kept"]["edges"],
                "entities": result.counts["entities"],
                "lines": result.counts["lines_read"],
                "statements": result.counts["statements_read"],
                "megabytes_written": round(out.stat().st_size / 1e6, 1),
                "seconds_by_pass": result.counts["seconds"],
            }
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return counts | {
        "seconds": round(time.perf_counter() - started, 2),
        "processor_seconds": round(time.process_time() - busy, 2),
        "peak_megabytes": int(status.split("VmHWM:")[1].split()[0]) // 1024,
    }


def in_process(name: str, path: Path, lines: int, seed: int) -> Json:
    """`run_part` in a process of its own."""
    words = ["--part", name, "--file", str(path), "--lines", str(lines), "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.graph.kg_subset", *words], check=True, capture_output=True, text=True
    )
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def speed(folder: Path, data: Path, lines: int, megabytes: int, times: int, seed: int) -> Json:
    """Every road, several rounds in turn; the round with the fewest processor seconds."""
    plain = folder / "dump.nt"
    ingest_files.write(plain, lines, seed)
    packed = ingest_files.compress(plain, ".gz")
    dump = folder / "wikidata.json"
    wikidata_json.write_dump(data / "wikidata_samples" / "wikidata-filter" / "entities", dump, megabytes, seed)
    with dump.open("rb") as stream:
        ids = [json.loads(line.rstrip(b",\r\n"))["id"] for line in stream if len(line) > 3][::50]
    dump.with_suffix(".seeds").write_text(json.dumps(ids[:SEEDS]))
    roads = {"ntriples": plain, "ntriples_gz": packed, "loop": plain, "json": dump}
    rounds: dict[str, list[Json]] = {name: [] for name in roads}
    for _ in range(times):
        for name, path in roads.items():
            part = "ntriples" if name.startswith("ntriples") else name
            rounds[name].append(in_process(part, path, lines, seed))
    found: Json = {}
    for name, path in roads.items():
        best = min(rounds[name], key=lambda one: one["processor_seconds"])
        size = path.stat().st_size / 1e6
        found[name] = best | {"megabytes": round(size, 1), "megabytes_a_second": round(size / best["seconds"], 1)}
        if name != "json":
            found[name]["lines"] = lines
            found[name]["lines_a_second"] = round(lines / best["seconds"])
    kept = {name: found[name]["edges_kept"] for name in ("ntriples", "ntriples_gz", "loop")}
    if len(set(kept.values())) > 1:
        raise SystemExit(f"the roads keep different edges: {kept}")
    return {
        "lines": lines,
        "hops": 2,
        "seeds": SEEDS,
        "rounds": times,
        "times_the_loop": round(found["loop"]["seconds"] / found["ntriples"]["seconds"], 2),
        "times_the_loop_processor": round(
            found["loop"]["processor_seconds"] / found["ntriples"]["processor_seconds"], 2
        ),
        "roads": found,
    }


def question_sets(folder: Path, data: Path) -> Json:
    """Real questions over what there is of real graphs."""
    mintaka = rows_of(data / "mintaka" / "mintaka_dev.json")
    webqsp = rows_of(data / "webqsp" / "WebQSP.train.json")
    small = [data / "wikidata_mini" / name for name in ("triples.tsv", "labels.en.tsv")]
    samples = [data / "wikidata_samples" / "wikidata-filter" / "entities"]
    freebase = folder / "freebase-rdf.nt.gz"
    triples = write_freebase(data / "webqsp", freebase)
    mids = folder / "mids.nt"
    write_mids(data / "fb15k237" / "entity2wikidata.json", mids)
    found = {
        "mintaka_dev_wikidata_samples": counted(samples, mintaka, folder),
        "mintaka_dev_wikidata_mini": counted(small, mintaka, folder),
        "mintaka_dev_wikidata_mini_one_hop": counted(small, mintaka, folder, hops=1),
        "webqsp_train_freebase_of_its_parses": {"triples": triples, **counted([freebase], webqsp, folder)},
        "webqsp_train_wikidata_mini_by_p646": counted([*small, mids], webqsp, folder, max_degree=0),
    }
    graph = folder / "graph"
    graph.mkdir()
    build(Workspace(graph), options=KgOptions(files=(str(folder / "subset.nt"),)))
    with KgStore.open(graph) as store:
        ids = ids_of_graph([str(graph)]).ids
        paths, learnt = learn_paths(webqsp, ids, store)
    survived = bridge(webqsp, Bridge(ids, paths)).counts
    return {"subsets": found, "webqsp_train_over_wikidata": {**survived, "paths_learnt": learnt}}


def rows_of(path: Path) -> list[Json]:
    """The questions of an official file."""
    return read_source(QuestionSource(path=str(path)), seed=7)[0]


def counted(files: Sequence[Path], rows: Sequence[Json], folder: Path, **options: Any) -> Json:
    """Counts of the subset of a question set, and of the questions that have a topic and an answer in it."""
    seeds = seeds_of(rows)
    result, _ = subset(files, seeds.keys, folder, **options)
    missing = set(result.not_found)
    typed = [row for row in rows if row["answers"] and row["answer_type"] in (None, "entities")]
    whole = sum(
        any(one not in missing for one in row["topic_entities"]) and any(one not in missing for one in row["answers"])
        for row in typed
    )
    kept = ("lines_read", "kept", "entities", "relations", "seeds", "seeds_bridged", "seeds_not_found", "by_hop",
            "hubs_cut", "runs_cut")  # fmt: skip
    return {
        "questions": len(rows),
        "with_entity_answers": len(typed),
        "with_topic_and_answer": whole,
        **{name: result.counts[name] for name in kept},
        "seconds": result.counts["seconds"]["all"],
    }


def write_freebase(folder: Path, path: Path) -> int:
    """Freebase's RDF of the annotation of WebQSP's train parses; how many triples."""
    lines = set[str]()
    for query in webqsp_queries(folder):
        for subject, relation, thing in query.triples or ():
            lines.add(f"{subject}\t<{FREEBASE}{relation}>\t{thing}\t.\n")
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(sorted(lines))
    return len(lines)


def write_mids(source: Path, path: Path) -> None:
    """P646 of the items of a map."""
    pairs = {mid: about["wikidata_id"] for mid, about in json.loads(source.read_text(encoding="utf-8")).items()}
    relation = f"<{WIKIDATA}prop/direct/P646>"
    lines = [f'<{WIKIDATA_ENTITY}{key}> {relation} "{mid}" .\n' for mid, key in sorted(pairs.items()) if key]
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Runs it and prints the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--lines", type=int, default=4_000_000)
    parser.add_argument("--megabytes", type=int, default=200, help="of the Wikidata dump, plain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--work", type=Path, help="folder for the dumps [the system's for temporary files]")
    parser.add_argument("--json", type=Path, help="file that the record is written to")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(run_part(given.part, given.file, given.lines, given.seed)))
        return
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        record = {
            **conditions(given.seed),
            "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
            "load": [round(value, 1) for value in os.getloadavg()],
            "speed": speed(Path(folder), given.data, given.lines, given.megabytes, given.rounds, given.seed),
            "questions": question_sets(Path(folder), given.data),
        }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    if given.json:
        results_file.write(given.json, record, FIELDS)
    print(text, end="")


if __name__ == "__main__":
    main()
