"""What `kg show` tells of entities, their facts and qualifiers."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kgqa_core.config import KgOptions
from kgqa_core.kg.look.search import search
from kgqa_core.kg.look.show import describe
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import tell_apart
from kgqa_core.report.console import entity_tables
from tests.support.staged import EN, LABEL, STRING, graph

DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
ABOUT = "http://schema.org/description"
STATEMENTS = [
    ("Q42", LABEL, ("Douglas Adams", EN)), ("Q42", ABOUT, ("englischer Autor", "@de")),
    ("Q42", ABOUT, ("English writer", "@en-gb")), ("Q42", "P39", "Q1", 1), ("Q42", "P39", "Q1", 1),
    ("Q42", "P2048", ("+1.96", DECIMAL, "Q11573")), ("Q11573", LABEL, ("metre", EN)), ("Q42", "P31", "Q5"),
    ("P580", LABEL, ("start time", EN)), ("P39", LABEL, ("position held", EN)), ("Q11573", "P31", "Q2"),
    ("Q5", "P279", "Q3"), ("Q42", "P646", ("/m/0282x", STRING)), ("Q1", LABEL, ("mayor", EN)),
    ("Q42", "P2067", ("+90", DECIMAL, "Q999")),
]  # fmt: skip
QUALIFIERS = [(3, "P580", ("1999", STRING)), (4, "P580", ("2003", STRING)), (4, "P1365", "Q7"),
              (5, "P2048", ("+1.9", DECIMAL, "Q11573"))]  # fmt: skip


@pytest.fixture
def adams(tmp_path):
    graph(tmp_path / "kg.duckdb", KgOptions(), STATEMENTS, QUALIFIERS)
    with KgStore.open(tmp_path / "kg.duckdb") as store:
        yield describe(store, "Douglas Adams")


def test_facts_carry_rank_unit_and_one_list_of_qualifiers_a_statement(adams):
    (match,) = adams["matches"]
    facts = {fact["relation_key"]: fact for fact in match["facts"]}
    held = facts["P39"]
    assert (held["relation"], held["entity"], held["rank"], held["unit"]) == (
        "position held", "mayor", "preferred", None,
    )  # fmt: skip
    assert [[(q["relation"], q["entity"]) for q in one] for one in held["qualifiers"]] == [
        [("P1365", "Q7"), ("start time", "2003")],
        [("start time", "1999")],
    ]
    assert facts["P2048"]["unit"] == "metre" and facts["P2067"]["unit"] == "Q999"
    assert facts["P2048"]["qualifiers"][0][0]["unit"] == "metre"
    assert facts["P31"]["qualifiers"] == [] and facts["P31"]["rank"] == "normal"


def test_an_entity_has_its_description_types_and_ids_elsewhere(adams):
    (match,) = adams["matches"]
    assert match["description"] == "English writer" and len(match["descriptions"]) == 2
    assert match["types"] == ["Q5"] and match["supertypes"] == ["Q3"]
    assert match["bridges"] == [{"relation": "P646", "value": "m.0282x"}]


def test_an_entity_is_found_by_its_id_elsewhere(tmp_path):
    graph(tmp_path / "kg.duckdb", KgOptions(), STATEMENTS)
    with KgStore.open(tmp_path / "kg.duckdb") as store:
        assert [m["key"] for m in describe(store, "/m/0282x")["matches"]] == ["Q42"]


def test_the_terminal_shows_qualifiers_under_their_fact(adams):
    console = Console(width=100, record=True, file=io.StringIO())
    for part in entity_tables(adams):
        console.print(part)
    lines = console.export_text().splitlines()
    held = next(i for i, line in enumerate(lines) if "position held (preferred)" in line)
    assert all("start time" in line or "P1365" in line for line in lines[held + 1 : held + 4])
    text = "\n".join(lines)
    assert "English writer" in text and "1.96 metre" in text and "elsewhere: m.0282x (P646)" in text


def test_things_of_one_name_are_told_apart_by_type_by_a_fact_or_by_key(make):
    rows = ["p1 label Li_Wei", "p2 label Li_Wei", "p1 born_in Harbin", "p2 born_in Lyon", "p1 likes tea",
            "p2 likes tea",
            "m1 label Moon", "m2 label Moon", "m1 type band", "m2 type film", "k1 label Kit", "k2 label Kit",
            "k1 likes tea", "k2 likes tea", "p1 knows k1"]  # fmt: skip
    text = "".join("\t".join(row.split()) + "\n" for row in rows).replace("Li_Wei", "Li Wei")
    store, _ = make(text, "g.tsv", label_predicates=("label",), type_predicates=("type",))
    ids = [i for found in store.resolve(["p1", "p2", "m1", "m2", "k1", "k2", "tea"]).values() for i in found]
    told = tell_apart(store, store.names(ids))
    assert [told[i] for i in ids] == [
        "Li Wei, born in Harbin", "Li Wei, born in Lyon", "Moon (band)", "Moon (film)", "Kit (k1)", "Kit (k2)", "tea"
    ]  # fmt: skip
    assert [match["name"] for match in describe(store, "Moon")["matches"]] == ["Moon (band)", "Moon (film)"]
    assert {match["name"] for match in search(store, "Li Wei")} == {"Li Wei, born in Harbin", "Li Wei, born in Lyon"}
    assert describe(store, "p1")["matches"][0]["name"] == "Li Wei"
