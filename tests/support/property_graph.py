"""One small property graph, as triples and in every other form that is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

NODES: list[dict[str, Any]] = [
    {"id": "keanu", "labels": ["Actor", "Person"], "name": "Keanu Reeves", "born": 1964, "height": 1.86},
    {"id": "lana", "labels": ["Person"], "name": 'Lana "L" Wachowski', "born": 1965, "alive": True},
    {"id": "matrix", "labels": ["Film"], "name": "The Matrix, 1", "released": 1999, "tags": ["sf", "action"]},
    {"id": "john", "labels": ["Film"], "name": "Ünder Wick\u00e9", "released": 2014},
    {"id": "bare", "labels": [], "name": "Bare"},
]
EDGES: list[dict[str, Any]] = [
    {"source": "keanu", "relation": "ACTED_IN", "target": "matrix", "role": "Neo", "year": 1999},
    {"source": "keanu", "relation": "ACTED_IN", "target": "matrix", "role": "Thomas"},
    {"source": "keanu", "relation": "ACTED_IN", "target": "john", "role": "John"},
    {"source": "lana", "relation": "DIRECTED", "target": "matrix"},
    {"source": "lana", "relation": "KNOWS", "target": "keanu"},
]


@dataclass(frozen=True)
class PropertyGraph:
    """Nodes with `id`, `labels`, `name`, edges with `source`, `relation`, `target`; the types of further properties."""

    nodes: Sequence[Mapping[str, Any]]
    edges: Sequence[Mapping[str, Any]]
    node_types: Mapping[str, str]
    edge_types: Mapping[str, str]

    @property
    def single(self) -> dict[str, str]:
        """Properties of nodes that are no lists."""
        return {name: kind for name, kind in self.node_types.items() if not kind.endswith("[]")}

    @property
    def datatypes(self) -> dict[str, str]:
        """What CSV does not say."""
        names = {"int": "integer", "double": "double", "boolean": "boolean"}
        return {name: names[kind] for name, kind in {**self.single, **self.edge_types}.items() if kind in names}


FILMS = PropertyGraph(
    NODES,
    EDGES,
    {"born": "int", "height": "double", "alive": "boolean", "released": "int", "tags": "string[]"},
    {"role": "string", "year": "int"},
)


def literal(value: Any) -> tuple[str, str]:
    """Lexical form and datatype."""
    if isinstance(value, bool):
        return str(value).lower(), XSD + "boolean"
    if isinstance(value, int):
        return str(value), XSD + "integer"
    return (repr(value), XSD + "double") if isinstance(value, float) else (value, XSD + "string")


def properties(one: Mapping[str, Any]) -> dict[str, Any]:
    """What is no structure."""
    return {k: v for k, v in one.items() if k not in ("id", "labels", "source", "relation", "target")}


def quoted(text: str) -> str:
    """A string of KGTK or N-Triples."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_triples(folder: Path, graph: PropertyGraph = FILMS) -> list[Path]:
    """KGTK of the statements, and of the qualifiers of edges."""
    rows = ["node1\tlabel\tnode2\tid"]
    for node in graph.nodes:
        rows += [f"{node['id']}\t{TYPE}\t{one}\t" for one in node["labels"]]
        rows.append(f"{node['id']}\tlabel\t{quoted(node['name'])}\t")
        for name, value in properties(node).items():
            if name != "name":
                for one in value if isinstance(value, list) else [value]:
                    text, datatype = literal(one)
                    rows.append(f"{node['id']}\t{name}\t!{text}^^{datatype}\t")
    qualifiers = rows[:1]
    for number, edge in enumerate(graph.edges):
        rows.append(f"{edge['source']}\t{edge['relation']}\t{edge['target']}\te{number}")
        for name, value in properties(edge).items():
            text, datatype = literal(value)
            qualifiers.append(f"e{number}\t{name}\t!{text}^^{datatype}\t")
    return [written(folder / "triples.tsv", rows), written(folder / "qualifiers.tsv", qualifiers)]


def as_apoc_json(folder: Path, graph: PropertyGraph = FILMS) -> list[Path]:
    """As `CALL apoc.export.json.all(file, {})` writes it."""
    rows: list[dict[str, Any]] = []
    for node in graph.nodes:
        rows.append({"type": "node", "id": node["id"], "labels": node["labels"], "properties": properties(node)})
    by_key = {node["id"]: node for node in graph.nodes}
    for number, edge in enumerate(graph.edges):
        ends = {}
        for end, key in (("start", edge["source"]), ("end", edge["target"])):
            ends[end] = {"id": key, "labels": by_key[key]["labels"], "properties": properties(by_key[key])}
        own = {"type": "relationship", "label": edge["relation"], "properties": properties(edge)}
        rows.append({"id": str(number), **own, **ends})
    return [written(folder / "all.json", [json.dumps(row, ensure_ascii=False) for row in rows])]


def as_neo4j_csv(folder: Path, graph: PropertyGraph = FILMS) -> list[Path]:
    """Two files for `neo4j-admin database import full`."""
    kinds = graph.node_types
    rows = [["key:ID", "name", *(f"{name}:{kind}" for name, kind in kinds.items()), ":LABEL"]]
    for node in graph.nodes:
        rows.append([node["id"], cell(node["name"]), *(cell(node.get(name)) for name in kinds), cell(node["labels"])])
    nodes = written(folder / "nodes.csv", map(",".join, rows))
    rows = [[":START_ID", *(f"{name}:{kind}" for name, kind in graph.edge_types.items()), ":END_ID", ":TYPE"]]
    for edge in graph.edges:
        own = [cell(edge.get(name)) for name in graph.edge_types]
        rows.append([edge["source"], *own, edge["target"], edge["relation"]])
    return [nodes, written(folder / "edges.csv", map(",".join, rows))]


def as_graphml(folder: Path, graph: PropertyGraph = FILMS) -> list[Path]:
    """As `apoc.export.graphml.all` with types writes it; lists are no part of GraphML and left out."""
    kinds = {"name": "string", **graph.single}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [f'<key id="{n}" for="node" attr.name="{n}" attr.type="{kind}"/>' for n, kind in kinds.items()]
    lines += ['<key id="labels" for="node" attr.name="labels"/>', '<key id="label" for="edge" attr.name="label"/>']
    lines += [f'<key id="{n}" for="edge" attr.name="{n}" attr.type="{k}"/>' for n, k in graph.edge_types.items()]
    lines.append('<graph id="G" edgedefault="directed">')
    for node in graph.nodes:
        labels = "".join(f":{one}" for one in node["labels"])
        own = f" labels={quoteattr(labels)}" if labels else ""
        data = f'<data key="labels">{labels}</data>' if labels else ""
        for name, value in properties(node).items():
            if name in kinds:
                data += f'<data key="{name}">{escape(literal(value)[0])}</data>'
        lines.append(f"<node id={quoteattr(node['id'])}{own}>{data}</node>")
    for number, edge in enumerate(graph.edges):
        relation = escape(edge["relation"])
        data = f'<data key="label">{relation}</data>'
        data += "".join(f'<data key="{n}">{escape(literal(v)[0])}</data>' for n, v in properties(edge).items())
        ends = f"source={quoteattr(edge['source'])} target={quoteattr(edge['target'])}"
        lines.append(f'<edge id="e{number}" {ends} label="{relation}">{data}</edge>')
    return [written(folder / "graph.graphml", [*lines, "</graph>", "</graphml>"])]


TABLE = {"id": "id", "label": "name", "type": "labels", "source": "source", "target": "target", "relation": "relation"}


def as_csv(folder: Path, graph: PropertyGraph = FILMS, delimiter: str = ",", ending: str = "csv") -> list[Path]:
    """Tables of nodes and of edges."""
    paths = []
    for name, rows, own in (
        ("nodes", graph.nodes, ["id", "labels", "name", *graph.single]),
        ("edges", graph.edges, ["source", "relation", "target", *graph.edge_types]),
    ):
        lines = [delimiter.join(own), *(delimiter.join(cell(row.get(column)) for column in own) for row in rows)]
        paths.append(written(folder / f"{name}.{ending}", lines))
    return paths


def as_parquet(folder: Path, graph: PropertyGraph = FILMS) -> list[Path]:
    """Tables of nodes and of edges, with types and lists."""
    pl.DataFrame(graph.nodes, infer_schema_length=None).write_parquet(folder / "nodes.parquet")
    pl.DataFrame(graph.edges, infer_schema_length=None).write_parquet(folder / "edges.parquet")
    return [folder / "nodes.parquet", folder / "edges.parquet"]


def cell(value: Any) -> str:
    """A field of CSV."""
    if value is None:
        return ""
    text = ";".join(value) if isinstance(value, list) else literal(value)[0]
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n') else text


def written(path: Path, lines: Iterable[str]) -> Path:
    """The file of some lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


TABLES = {
    "entities": "SELECT key, kind, datatype, number FROM entities",
    "relations": "SELECT key, datatype FROM relations",
    "triples": "SELECT a.key, r.key, b.key, b.datatype FROM triples t JOIN entities a ON a.id = t.head "
    "JOIN relations r ON r.id = t.relation JOIN entities b ON b.id = t.tail",
    "labels": "SELECT e.key, lang, label FROM labels JOIN entities e USING (id)",
    "types": "SELECT a.key, b.key FROM types JOIN entities a ON a.id = entity JOIN entities b ON b.id = type",
    "qualifiers": "SELECT t.head, t.tail, q.statement, r.key, e.key, e.datatype FROM qualifiers q "
    "JOIN triples t ON t.id = q.triple JOIN relations r ON r.id = q.relation JOIN entities e ON e.id = q.value",
}
COUNTED = ("entities", "literals", "relations", "triples", "labels", "types", "qualifiers")


def built(out: Path, files: list[Any], **options: Any) -> tuple[dict[str, int], dict[str, list[Any]]]:
    """The counts of a graph, and its content by key."""
    out.mkdir(parents=True, exist_ok=True)
    counts = build(Workspace(out), options=KgOptions(files=tuple(map(str, files)), **options))
    with KgStore.open(out) as store:
        content = {name: store.connection.execute(f"{sql} ORDER BY ALL").fetchall() for name, sql in TABLES.items()}
    return counts, content


@dataclass(frozen=True)
class Read:
    """What a reader makes of a file, without a graph: statements, and predicate and object of qualifiers, in order."""

    statements: list[tuple[str, str, str]]
    qualifiers: list[tuple[str, str]]
    rejects: list[tuple[int, str]]
    found: dict[str, str]
    ignored: int


def read(path: Path, **options: Any) -> Read:
    """What the reader that understands a file makes of it."""
    config = KgOptions(files=(str(path),), **options)
    source = Source(path, path.name)
    batches = list(reader_of(source, config).read(source, config))
    return Read(
        sorted(row[:3] for batch in batches for row in batch.statements.iter_rows()),
        sorted(row[2:4] for batch in batches if batch.qualifiers is not None for row in batch.qualifiers.iter_rows()),
        sorted(row[:2] for batch in batches for row in batch.rejects.iter_rows()),
        source.found,
        sum(batch.ignored for batch in batches),
    )


def triples(folder: Path) -> set[tuple[str, ...]]:
    """The triples of a graph by name, types left out."""
    with KgStore.open(folder) as store:
        rows = store.connection.execute("SELECT head, relation, tail FROM triples").fetchall()
        names, relations = store.names({end for head, _, tail in rows for end in (head, tail)}), store.relation_names()
    return {(names[h], relations[r], names[t]) for h, r, t in rows if relations[r] != "type"}
