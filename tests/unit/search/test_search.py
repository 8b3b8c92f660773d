"""Candidate forms: what they claim to find is what their forms find, each once, over all operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.forms import OPS, Arg, Compare, Form, Greater, Holds, Join, Literal, Nth, Or
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.search.candidates import (
    KINDS,
    Candidate,
    LabelQuery,
    Slot,
    by_key,
    inside,
    labels_of,
    nodes_of,
)
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.search import MOST
from tests.support.examples import examples
from tests.support.graphs import DATES, ENTITIES, QUANTITIES, Graph, random_graph, small_graph, store_of
from tests.support.label_graph import RDFS, X, all_candidates, slot_of, way_of
from tests.support.question_graph import build_graph


def check(one: Candidate, memory: MemoryGraph) -> None:
    """A candidate has what running its form finds."""
    result = memory.execute(one.form)
    if one.nodes is None:
        assert result.value == one.value and type(result.value) is type(one.value), str(one.form)
    else:
        assert list(result.nodes) == one.nodes.tolist(), str(one.form)


@st.composite
def queries(draw: st.DrawFn, graph: LabelGraph) -> LabelQuery:
    """A question about entities and short texts of a random graph, with types, values and a place."""
    named = draw(st.lists(st.lists(st.sampled_from(ENTITIES), min_size=1, max_size=2), max_size=2))
    slots = [slot_of(graph, "xyz"[place], *keys) for place, keys in enumerate(named)]
    if graph.texts and draw(st.booleans()):
        nodes = graph.texts[draw(st.sampled_from(sorted(graph.texts)))]
        slots.append(Slot("xyz"[len(slots)], tuple((node, graph.text_of(node), 1.0) for node in nodes[:3])))
    places = st.integers(0, max(len(graph.type_ids) - 1, 0))
    types = draw(st.lists(places, max_size=2 if len(graph.type_ids) else 0, unique=True))
    written = [(text, kind) for text, kind, detail in (*QUANTITIES, *DATES) if detail is None]
    values = [Literal(*one) for one in draw(st.lists(st.sampled_from(written), max_size=1))]
    place = draw(st.sampled_from([None, 1, 2, 3]))
    return LabelQuery("?", tuple(slots), tuple((t, 1.0) for t in types), place, tuple(values))


@examples(24)
@given(seed=st.integers(0, 10_000), data=st.data(), hops=st.sampled_from([1, 2, 2, 3]))
def test_candidates_of_random_questions_find_what_their_forms_find(seed: int, data: st.DataObject, hops: int) -> None:
    with store_of(random_graph(seed, data.draw(st.sampled_from([8, 30, 60])))) as store:
        graph = LabelGraph(store)
        query = data.draw(queries(graph))
        likeness = np.random.default_rng(seed).normal(size=2 * graph.relations)
        made = all_candidates(graph, query, hops, likeness)
        for one in made:
            check(one, graph.answering)
        texts = [str(one.form) for one in made]
        assert len(set(texts)) == len(texts) <= MOST
        again = all_candidates(graph, query, hops, likeness)
        assert [str(one.form) for one in again] == texts


VALUES = [Literal(text, kind) for text, kind, detail in (*QUANTITIES, *DATES) if detail is None]


def conditions_of(form: Form) -> list[tuple[str, bool]]:
    """(comparison, whether counted) of what a form compares with numbers and dates."""
    found = [(node.op, node.counted) for node in nodes_of(form) if isinstance(node, Compare)]
    return found + [("eq", False) for node in nodes_of(form) if isinstance(node, Join) and isinstance(node.of, Literal)]


def with_values(graph: LabelGraph, query: LabelQuery, likeness: np.ndarray | None = None) -> list[Candidate]:
    """Candidates with conditions on values, of sets and of questions that ask for a yes or a no."""
    kinds = [0.0 if kind in ("value", "yes/no") else -9.0 for kind in KINDS]
    likeness = np.zeros(2 * graph.relations) if likeness is None else likeness
    return [one for one in all_candidates(graph, query, 1, likeness, kinds) if conditions_of(one.form)]


@pytest.mark.slow
def test_every_condition_on_a_value_is_fulfilled_by_what_running_its_form_finds() -> None:
    seen: dict[tuple[str, bool, type], set[bool]] = {}
    for seed in range(40):
        draw = np.random.default_rng(seed)
        with store_of(random_graph(seed, (8, 30, 60, 120)[seed % 4])) as store:
            graph = LabelGraph(store)
            types = tuple((int(t), 1.0) for t in draw.permutation(len(graph.type_ids))[:2])
            slots = (slot_of(graph, "x", ENTITIES[seed % len(ENTITIES)]),) if seed % 3 else ()
            values = tuple(VALUES[n] for n in draw.choice(len(VALUES), 2, replace=False))
            query = LabelQuery("?", slots, types, None, values)
            for one in with_values(graph, query, draw.normal(size=2 * graph.relations)):
                check(one, graph.answering)
                some = bool(one.value) if one.nodes is None else len(one.nodes) > 0
                for op, counted in conditions_of(one.form):
                    seen.setdefault((op, counted, type(one.form)), set()).add(some)
    assert {kind.__name__ for _, _, kind in seen} >= {"And", "Holds"}
    for op, counted in [(op, counted) for op in OPS for counted in (False, True)] + [("eq", False)]:
        assert seen[op, counted, Holds] == {True, False}, "fulfilled by some and not by others"


def test_conditions_of_units_dates_and_numbers_of_things_are_those_of_their_forms() -> None:
    values = tuple(
        Literal(text, XSD + kind)
        for text, kind in (("340000", "decimal"), ("1.9", "decimal"), ("1952", "gYear"), ("1952", "decimal"),
                           ("2", "decimal"), ("1", "decimal"))
    )  # fmt: skip
    with small_graph() as store:
        graph = LabelGraph(store)
        types = tuple((graph.type_of_key[key], 1.0) for key in ("city", "person", "country"))
        slots = (slot_of(graph, "x", "ann"), slot_of(graph, "y", "paris"))
        found = {}
        for value in values:
            for one in with_values(graph, LabelQuery("?", slots, types, None, (value,))):
                check(one, graph.answering)
                if one.nodes is not None:
                    found[str(one.form)] = list(graph.store.entity_keys(one.nodes.tolist()).values())
                elif isinstance(one.form, Holds):
                    found[str(one.form)] = one.value
    plain, year, two = values[0], values[2], values[4]
    assert sorted(found[f"(AND (TYPE city) (JOIN population {plain}))"]) == ["bonn", "nice"]
    assert sorted(found[f"(AND (TYPE city) (gt population {plain}))"]) == ["berlin", "lyon", "paris"]
    assert len(found[f"(AND (TYPE city) (ge population {plain}))"]) == 5
    assert f"(AND (TYPE city) (lt population {plain}))" not in found, "none is smaller"
    assert found[f"(HOLDS (lt population {plain}) paris)"] is False
    # a date is in its year, which is not the number 1952
    assert sorted(found[f"(AND (TYPE person) (JOIN born {year}))"]) == ["ann", "bob"]
    assert found[f"(AND (TYPE person) (gt born {year}))"] == ["cid"]
    assert not [form for form in found if f"born {values[3]}" in form and found[form]]
    # heights in metres are no plain numbers
    assert not [form for form, own in found.items() if f"height {values[1]}" in form and own]
    # only France borders two
    assert found[f"(AND (TYPE country) (ge (COUNT borders) {two}))"] == ["fr"]
    assert not [form for form in found if "(COUNT" in form and "gYear" in form], "a count is no date"


def test_value_that_is_no_number_and_no_date_makes_no_condition(graph: LabelGraph) -> None:
    query = typed(graph, "country", values=(Literal("red", XSD + "string"),))
    assert not with_values(graph, query)
    asked = LabelQuery("?", (slot_of(graph, "x", X + "c0"),), values=query.values)
    assert not with_values(graph, asked)


def by_form(graph: LabelGraph, query: LabelQuery, hops: int = 2, *kinds: str) -> dict[str, Candidate]:
    """Candidates by their forms, without the prefix of keys; of some kinds alone where these are given."""
    logs = [0.0 if not kinds or kind in kinds else -9.0 for kind in KINDS]
    return {str(one.form).replace(X, ""): one for one in all_candidates(graph, query, hops, None, logs)}


def names(graph: LabelGraph, one: Candidate) -> list[str]:
    assert one.nodes is not None
    return [key.removeprefix(X) for key in graph.store.entity_keys(one.nodes.tolist()).values()]


def typed(graph: LabelGraph, *types: str, text: str = "?", **more: object) -> LabelQuery:
    return LabelQuery(text, types=tuple((graph.type_of_key[X + name], 1.0) for name in types), **more)  # type: ignore[arg-type]


def test_types_alone_make_sets_counts_and_rankings(graph: LabelGraph) -> None:
    made = by_form(graph, typed(graph, "country"))
    assert len(names(graph, made["(TYPE country)"])) == 8
    assert made["(COUNT (TYPE country))"].value == 8
    made = by_form(graph, typed(graph, "country", text="the largest?"))
    assert names(graph, made["(ARGMAX (TYPE country) population)"]) == ["c7"]
    assert "(ARGMIN (TYPE country) population)" not in made  # the word says which end
    smallest = by_form(graph, typed(graph, "country", text="the smallest?"))
    assert names(graph, smallest["(ARGMIN (TYPE country) population)"]) == ["c0"]
    assert "(NTHMAX 2 (TYPE country) population)" not in made
    second = by_form(graph, typed(graph, "country", text="the second largest?", place=2))
    assert names(graph, second["(NTHMAX 2 (TYPE country) population)"]) == ["c6"]


def test_supertype_has_the_members_of_types_below(graph: LabelGraph) -> None:
    made = by_form(graph, typed(graph, "place"))
    assert made["(COUNT (TYPE place))"].value == 78


def test_numbers_of_a_question_become_conditions(graph: LabelGraph) -> None:
    value = Literal("30000000", XSD + "decimal")
    made = by_form(graph, typed(graph, "country", values=(value,)))
    more = [one for form, one in made.items() if form.startswith("(AND (TYPE country) (gt population")]
    assert [names(graph, one) for one in more] == [["c5", "c6", "c7"]]
    assert any(form.startswith("(COUNT (AND (TYPE country) (lt population") for form in made)
    exact = by_form(graph, typed(graph, "film", values=(Literal("1970", XSD + "gYear"),)))
    [one] = [one for form, one in exact.items() if form.startswith("(AND (TYPE film) (JOIN release_year")]
    assert names(graph, one) == ["f10"]


def test_named_thing_can_be_left_out_of_what_another_leads_to(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "c0"), slot_of(graph, "y", X + "c1"))))
    one = made["(MINUS (JOIN (R borders) c0) c1)"]
    assert names(graph, one) == ["c7"] and one.slots == (0, 1)


def test_two_things_are_compared_and_asked_about(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "c0"), slot_of(graph, "y", X + "c1"))))
    assert names(graph, made["(GREATER c0 c1 population)"]) == ["c1"]
    assert names(graph, made["(LESS c0 c1 population)"]) == ["c0"]
    assert made["(HOLDS (GREATER c0 c1 population) c0)"].value is False
    assert made["(HOLDS (GREATER c0 c1 population) c1)"].value is True
    assert made["(HOLDS (JOIN (R borders) c0) c1)"].value is True
    # both have two neighbours: neither is left out
    assert names(graph, made["(GREATER c0 c1 (COUNT borders))"]) == ["c0", "c1"]


def test_things_that_share_no_measure_are_not_compared(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "c0"), slot_of(graph, "y", X + "p0"))))
    assert not [form for form, one in made.items() if isinstance(one.form, Greater)]


def test_intersection_holds_what_both_mentions_lead_to(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "p0"), slot_of(graph, "y", X + "g0"))))
    one = made["(AND (JOIN directed_by p0) (JOIN has_genre g0))"]
    assert names(graph, one) == ["f0", "f28"] and one.slots == (0, 1)
    assert made["(COUNT (AND (JOIN directed_by p0) (JOIN has_genre g0)))"].value == 2


def test_union_holds_what_either_mention_leads_to_where_the_question_says_or(graph: LabelGraph) -> None:
    slots = (slot_of(graph, "x", X + "p0"), slot_of(graph, "y", X + "p1", X + "p2"))  # y is more likely p1
    made = by_form(graph, LabelQuery("films directed by x or y", slots), 2, "none")
    either = made["(OR (JOIN directed_by p0) (JOIN directed_by p1))"]
    each = [names(graph, made[f"(JOIN directed_by p{number})"]) for number in (0, 1)]
    assert sorted(names(graph, either)) == sorted({*each[0], *each[1]}) and either.slots == (0, 1)
    assert not any(isinstance(one.form, Or) for one in by_form(graph, LabelQuery("films by x and y", slots)).values())


def test_code_is_a_start_of_paths_and_nothing_else(graph: LabelGraph) -> None:
    [node] = graph.texts["kx12"]
    slots = (Slot("x", ((node, "KX12", 1.0),)), slot_of(graph, "y", X + "hub"))
    made = by_form(graph, LabelQuery("?", slots))
    assert names(graph, made['(JOIN call_sign "KX12")']) == ["s0"]
    assert names(graph, made['(JOIN (R located_in) (JOIN call_sign "KX12"))']) == ["hub"]
    assert not [form for form in made if form.startswith("(GREATER") or form.endswith('"KX12")) "KX12")')]


def test_what_things_of_its_kind_have_and_a_topic_lacks_is_a_candidate_without_answer(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "p12"),)))
    # person 12 directed nothing, others did
    assert made["(JOIN directed_by p12)"].nodes is not None and not len(made["(JOIN directed_by p12)"].nodes)
    assert made["(COUNT (JOIN directed_by p12))"].value == 0


def test_second_reading_of_a_mention_weighs_less(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "c0", X + "c1"),)))
    assert (made["(JOIN (R capital) c0)"].rho, made["(JOIN (R capital) c1)"].rho) == (1.0, 0.5)


def test_likelier_labels_come_first_and_unlikely_operations_are_left_out(graph: LabelGraph) -> None:
    likeness = np.zeros(2 * graph.relations)
    likeness[way_of(graph, "borders")] = 1.0
    query = LabelQuery("?", (slot_of(graph, "x", X + "c0"),))
    kinds = [0.0 if kind == "none" else -9.0 for kind in KINDS]
    made = all_candidates(graph, query, 1, likeness, kinds)
    assert str(made[0].form).replace(X, "") == "(JOIN (R borders) c0)"
    assert {KINDS[one.kind] for one in made} == {"none"}


def test_question_without_mentions_types_or_values_has_no_candidates(graph: LabelGraph) -> None:
    assert all_candidates(graph, LabelQuery("why is that so")) == []


def test_labels_of_a_form_and_words_of_its_slots(graph: LabelGraph) -> None:
    form = parse(f"(AND (TYPE <{X}city>) (JOIN (R <{X}capital>) <{X}c0>))")
    assert sorted(labels_of(form, graph)) == ["capital", "city"]
    shared = (slot_of(graph, "x", X + "c0", X + "c1"), slot_of(graph, "y", X + "c1"))
    assert by_key(shared) == {X + "c0": "x", X + "c1": "x"}


def test_further_meanings_of_a_mention_are_compared_with_less_weight(graph: LabelGraph) -> None:
    made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "c0", X + "c2"), slot_of(graph, "y", X + "c1"))))
    sure, other = made["(GREATER c0 c1 population)"], made["(GREATER c2 c1 population)"]
    assert (names(graph, sure), names(graph, other)) == (["c1"], ["c2"])
    assert (sure.rho, other.rho) == (1.0, 0.5) and sure.score > other.score
    assert made["(HOLDS (JOIN (R borders) c1) c2)"].value is True
    assert made["(HOLDS (JOIN (R borders) c1) c2)"].rho == 0.5


def test_at_least_and_at_most_hold_what_is_equal(graph: LabelGraph) -> None:
    made = by_form(graph, typed(graph, "country", values=(Literal("36000000", XSD + "decimal"),)))
    start = "(AND (TYPE country) ({} population"
    found = {
        op: [names(graph, one) for form, one in made.items() if form.startswith(start.format(op))]
        for op in ("gt", "ge", "lt", "le")
    }
    above, below = ["c6", "c7"], ["c0", "c1", "c2", "c3", "c4"]
    assert found == {"gt": [above], "ge": [["c5", *above]], "lt": [below], "le": [[*below, "c5"]]}


def test_what_there_is_one_of_is_not_counted(graph: LabelGraph) -> None:
    query = LabelQuery("?", (slot_of(graph, "x", X + "c0"),), ((graph.type_of_key[X + "country"], 1.0),))
    made = by_form(graph, query, 2, "none", "count")
    assert "(JOIN (R capital) c0)" in made and "(COUNT (JOIN (R capital) c0))" not in made
    assert made["(COUNT (AND (TYPE country) (JOIN (R borders) c0)))"].value == 2
    # several capitals are counted, though each country has one
    assert made["(COUNT (JOIN (R capital) (AND (TYPE country) (JOIN (R borders) c0))))"].value == 2
    # other films have one director as well, but directors several films, also one who has a single film or none
    none = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "p12"),)))
    assert none["(COUNT (JOIN directed_by p12))"].value == 0
    film = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + "f0"),)))
    assert "(JOIN (R directed_by) f0)" in film and "(COUNT (JOIN (R directed_by) f0))" not in film
    assert film["(COUNT (JOIN (R starred_actors) f0))"].value == 3


def test_fan_out_up_to_which_nothing_is_counted_is_an_average() -> None:
    # of 40 heads two have two tails (mean 1.05), of another relation three (1.075)
    ids = dict(enumerate([f"m.{n}" for n in range(60)]))
    triples = [(n, key, 40 + n % 10) for n in range(40) for key in ("few", "more")]
    triples += [(n, "few", 50) for n in range(2)] + [(n, "more", 50) for n in range(3)]
    with store_of(Graph(ids, {}, sorted(triples), relations={"few": 0, "more": 1})) as store:
        graph = LabelGraph(store)
        assert graph.fan_out[:2].tolist() == [1.05, 1.075]
        made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", "m.9"),)), hops=1)
        assert ("(COUNT (JOIN (R few) m.9))" in made, "(COUNT (JOIN (R more) m.9))" in made) == (False, True)
        two = by_form(graph, LabelQuery("?", (slot_of(graph, "x", "m.0"),)), hops=1)
        assert two["(COUNT (JOIN (R few) m.0))"].value == 2


def test_things_are_not_ranked_or_compared_by_how_many_they_have_of_what_all_have_one(graph: LabelGraph) -> None:
    slots = (slot_of(graph, "x", X + "c0"), slot_of(graph, "y", X + "c1"))
    types = ((graph.type_of_key[X + "country"], 1.0), (graph.type_of_key[X + "film"], 1.0))
    query = LabelQuery("the most?", slots, types, None, (Literal("1", XSD + "decimal"),))
    made = by_form(graph, query, 2, "best", "compare", "value")
    counted = [
        (type(node), step.relation.removeprefix(X), step.inverse)
        for one in made.values()
        for node in nodes_of(one.form)
        if isinstance(node, (Arg, Nth, Greater, Compare)) and node.counted
        for step in node.path
    ]
    assert {Arg, Greater} <= {kind for kind, _, _ in counted}
    ways = {(relation, inverse) for _, relation, inverse in counted}
    assert {("borders", False), ("borders", True), ("starred_actors", False)} <= ways
    assert not ways & {("capital", False), ("capital", True), ("directed_by", False), ("has_genre", False)}


def test_counts_that_all_members_fulfil_are_no_condition(graph: LabelGraph) -> None:
    types = ((graph.type_of_key[X + "country"], 1.0),)
    made = by_form(graph, LabelQuery("?", (), types, None, (Literal("1000", XSD + "decimal"),)))
    counted = [one for one in made.values() if any(isinstance(n, Compare) and n.counted for n in nodes_of(one.form))]
    assert not [one for one in counted if one.nodes is not None and len(one.nodes)]


def test_set_is_narrowed_to_a_type_that_its_phrase_does_not_name_also_where_all_have_it(graph: LabelGraph) -> None:
    def narrowed(topic: str, *types: str) -> dict[str, Candidate]:
        own = tuple((graph.type_of_key[X + name], 1.0) for name in types)
        made = by_form(graph, LabelQuery("?", (slot_of(graph, "x", X + topic),), own), 1, "none")
        return {form: one for form, one in made.items() if form.startswith("(AND")}

    # "borders of x" names no type, and all of them are countries
    assert names(graph, narrowed("c0", "country")["(AND (TYPE country) (JOIN (R borders) c0))"]) == ["c1", "c7"]
    # "film directed by x" names it
    assert "(AND (TYPE film) (JOIN directed_by p0))" not in narrowed("p0", "film")
    # "town located in x" names it, but a station is among them and is left out
    towns = narrowed("hub", "town", "place", "station")
    assert len(names(graph, towns["(AND (TYPE town) (JOIN located_in hub))"])) == 70
    assert names(graph, towns["(AND (TYPE station) (JOIN located_in hub))"]) == ["s0"]
    # "place" has the members of "town", which are narrowed to once
    assert "(AND (TYPE place) (JOIN located_in hub))" not in towns
    # a supertype that its noun is not
    assert "(AND (TYPE place) (JOIN (R capital) c0))" in narrowed("c0", "place")
    assert "(AND (TYPE film) (JOIN (R capital) c0))" not in narrowed("c0", "film")


def test_inside_is_being_among_ascending_members() -> None:
    members = np.array([2, 5, 9])
    for some, expected in (([2], True), ([9, 2], True), ([], True), ([1], False), ([10], False), ([2, 6], False)):
        assert inside(np.array(some, dtype=np.int64), members) is expected
    assert not inside(np.array([1]), np.empty(0, dtype=np.int64))


FAMILY = (
    "ann gender female", "ben gender male", "cat gender female", "eve gender female", "ann sibling ben",
    "ann sibling cat", "ben sibling ann", "ann child eve", "eve brother ben", "dan sibling kim", "lou sibling ben",
    "lou sibling dan",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "topic", "form", "found"),
    [
        ("sisters of x", "ann", "(AND (JOIN (R sibling) ann) (JOIN gender female))", "cat"),
        ("x 's brother", "ann", "(AND (JOIN (R sibling) ann) (JOIN gender male))", "ben"),
        ("brothers and sisters of x", "ann", "(JOIN (R sibling) ann)", "ben cat"),
        ("son of x", "ann", "(AND (JOIN (R child) ann) (JOIN gender male))", ""),
        ("mother of x", "eve", "(AND (JOIN child eve) (JOIN gender female))", "ann"),
        ("brother of x", "eve", "(JOIN (R brother) eve)", "ben"),
        ("brother of x", "dan", "(JOIN (R sibling) dan)", "kim"),
        ("sister of x", "lou", "", ""),
    ],
)
def test_nouns_for_persons_of_a_gender_find_these_where_the_graph_tells_it(
    tmp_path: Path, text: str, topic: str, form: str, found: str
) -> None:
    lines = [" ".join(f"<{X}{key}>" for key in line.split()) + " ." for line in FAMILY]
    lines += [f'<{X}{key}> <{RDFS}label> "{key}" .' for key in ("female", "male", "ann")]
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        graph = LabelGraph(store)
        made = all_candidates(graph, LabelQuery(text, (slot_of(graph, "x", X + topic),)))
        told = {str(one.form).replace(X, ""): one.nodes for one in made}
        if not form:  # of one of the siblings the gender is not told
            assert not any("sibling" in other for other in told)
            return
        nodes = told[form]
        assert nodes is not None
        assert {key.removeprefix(X) for key in store.entity_keys(nodes.tolist()).values()} == {*found.split()}
    plain = form.removeprefix("(AND ").partition(" (JOIN gender")[0]
    assert plain == form or plain not in told, "all children are no sons"
