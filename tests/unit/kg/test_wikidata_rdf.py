from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from kgqa_core.kg.formats.wikidata.rdf_terms import DECLARATIONS, STATEMENT_NODES, VALUE_NODES
from kgqa_core.kg.ingest.assemble_wikidata import ORPHANS
from kgqa_core.kg.store import KgStore
from tests.support.reading import read_text

Make = Callable[..., tuple[KgStore, dict[str, Any]]]

PREFIXES = """\
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix geo: <http://www.opengis.net/ont/geosparql#> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wds: <http://www.wikidata.org/entity/statement/> .
@prefix wdv: <http://www.wikidata.org/value/> .
@prefix wdref: <http://www.wikidata.org/reference/> .
@prefix data: <https://www.wikidata.org/wiki/Special:EntityData/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wdtn: <http://www.wikidata.org/prop/direct-normalized/> .
@prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix psv: <http://www.wikidata.org/prop/statement/value/> .
@prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> .
@prefix pr: <http://www.wikidata.org/prop/reference/> .
@prefix wdno: <http://www.wikidata.org/prop/novalue/> .
"""
WB = "http://wikiba.se/ontology#"
XSD = "http://www.w3.org/2001/XMLSchema#"
STRING, DECIMAL, TIME = f"{XSD}string", f"{XSD}decimal", f"{XSD}dateTime"


def turtle(tmp_path: Path, text: str) -> Any:
    return read_text(tmp_path, PREFIXES + text, "truthy.ttl", format="wikidata-rdf")


def facts(store: KgStore) -> list[tuple[Any, ...]]:
    """(head, relation, tail, datatype, detail, rank) of every triple, sorted."""
    return sorted(
        store.connection.execute(
            "SELECT h.key, r.key, t.key, t.datatype, t.detail, x.rank FROM triples x "
            "JOIN entities h ON h.id = x.head JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail"
        ).fetchall(),
        key=str,
    )


def qualifiers(store: KgStore) -> list[tuple[Any, ...]]:
    """(head, relation, tail, statement, qualifier, value, datatype, detail), sorted."""
    return sorted(
        store.connection.execute(
            "SELECT h.key, r.key, t.key, q.statement, p.key, v.key, v.datatype, v.detail FROM qualifiers q "
            "JOIN triples x ON x.id = q.triple JOIN relations r ON r.id = x.relation "
            "JOIN relations p ON p.id = q.relation JOIN entities h ON h.id = x.head "
            "JOIN entities t ON t.id = x.tail JOIN entities v ON v.id = q.value"
        ).fetchall(),
        key=str,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wd:Q42", ("Q42", 0, None)),
        ("wd:P31", ("P31", 0, None)),
        ("wd:L7-F1", ("L7-F1", 0, None)),
        ('"x"', ("x", 1, STRING)),
        ('"x"@EN', ("x", 1, "@en")),
        ('"+1.96"^^xsd:decimal', ("+1.96", 1, DECIMAL)),
        ('"Point(1 2)"^^geo:wktLiteral', ("Point(1 2)", 1, "http://www.opengis.net/ont/geosparql#wktLiteral")),
        ("_:genid1", ("somevalue", 1, f"{WB}somevalue")),
        ("<http://www.wikidata.org/.well-known/genid/0a1b>", ("somevalue", 1, f"{WB}somevalue")),
        ("<http://www.douglasadams.com/>", ("http://www.douglasadams.com/", 1, f"{XSD}anyURI")),
        (
            "<http://commons.wikimedia.org/wiki/Special:FilePath/Douglas%20%26%20A.jpg>",
            ("Douglas & A.jpg", 1, f"{WB}CommonsMedia"),
        ),
        ("<http://commons.wikimedia.org/data/main/Data:Mexico.map>", ("Data:Mexico.map", 1, f"{WB}GeoShape")),
        ("<http://commons.wikimedia.org/data/main/Data:Some.tab>", ("Data:Some.tab", 1, f"{WB}TabularData")),
    ],
)
def test_values_of_properties_have_the_keys_and_literals_of_json(
    text: str, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    found = turtle(tmp_path, f"wd:Q1 wdt:P1 {text} .")
    assert found.rows("subject", "predicate", "object", "kind", "datatype") == [("Q1", "P1", *expected)]


def test_no_value_is_a_literal_of_its_property(tmp_path: Path) -> None:
    found = turtle(tmp_path, "wd:Q42 a wdno:P40 .")
    assert found.rows("subject", "predicate", "object", "datatype") == [("Q42", "P40", "novalue", f"{WB}novalue")]


def test_three_labels_are_one_and_what_is_not_known_stays(make: Make) -> None:
    store, counts = make(
        PREFIXES + 'wd:Q1 rdfs:label "a"@en ; skos:prefLabel "a"@en ; schema:name "a"@en ; wdt:P1 wd:Q2 ;\n'
        'skos:altLabel "b"@en ; schema:description "c"@en ; <http://x/new> wd:Q3 .\n',
        "full.ttl",
        format="wikidata-rdf",
    )
    assert (counts["labels"], counts["duplicates"], counts["aliases"], counts["descriptions"]) == (1, 2, 1, 1)
    assert [row[:3] for row in facts(store)] == [
        ("Q1", "P1", "Q2"),
        ("Q1", "http://x/new", "Q3"),
    ]


def test_what_is_no_statement_is_counted_by_rule(tmp_path: Path) -> None:
    found = turtle(
        tmp_path,
        """
        data:Q1 a schema:Dataset ; schema:about wd:Q1 ; schema:version 5 .
        wd:Q1 a wikibase:Item ; wikibase:sitelinks 3 ; wdtn:P1 <http://x/1> .
        <https://en.wikipedia.org/wiki/A> a schema:Article ; schema:about wd:Q1 ; schema:name "A"@en ;
            schema:inLanguage "en" ; schema:isPartOf <https://en.wikipedia.org/> ; wikibase:badge wd:Q9 .
        <https://en.wikipedia.org/> wikibase:wikiGroup "wikipedia" .
        wds:Q1-a a wikibase:Statement, wikibase:BestRank ; prov:wasDerivedFrom wdref:b .
        wds:Q1-a wikibase:rank wikibase:NormalRank .
        wdref:b a wikibase:Reference ; pr:P248 wd:Q2 .
        wdv:c a wikibase:TimeValue ; wikibase:timeTimezone 0 .
        wd:P1 a wikibase:Property ; wikibase:directClaim wdt:P1 .
        wdno:P1 a owl:Class ; owl:complementOf [ a owl:Restriction ; owl:onProperty wdt:P1 ] .
        """,
    )
    assert found.statements.height == 0
    assert found.filtered == {
        "page metadata": 4,
        "entity types": 2,
        "normalised values": 1,
        "sitelinks": 7,
        "parts of statement nodes": 3,
        "references": 3,
        "value nodes": 2,
        "property declarations": 5,
    }
    assert found.total == 27


FULL = """
wd:Q1 p:P569 wds:Q1-a ; wdt:P569 "1952-03-11T00:00:00Z"^^xsd:dateTime .
wds:Q1-a ps:P569 "1952-03-11T00:00:00Z"^^xsd:dateTime ; psv:P569 wdv:t ; wikibase:rank wikibase:PreferredRank ;
    pq:P1480 wd:Q5 ; pq:P2048 "+1.96"^^xsd:decimal ; pqv:P2048 wdv:m ; pq:P580 "1950-01-01T00:00:00Z"^^xsd:dateTime ;
    pqv:P580 wdv:y ; pqv:P580 wdv:d ; a wdno:P582 .
wd:Q1 p:P569 wds:Q1-b .
wds:Q1-b ps:P569 "1953-01-01T00:00:00Z"^^xsd:dateTime ; psv:P569 wdv:j ; wikibase:rank wikibase:DeprecatedRank .
wd:Q1 p:P40 wds:Q1-c .
wds:Q1-c a wdno:P40 ; wikibase:rank wikibase:NormalRank .
wd:Q1 p:P22 wds:Q1-d ; wdt:P22 _:g .
wds:Q1-d ps:P22 _:g ; pq:P1 "3"^^xsd:decimal ; pqv:P1 wdv:n .
wdv:t wikibase:timeValue "1952-03-11T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 ;
    wikibase:timeCalendarModel wd:Q1985727 .
wdv:j wikibase:timeValue "1953-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 ;
    wikibase:timeCalendarModel wd:Q1985786 .
wdv:y wikibase:timeValue "1950-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 ;
    wikibase:timeCalendarModel wd:Q1985727 .
wdv:d wikibase:timeValue "1950-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 ;
    wikibase:timeCalendarModel wd:Q1985727 .
wdv:m wikibase:quantityAmount "+1.96"^^xsd:decimal ; wikibase:quantityUnit wd:Q11573 .
wdv:n wikibase:quantityAmount "3"^^xsd:decimal ; wikibase:quantityUnit wd:Q199 .
"""

BIRTH = ("Q1", "P569", "1952-03-11T00:00:00Z")
DATE = (TIME, "11 gregorian")


def test_statement_nodes_become_statements_with_rank_detail_and_qualifiers(make: Make) -> None:
    store, counts = make(PREFIXES + FULL, "full.ttl", format="wikidata-rdf", ranks="all")
    assert facts(store) == [
        ("Q1", "P22", "somevalue", f"{WB}somevalue", None, 0),
        ("Q1", "P40", "novalue", f"{WB}novalue", None, 0),
        (*BIRTH, *DATE, 1),
        ("Q1", "P569", "1953-01-01T00:00:00Z", TIME, "9 julian", -1),
    ]
    assert qualifiers(store) == [
        ("Q1", "P22", "somevalue", 0, "P1", "3", DECIMAL, None),
        (*BIRTH, 0, "P1480", "Q5", None, None),
        (*BIRTH, 0, "P2048", "+1.96", DECIMAL, "Q11573"),
        (*BIRTH, 0, "P580", "1950-01-01T00:00:00Z", TIME, "11 gregorian"),
        (*BIRTH, 0, "P580", "1950-01-01T00:00:00Z", TIME, "9 gregorian"),
        (*BIRTH, 0, "P582", "novalue", f"{WB}novalue", None),
    ]
    # wdt:P569 and wdt:P22 repeat what their nodes say.
    assert counts["duplicates"] == 2
    assert counts["filtered_by_rule"] == {STATEMENT_NODES: 4 + 3 + 2 + 1 + 4, VALUE_NODES: 16}


def test_a_literal_keeps_the_canonical_place_among_the_ids(make: Make) -> None:
    store, _ = make(PREFIXES + FULL, "full.ttl", format="wikidata-rdf", ranks="all")
    literals = store.connection.execute(
        "SELECT key, datatype, detail FROM entities WHERE kind = 'literal' ORDER BY id"
    ).fetchall()
    assert literals == sorted(literals, key=lambda row: (row[0], row[1], row[2] or ""))
    first, last, entities = store.connection.execute(
        "SELECT min(id) FILTER (kind = 'literal'), max(id) FILTER (kind = 'literal'), "
        "count(*) FILTER (kind = 'entity') FROM entities"
    ).fetchone() or (0, 0, 0)
    assert (first, last) == (entities, entities + len(literals) - 1)


def test_truthy_takes_the_preferred_statement_of_a_node(make: Make) -> None:
    text = """
    wd:Q1 p:P1 wds:Q1-a, wds:Q1-b ; wdt:P1 wd:Q2 .
    wds:Q1-a ps:P1 wd:Q2 ; wikibase:rank wikibase:PreferredRank .
    wds:Q1-b ps:P1 wd:Q3 ; wikibase:rank wikibase:NormalRank .
    """
    store, counts = make(PREFIXES + text, "full.ttl", format="wikidata-rdf")
    assert facts(store) == [("Q1", "P1", "Q2", None, None, 1)]
    assert counts["duplicates"] == 1


def test_the_order_of_the_lines_makes_no_difference(make: Make) -> None:
    data = ox.serialize(
        (quad.triple for quad in ox.parse((PREFIXES + FULL).encode(), format=ox.RdfFormat.TURTLE)),
        format=ox.RdfFormat.N_TRIPLES,
    )
    lines = (data or b"").decode().splitlines()
    expected = make("\n".join(lines), "full.nt", format="wikidata-rdf", ranks="all")[0]
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        again = make("\n".join(lines), "full.nt", format="wikidata-rdf", ranks="all")[0]
        for table in ("entities", "relations", "triples", "qualifiers", "filtered"):
            sql = f"SELECT * FROM {table} ORDER BY ALL"
            assert again.connection.execute(sql).fetchall() == expected.connection.execute(sql).fetchall(), table


def test_nodes_without_entity_or_value_are_counted_not_lost(make: Make) -> None:
    text = 'wd:Q1 wdt:P1 wd:Q2 ; p:P1 wds:Q1-x .\nwds:Q1-y ps:P1 wd:Q3 ; pq:P2 "q" .\n'
    store, counts = make(PREFIXES + text, "full.ttl", format="wikidata-rdf")
    assert facts(store) == [("Q1", "P1", "Q2", None, None, 0)]
    assert counts["filtered_by_rule"] == {ORPHANS: 2, "qualifier without statement": 1}


def test_declared_properties_make_external_ids_of_strings(make: Make) -> None:
    text = """
    wd:P1 wikibase:propertyType wikibase:ExternalId . wd:P2 wikibase:propertyType wikibase:String .
    wd:Q1 wdt:P1 "x" ; wdt:P2 "x" ; p:P3 wds:Q1-a . wds:Q1-a ps:P3 wd:Q2 ; pq:P1 "x" .
    """
    store, counts = make(PREFIXES + text, "full.ttl", format="wikidata-rdf")
    assert facts(store) == [
        ("Q1", "P1", "x", f"{WB}ExternalId", None, 0),
        ("Q1", "P2", "x", STRING, None, 0),
        ("Q1", "P3", "Q2", None, None, 0),
    ]
    assert qualifiers(store) == [("Q1", "P3", "Q2", 0, "P1", "x", f"{WB}ExternalId", None)]
    assert counts["filtered_by_rule"] == {DECLARATIONS: 2, STATEMENT_NODES: 1}


def test_no_value_of_the_same_property_as_value_and_as_qualifier(make: Make) -> None:
    text = "wd:Q1 p:P1 wds:Q1-a . wds:Q1-a ps:P1 wd:Q2 ; a wdno:P1 .\nwd:Q1 p:P2 wds:Q1-b . wds:Q1-b a wdno:P2 .\n"
    store, _ = make(PREFIXES + text, "full.ttl", format="wikidata-rdf")
    assert [row[:3] for row in facts(store)] == [("Q1", "P1", "Q2"), ("Q1", "P2", "novalue")]
    assert [row[:6] for row in qualifiers(store)] == [("Q1", "P1", "Q2", 0, "P1", "novalue")]


def test_wikidata_is_told_from_other_rdf(tmp_path: Path) -> None:
    assert read_text(tmp_path, PREFIXES + "wd:Q1 wdt:P1 wd:Q2 .", "a.ttl").format == "wikidata-rdf"
    line = "<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P1> <http://x/> .\n"
    assert read_text(tmp_path, line, "a.nt").format == "wikidata-rdf"
    assert read_text(tmp_path, "<http://x/s> <http://x/p> <http://x/o> .\n", "a.nt").format == "ntriples"
    assert read_text(tmp_path, "@prefix a: <http://a/> .\na:s a:p a:o .\n", "a.ttl").format == "turtle"
