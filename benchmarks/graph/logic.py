"""Logical forms executed per second, by SQL and in memory, as a ratio to rdflib's SPARQL on the same questions.

    python -m benchmarks.graph.logic --triples 1000000 --json benchmarks/results/logic.json

One random graph is put into a store and into rdflib's memory store.  Every question runs as a form and as SPARQL,
both from text to answers, and the answers must be the same.  A kind of question stops on each road after `--seconds`.
Rates and ratios are those of processor time, of all threads, which a busy machine changes little; `wall` those of the
clock.  rdflib is left out when it would take more than `--memory` gigabytes (it needs about 1 kB a triple).
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import rdflib
from rdflib.plugins.stores.memory import SimpleMemory

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import fields_below
from kgqa_core.kg.store import SCHEMA_VERSION, KgStore, create_tables, write_meta
from kgqa_core.logic.execute import execute
from kgqa_core.logic.lookup import index
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse

FIELDS = (
    *fields_below("*"), "*/triples", "*/seed", "*/questions", "*/build_s", "*/index_s", "*/index_gb",
    "*/memory_load_s", "*/memory_gb", "*/rdflib_load_s", "*/rdflib_gb", "*/rdflib", "*/kinds/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

RELATIONS = 40
NUMBER = "urn:r:number"
XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True)
class BenchmarkQuestion:
    """One question, as a form and as SPARQL."""

    form: str
    sparql: str


def entity(i: int) -> str:
    return f"urn:e:{i:09d}"


def build(path: Path, triples: int, seed: int) -> int:
    """A graph of about so many triples, a fifth of them numbers; returns how many entities it has."""
    entities = max(triples // 5, 10)
    numbers = 100_000
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS kg")
        create_tables(connection, "kg")
        run = connection.execute
        run(
            f"INSERT INTO kg.entities(id, key, kind) SELECT i, format('urn:e:{{:09d}}', i), 'entity' "
            f"FROM range({entities}) r(i) ORDER BY i"
        )
        run(
            f"INSERT INTO kg.entities(id, key, kind, datatype, number) SELECT {entities} + i, i::VARCHAR, 'literal', "
            f"'{XSD_INTEGER}', i FROM range({numbers}) r(i) ORDER BY i"
        )
        run(
            "INSERT INTO kg.relations(id, key, datatype) SELECT i, format('urn:r:{:02d}', i), 'entity' "
            f"FROM range({RELATIONS}) r(i)"
        )
        run(f"INSERT INTO kg.relations(id, key, datatype) VALUES ({RELATIONS}, '{NUMBER}', '{XSD_INTEGER}')")

        def uniform(column: int) -> str:
            return f"(hash(i * 5 + {column} + {seed} * 7919) % 1000000007 / 1000000007.0)"

        run(
            f"""
            CREATE TABLE sampled AS SELECT DISTINCT head, relation, tail FROM (
              SELECT floor({uniform(1)} * {entities})::INTEGER AS head,
                     floor({uniform(2)} * {RELATIONS})::INTEGER AS relation,
                     floor(power({uniform(3)}, 2) * {entities})::INTEGER AS tail FROM range({triples - entities}) r(i)
              UNION ALL SELECT i::INTEGER, {RELATIONS}, ({entities} + floor({uniform(4)} * {numbers}))::INTEGER
                        FROM range({entities}) r(i))"""
        )
        run(
            "INSERT INTO kg.triples SELECT row_number() OVER (ORDER BY head, relation, tail) - 1, *, 0 "
            "FROM sampled ORDER BY head, relation, tail"
        )
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return entities


def rdflib_graph(store: KgStore, most: float) -> rdflib.Graph | None:
    """The same triples in rdflib, each term one object; None where that takes more gigabytes than `most`."""
    before = gigabytes()
    graph = rdflib.Graph(store=SimpleMemory())
    terms: dict[int, Any] = {}
    rows = store.connection.execute("SELECT id, key, kind, datatype FROM entities").fetchall()
    for i, key, kind, datatype in rows:
        terms[i] = rdflib.URIRef(key) if kind == "entity" else rdflib.Literal(key, datatype=rdflib.URIRef(datatype))
    relations = [rdflib.URIRef(key) for key in store.relation_keys()]
    cursor = store.connection.execute("SELECT head, relation, tail FROM triples")
    gc.disable()  # nothing is dropped while triples are put in, and looking for it takes most of the time
    while rows := cursor.fetchmany(100_000):
        if gigabytes() - before > most:
            return None
        for head, relation, tail in rows:
            graph.store.add((terms[head], relations[relation], terms[tail]), graph)
    gc.enable()
    gc.freeze()
    return graph


def gigabytes() -> float:
    """Peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def questions(store: KgStore, kind: str, number: int, seed: int) -> Iterator[BenchmarkQuestion]:
    """Questions that have answers: a random triple names their topic and relation."""
    draw = random.Random(f"{seed}/{kind}")
    total = store.connection.execute("SELECT count(*) FROM triples").fetchone()
    keys = store.relation_keys()
    while number:
        head, relation, tail = store.triples([draw.randrange(total[0] if total else 1)]).popitem()[1]
        if relation == RELATIONS:
            continue
        number -= 1
        first, second = keys[relation], keys[draw.randrange(RELATIONS)]
        x, y = entity(head), entity(tail)
        yield {
            "1 hop": BenchmarkQuestion(f"(JOIN (R {first}) {x})", f"SELECT DISTINCT ?a {{ <{x}> <{first}> ?a }}"),
            "1 hop inverse": BenchmarkQuestion(f"(JOIN {first} {y})", f"SELECT DISTINCT ?a {{ ?a <{first}> <{y}> }}"),
            "2 hops": BenchmarkQuestion(
                f"(JOIN (R {second}) (JOIN {first} {y}))",
                f"SELECT DISTINCT ?a {{ ?b <{first}> <{y}> . ?b <{second}> ?a }}",
            ),
            "COUNT": BenchmarkQuestion(
                f"(COUNT (JOIN {first} {y}))", f"SELECT (COUNT(DISTINCT ?a) AS ?n) {{ ?a <{first}> <{y}> }}"
            ),
            "ARGMAX": BenchmarkQuestion(
                f"(ARGMAX (JOIN {first} {y}) {NUMBER})",
                # the subquery first: rdflib joins one that comes later as if its variable were bound already
                f"SELECT DISTINCT ?a {{ {{ SELECT (MAX(?w) AS ?v) {{ ?b <{first}> <{y}> . ?b <{NUMBER}> ?w }} }} "
                f"?a <{first}> <{y}> . ?a <{NUMBER}> ?v }}",
            ),
        }[kind]


def query_store(store: KgStore, form: str, *, proof: bool) -> set[str]:
    found = execute(parse(form), store, proof=proof, rows=1_000_000, seconds=600)
    if found.value is not None:
        return {str(found.value)}
    return set(store.entity_keys(found.nodes).values())


class Memory:
    """The graph in numpy arrays, with its keys beside them."""

    def __init__(self, store: KgStore) -> None:
        self.graph = MemoryGraph(store)
        rows = store.connection.execute("SELECT id, key FROM entities ORDER BY id").fetchall()
        self.keys = [key for _, key in rows]

    def query(self, form: str) -> set[str]:
        found = self.graph.execute(parse(form))
        return {self.keys[i] for i in found.nodes} if found.value is None else {str(found.value)}


def query_rdflib(graph: rdflib.Graph, sparql: str) -> set[str]:
    return {str(row[0]) for row in graph.query(sparql) if row[0] is not None}


@dataclass
class Timed:
    """Answers to the first of some questions, and how many a second of processor time and of the clock."""

    answers: list[set[str]]
    cpu: float
    wall: float


def timed(ask: Callable[[str], set[str]], texts: list[str], seconds: float) -> Timed:
    """Runs for so many seconds at most; the first two questions run once before."""
    for text in texts[:2]:
        ask(text)
    answers = []
    cpu, wall = time.process_time(), time.perf_counter()
    for text in texts:
        answers.append(ask(text))
        if time.perf_counter() - wall > seconds:
            break
    number = len(answers)
    return Timed(answers, number / (time.process_time() - cpu), number / (time.perf_counter() - wall))


KINDS = ("1 hop", "1 hop inverse", "2 hops", "COUNT", "ARGMAX")
ROADS = {"sql": False, "sql, indexed": False, "sql, indexed, with proof": True, "in memory": False}
"""Roads through the store, and whether they prove the answers."""


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    path = folder / "kg.duckdb"
    start = time.perf_counter()
    build(path, options.triples, options.seed)
    result: dict[str, Any] = {
        "triples": options.triples, "seed": options.seed, "questions": options.questions,
        "build_s": round(time.perf_counter() - start, 1),
    }  # fmt: skip
    found: dict[str, dict[str, Timed]] = {kind: {} for kind in KINDS}
    with KgStore.open(path) as store:
        queries = {kind: list(questions(store, kind, options.questions, options.seed)) for kind in KINDS}
        for road, proof in ROADS.items():
            if road == "sql, indexed":
                before, start = gigabytes(), time.perf_counter()
                index(store)
                result["index_s"] = round(time.perf_counter() - start, 1)
                result["index_gb"] = round(gigabytes() - before, 2)
            ask: Callable[[str], set[str]] = partial(query_store, store, proof=proof)
            if road == "in memory":
                before, start = gigabytes(), time.perf_counter()
                ask = Memory(store).query
                result["memory_load_s"] = round(time.perf_counter() - start, 1)
                result["memory_gb"] = round(gigabytes() - before, 2)
            for kind in KINDS:
                found[kind][road] = timed(ask, [one.form for one in queries[kind]], options.seconds)
        before, start = gigabytes(), time.perf_counter()
        graph = rdflib_graph(store, options.memory)
        result["rdflib_load_s"] = round(time.perf_counter() - start, 1)
        result["rdflib_gb"] = round(gigabytes() - before, 2)
    result["rdflib"] = rdflib.__version__ if graph is not None else f"left out: more than {options.memory:g} GB"
    if graph is not None:
        for kind in KINDS:
            texts = [one.sparql for one in queries[kind]]
            found[kind]["rdflib"] = timed(partial(query_rdflib, graph), texts, options.seconds)
            check(queries[kind], found[kind])
    result["kinds"] = {kind: shown(by_road) for kind, by_road in found.items()}
    return result


def check(queries: list[BenchmarkQuestion], found: dict[str, Timed]) -> None:
    """Ends the program where a road through the store has other answers than rdflib."""
    for road in ROADS:
        for one, ours, theirs in zip(queries, found[road].answers, found["rdflib"].answers, strict=False):
            if ours != theirs:
                sys.exit(f"{road}: other answers to {one.form}: {len(ours)} against {len(theirs)}")


def shown(by_road: dict[str, Timed]) -> dict[str, Any]:
    """Questions per second of each road, and the ratios to rdflib's."""
    rows: dict[str, Any] = {}
    for road, one in by_road.items():
        rows[road] = {"per_cpu_second": round(one.cpu, 1), "per_second": round(one.wall, 1), "asked": len(one.answers)}
        if road in ROADS and "rdflib" in by_road:
            rows[road]["ratio"] = round(one.cpu / by_road["rdflib"].cpu, 2)
            rows[road]["wall_ratio"] = round(one.wall / by_road["rdflib"].wall, 2)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=100, help="of each kind")
    parser.add_argument("--seconds", type=float, default=30.0, help="for one kind and one road")
    parser.add_argument("--memory", type=float, default=10.0, help="most gigabytes for rdflib")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="file that one more result is put into")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options, Path(folder))
    print(json.dumps(result, indent=1))
    if options.json:
        known = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else []
        known = [one for one in known if one["triples"] != result["triples"]]
        result["conditions"] = conditions(options.seed)
        results_file.write(options.json, [*known, result], FIELDS)


if __name__ == "__main__":
    main()
