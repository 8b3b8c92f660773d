"""The benchmark of the SPARQL road: queries read, subgraphs found on the graph of the annotations, reasons counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.questions.sparql_road import DATA, FIGURES, measure, table
from benchmarks.questions.sparql_road_sets import SETS, _beside, grailqa_queries, graph_of, webqsp_queries
from tests.unit.datasets.published import test_grailqa, test_webqsp
from tests.unit.datasets.published.official import stored

RESULTS = Path(__file__).resolve().parents[4] / "benchmarks" / "results" / "sparql_road.json"

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
    queries = list(webqsp_queries(tmp_path))
    store = graph_of(queries, tmp_path / "work")
    record = measure(queries, store)
    assert record["queries"] == 2 and record["forms"]["read"] == 1 and record["forms"]["not_read"] == {"OPTIONAL": 1}
    assert {name: record["forms"][name] for name in FIGURES} == dict.fromkeys(FIGURES, 1)
    assert record["execution"]["executed"] == 2 and record["without_form"]["executed"] == 1
    for road in ("execution", "together"):
        assert {name: record[road][name] for name in FIGURES} == dict.fromkeys(FIGURES, 2)
    assert record["agreement"] == {"both": 1, "same": 1}


def test_queries_of_grailqa_are_run_on_the_graph_of_their_graph_queries(tmp_path: Path) -> None:
    stored(tmp_path / "own.json", [test_grailqa.question(1, sparql_query=GRAIL)])
    queries = list(grailqa_queries(tmp_path / "own.json"))
    record = measure(queries, graph_of(queries, tmp_path))
    assert record["forms"] == {"read": 1, "result": 1, "subgraph": 1, "gold_found": 1, "equal": 1}
    assert record["together"]["equal"] == 1 and record["median_triples"] == 2


@pytest.mark.parametrize(("function", "value"), [("<", "4"), (">", "6"), (">=", "5"), ("none", "5")])
def test_a_value_beside_fulfils_the_comparison(function: str, value: str) -> None:
    assert _beside("5", function) == value


def test_the_result_file_has_what_the_script_writes_and_counts_every_query() -> None:
    record: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert list(record) == ["sets"] and list(record["sets"]) == list(SETS)
    for name, own in record["sets"].items():
        for road, ran in (("forms", "read"), ("execution", "executed"), ("together", "executed")):
            if (counts := own.get(road)) is None:
                continue
            assert own["queries"] == counts[ran] + sum(counts.get(f"not_{ran}", {}).values()), name
            assert counts[ran] == counts["subgraph"] + sum(counts.get("without_subgraph", {}).values()), name
        assert "with changes" not in own["conditions"]["commit"], name
    assert DATA.name == "data"


def test_the_page_has_the_table_of_the_result_file() -> None:
    page = (RESULTS.parents[2] / "docs" / "freebase_question_sets.md").read_text(encoding="utf-8")
    assert table(json.loads(RESULTS.read_text(encoding="utf-8"))) in page
