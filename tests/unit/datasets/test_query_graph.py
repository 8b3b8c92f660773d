"""A graph of GrailQA's graph queries: each query finds its gold answers in it."""

from __future__ import annotations

from kgqa_core.datasets.grailqa import read_row
from kgqa_core.datasets.query_graph import build_graph, triples_of
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def question(number, answers, s_expression, nodes, edges, function="none"):
    return read_row(
        {
            "qid": number, "question": "?", "s_expression": s_expression, "function": function,
            "answer": [{"answer_type": "Entity", "answer_argument": key, "entity_name": key} for key in answers],
            "graph_query": {
                "nodes": [
                    {"nid": nid, "node_type": kind, "id": key, "class": cls, "friendly_name": name,
                     "question_node": int(nid == 0), "function": function_of}
                    for nid, (kind, key, cls, name, function_of) in enumerate(nodes)
                ],
                "edges": [{"start": a, "end": b, "relation": r} for a, r, b in edges],
            },
        },
        None,
    )  # fmt: skip


PLAYS = question(
    1, ["m.01", "m.02"],
    f"(AND a.play (AND (JOIN a.play.by (JOIN (R a.group.member) m.09)) (gt a.play.year 1900^^{INTEGER})))",
    [("class", "a.play", "a.play", "Play", "none"), ("class", "a.person", "a.person", "Person", "none"),
     ("entity", "m.09", "a.group", "The Group", "none"), ("literal", f"1900^^{INTEGER}", INTEGER, "1900", ">")],
    [(0, "a.play.by", 1), (2, "a.group.member", 1), (0, "a.play.year", 3)],
)  # fmt: skip
COUNT = question(
    2, ["3"], "(COUNT (AND a.play (JOIN a.play.by m.08)))",
    [("class", "a.play", "a.play", "Play", "none"), ("entity", "m.08", "a.person", "Somebody", "none")],
    [(0, "a.play.by", 1)], "count",
)  # fmt: skip


def test_each_query_finds_its_answers(tmp_path):
    assert build_graph([PLAYS, COUNT], tmp_path / "kg") == {}
    with KgStore.open(tmp_path / "kg") as store:
        found = execute(parse(PLAYS.s_expression), store)
        assert sorted(store.entity_keys(found.nodes).values()) == ["m.01", "m.02"]
        assert execute(parse(COUNT.s_expression), store).value == 3
        assert store.resolve(["The Group"])["The Group"]


def test_a_query_without_answers_has_no_triples_and_a_reason():
    assert triples_of(question(3, [], None, [("class", "a.b", "a.b", "B", "none")], []))[0] is None
    valued = question(
        4, ["m.01"], None, [("class", "a.b", "a.b", "B", "none"), ("literal", f"5^^{INTEGER}", INTEGER, "5", "none")],
        [(1, "a.c", 0)],
    )  # fmt: skip
    assert triples_of(valued) == (None, "a value as the subject of an edge")
