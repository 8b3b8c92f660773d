"""Counts of one graph by the connector that it comes through, beside those of the same graph as a file of triples.

    python -m benchmarks.graph.connectors --json benchmarks/results/connectors.json

Atlas goes through a SPARQL endpoint (pyoxigraph on loopback) as it is.  Everything else gets Atlas as a property graph:
types, labels, the smallest value of each literal property, and the triples between entities, of which every fifth has a
qualifier that this script makes up, since Atlas has none.  Its reference is a KGTK file.  Bolt is the server of
tests/support, read by the official driver.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS, write
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.kg.store import KgStore
from tests.support import property_graph as forms
from tests.support.bolt_server import BoltServer
from tests.support.sparql_server import SparqlServer

FIELDS = (*CONDITIONS, "rows/*/*")
TYPES = {"integer": "int", "decimal": "double", "double": "double", "boolean": "boolean"}
FIFTH = 5


def property_graph(folder: Path) -> forms.PropertyGraph:
    """Atlas, out of a graph that was built from it, as nodes and edges."""
    with KgStore.open(folder) as store:
        rows = store.connection.execute(
            """
            SELECT a.key, r.key, min_by(b.key, b.id), min_by(b.datatype, b.id) FROM triples t
            JOIN entities a ON a.id = t.head JOIN entities b ON b.id = t.tail JOIN relations r ON r.id = t.relation
            WHERE b.kind = 'literal' GROUP BY 1, 2 ORDER BY 1, 2"""
        ).fetchall()
        types = store.connection.execute(
            "SELECT a.key, list(b.key ORDER BY b.key) FROM types t JOIN entities a ON a.id = t.entity "
            "JOIN entities b ON b.id = t.type GROUP BY 1"
        ).fetchall()
        labels = store.connection.execute(
            "SELECT key, label FROM labels JOIN entities USING (id) WHERE lang = 'en' AND label IS NOT NULL"
        ).fetchall()
        links = store.connection.execute(
            """
            SELECT a.key, r.key, b.key FROM triples t JOIN entities a ON a.id = t.head JOIN entities b ON b.id = t.tail
            JOIN relations r ON r.id = t.relation
            WHERE b.kind = 'entity' AND NOT ends_with(r.key, '#type') ORDER BY 1, 2, 3"""
        ).fetchall()
    nodes: dict[str, dict[str, Any]] = {key: {"id": key, "labels": [], "name": label} for key, label in labels}
    kinds: dict[str, str] = {}
    for key, own in types:
        if key in nodes:
            nodes[key]["labels"] = [one.rpartition(":")[2] for one in own]  # GraphML's labels have no colon
    for key, relation, value, datatype in rows:
        kind = TYPES.get(datatype.rpartition("#")[2], "string")
        name = relation.rpartition(":")[2]
        kinds[name] = "string" if kinds.get(name, kind) != kind else kind
        if key in nodes:
            nodes[key][name] = value
    for node in nodes.values():
        for name, kind in kinds.items():
            if name in node and kind != "string":
                node[name] = int(node[name]) if kind == "int" else float(node[name])
    edges = [
        {"source": source, "relation": relation.rpartition(":")[2].rpartition("#")[2], "target": target}
        | ({"since": 1900 + at % 100} if at % FIFTH == 0 else {})
        for at, (source, relation, target) in enumerate(links)
        if source in nodes and target in nodes
    ]
    return forms.PropertyGraph(list(nodes.values()), edges, dict(sorted(kinds.items())), {"since": "int"})


def main() -> None:
    """Builds the graph through every connector."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    content: dict[str, Any] = {}

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def measure(name: str, files: list[Any], reference: str | None, **options: Any) -> None:
            started = time.monotonic()
            counts, content[name] = forms.built(folder / name, files, fetched=str(folder / "fetched"), **options)
            kept = {what: counts[what] for what in (*forms.COUNTED, "rejects")}
            same = None if reference is None else content[name] == content[reference]
            rows[name] = kept | {"same_as_triples": same, "seconds": round(time.monotonic() - started, 1)}
            print(name, rows[name], flush=True)

        source = find_sources(("bundled:atlas",))[0].path
        measure("atlas_file", [source], None)
        with SparqlServer(gzip.decompress(source.read_bytes()).decode()) as server:
            measure("sparql", [server.address], "atlas_file", sparql={"delay": 0})
        graph = property_graph(folder / "atlas_file")
        measure("triples", forms.as_triples(folder, graph), None)
        mapped = {"table": forms.TABLE, "property_graph": {"datatypes": graph.datatypes}}
        writers: dict[str, tuple[Callable[[], list[Path]], dict[str, Any]]] = {
            "neo4j_json": (lambda: forms.as_apoc_json(folder, graph), {}),
            "neo4j_csv": (lambda: forms.as_neo4j_csv(folder, graph), {}),
            "graphml": (lambda: forms.as_graphml(folder, graph), {}),
            "csv": (lambda: forms.as_csv(folder, graph), mapped),
            "tsv": (lambda: forms.as_csv(folder, graph, "\t", "tsv"), mapped),
            "parquet": (lambda: forms.as_parquet(folder, graph), {"table": forms.TABLE}),
        }
        for name, (make, options) in writers.items():
            measure(name, make(), "triples", **options)
        links = [
            {"id": f"5:atlas:{at:07}", "type": edge["relation"], "start": edge["source"], "end": edge["target"]}
            | forms.properties(edge)
            for at, edge in enumerate(graph.edges)
        ]
        with BoltServer(graph.nodes, links) as bolt:
            measure("bolt", [f"bolt://{bolt.host}"], "triples")
    write(given.json, {"conditions": conditions(7), "rows": rows}, FIELDS)


if __name__ == "__main__":
    main()
