"""Forms of public question sets: read, printed, compared with the sets' own graphs and SPARQL; outside by reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgqa_core.errors import FormError
from kgqa_core.logic.graph_query import from_graph_query
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.parser import parse
from kgqa_core.logic.sparql import from_sparql
from kgqa_core.logic.sparql_query import Outside

BOARD: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "forms.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def grailqa(shared_data: Path) -> list[dict[str, Any]]:
    return json.loads((shared_data / "grailqa" / "tog" / "graliqa.json").read_text(encoding="utf-8"))


def every(step: int) -> pytest.MarkDecorator:
    """One question of so many in the default run: rdflib takes about ten milliseconds a query."""
    some = pytest.param(step, id=f"every {step}th")
    return pytest.mark.parametrize("step", [some, pytest.param(1, id="all", marks=pytest.mark.slow)])


def outside(texts: list[str]) -> Counter[str]:
    """Reasons why queries are no forms; the forms are parsed back."""
    reasons: Counter[str] = Counter()
    for text in texts:
        try:
            form = from_sparql(text)
        except Outside as fault:
            reasons[fault.reason] += 1
            continue
        except FormError:  # WebQSP has one in Virtuoso's dialect: HAVING without brackets
            reasons["no standard SPARQL"] += 1
            continue
        assert parse(str(form)) == form
    return reasons


def test_every_s_expression_of_grailqa_reads_and_prints_back(grailqa):
    forms = [parse(row["s_expression"]) for row in grailqa]
    assert len(forms) == BOARD["grailqa"]["questions"]
    assert sum(parse(str(form)) == form for form in forms) == BOARD["grailqa"]["read_back"]
    assert [str(form) for form in forms] == [row["s_expression"] for row in grailqa]


def test_form_and_graph_query_of_grailqa_agree(grailqa):
    both = [row for row in grailqa if row.get("s_expression") and row.get("graph_query")]
    reasons: Counter[str] = Counter()
    agree = 0
    for row in both:
        try:
            agree += isomorphic(parse(row["s_expression"]), from_graph_query(row["graph_query"]))
        except ValueError as fault:
            reasons[str(fault)] += 1
    assert len(both) == BOARD["grailqa"]["questions"]
    assert (agree, dict(reasons)) == (BOARD["grailqa"]["graph_query_agrees"], BOARD["grailqa"]["outside"])


@every(20)
def test_form_and_sparql_of_grailqa_agree_but_for_ranked_nodes_on_the_way(grailqa, step):
    rows = grailqa[::step]
    other = [row for row in rows if not isomorphic(parse(row["s_expression"]), from_sparql(row["sparql_query"]))]
    assert len(rows) - len(other) == BOARD["grailqa"]["sparql_agrees"][step]
    assert all(row["function"] == "argmax" for row in other)


@every(50)
def test_webqsp_is_read_but_for_what_has_a_reason(shared_data, step):
    texts = [
        question["Parses"][0]["Sparql"]
        for part in ("train", "test")
        for question in json.loads((shared_data / "webqsp" / f"WebQSP.{part}.json").read_text(encoding="utf-8-sig"))[
            "Questions"
        ]
    ]
    assert len(texts) == BOARD["webqsp"]["questions"]
    chosen = texts[::step]
    reasons = outside(chosen)
    assert len(chosen) - reasons.total() >= BOARD["webqsp"]["forms_at_least"][step], reasons.most_common()


@every(50)
def test_lcquad_2_is_read_but_for_what_has_a_reason(shared_data, step):
    path = shared_data / "lcquad2" / "ibm_genrl" / "lcquad2_test_validated.jsonl"
    texts = [json.loads(line)["query"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(texts) == BOARD["lcquad2"]["questions"]
    chosen = texts[::step]
    reasons = outside(chosen)
    assert len(chosen) - reasons.total() >= BOARD["lcquad2"]["forms_at_least"][step], reasons.most_common()
