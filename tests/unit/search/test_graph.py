"""A graph as the label parser sees it, against what SQL and plain Python find in the same store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.forms import Entity, Join, Literal, Step
from kgqa_core.logic.lookup import ending
from kgqa_core.search import graph as module
from kgqa_core.search.graph import MOST_ENDS, LabelGraph, words_of
from tests.support.graphs import Graph, random_graph, small_graph, store_of
from tests.support.label_graph import TOWNS, X, ids_of, way_of


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_ways_and_what_they_lead_to_are_those_that_sql_finds(seed: int) -> None:
    with store_of(random_graph(seed)) as store:
        graph, run = LabelGraph(store), store.connection.execute
        nodes = np.array([node for (node,) in run("SELECT id FROM entities ORDER BY id").fetchall()], dtype=np.int64)
        ways: dict[int, set[int]] = {node: set() for node in nodes.tolist()}
        some, ends = nodes[::3], defaultdict(set)
        asked = {"some": some.tolist(), "back": graph.relations}
        for start, way, end, wanted in run(
            "SELECT head, relation, tail, list_contains($some, head) FROM triples UNION ALL "
            "SELECT tail, relation + $back, head, list_contains($some, tail) FROM triples",
            asked,
        ).fetchall():
            ways[start].add(way)
            if wanted:
                ends[way].add(end)
        assert {node: set(graph.directed_relations(np.array([node])).tolist()) for node in nodes.tolist()} == ways
        for way in range(2 * graph.relations):
            assert graph.follow(some, way).tolist() == sorted(ends[way])
            each = [graph.follow(some[place : place + 1], way) for place in range(len(some))]
            assert all((np.diff(own) > 0).all() for own in each)
            assert sorted({node for own in each for node in own.tolist()}) == sorted(ends[way])


def test_full_memo_forgets_what_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORIZED", 40)
    memo, value = module.Memo[module.Ints](), np.arange(3)
    assert memo.put((b"a",), value) is value and memo.get((b"a",)) is value
    memo.put((b"b",), np.arange(3))
    assert memo.get((b"a",)) is None and memo.get((b"b",)) is not None


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_entities_have_their_types_and_all_above_them(seed: int) -> None:
    plain = random_graph(seed)
    with store_of(plain) as store:
        graph = LabelGraph(store)
        for node in plain.entities:
            expected = {kind for one, kind in plain.types if one == node}
            for _ in plain.supers:
                expected |= {above for kind in expected for above in plain.supers.get(kind, ())}
            assert [int(graph.type_ids[place]) for place in graph.types_of(node)] == sorted(expected)


def test_way_of_types_is_every_way_that_one_of_their_entities_has(graph: LabelGraph) -> None:
    place = graph.type_of_key[X + "country"]
    members = graph.memory.members(X + "country")
    assert graph.relations_of_types([place]).tolist() == graph.directed_relations(members).tolist()
    assert graph.relations_of_types([]).tolist() == []


def test_ways_of_many_nodes_are_those_of_a_sample_and_of_their_type(graph: LabelGraph) -> None:
    towns = graph.memory.members(X + "town")
    assert len(towns) == TOWNS > MOST_ENDS
    # t1 alone has a twin, and the sample may leave it out
    assert way_of(graph, "located_in") in graph.directed_relations(towns)
    typed = graph.directed_relations(towns, graph.type_of_key[X + "town"])
    assert {way_of(graph, "twin_town"), way_of(graph, "twin_town", back=True)} <= set(typed.tolist())


def test_noun_of_a_relation_is_the_type_of_nearly_all_its_heads(graph: LabelGraph) -> None:
    assert graph.noun(way_of(graph, "capital")) == "country"
    assert graph.noun(way_of(graph, "starred_actors")) == "film"
    # 70 towns and a station lie in the region: nearly all heads are towns
    assert graph.noun(way_of(graph, "located_in")) == "town"
    with small_graph() as store:
        own = LabelGraph(store)
        # three of five towns are of type `city`, two of `capital_city`
        assert own.noun(own.memory.relation_ids["in"]) == ""


def test_values_are_numbers_dates_or_how_many(graph: LabelGraph) -> None:
    countries = graph.memory.members(X + "country")
    keys = graph.store.entity_keys(countries.tolist())
    places, x = graph.values(countries, way_of(graph, "population"), counted=False)
    found = {keys[int(countries[place])]: value for place, value in zip(places, x.tolist(), strict=True)}
    assert found == {f"{X}c{i}": 1_000_000 * (i + 1) ** 2 for i in range(8)}
    places, x = graph.values(countries, way_of(graph, "borders"), counted=True)
    assert places.tolist() == list(range(8)) and x.tolist() == [2.0] * 8
    places, x = graph.values(countries, way_of(graph, "directed_by"), counted=True)
    assert places.tolist() == x.tolist() == []


def test_values_are_of_the_dimension_that_most_members_have() -> None:
    # ann has 180 cm and bob 1.9 m, both lengths; cid has 80 kg
    with small_graph() as store:
        graph = LabelGraph(store)
        people = graph.memory.members("person")
        places, x = graph.values(people, graph.memory.relation_ids["height"], counted=False)
        assert (places.tolist(), x.tolist()) == ([0, 1], [1.8, 1.9])


def test_member_with_several_values_of_a_dimension_counts_once() -> None:
    lengths, mass = [(str(n), XSD + "decimal", "Q11573") for n in (1, 2, 3)], ("5", XSD + "decimal", "Q11570")
    literals = dict(enumerate([*lengths, mass], start=3))
    triples = [(0, "size", 3), (0, "size", 4), (0, "size", 5), (1, "size", 6), (2, "size", 6)]
    with store_of(Graph({0: "a", 1: "b", 2: "c"}, literals, triples, relations={"size": 0})) as store:
        places, x = LabelGraph(store).values(np.array([0, 1, 2]), 0, counted=False)
        assert (places.tolist(), x.tolist()) == ([1, 2], [5.0, 5.0])


def test_short_texts_are_known_in_lower_case_and_numbers_are_not(graph: LabelGraph) -> None:
    assert sorted(graph.texts) == ["kx12", "wqq"]
    [node] = graph.texts["kx12"]
    assert graph.text_of(node) == "KX12"
    assert graph.named(node, "KX12") == Literal("KX12", XSD + "string")
    assert graph.nodes_of(node, "KX12").tolist() == [node]


def test_text_of_several_literals_denotes_all_of_them() -> None:
    with store_of(random_graph(0, 60)) as store:
        graph = LabelGraph(store)
        nodes = graph.texts["red"]
        plain = next(node for node in nodes if graph.named(node, "red") == Literal("red", XSD + "string"))
        assert len(nodes) == 2 and graph.nodes_of(plain, "red").tolist() == sorted(nodes)


def test_relations_know_whether_they_lead_to_things_or_measures(graph: LabelGraph) -> None:
    population, born, capital = (way_of(graph, name) for name in ("population", "date_of_birth", "capital"))
    assert graph.is_measure(population) and graph.is_measure(born) and not graph.is_measure(capital)
    assert graph.to_entities(capital) and not graph.to_entities(population)
    assert graph.to_entities(graph.inverse(population)) and graph.inverse(graph.inverse(population)) == population
    assert graph.dated[born] == 1.0 and graph.dated[population] == 0.0
    assert graph.type_labels[graph.end_type(capital)] == "city"
    assert graph.type_labels[graph.end_type(graph.inverse(capital))] == "country"
    assert graph.end_type(population) == -1


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_fan_out_is_the_mean_number_of_things_that_sql_finds(seed: int) -> None:
    with store_of(random_graph(seed)) as store:
        graph, run = LabelGraph(store), store.connection.execute
        expected = np.zeros(2 * graph.relations)
        for way, mean in run(
            "SELECT relation, count(*) / count(DISTINCT head) FROM triples GROUP BY 1 UNION ALL "
            "SELECT relation + $back, count(*) / count(DISTINCT tail) FROM triples GROUP BY 1",
            {"back": graph.relations},
        ).fetchall():
            expected[way] = mean
        assert np.allclose(graph.fan_out, expected)


def test_types_of_five_words_are_known_by_them_and_longer_ones_are_not() -> None:
    with small_graph() as store:
        graph = LabelGraph(store)
        labels = ["one", "two  words", "one two three four five", "one two three four five six"]
        graph.type_labels = [*labels, *graph.type_labels[len(labels) :]]
        found = {words: len(places) for words, places in graph.types_by_words.items()}
        assert found["one two three four five"] == found["two words"] == found["one"] == 1
        assert "one two three four five six" not in found


def test_joined_ways_lead_where_following_them_leads(graph: LabelGraph) -> None:
    [country] = ids_of(graph, "c0")
    ways = (way_of(graph, "borders"), way_of(graph, "capital"))
    form = graph.join(ways, Entity(X + "c0"))
    assert form == Join((Step(X + "capital", True), Step(X + "borders", True)), Entity(X + "c0"))
    nodes = np.array([country])
    for way in ways:
        nodes = graph.follow(nodes, way)
    assert graph.memory.nodes(form).tolist() == nodes.tolist()
    assert graph.join((), Entity(X + "c0")) == Entity(X + "c0")


def test_path_of_two_relations_leaves_its_start_out(graph: LabelGraph) -> None:
    [country] = ids_of(graph, "c0")
    there = graph.join((way_of(graph, "borders"),) * 2, Entity(X + "c0"))
    assert country in graph.memory.nodes(there)
    assert graph.answering.nodes(there).tolist() == [n for n in graph.memory.nodes(there).tolist() if n != country]
    once = graph.join((way_of(graph, "borders"),), Entity(X + "c0"))
    assert graph.answering.nodes(once).tolist() == graph.memory.nodes(once).tolist()


def test_begin_of_a_term_is_ended_by_another_relation() -> None:
    with small_graph() as store:
        graph = LabelGraph(store)
        ends = {key: ending(key) is not None for key in graph.memory.relation_ids}
    assert ends["term.from"] and not ends["term.to"] and not ends["in"]


def test_label_of_an_iri_is_its_last_part_in_words() -> None:
    assert words_of("http://x/ns#birthPlace") == "birth place"
    assert words_of("urn:x:has_genre") == "has genre"
    assert words_of("place of birth") == "place of birth"
    assert words_of("__") == "__"


def test_graph_without_types_or_triples_is_read() -> None:
    plain = random_graph(4, 0)
    with store_of(replace(plain, types=[], supers={})) as store:
        graph = LabelGraph(store)
        node = next(iter(plain.entities))
        assert graph.types_of(node) == [] and graph.directed_relations(np.array([node])).tolist() == []
        assert graph.directed_relations(np.empty(0, dtype=np.int64)).tolist() == []
        assert set(graph.head_type.tolist()) == {-1} and graph.noun(0) == ""
