"""One small property graph, as triples and in every other form that is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore

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
PROPERTIES = {"born": "int", "height": "double", "alive": "boolean", "released": "int", "tags": "string[]"}


def literal(value: Any) -> tuple[str, str]:
    """Lexical form and datatype."""
    if isinstance(value, bool):
        return str(value).lower(), XSD + "boolean"
    if isinstance(value, int):
        return str(value), XSD + "integer"
    return (repr(value), XSD + "double") if isinstance(value, float) else (value, XSD + "string")


def properties(one: dict[str, Any]) -> dict[str, Any]:
    """What is no structure."""
    return {k: v for k, v in one.items() if k not in ("id", "labels", "source", "relation", "target")}


def quoted(text: str) -> str:
    """A string of KGTK or N-Triples."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_triples(folder: Path) -> list[Path]:
    """KGTK of the statements, and of the edges with their qualifiers."""
    rows = ["node1\tlabel\tnode2\tid"]
    for node in NODES:
        rows += [f"{node['id']}\t{TYPE}\t{one}\t" for one in node["labels"]]
        rows.append(f"{node['id']}\tlabel\t{quoted(node['name'])}\t")
        for name, value in properties(node).items():
            if name != "name":
                for one in value if isinstance(value, list) else [value]:
                    text, datatype = literal(one)
                    rows.append(f"{node['id']}\t{name}\t!{text}^^{datatype}\t")
    for number, edge in enumerate(EDGES):
        rows.append(f"{edge['source']}\t{edge['relation']}\t{edge['target']}\te{number}")
        for name, value in properties(edge).items():
            text, datatype = literal(value)
            rows.append(f"e{number}\t{name}\t!{text}^^{datatype}\t")
    path = folder / "triples.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [path]


def as_apoc_json(folder: Path) -> list[Path]:
    """As `CALL apoc.export.json.all(file, {})` writes it."""
    rows: list[dict[str, Any]] = []
    for node in NODES:
        rows.append({"type": "node", "id": node["id"], "labels": node["labels"], "properties": properties(node)})
    by_key = {node["id"]: node for node in NODES}
    for number, edge in enumerate(EDGES):
        ends = {}
        for end, key in (("start", edge["source"]), ("end", edge["target"])):
            ends[end] = {"id": key, "labels": by_key[key]["labels"], "properties": properties(by_key[key])}
        rows.append({"id": str(number), "type": "relationship", "label": edge["relation"],
                     "properties": properties(edge), **ends})  # fmt: skip
    path = folder / "all.json"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return [path]


def cell(value: Any, array: str = ";") -> str:
    """A field of CSV."""
    if value is None:
        return ""
    text = array.join(value) if isinstance(value, list) else literal(value)[0]
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n') else text


def as_neo4j_csv(folder: Path) -> list[Path]:
    """Two files for `neo4j-admin database import full`."""
    names = list(PROPERTIES)
    rows = [",".join(["key:ID", "name", *(f"{name}:{PROPERTIES[name]}" for name in names), ":LABEL"])]
    for node in NODES:
        rows.append(",".join([node["id"], cell(node["name"]), *(cell(node.get(name)) for name in names),
                              cell(node["labels"])]))  # fmt: skip
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = [":START_ID,role,year:int,:END_ID,:TYPE"]
    for edge in EDGES:
        rows.append(",".join([edge["source"], cell(edge.get("role")), cell(edge.get("year")), edge["target"],
                              edge["relation"]]))  # fmt: skip
    (folder / "edges.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [folder / "nodes.csv", folder / "edges.csv"]


def as_graphml(folder: Path) -> list[Path]:
    """As `apoc.export.graphml.all` with types writes it; lists are no part of GraphML and stand as JSON text."""
    from xml.sax.saxutils import escape, quoteattr

    kinds = {"born": "long", "height": "double", "alive": "boolean", "released": "long", "name": "string"}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [f'<key id="{n}" for="node" attr.name="{n}" attr.type="{kind}"/>' for n, kind in kinds.items()]
    lines += [
        '<key id="tag" for="node" attr.name="tags" attr.type="string"/>',
        '<key id="labels" for="node" attr.name="labels"/>',
        '<key id="label" for="edge" attr.name="label"/>',
        '<key id="role" for="edge" attr.name="role" attr.type="string"/>',
        '<key id="year" for="edge" attr.name="year" attr.type="long"/>',
        '<graph id="G" edgedefault="directed">',
    ]
    for node in NODES:
        labels = "".join(f":{one}" for one in node["labels"])
        own = f" labels={quoteattr(labels)}" if labels else ""
        data = f'<data key="labels">{labels}</data>' if labels else ""
        for name, value in properties(node).items():
            if name in kinds:
                data += f'<data key="{name}">{escape(literal(value)[0])}</data>'
        lines.append(f'<node id="{node["id"]}"{own}>{data}</node>')
    for number, edge in enumerate(EDGES):
        data = f'<data key="label">{edge["relation"]}</data>'
        data += "".join(f'<data key="{n}">{literal(v)[0]}</data>' for n, v in properties(edge).items())
        lines.append(f'<edge id="e{number}" source="{edge["source"]}" target="{edge["target"]}" '
                     f'label="{edge["relation"]}">{data}</edge>')  # fmt: skip
    lines += ["</graph>", "</graphml>"]
    path = folder / "graph.graphml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


TABLE = {"id": "id", "label": "name", "type": "labels", "source": "source", "target": "target", "relation": "relation"}
DATATYPES = {"born": "integer", "height": "double", "alive": "boolean", "released": "integer", "year": "integer"}


def as_csv(folder: Path, delimiter: str = ",", ending: str = "csv") -> list[Path]:
    """Tables of nodes and of edges."""
    names = ["id", "labels", "name", "born", "height", "alive", "released"]
    rows = [delimiter.join(names)]
    rows += [delimiter.join(cell(node.get(name)) for name in names) for node in NODES]
    (folder / f"nodes.{ending}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    names = ["source", "relation", "target", "role", "year"]
    rows = [delimiter.join(names), *(delimiter.join(cell(edge.get(name)) for name in names) for edge in EDGES)]
    (folder / f"edges.{ending}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [folder / f"nodes.{ending}", folder / f"edges.{ending}"]


def as_parquet(folder: Path) -> list[Path]:
    """Tables of nodes and of edges, with types and lists."""
    pl.DataFrame(NODES, infer_schema_length=None).write_parquet(folder / "nodes.parquet")
    pl.DataFrame(EDGES, infer_schema_length=None).write_parquet(folder / "edges.parquet")
    return [folder / "nodes.parquet", folder / "edges.parquet"]


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
    counts = build(out, options=KgOptions(files=tuple(map(str, files)), **options))
    with KgStore.open(out) as store:
        content = {name: store.connection.execute(f"{sql} ORDER BY ALL").fetchall() for name, sql in TABLES.items()}
    return counts, content
