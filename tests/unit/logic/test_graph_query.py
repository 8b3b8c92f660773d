from __future__ import annotations

import pytest

from kgqa_core.errors import FormError
from kgqa_core.logic.graph_query import from_graph_query
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.parser import parse


def query(nodes, edges):
    keys = ("nid", "node_type", "id", "question_node", "function")
    return {
        "nodes": [dict(zip(keys, (i, *node), strict=True)) for i, node in enumerate(nodes)],
        "edges": [dict(zip(("start", "end", "relation"), edge, strict=True)) for edge in edges],
    }


ROOT = ("class", "a.b", 1, "none")


@pytest.mark.parametrize(
    ("nodes", "edges", "text"),
    [
        ([ROOT, ("entity", "m.01", 0, "none")], [(0, 1, "r")], "(AND a.b (JOIN r m.01))"),
        ([ROOT, ("entity", "m.01", 0, "none")], [(1, 0, "r")], "(AND a.b (JOIN (R r) m.01))"),
        (
            [("class", "a.b", 1, "count"), ("entity", "m.01", 0, "none")],
            [(0, 1, "r")],
            "(COUNT (AND a.b (JOIN r m.01)))",
        ),
        (
            [ROOT, ("class", "c.d", 0, "none"), ("entity", "m.01", 0, "none")],
            [(0, 1, "r"), (2, 1, "s")],
            "(AND a.b (JOIN r (JOIN (R s) m.01)))",
        ),
        ([ROOT, ("class", "c.d", 0, "none")], [(0, 1, "r")], "(AND a.b (JOIN r c.d))"),
        ([ROOT, ("literal", "5^^xsd:integer", 0, ">=")], [(0, 1, "r")], "(AND a.b (ge r 5))"),
        ([ROOT, ("literal", "5^^xsd:integer", 0, "none")], [(0, 1, "r")], "(AND a.b (JOIN r 5))"),
        ([ROOT, ("literal", "0^^xsd:int", 0, "argmin")], [(0, 1, "r")], "(ARGMIN a.b r)"),
        (
            [ROOT, ("class", "c.d", 0, "none"), ("literal", "0^^xsd:int", 0, "argmax")],
            [(1, 0, "r"), (1, 2, "s")],
            "(ARGMAX a.b (JOIN (R r) s))",
        ),
        (
            [ROOT, ("class", "c.d", 0, "none"), ("literal", "0^^xsd:int", 0, "argmax"), ("entity", "m.01", 0, "none")],
            [(1, 0, "r"), (1, 2, "s"), (1, 3, "t")],
            "(ARGMAX (AND a.b (JOIN (R r) (JOIN t m.01))) (JOIN (R r) s))",
        ),
    ],
)
def test_graph_queries_read_as_forms(nodes, edges, text):
    assert isomorphic(from_graph_query(query(nodes, edges)), parse(text))


@pytest.mark.parametrize(
    ("nodes", "edges", "part"),
    [
        ([ROOT, ("entity", "m.01", 0, "none")], [(0, 1, "r"), (0, 1, "s")], "no tree"),
        ([("class", "a.b", 0, "none"), ("entity", "m.01", 0, "none")], [(0, 1, "r")], "one question node"),
        ([("class", "a.b", 1, "sum"), ("entity", "m.01", 0, "none")], [(0, 1, "r")], "'sum'"),
        ([ROOT, ("blob", "m.01", 0, "none")], [(0, 1, "r")], "'blob'"),
    ],
)
def test_what_a_form_cannot_write_is_refused(nodes, edges, part):
    with pytest.raises(FormError, match=part):
        from_graph_query(query(nodes, edges))
