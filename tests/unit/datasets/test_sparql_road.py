"""The benchmark of the SPARQL road: queries read, subgraphs found on the graph of the annotations, reasons counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sparql_road import DATA, _beside, grailqa_queries, measure, webqsp_queries
from tests.unit.datasets import test_grailqa, test_webqsp
from tests.unit.datasets.official import stored

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "sparql_road.json"

PREFIXES = "PREFIX ns: <http://rdf.freebase.com/ns/>\n"
CHAIN = (
    PREFIXES
    + "SELECT DISTINCT ?x WHERE { ns:m.03_r3 ns:location.country.languages_spoken ?x . FILTER (?x != ns:m.03_r3) }"
)
GRAIL = (
    "PREFIX : <http://rdf.freebase.com/ns/> SELECT (?x0 AS ?value) WHERE { SELECT DISTINCT ?x0 WHERE { "
    "?x0 :type.object.type :film.actor . ?x1 :type.object.type :film.film . VALUES ?x2 { :m.01 } "
    "?x0 :film.actor.film ?x1 . ?x1 :film.film.director ?x2 . FILTER ( ?x0 != ?x1 ) } }"
)


def test_queries_of_webqsp_are_read_and_give_their_gold_subgraph(tmp_path: Path) -> None:
    one = test_webqsp.parsed("WebQTrn-0", Sparql=CHAIN)
    del one["Parses"][1]
    other = test_webqsp.parsed("WebQTrn-1", Sparql=CHAIN.replace("?x .", "?x . OPTIONAL { ?x ns:a ?y }"))
    del other["Parses"][1]
    test_webqsp.stored(tmp_path / "data", "train", [one, other])
    (tmp_path / "work").mkdir()
    record = measure(list(webqsp_queries(tmp_path)), tmp_path / "work")
    assert {name: record[name] for name in ("queries", "read", "subgraph", "gold_found", "equal")} == {
        "queries": 2,
        "read": 1,
        "subgraph": 1,
        "gold_found": 1,
        "equal": 1,
    }
    assert sum(record["not_read"].values()) == 1 and record["share_read"] == 0.5


def test_queries_of_grailqa_are_run_on_the_graph_of_their_graph_queries(tmp_path: Path) -> None:
    stored(tmp_path / "own.json", [test_grailqa.question(1, sparql_query=GRAIL)])
    record = measure(list(grailqa_queries(tmp_path / "own.json")), tmp_path)
    assert (record["read"], record["subgraph"], record["equal"], record["median_triples"]) == (1, 1, 1, 2)


@pytest.mark.parametrize(("function", "value"), [("<", "4"), (">", "6"), (">=", "5"), ("none", "5")])
def test_a_value_beside_fulfils_the_comparison(function: str, value: str) -> None:
    assert _beside("5", function) == value


def test_the_result_file_has_what_the_script_writes_and_counts_every_query() -> None:
    record: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert set(record) == {"conditions", "sets"}
    assert set(record["sets"]) == {"webqsp_train", "grailqa_sample", "qald9_train"}
    for own in record["sets"].values():
        assert own["queries"] == own["read"] + sum(own["not_read"].values())
        assert own["read"] == own["subgraph"] + sum(own["without_subgraph"].values())
    assert DATA.name == "data"
