"""Forms in words: each construction, slots for what is named, and labels for keys."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.answers.thesaurus import without_entries
from kgqa_core.datasets.derived.thesaurus import WITHOUT, RelationEntry, Thesaurus, public_names, thesaurus
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Join, Literal
from kgqa_core.logic.parser import parse
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.phrases import MOST_HEADS, MOST_OTHERS, Phrases, relation_words
from kgqa_core.search.question_words import adjectives, entry_of
from tests.support.graphs import random_graph, small_graph, store_of
from tests.support.label_graph import X, way_of
from tests.support.question_graph import build_graph
from tests.support.random_forms import forms

SLOTS = {f"{X}c0": "x", f"{X}c1": "y", f"{X}p0": "z", "KX12": "w"}


@pytest.mark.parametrize(
    ("form", "phrase"),
    [
        ("(JOIN (R <capital>) <c0>)", "capital of x"),
        ("(JOIN <capital> <c1>)", "country with capital y"),
        ("(JOIN (R <capital>) (JOIN (R <borders>) <c0>))", "capital of neighbor of x"),
        ("(JOIN <directed_by> (JOIN <place_of_birth> <c0>))", "film directed by person with place of birth x"),
        ("(TYPE <film>)", "film"),
        ("(COUNT (JOIN <directed_by> <p0>))", "number of film directed by z"),
        ("(SUM (JOIN (R <borders>) <c0>) <population>)", "total population of neighbor of x"),
        ("(AVG (TYPE <country>) (COUNT <borders>))", "average number of borders of country"),
        ("(MAX (TYPE <country>) <population>)", "largest population of country"),
        ("(VALUES (TYPE <country>) <population>)", "population of each country"),
        ("(GROUP (TYPE <film>) <directed_by>)", "number of film of each director"),
        ("(GROUP (TYPE <film>) <directed_by> (MIN <release_year>))", "earliest release year of film of each director"),
        ("(SHARE (TYPE <film>) (JOIN <directed_by> <p0>))", "percentage of film that is directed by z"),
        ("(FIRSTMAX 3 (TYPE <country>) <population>)", "first 3 most populous country with largest population"),
        ("(JOIN (R <directed_by>) <p0>)", "director of z"),
        ("(JOIN (R <place_of_birth>) (JOIN (R <directed_by>) <p0>))", "place of birth of director of z"),
        ("(JOIN (R <directed_by>) (JOIN <has_genre> <c0>))", "director of film with genre x"),
        ("(JOIN <located_in> <c0>)", "town located in x"),
        ("(JOIN (R <located_in>) <c0>)", "location of x"),
        ("(HOLDS (JOIN (R <borders>) <c0>) <c1>)", "whether y is neighbor of x"),
        ("(AND (TYPE <city>) (JOIN (R <capital>) <c0>))", "city that is capital of x"),
        ("(AND (TYPE <film>) (JOIN <directed_by> <p0>))", "film directed by z"),
        ("(AND (TYPE <city>) (JOIN <directed_by> <p0>))", "city directed by z"),
        ("(AND (TYPE <city>) (JOIN <capital> <c0>))", "city with capital x"),
        (
            "(AND (TYPE <film>) (JOIN <directed_by> (JOIN <place_of_birth> <c0>)))",
            "film directed by person with place of birth x",
        ),
        (
            "(AND (TYPE <city>) (JOIN (R <capital>) (JOIN <borders> <c0>)))",
            "city that is capital of country that borders x",
        ),
        ("(AND (TYPE <person>) (JOIN (R <directed_by>) <p0>))", "person that is director of z"),
        ("(AND (TYPE <city>) (ARGMAX (TYPE <country>) <population>))", "most populous city with largest population"),
        (
            "(AND (TYPE <city>) (MINUS (JOIN <borders> <c0>) (JOIN <borders> <c1>)))",
            "city that borders x but not country that borders y",
        ),
        ("(AND (TYPE <city>) (OR (JOIN <borders> <c0>) <c1>))", "city that is country that borders x or y"),
        ("(AND (JOIN <borders> <c0>) (JOIN <borders> <c1>))", "country that borders x and that borders y"),
        ("(OR (JOIN (R <borders>) <c0>) <c1>)", "neighbor of x or y"),
        ("(MINUS (JOIN (R <borders>) <c0>) <c1>)", "neighbor of x but not y"),
        ("(ARGMAX (TYPE <country>) <population>)", "most populous country with largest population"),
        ("(ARGMIN (TYPE <country>) <population>)", "least populous country with smallest population"),
        ("(ARGMAX (TYPE <person>) (COUNT (R <directed_by>)))", "person with most film"),
        ("(ARGMIN (TYPE <person>) (COUNT (R <directed_by>)))", "person with fewest film"),
        ("(NTHMAX 2 (TYPE <country>) <population>)", "second most populous country with largest population"),
        ("(NTHMIN 11 (TYPE <country>) <population>)", "11th least populous country with smallest population"),
        ("(GREATER <c0> <c1> <population>)", "x or y more populous with larger population"),
        ("(LESS <c0> <c1> <population>)", "x or y less populous with smaller population"),
        ("(ARGMAX (TYPE <film>) <release_year>)", "newest film with latest release year"),
        ("(ARGMIN (TYPE <person>) <date_of_birth>)", "oldest person with earliest date of birth"),
        ("(LESS <p0> <p1> <date_of_birth>)", "z or x older with earlier date of birth"),
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
        ("owned by", "country owned by x", "owner of x"),
        ("part of", "country part of x", "what x is part of"),
        ("shares border with", "country shares border with x", "neighbor of x"),
        ("named after", "country named after x", "namesake of x"),
        ("native to", "country native to x", "what x is native to"),
        ("by", "country with by x", "by of x"),  # a preposition alone is no label that ends in one
        ("of course", "country with of course x", "what x is of course"),
        ("stand-in", "country with stand-in x", "stand-in of x"),
    ],
)
def test_label_that_ends_in_a_preposition_is_followed_by_what_it_leads_to(
    graph: LabelGraph, monkeypatch: pytest.MonkeyPatch, label: str, phrase: str, back: str
) -> None:
    monkeypatch.setattr(graph, "labels", [label if text == "capital" else text for text in graph.labels])
    phrases, capital = Phrases(graph), parse(f"(JOIN <{X}capital> <{X}c0>)")
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


@pytest.mark.parametrize(
    ("label", "noun", "predicate", "head"),
    [
        ("directed by", "director", "directed by", "film"),  # a participle, whose noun the thesaurus has
        ("Directed by", "director", "directed by", "film"),
        ("starred actors", "actor", "", "film"),  # a plural of one of its nouns
        ("has genre", "genre", "", ""),
        ("borders", "neighbor", "that borders", "country"),  # a verb without a preposition
        ("release year", "release year", "", "film"),  # a noun that means what its label says
        ("cast member", "cast member", "", "film"),
        ("place of birth", "place of birth", "", "person"),
        ("part of", "", "part of", ""),  # the thesaurus has no noun
        ("blipped by", "", "blipped by", ""),  # nor has it this
        ("zorp", "zorp", "", ""),
        ("has zorp", "zorp", "", ""),
        ("in zorp", "zorp", "", ""),
        ("of zorp", "", "", ""),
        ("出生地", "出生地", "", ""),
    ],
)
def test_words_of_a_relation_are_those_of_its_label_and_of_the_thesaurus(
    label: str, noun: str, predicate: str, head: str
) -> None:
    words = relation_words(label, "")
    assert (words.noun, words.predicate, words.head) == (noun, predicate, head)
    assert relation_words(label, "thing").head == "thing", "a type of the graph goes before the thesaurus"


def test_other_wordings_are_few_distinct_and_have_slots() -> None:
    for label in ("directed by", "capital", "borders", "population", "starred actors", "导演", "zorp", "part of"):
        words = relation_words(label, "")
        for own in (words.ahead, words.back):
            assert len(own) <= MOST_OTHERS and len(set(own)) == len(own)
            assert not [text for text in own if "<x>" in text or not text]
        assert words.noun not in words.ahead
    assert {"who directed x", "directed"} <= set(relation_words("directed by", "").ahead)
    assert "what did x direct" in relation_words("directed by", "").back
    assert "谁导演了x" in relation_words("导演", "").ahead and "x导演了什么" in relation_words("导演", "").back
    assert relation_words("zorp", "").ahead == relation_words("zorp", "").back == ()


def test_without_the_entries_of_a_graph_its_relations_have_no_words_written_by_hand(
    graph: LabelGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    undated = [n for n in range(graph.relations) if not graph.dated[n]]  # any date is later or earlier than another
    whole, known = Phrases(graph).relation_words, adjectives()
    assert "populous" in known and any("who directed x" in words.ahead for words in whole)
    with without_entries(graph.store):
        left = Phrases(graph).relation_words
        others = [public_names(label) or RelationEntry() for label in graph.labels]
        assert [entry_of(graph, n) for n in undated] == [others[n] for n in undated]
        assert "populous" not in adjectives() and thesaurus().relation("currency") is not None
        monkeypatch.setattr("kgqa_core.search.phrases.entry_of", lambda _, n: others[n])
        monkeypatch.setattr(Thesaurus, "relation", lambda *_: None)
        plain = Phrases(graph).relation_words
    assert [left[n] for n in undated] == [plain[n] for n in undated]
    assert adjectives() == known and WITHOUT not in os.environ


def test_wordings_of_a_direction_begin_with_that_of_the_phrases(graph: LabelGraph) -> None:
    phrases = Phrases(graph)
    for way in range(2 * graph.relations):
        first = phrases.wordings(way)[0]
        relation, back = way % graph.relations, way >= graph.relations
        written = phrases.follow(relation, "x", ahead=not back)
        assert first and (f"{first} x" == written if back else written in (f"{first} of x", f"what x is {first}"))
    ahead, back = phrases.wordings(way_of(graph, "directed_by")), phrases.wordings(way_of(graph, "directed_by", True))
    assert ahead[0] == "director" and "who directed x" in ahead and "what did x direct" not in ahead
    assert back[0] == "film directed by" and "what did x direct" in back and "who directed x" not in back
    assert phrases.wordings(way_of(graph, "call_sign")) == ("call sign", "call letters")  # of Wikidata's property
    assert phrases.wordings(way_of(graph, "call_sign", True)) == ("station with call sign",)


def test_graph_without_types_has_the_heads_of_the_thesaurus_and_of_relations_with_the_same_heads(
    graph: LabelGraph, untyped_graph: LabelGraph
) -> None:
    heads = {
        label: way.head for label, way in zip(untyped_graph.labels, Phrases(untyped_graph).relation_words, strict=True)
    }
    assert heads["directed by"] == heads["release year"] == "film" and heads["capital"] == "country"
    assert relation_words("has genre", "").head == "" and heads["has genre"] == "film", "films have genres here"
    assert heads["call sign"] == heads["country"] == "", "nothing else says what stations and cities are"
    form = parse(f"(JOIN <{X}has_genre> <{X}g0>)")
    mention = {f"{X}g0": "x"}
    assert Phrases(untyped_graph).write(form, mention) == Phrases(graph).write(form, mention) == "film with genre x"
    none = parse(f"(JOIN <{X}call_sign> <{X}c0>)")
    assert Phrases(untyped_graph).write(none, {}) == "with call sign x"


def test_heads_of_a_relation_are_called_as_most_of_them_are(tmp_path: Path) -> None:
    lines = [f"<{X}f{i}> <{X}directed_by> <{X}p{i}> ." for i in range(10)]
    for relation, films in (("zorp", 6), ("zarp", 5)):
        lines += [f"<{X}f{i}> <{X}{relation}> <{X}v> ." for i in range(films)]
        lines += [f"<{X}o{i}> <{X}{relation}> <{X}v> ." for i in range(10 - films)]
    # a head that has a relation many times is one head
    lines += [f"<{X}f0> <{X}zirp> <{X}v{i}> ." for i in range(9)] + [f"<{X}o{i}> <{X}zirp> <{X}v> ." for i in range(2)]
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        graph = LabelGraph(store)
        heads = {label: way.head for label, way in zip(graph.labels, Phrases(graph).relation_words, strict=True)}
    assert 0.5 < MOST_HEADS <= 0.6
    assert heads == {"directed by": "film", "zorp": "film", "zarp": "", "zirp": ""}


@pytest.mark.parametrize(
    ("form", "noun"),
    [
        ("(JOIN (R <directed_by>) <f0>)", "director"),
        ("(JOIN <directed_by> <p0>)", "film"),
        ("(JOIN (R <place_of_birth>) (JOIN (R <directed_by>) <f0>))", "place of birth"),
        ("(JOIN (R <sub_class_of>) <city>)", "thing"),  # a relation without a noun
        ("(TYPE <film>)", "film"),
        ("(TYPE <nothing>)", "thing"),
        ("(COUNT (JOIN <directed_by> <p0>))", "number"),
        ("(HOLDS (JOIN (R <capital>) <c0>) <city0>)", "yes or no"),
        ("(AND (JOIN (R <directed_by>) <f0>) (TYPE <person>))", "person"),  # a type before other parts
        ("(AND (gt <population> 5) (JOIN <borders> <c0>))", "country"),  # a condition after them
        ("(AND (gt <population> 5) (TYPE <city>))", "city"),
        ("(MINUS (JOIN (R <borders>) <c0>) <c1>)", "neighbor"),
        ("(OR (JOIN (R <capital>) <c0>) <c1>)", "capital"),
        ("(ARGMAX (TYPE <country>) <population>)", "country"),
        ("(NTHMIN 2 (JOIN <directed_by> <p0>) <release_year>)", "film"),
        ("(GREATER <c0> <c1> <population>)", "thing"),
        ("(TC (TYPE <person>) <directed_by> 2001)", "person"),
    ],
)
def test_what_a_form_finds_is_a_noun(graph: LabelGraph, form: str, noun: str) -> None:
    text = re.sub("<sub_class_of>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", form)
    parsed = parse(re.sub(r"<(?!http)", f"<{X}", text))
    assert Phrases(graph).answer(parsed) == noun
