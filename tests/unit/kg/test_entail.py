"""What the vocabulary of a graph says, and what of it is no fact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.ingest import entail, restate
from kgqa_core.kg.look.show import describe
from kgqa_core.kg.names import key_end
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.update.delta import update
from kgqa_core.kg.verbalise import Wording
from kgqa_core.workspace import Workspace

Make = Callable[..., tuple[KgStore, dict[str, Any]]]

PREFIXES = """\
@prefix : <http://x/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def facts(store: KgStore) -> set[str]:
    rows = store.connection.execute(
        "SELECT h.key, r.key, t.key FROM triples x JOIN entities h ON h.id = x.head JOIN relations r "
        "ON r.id = x.relation JOIN entities t ON t.id = x.tail"
    ).fetchall()
    return {" ".join(map(key_end, row)) for row in rows}


def labels(store: KgStore) -> dict[str, str]:
    sql = "SELECT key, label FROM labels JOIN entities USING (id) ORDER BY lang DESC"
    return {key_end(key): label for key, label in store.connection.execute(sql).fetchall()}


def turtle(make: Make, text: str, **options: Any) -> tuple[KgStore, dict[str, Any]]:
    return make(PREFIXES + text, "graph.ttl", **options)


def test_declarations_are_neither_entities_nor_types_and_all_are_counted(make: Make) -> None:
    store, counts = turtle(
        make,
        """
        : a owl:Ontology ; rdfs:label "the ontology" .
        :City a owl:Class ; rdfs:label "city" ; rdfs:subClassOf :Place .
        :in a owl:ObjectProperty ; rdfs:label "lies in" ; rdfs:domain :City ; rdfs:range :Place .
        :unused a owl:DatatypeProperty ; rdfs:label "unused" .
        :Porto a :City , owl:NamedIndividual ; :in :Portugal .
        """,
    )
    assert facts(store) == {"City subClassOf Place", "Porto type City", "Porto in Portugal"}
    assert "the ontology" not in labels(store).values() and "unused" not in labels(store).values()
    assert "lies in" in store.relation_names()
    assert counts["derived"] == 0 and counts["filtered"] == 9


def test_axioms_of_relations_derive_statements_with_their_reasons(make: Make) -> None:
    store, counts = turtle(
        make,
        """
        :owns owl:inverseOf :ownedBy . :near a owl:SymmetricProperty . :in a owl:TransitiveProperty .
        :capitalOf rdfs:subPropertyOf :in .
        :Ann :owns :Shop . :Shop :near :Park . :Porto :capitalOf :Norte . :Norte :in :Portugal . :Portugal :in :Europe .
        """,
    )
    assert facts(store) - {"Ann owns Shop", "Shop near Park", "Porto capitalOf Norte", "Norte in Portugal"} == {
        *("Shop ownedBy Ann", "Park near Shop", "Porto in Norte", "Porto in Portugal", "Porto in Europe"),
        *("Norte in Europe", "Portugal in Europe"),
    }
    assert counts["derived"] == 6
    (shop,) = describe(store, "http://x/Shop")["matches"]
    assert {fact["relation"]: fact.get("derived") for fact in shop["facts"]} == {
        "owned by": "inverse of http://x/owns",
        "near": None,
    }


def test_what_would_follow_from_too_long_a_chain_is_left_out_and_noted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entail, "MAX_DERIVED", 10)
    chain = " ".join(f":n{k} :in :n{k + 1} ." for k in range(20))
    store, counts = turtle(make, ":in a owl:TransitiveProperty . " + chain)
    assert counts["derived"] <= 10 and "n0 in n1" in facts(store)


def test_a_circle_of_a_transitive_relation_ends(make: Make) -> None:
    store, _ = turtle(make, ":in a owl:TransitiveProperty . :a :in :b . :b :in :c . :c :in :a .")
    assert facts(store) == {f"{first} in {then}" for first in "abc" for then in "abc" if first != then}


def test_same_things_are_one_entity_with_all_names_and_keys(make: Make) -> None:
    store, counts = turtle(
        make,
        """
        :b owl:sameAs :c . :c owl:sameAs <http://a.example/other> .
        :b rdfs:label "Bea"@en ; :knows :d . :c rdfs:label "Beatrix"@en ; :knows :d ; :likes :b .
        """,
    )
    assert facts(store) == {"b knows d", "b likes b"}
    (i,) = store.resolve(["http://x/b"])["http://x/b"]
    assert set(store.surface_forms([i])[i]) == {"Bea", "Beatrix"}
    assert store.resolve(["http://x/c", "http://a.example/other"]) == {"http://x/c": [i], "http://a.example/other": [i]}
    assert (counts["duplicates"], counts["filtered"]) == (1, 2)


def test_a_thesaurus_is_named_by_its_labels_and_read_both_ways(make: Make) -> None:
    store, _ = turtle(
        make,
        """
        :1 skos:prefLabel "vessel"@en . :2 skos:prefLabel "boat"@en ; skos:broader :1 ; skos:hiddenLabel "bote"@en .
        :3 skos:altLabel "jolly boat"@en , "yawl"@en ; skos:broader :2 ; skos:related :2 ; skos:notation "B-3" .
        """,
    )
    assert facts(store) >= {"1 narrower 2", "2 narrower 3", "2 related 3", "3 notation B-3"}
    assert labels(store) == {"1": "vessel", "2": "boat", "3": "jolly boat"}
    assert store.resolve(["bote"])["bote"] == store.resolve(["boat"])["boat"]
    assert store.resolve(["yawl"])["yawl"] == store.resolve(["jolly boat"])["jolly boat"]


def test_names_in_other_languages_and_other_names_are_facts_that_can_be_asked_for(make: Make) -> None:
    text = """
        :1 skos:prefLabel "vessel"@en , "Fahrzeug"@de . :2 skos:prefLabel "boat"@en-GB ; skos:broader :1 ;
        skos:altLabel "yawl"@en . :in rdfs:label "in"@de . :2 :in :1 . :in a rdf:Property .
        """
    store, counts = turtle(make, text)
    names = {"1 German name Fahrzeug", "2 other name yawl"}
    assert {fact for fact in facts(store) if " name " in fact} == names
    assert "is narrower than" in store.relation_names() and "is broader than" in store.relation_names()
    assert counts["derived"] == 3 and labels(store)["2"] == "boat"
    assert names.isdisjoint(facts(turtle(make, text, literal=True)[0]))


RESTRICTIONS = """
:hasTopping a owl:ObjectProperty . :Pizza a owl:Class . :Meat owl:disjointWith :Cheese . :Ham rdfs:subClassOf :Meat .
:Brie rdfs:subClassOf :Cheese .
:Bianca rdfs:subClassOf :Pizza , [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Brie ] ,
  [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:allValuesFrom [ owl:unionOf ( :Brie ) ] ] ,
  [ owl:onProperty :from ; owl:hasValue :Italy ] .
:Rossa rdfs:subClassOf :Pizza , [ owl:onProperty :hasTopping ; owl:someValuesFrom :Ham ] .
:Vegetarian owl:equivalentClass [ owl:intersectionOf ( :Pizza [ owl:complementOf
  [ owl:onProperty :hasTopping ; owl:someValuesFrom :Meat ] ] ) ] .
:Meaty owl:equivalentClass [ owl:intersectionOf ( :Pizza [ owl:onProperty :hasTopping ; owl:someValuesFrom :Meat ] ) ] .
"""


def test_restrictions_are_facts_about_classes_and_definitions_find_theirs(make: Make) -> None:
    store, _ = turtle(make, RESTRICTIONS)
    read = facts(store)
    assert read >= {"Bianca hasTopping Brie", "Bianca from Italy", "Rossa hasTopping Ham", "Meaty hasTopping Meat",
                    "Bianca subClassOf Vegetarian", "Rossa subClassOf Meaty", "Vegetarian subClassOf Pizza",
                    "Bianca type Pizza"}  # fmt: skip
    assert not read & {"Rossa subClassOf Vegetarian", "Bianca subClassOf Meaty"}
    assert not any("_:" in fact or "Restriction" in fact or "Class" in fact.split()[2] for fact in read)


def test_a_list_gives_its_members_and_no_nodes_even_one_in_a_circle(make: Make) -> None:
    store, counts = turtle(make, ':clinic :dentists ( :asha :boris ( :cora ) ) ; :rooms () . :x :of _:l . '
                           '_:l rdf:first :y ; rdf:rest _:l .')  # fmt: skip
    assert facts(store) == {"clinic dentists asha", "clinic dentists boris", "clinic dentists cora", "x of y"}
    keys = store.entity_keys(order := store.list_order(range(counts["triples"])))
    assert [keys[member].rpartition("/")[2] for member in order] == ["asha", "boris", "cora", "y"]
    assert counts["derived"] == 4


def test_blank_nodes_are_called_by_what_they_hold(make: Make) -> None:
    store, counts = turtle(
        make,
        """
        :m :address [ :street "9 Elm Court" ; :city :leeds ; :postcode "LS1" ; a :Address ] ; :part [ :of :leeds ] .
        :leeds rdfs:label "Leeds"@en .
        """,
    )
    assert counts["blank_nodes_named"] == 1
    assert sorted(labels(store).values()) == ["9 Elm Court, Leeds, LS1", "Leeds"]
    sql = "SELECT x.id FROM triples x JOIN relations r ON r.id = relation WHERE r.key IN ($1, $2) ORDER BY 1"
    alone, both = (
        [i for (i,) in store.connection.execute(sql, ["http://x/address", key]).fetchall()]
        for key in ("", "http://x/street")
    )
    assert Wording(store, alone).texts([(alone[0], 1)]) == ["(m, address, 9 Elm Court, Leeds, LS1)"]
    told = {"(m, address, CVT1)", "(CVT1, street, 9 Elm Court)"}
    assert set(Wording(store, both).texts([(triple, 1) for triple in both])) == told


def test_classes_without_a_name_in_the_wanted_languages_are_called_by_their_keys(make: Make) -> None:
    text = ":HamTopping a owl:Class ; rdfs:label 'Presunto'@pt ; rdfs:subClassOf :Meat . :Meat rdfs:label 'meat'@en ."
    store, _ = turtle(make, text)
    assert labels(store) == {"HamTopping": "Ham Topping", "Meat": "meat"}
    (i,) = store.resolve(["Presunto"])["Presunto"]
    assert store.names([i], ["pt"]) == {i: "Presunto"}
    assert labels(turtle(make, text, languages=("pt",))[0])["HamTopping"] == "Presunto"
    described = text + " :HamTopping rdfs:comment 'of pigs'@en . :x a :Country . :Country rdfs:label 'Pais'@pt ."
    assert labels(turtle(make, described)[0]) == {"HamTopping": "Ham Topping", "Meat": "meat", "Country": "Country"}


def test_literal_takes_the_file_as_it_is(make: Make) -> None:
    store, counts = turtle(make, ":p a owl:SymmetricProperty . :a :p [ :street 'x' ] .", literal=True)
    assert counts["triples"] == 3 and "derived" not in counts and labels(store) == {}


def test_a_graph_without_vocabulary_keeps_no_trace_of_it(make: Make) -> None:
    store, counts = make("<http://x/a> <http://x/p> <http://x/b> .\n")
    assert "derived" not in counts and "literal" not in store.meta["options"]


def test_a_graph_restates_what_it_was_built_from(make: Make) -> None:
    store, _ = turtle(make, RESTRICTIONS + ":a owl:sameAs :b . :b rdfs:label 'Bea' ; :p :c . :p owl:inverseOf :q .")
    path = store.path
    restated = {
        row[:3] for batch in restate.statements(path) if batch.height
        for row in batch.statements.select("subject", "predicate", "object").rows()
    }  # fmt: skip
    assert ("http://x/b", "http://x/p", "http://x/c") in restated
    assert ("http://x/c", "http://x/q", "http://x/b") not in restated
    assert ("http://x/Rossa", "http://x/hasTopping", "http://x/Ham") not in restated
    assert ("http://x/p", "http://www.w3.org/2002/07/owl#inverseOf", "http://x/q") in restated


def test_an_update_with_a_new_axiom_equals_a_build(tmp_path: Path) -> None:
    old, added, whole = (tmp_path / name for name in ("old.nt", "added.nt", "whole.nt"))
    old.write_text("<http://x/a> <http://x/p> <http://x/b> .\n")
    added.write_text("<http://x/p> <http://www.w3.org/2002/07/owl#inverseOf> <http://x/q> .\n")
    whole.write_text(old.read_text() + added.read_text())
    for name, file in (("g", old), ("all", whole)):
        (tmp_path / name).mkdir()
        build(Workspace(tmp_path / name), options=KgOptions(files=(str(file),)))
    (tmp_path / "new").mkdir()
    update(Workspace(tmp_path / "new"), old=tmp_path / "g", options=KgOptions(), added=[str(added)])
    with KgStore.open(tmp_path / "new") as new, KgStore.open(tmp_path / "all") as built:
        assert facts(new) == facts(built) == {"a p b", "b q a"}
