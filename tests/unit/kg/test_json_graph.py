"""Graphs that are one JSON document: node-link, Cytoscape, graphology, APOC's arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import json_graph
from kgqa_core.kg.store import KgStore
from tests.support.property_graph import LABEL, TYPE, Read, built, read


def content(folder: Path, document: Any) -> Read:
    path = folder / "g.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return read(path)


NODES = [{"id": "P1", "label": "Pump One"}, {"id": "V7", "label": "Valve Seven"}]
EDGE = {"source": "P1", "target": "V7", "relation": "feeds"}
CYTOSCAPE = [{"data": node} for node in NODES]
APOC = [{"type": "node", "id": node["id"], "labels": [], "properties": {"name": node["label"]}} for node in NODES]
KNOWS = {"type": "relationship", "id": "0", "label": "feeds", "start": {"id": "P1"}, "end": {"id": "V7"}}

FORMS: dict[str, Any] = {
    "links of networkx": {"directed": True, "multigraph": False, "graph": {}, "nodes": NODES, "links": [EDGE]},
    "edges of networkx": {"nodes": NODES, "edges": [EDGE]},
    "the relation as key": {"nodes": NODES, "links": [{"source": "P1", "target": "V7", "key": "feeds"}]},
    "other names of ends": {"nodes": NODES, "edges": [{"from": "P1", "to": "V7", "label": "feeds"}]},
    "nodes as ends, of D3": {"nodes": NODES, "links": [{**EDGE, "source": NODES[0], "target": NODES[1]}]},
    "Cytoscape": {"elements": {"nodes": CYTOSCAPE, "edges": [{"data": {**EDGE, "interaction": "feeds"}}]}},
    "Cytoscape in one list": {"elements": [*CYTOSCAPE, {"group": "edges", "data": EDGE}], "style": []},
    "Cytoscape's elements": [*CYTOSCAPE, {"data": EDGE}],
    "graphology": {
        "options": {"type": "directed"},
        "nodes": [{"key": node["id"], "attributes": {"label": node["label"]}} for node in NODES],
        "edges": [{"key": "e1", "source": "P1", "target": "V7", "attributes": {"label": "feeds"}}],
    },
    "JSON Graph Format": {
        "graph": {"nodes": {node["id"]: {"label": node["label"]} for node in NODES}, "edges": [EDGE]}
    },
    "APOC's array": [*APOC, KNOWS],
    "APOC's object": {"nodes": APOC, "rels": [KNOWS]},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("indent", [None, 1])
def test_every_form_of_a_document_is_the_same_graph(tmp_path, form, indent):
    graph = content(tmp_path, json.dumps(FORMS[form], indent=indent))
    assert graph.statements == [("P1", "feeds", "V7"), ("P1", LABEL, "Pump One"), ("V7", LABEL, "Valve Seven")]
    assert not graph.rejects and not graph.found


def test_days_in_strings_are_dates_and_other_strings_stay(tmp_path):
    nodes = [{"id": "P1", "fitted": "2021-03-05", "code": "2021-3", "note": "since 2021-03-05"}]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "links": []}), encoding="utf-8")
    built(tmp_path / "kg", [tmp_path / "g.json"])
    with KgStore.open(tmp_path / "kg") as store:
        dated = store.connection.execute("SELECT key FROM entities WHERE datatype LIKE '%#date'").fetchall()
    assert dated == [("2021-03-05",)]


def test_types_numbers_and_further_attributes_are_read(tmp_path):
    nodes = [{"id": 1, "name": "A", "type": "Pump", "data": 3}, {"id": 2, "types": ["Valve", "Part"]}]
    graph = content(tmp_path, {"nodes": nodes, "links": [{"source": 1, "target": "2", "type": "r", "weight": 0.5}]})
    types = [("1", TYPE, "Pump"), ("2", TYPE, "Part"), ("2", TYPE, "Valve")]
    assert graph.statements == sorted([("1", "data", "3"), *types, ("1", LABEL, "A"), ("1", "r", "2")])
    assert graph.qualifiers == [("weight", "0.5")]


def test_ends_are_positions_only_where_ids_are_no_numbers(tmp_path):
    edges = [{"source": 0, "target": 1, "relation": "r"}]
    graph = content(tmp_path, {"nodes": [{"name": "Ada"}, {"name": "Bo"}], "links": edges})
    assert ("0", "r", "1") in graph.statements
    graph = content(tmp_path, {"nodes": [{"id": "x"}, {"id": "y"}], "links": edges})
    assert graph.statements == [("x", "r", "y")] and "positions" in graph.found["ends of edges"]
    graph = content(tmp_path, {"nodes": [{"id": 1}, {"id": 0}], "links": edges})
    assert graph.statements == [("0", "r", "1")] and not graph.found


def test_an_undirected_edge_is_a_triple_in_either_direction_and_this_is_recorded(tmp_path):
    edges = [EDGE, {"source": "P1", "target": "P1", "relation": "is"}]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"directed": False, "nodes": NODES, "links": edges}))
    _, graph = built(tmp_path / "graph", [path])
    assert graph["triples"] == [("P1", "feeds", "V7", None), ("P1", "is", "P1", None), ("V7", "feeds", "P1", None)]
    with KgStore.open(tmp_path / "graph") as store:
        assert store.meta["read_as"] == {"g.json": {"undirected edges": "2, each of them a triple in either direction"}}


def test_nodes_without_edges_are_refused_or_noted_but_never_silent(tmp_path):
    with pytest.raises(KgInputError, match="no list of edges.*'links'.*its members are 'nodes', 'arcs'"):
        content(tmp_path, {"nodes": NODES, "arcs": [EDGE]})
    graph = content(tmp_path, {"nodes": NODES, "links": []})
    assert graph.found == {"edges": "the list ('links') is empty: there are nodes only"}


def test_bad_elements_are_rejects_with_their_lines(tmp_path):
    document = (
        '{"nodes": [{"id": "a"},\n{"id": "b"},\n{"id": "a", "x": 1},\n{"id": null, "key": [1]},\n{"id": true}],\n'
        '"links": [\n'
        '{"source": "a", "target": "b", "type": "r"},\n{"source": "a", "target": "zz", "type": "r"},\n'
        '{"source": "a"},\n7, {"source": "a", "target": "b", "x": "\\ud800"}]}'
    )
    with pytest.raises(KgInputError, match="read as a graph in JSON"):
        content(tmp_path, document)
    rejects = content(tmp_path, document.replace("\\ud800", "")).rejects
    assert [line for line, _ in rejects] == [3, 4, 5, 8, 9, 10]
    assert "line 1 has the id 'a' too" in rejects[0][1] and "no node has the id 'zz'" in rejects[3][1]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"nodes": [{"id": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + '}], "links": []}', "nested too deeply"),
        ('{"nodes": ' + "[" * 100_000, "nested too deeply"),
        ('{"nodes": [{"id": "a"}], "links": [{"sour', "truncated.*cut off"),
        ('{"nodes": "many", "links": []}', "Expected"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused_with_a_reason(tmp_path, text, match):
    with pytest.raises(KgInputError, match=match):
        content(tmp_path, text)


def test_a_document_over_the_bound_is_refused_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(json_graph, "MAX_DOCUMENT", 1 << 20)
    with pytest.raises(KgInputError, match="more than 1 MiB; write the graph as GraphML"):
        content(tmp_path, {"nodes": [{"id": "a", "text": "x" * (2 << 20)}], "links": []})


def test_a_long_text_is_read(tmp_path):
    graph = content(tmp_path, {"nodes": [{"id": "a", "text": "x" * 1_000_000}], "links": []})
    assert len(graph.statements[0][2]) == 1_000_000
