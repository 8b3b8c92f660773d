"""Forms in words: each construction, slots for what is named, and labels for keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa_core.logic.forms import Join, Literal
from kgqa_core.logic.parser import parse
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from kgqa_core.symbolic.by_labels.phrases import Phrases
from tests.support.graphs import random_graph, small_graph, store_of
from tests.support.label_graph import X
from tests.support.random_forms import forms

SLOTS = {f"{X}c0": "x", f"{X}c1": "y", f"{X}p0": "z", "KX12": "w"}


@pytest.mark.parametrize(
    ("form", "phrase"),
    [
        ("(JOIN (R <capital>) <c0>)", "capital of x"),
        ("(JOIN <capital> <c1>)", "country with capital y"),
        ("(JOIN (R <capital>) (JOIN (R <borders>) <c0>))", "capital of borders of x"),
        ("(JOIN <directed_by> (JOIN <place_of_birth> <c0>))", "film directed by person with place of birth x"),
        ("(TYPE <film>)", "film"),
        ("(COUNT (JOIN <directed_by> <p0>))", "number of film directed by z"),
        ("(JOIN (R <directed_by>) <p0>)", "what z is directed by"),
        ("(JOIN (R <place_of_birth>) (JOIN (R <directed_by>) <p0>))", "place of birth of what z is directed by"),
        ("(JOIN (R <directed_by>) (JOIN <has_genre> <c0>))", "what film with has genre x is directed by"),
        ("(JOIN <located_in> <c0>)", "town located in x"),
        ("(JOIN (R <located_in>) <c0>)", "what x is located in"),
        ("(HOLDS (JOIN (R <borders>) <c0>) <c1>)", "whether y is borders of x"),
        ("(AND (TYPE <city>) (JOIN (R <capital>) <c0>))", "city : capital of x"),
        ("(AND (TYPE <film>) (JOIN <directed_by> <p0>))", "film directed by z"),
        ("(AND (TYPE <city>) (JOIN <directed_by> <p0>))", "city directed by z"),
        ("(AND (TYPE <city>) (JOIN <capital> <c0>))", "city with capital x"),
        (
            "(AND (TYPE <film>) (JOIN <directed_by> (JOIN <place_of_birth> <c0>)))",
            "film directed by person with place of birth x",
        ),
        ("(AND (TYPE <city>) (JOIN (R <capital>) (JOIN <borders> <c0>)))", "city : capital of country with borders x"),
        ("(AND (TYPE <person>) (JOIN (R <directed_by>) <p0>))", "person : what z is directed by"),
        ("(AND (TYPE <city>) (ARGMAX (TYPE <country>) <population>))", "city with largest population"),
        (
            "(AND (TYPE <city>) (MINUS (JOIN <borders> <c0>) (JOIN <borders> <c1>)))",
            "city with borders x but not country with borders y",
        ),
        ("(AND (TYPE <city>) (OR (JOIN <borders> <c0>) <c1>))", "city : country with borders x or y"),
        ("(AND (JOIN <borders> <c0>) (JOIN <borders> <c1>))", "country with borders x and country with borders y"),
        ("(OR (JOIN (R <borders>) <c0>) <c1>)", "borders of x or y"),
        ("(MINUS (JOIN (R <borders>) <c0>) <c1>)", "borders of x but not y"),
        ("(ARGMAX (TYPE <country>) <population>)", "country with largest population"),
        ("(ARGMIN (TYPE <country>) <population>)", "country with smallest population"),
        ("(ARGMAX (TYPE <person>) (COUNT (R <directed_by>)))", "person with most film"),
        ("(ARGMIN (TYPE <person>) (COUNT (R <directed_by>)))", "person with fewest film"),
        ("(NTHMAX 2 (TYPE <country>) <population>)", "country with second largest population"),
        ("(NTHMIN 11 (TYPE <country>) <population>)", "country with 11th smallest population"),
        ("(GREATER <c0> <c1> <population>)", "x or y with larger population"),
        ("(LESS <c0> <c1> <population>)", "x or y with smaller population"),
        ("(GREATER <c0> <c1> (COUNT <borders>))", "x or y with more borders"),
        ("(LESS <c0> <c1> (COUNT <borders>))", "x or y with fewer borders"),
        ("(AND (TYPE <country>) (gt <population> 5))", "country with population more than n"),
        ("(AND (TYPE <country>) (lt <population> 5))", "country with population less than n"),
        ('(JOIN <call_sign> "KX12")', "station with call sign w"),
        ("(JOIN <release_year> 1999)", "film with release year n"),
        ("(JOIN (R <capital>) <c7>)", "capital of x"),
    ],
)  # fmt: skip
def test_form_is_written_as_a_noun_phrase_of_labels(graph: LabelGraph, form: str, phrase: str) -> None:
    parsed = parse(form.replace("<", f"<{X}"))
    assert Phrases(graph).write(parsed, SLOTS) == phrase


@pytest.mark.parametrize(
    ("label", "phrase", "back"),
    [
        ("owned by", "country owned by x", "what x is owned by"),
        ("part of", "country part of x", "what x is part of"),
        ("shares border with", "country shares border with x", "what x is shares border with"),
        ("named after", "country named after x", "what x is named after"),
        ("native to", "country native to x", "what x is native to"),
        ("by", "country with by x", "by of x"),  # a preposition alone is no label that ends in one
        ("of course", "country with of course x", "of course of x"),
        ("stand-in", "country with stand-in x", "stand-in of x"),
    ],
)
def test_label_that_ends_in_a_preposition_is_followed_by_what_it_leads_to(
    graph: LabelGraph, monkeypatch: pytest.MonkeyPatch, label: str, phrase: str, back: str
) -> None:
    phrases, capital = Phrases(graph), parse(f"(JOIN <{X}capital> <{X}c0>)")
    monkeypatch.setattr(graph, "labels", [label if text == "capital" else text for text in graph.labels])
    assert phrases.write(capital, SLOTS) == phrase
    assert phrases.write(parse(f"(JOIN (R <{X}capital>) <{X}c0>)"), SLOTS) == back
    both = parse(f"(AND (TYPE <{X}town>) (JOIN <{X}capital> <{X}c0>))")
    assert phrases.write(both, SLOTS) == phrase.replace("country", "town")


def test_unknown_type_stands_by_its_key(graph: LabelGraph) -> None:
    assert Phrases(graph).write(parse("(TYPE <nothing>)"), {}) == "nothing"


def test_conditions_on_statements_are_written_with_a_number() -> None:
    with small_graph() as store:
        phrases = Phrases(LabelGraph(store))
        assert phrases.write(parse('(JOIN (R office) ann (at P580 "2001"^^xsd:gYear))'), {}) == "office of x in n"
        assert phrases.write(parse('(TC (TYPE person) term.from "2001"^^xsd:gYear)'), {}) == "person in n"


@settings(max_examples=12)
@given(seed=st.integers(0, 5), form=forms)
def test_every_form_is_written_without_a_key_of_an_entity(seed: int, form: object) -> None:
    with store_of(random_graph(seed, 20)) as store:
        text = Phrases(LabelGraph(store)).write(form, {})  # type: ignore[arg-type]
    for key in ("m.0a", "m.0b", "Q3", "an entity", "urn:", "OR 1=1"):
        assert key not in text


def test_value_without_a_slot_is_a_number_and_a_text_stays(graph: LabelGraph) -> None:
    phrases = Phrases(graph)
    step = graph.step(graph.memory.relation_ids[X + "call_sign"])
    assert phrases.write(Join((step,), Literal("5", "")), {}) == "station with call sign n"
    assert phrases.write(Join((step,), Literal("WQQ", "")), {}) == "station with call sign WQQ"
