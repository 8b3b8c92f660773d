"""Logical forms executed per second over a graph's DuckDB file, as a ratio to rdflib's SPARQL on the same questions.

    python benchmarks/logic.py --triples 1000000 --json benchmarks/results/logic.json

One random graph is put into a store and into rdflib's memory store.  Every question is asked as a form and as SPARQL,
both from text to answers, and the answers must be the same.  A kind of question stops for rdflib after `--seconds`.
rdflib needs about 1 kB of memory a triple.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import rdflib
from rdflib.plugins.stores.memory import SimpleMemory

from kgqa_core.kg.store import SCHEMA_VERSION, KgStore, create_tables, write_meta
from kgqa_core.logic.execute import execute
from kgqa_core.logic.index import index
from kgqa_core.logic.parser import parse

RELATIONS = 40
NUMBER = "urn:r:number"
XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True)
class Asked:
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

        def drawn(column: int) -> str:
            return f"(hash(i * 5 + {column} + {seed} * 7919) % 1000000007 / 1000000007.0)"

        run(
            f"""
            CREATE TABLE drawn AS SELECT DISTINCT head, relation, tail FROM (
              SELECT floor({drawn(1)} * {entities})::INTEGER AS head,
                     floor({drawn(2)} * {RELATIONS})::INTEGER AS relation,
                     floor(power({drawn(3)}, 2) * {entities})::INTEGER AS tail FROM range({triples - entities}) r(i)
              UNION ALL SELECT i::INTEGER, {RELATIONS}, ({entities} + floor({drawn(4)} * {numbers}))::INTEGER
                        FROM range({entities}) r(i))"""
        )
        run(
            "INSERT INTO kg.triples SELECT row_number() OVER (ORDER BY head, relation, tail) - 1, *, 0 "
            "FROM drawn ORDER BY head, relation, tail"
        )
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return entities


def rdflib_graph(store: KgStore) -> rdflib.Graph:
    """The same triples in rdflib; each term is one object."""
    graph = rdflib.Graph(store=SimpleMemory())
    terms: dict[int, Any] = {}
    rows = store.connection.execute("SELECT id, key, kind, datatype FROM entities").fetchall()
    for i, key, kind, datatype in rows:
        terms[i] = rdflib.URIRef(key) if kind == "entity" else rdflib.Literal(key, datatype=rdflib.URIRef(datatype))
    relations = [rdflib.URIRef(key) for key in store.relation_keys()]
    cursor = store.connection.execute("SELECT head, relation, tail FROM triples")
    while rows := cursor.fetchmany(100_000):
        for head, relation, tail in rows:
            graph.store.add((terms[head], relations[relation], terms[tail]), graph)
    return graph


def questions(store: KgStore, kind: str, number: int, seed: int) -> Iterator[Asked]:
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
            "1 hop": Asked(f"(JOIN (R {first}) {x})", f"SELECT DISTINCT ?a {{ <{x}> <{first}> ?a }}"),
            "1 hop inverse": Asked(f"(JOIN {first} {y})", f"SELECT DISTINCT ?a {{ ?a <{first}> <{y}> }}"),
            "2 hops": Asked(
                f"(JOIN (R {second}) (JOIN {first} {y}))",
                f"SELECT DISTINCT ?a {{ ?b <{first}> <{y}> . ?b <{second}> ?a }}",
            ),
            "COUNT": Asked(
                f"(COUNT (JOIN {first} {y}))", f"SELECT (COUNT(DISTINCT ?a) AS ?n) {{ ?a <{first}> <{y}> }}"
            ),
            "ARGMAX": Asked(
                f"(ARGMAX (JOIN {first} {y}) {NUMBER})",
                # the subquery first: rdflib joins one that comes later as if its variable were bound already
                f"SELECT DISTINCT ?a {{ {{ SELECT (MAX(?w) AS ?v) {{ ?b <{first}> <{y}> . ?b <{NUMBER}> ?w }} }} "
                f"?a <{first}> <{y}> . ?a <{NUMBER}> ?v }}",
            ),
        }[kind]


def asked_of_store(store: KgStore, form: str, proof: bool) -> set[str]:
    found = execute(parse(form), store, proof=proof, rows=1_000_000, seconds=600)
    if found.value is not None:
        return {str(found.value)}
    return set(store.entity_keys(found.nodes).values())


def asked_of_rdflib(graph: rdflib.Graph, sparql: str) -> set[str]:
    return {str(row[0]) for row in graph.query(sparql) if row[0] is not None}


def timed(ask: Callable[[str], set[str]], texts: list[str], seconds: float) -> tuple[list[set[str]], float]:
    """Answers and questions per second; it stops after so many seconds."""
    answers = []
    start = time.perf_counter()
    for text in texts:
        answers.append(ask(text))
        if time.perf_counter() - start > seconds:
            break
    return answers, len(answers) / (time.perf_counter() - start)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    path = folder / "kg.duckdb"
    start = time.perf_counter()
    build(path, options.triples, options.seed)
    result: dict[str, Any] = {"triples": options.triples, "seed": options.seed, "build_s": time.perf_counter() - start}
    kinds = ["1 hop", "1 hop inverse", "2 hops", "COUNT", "ARGMAX"]
    with KgStore.open(path) as store:
        asked = {kind: list(questions(store, kind, options.questions, options.seed)) for kind in kinds}
        rates: dict[str, dict[str, float]] = {}
        answers: dict[str, dict[str, list[set[str]]]] = {}
        for road in ("sql", "sql, indexed", "sql, indexed, with proof"):
            if road == "sql, indexed":
                start = time.perf_counter()
                index(store)
                result["index_s"] = time.perf_counter() - start
            for kind in kinds:
                texts = [one.form for one in asked[kind]]
                proof = road.endswith("proof")
                timed(lambda form, p=proof: asked_of_store(store, form, p), texts[:2], 60)
                found, rate = timed(lambda form, p=proof: asked_of_store(store, form, p), texts, options.seconds)
                rates.setdefault(kind, {})[road] = rate
                answers.setdefault(kind, {})[road] = found
        start = time.perf_counter()
        graph = rdflib_graph(store)
        result["rdflib_load_s"] = time.perf_counter() - start
    for kind in kinds:
        texts = [one.sparql for one in asked[kind]]
        timed(lambda text: asked_of_rdflib(graph, text), texts[:2], 60)
        found, rates[kind]["rdflib"] = timed(lambda text: asked_of_rdflib(graph, text), texts, options.seconds)
        for road, mine in answers[kind].items():
            for one, ours, theirs in zip(asked[kind], mine, found, strict=False):
                if ours != theirs:
                    sys.exit(f"{road}: other answers to {one.form}: {len(ours)} against {len(theirs)}")
    result["kinds"] = {
        kind: {
            **{f"{road}, per second": round(rate, 1) for road, rate in by_road.items()},
            **{
                f"{road} / rdflib": round(rate / by_road["rdflib"], 2)
                for road, rate in by_road.items()
                if road != "rdflib"
            },
        }
        for kind, by_road in rates.items()
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=100, help="of each kind")
    parser.add_argument("--seconds", type=float, default=30.0, help="for one kind and one road")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="file that one more result is put into")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options, Path(folder))
    print(json.dumps(result, indent=1))
    if options.json:
        known = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else []
        known = [one for one in known if one["triples"] != result["triples"]]
        options.json.write_text(json.dumps([*known, result], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
