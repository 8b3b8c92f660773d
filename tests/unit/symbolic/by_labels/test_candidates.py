"""Candidate forms: what they claim to find is what their forms find, each once, over all operations."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.forms import Greater, Literal
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.symbolic.by_labels.candidates import (
    KINDS,
    MOST,
    Candidate,
    CandidateMaker,
    LabelQuery,
    Slot,
    by_key,
    labels_of,
)
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from tests.support.graphs import DATES, ENTITIES, QUANTITIES, random_graph, store_of
from tests.support.label_graph import X, all_candidates, slot_of, way_of


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


@settings(max_examples=12)
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


def by_form(graph: LabelGraph, query: LabelQuery, hops: int = 2) -> dict[str, Candidate]:
    """Candidates by their forms, without the prefix of keys."""
    return {str(one.form).replace(X, ""): one for one in all_candidates(graph, query, hops)}


def names(graph: LabelGraph, one: Candidate) -> list[str]:
    assert one.nodes is not None
    return [key.removeprefix(X) for key in graph.store.entity_keys(one.nodes.tolist()).values()]


def typed(graph: LabelGraph, *types: str, **more: object) -> LabelQuery:
    return LabelQuery("?", types=tuple((graph.type_of_key[X + name], 1.0) for name in types), **more)  # type: ignore[arg-type]


def test_types_alone_make_sets_counts_and_rankings(graph: LabelGraph) -> None:
    made = by_form(graph, typed(graph, "country"))
    assert len(names(graph, made["(TYPE country)"])) == 8
    assert made["(COUNT (TYPE country))"].value == 8
    assert names(graph, made["(ARGMAX (TYPE country) population)"]) == ["c7"]
    assert names(graph, made["(ARGMIN (TYPE country) population)"]) == ["c0"]
    assert "(NTHMAX 2 (TYPE country) population)" not in made
    second = by_form(graph, typed(graph, "country", place=2))
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
    made = CandidateMaker(graph, 1).make(query, likeness, kinds)
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
