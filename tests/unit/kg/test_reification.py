from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.kg.look.dump import dump
from kgqa_core.kg.store import KgStore

Make = Callable[..., tuple[KgStore, dict[str, Any]]]
PREFIX = "PREFIX : <http://e/>\nPREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def sets(store: KgStore) -> list[tuple[str, list[list[str]]]]:
    """Triples in short, with their sets of qualifiers."""
    return [
        (text, sorted(x for x in found if x))
        for text, found in store.connection.execute(
            """
            WITH s AS (SELECT q.triple, q.statement, list(r.key || '=' || v.key ORDER BY r.key, v.key) AS pairs
                       FROM qualifiers q JOIN relations r ON r.id = q.relation JOIN entities v ON v.id = q.value
                       GROUP BY ALL)
            SELECT replace(h.key || ' ' || r.key || ' ' || t.key, 'http://e/', ''),
                   list([replace(x, 'http://e/', '') for x in pairs])
            FROM triples JOIN entities h ON h.id = head JOIN relations r ON r.id = relation
            JOIN entities t ON t.id = tail LEFT JOIN s ON s.triple = triples.id GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
    ]


def test_annotations_are_qualifiers_one_set_for_each_reifier(make: Make) -> None:
    store, counts = make(
        PREFIX + ":a :b :c {| :since 1 |} {| :since 2 ; :until 3 |} .\n:a :b :d ~ :r {| :by [] |} .\n"
        '<< :x :y "v"@EN >> :certainty 0.5 .\n:x :y "v"@en .',
        "g.ttl",
    )
    found = sets(store)
    assert found[0] == ("a b c", [["since=1"], ["since=2", "until=3"]])
    assert found[1][1][0][0].startswith("by=_:")
    assert found[2] == ("x y v", [["certainty=0.5"]])
    assert (counts["triples"], counts["rejects"]) == (3, 0)


def test_a_statement_of_rdf_is_a_qualified_triple_where_the_triple_is_stated(make: Make) -> None:
    text = ":{0} a rdf:Statement ; rdf:subject :a ; rdf:predicate :b ; rdf:object {1} ; :source :book .\n"
    store, _ = make(PREFIX + ":a :b 1 .\n" + text.format("s", "1") + text.format("u", "2"), "g.ttl")
    found = dict(sets(store))
    assert found["a b 1"] == [["source=book"]]
    assert [name for name in found if name.startswith("s ")] == []
    assert found["u source book"] == []


def test_what_is_said_of_a_triple_that_nobody_states_is_left_out_and_counted(make: Make) -> None:
    _, counts = make(PREFIX + ":a :b :c .\n<< :a :b :d >> :since 1 .", "g.ttl")
    assert counts["triples"] == 1
    assert counts["filtered_by_rule"] == {"annotations of a triple that is not stated": 2}


def test_lines_with_triples_as_terms_are_read_or_rejected(make: Make) -> None:
    term = "<<( <http://e/a> <http://e/b> <http://e/c> )>>"
    store, counts = make(
        f'<http://e/a> <http://e/b> <http://e/c> .\n_:r <{RDF}reifies> {term} .\n_:r <http://e/since> "1" .\n'
        f'<< <http://e/a> <http://e/b> <http://e/c> >> <http://e/old> "2" .\n<http://e/a> <http://e/says> {term} .\n'
        f"_:n <{RDF}reifies> <<( <http://e/a> <http://e/b> {term} )>> .\n",
        "g.nt",
    )
    assert sets(store) == [("a b c", [["old=2"], ["since=1"]])]
    rejects = store.connection.execute("SELECT line, reason FROM rejects ORDER BY line").fetchall()
    assert [line for line, _ in rejects] == [5, 6]
    assert counts["rejects"] == 2


GRAPHS = PREFIX + (
    ':a :b :c {| :since 1 |} .\nGRAPH :g { :a :b :c {| :since 4 |} . :x :y "v"@en . }\n'
    'GRAPH :h { :a :b :c }\nGRAPH _:n { :p :q :r }\n:x <http://www.w3.org/2000/01/rdf-schema#label> "The X"@en .'
)


def test_graphs_are_qualifiers_of_what_they_state(make: Make) -> None:
    store, counts = make(GRAPHS, "g.trig")
    assert sets(store) == [
        ("a b c", [["graph=g"], ["graph=g", "since=4"], ["graph=h"], ["since=1"]]),
        ("p q r", []),
        ("x y v", [["graph=g"]]),
    ]
    dropped, _ = make(GRAPHS, "g.trig", named_graphs="drop")
    assert sets(dropped)[0] == ("a b c", [["since=1"], ["since=4"]])


@pytest.mark.parametrize("form", ["nq", "ttl", "jsonld"])
def test_an_export_reads_back(make: Make, tmp_path: Path, form: str) -> None:
    store, _ = make(GRAPHS, "g.trig")
    out = tmp_path / f"export.{form}"
    dump(store, out)
    again, counts = make(out.read_bytes(), out.name)
    assert counts["labels"] == 1
    gone = {"nq": (), "ttl": ("graph=",), "jsonld": ("since=",)}[form]
    expected = []
    for triple, found in sets(store):
        left = [[pair for pair in pairs if not pair.startswith(tuple(gone))] if gone else pairs for pairs in found]
        expected.append((triple, sorted({tuple(pairs) for pairs in left if pairs})))
    assert [(triple, sorted(map(tuple, found))) for triple, found in sets(again)] == expected
