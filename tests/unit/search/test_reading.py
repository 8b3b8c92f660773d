"""What is read of a question: slots in the order of its text, types, numbers, places, codes and misspelt words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.linking.english import type_words
from kgqa_core.logic.forms import Literal
from kgqa_core.search.candidates import LabelQuery
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.reading import (
    MOST_SLOTS,
    corrected,
    is_cut,
    mask_values,
    name_span,
    other_readings,
    read_query,
    stem,
    types_in,
)
from kgqa_core.types import Question
from tests.support.graphs import small_graph
from tests.support.label_graph import X, question_about, slot_of


def read(graph: LabelGraph, question: Question) -> LabelQuery:
    topics = sorted(question.topic_entities)
    keys, names = graph.store.entity_keys(topics), graph.store.surface_forms(topics)
    return read_query(question, keys, names, graph)


def about(graph: LabelGraph, text: str, *names: str) -> LabelQuery:
    """A question whose topics were linked in its text, each with full confidence."""
    question = question_about(graph, "q", text, *(X + name for name in names))
    return read(graph, replace(question, topic_weights=(1.0,) * len(names)))


def test_mentions_are_slots_in_the_order_of_the_text(graph: LabelGraph) -> None:
    query = about(graph, "Does Estia border Norland?", "c0", "c2")
    assert query.text == "Does x border y ?"
    assert [(slot.word, slot.entities[0][1]) for slot in query.slots] == [("x", X + "c2"), ("y", X + "c0")]


def test_readings_of_one_mention_share_a_slot_best_first(graph: LabelGraph) -> None:
    plain = question_about(graph, "q", "capital of Norland", X + "c0", X + "c1")
    query = read(graph, replace(plain, topic_weights=(0.3, 0.9), topic_mentions=(0, 0)))
    [slot] = query.slots
    assert [(key, rho) for _, key, rho in slot.entities] == [(X + "c1", 0.9), (X + "c0", 0.3)]
    assert query.text == "capital of x"


def test_mention_that_the_text_does_not_have_comes_last(graph: LabelGraph) -> None:
    query = about(graph, "what borders norland", "p0", "c0")
    assert [slot.entities[0][1] for slot in query.slots] == [X + "c0", X + "p0"]


def test_mentions_beyond_the_most_are_words_no_more(graph: LabelGraph) -> None:
    query = about(graph, "Norland, Sudland, Estia or Westria?", "c0", "c1", "c2", "c3")
    assert len(query.slots) == MOST_SLOTS and "Westria" not in query.text


@pytest.mark.parametrize(
    ("text", "types"),
    [("which countries are there", {"country"}), ("a city", {"city"}), ("films and persons", {"film", "person"}),
     ("nothing of this kind", set())],
)  # fmt: skip
def test_types_are_named_in_singular_or_plural(graph: LabelGraph, text: str, types: set[str]) -> None:
    assert {graph.type_labels[place] for place, confidence in types_in(text, graph) if confidence == 1.0} == types


@pytest.mark.parametrize(
    ("text", "read_as"),
    [("what countries does the ontology know?", "what countries are there?"),
     ("how many films are there in this graph", "how many films are there"),
     ("does the graph know it", "does the graph know it"), ("who is in the file room", "who is in the file room")],
)  # fmt: skip
def test_words_about_the_graph_itself_ask_for_what_is_there(graph: LabelGraph, text: str, read_as: str) -> None:
    assert about(graph, text).text == read_as


@pytest.mark.parametrize(
    ("text", "read_as"),
    [("films of the 1920s", "films between n and n"), ("films in the 19th century", "films between n and n"),
     ("films whose genre is not known", "films without genre"), ("films with the genre missing", "films without genre"),
     ("films for which no genre is given", "films without genre"),
     ("the fastest-growing film", "the fastest growing film"),
     ("films that do not have a single genre", "films that have no genre"),
     ("all films bar the dramas", "all films except the dramas"),
     ("films nobody directed", "films that are not directed by anybody"), ("a film of 1920", "a film of n"),
     ("whats the longest film", "what is the longest film"), ("films that arent long", "films that are not long"),
     ("since when is there a film", "when is there a film"), ("what did the director die of",
      "what was the cause of death of the director"), ("the grandchildren of the actor",
      "the children of the children of the actor"), ("the actor's great-grandparents",
      "the actor's parents 's parents 's parents"), ("his brothers and sisters", "his children of the parents"),
     ("which country do most others border", "which country do most countries border")],
)  # fmt: skip
def test_wordings_are_read_as_plainer_ones(graph: LabelGraph, text: str, read_as: str) -> None:
    assert about(graph, text).text == read_as


def test_a_decade_goes_from_its_first_to_its_last_year(graph: LabelGraph) -> None:
    values = about(graph, "films of the 1920s").values
    assert [one.text for one in values if one.datatype.endswith("gYear")] == ["1920", "1929"]


def test_types_are_in_the_order_of_the_text_whatever_their_length() -> None:
    with small_graph() as store:
        own = LabelGraph(store)
        place = own.type_of_key["person"]
        own.type_labels[place] = "head of a small hill"
        assert own.type_labels[own.type_of_key["capital_city"]] == "capital city"

        def named(text: str) -> list[str]:
            return [own.type_labels[place] for place, _ in types_in(text, own)]

        assert named("heads of a small hill of a country") == ["head of a small hill", "country"]
        assert named("a country with a head of a small hill in a capital city or a city") == [
            "country", "head of a small hill", "capital city", "city",
        ]  # fmt: skip
        assert named("capital city of which country") == ["capital city", "country"]
        assert named("which country has this capital city") == ["country", "capital city"]
        assert named("cities and capital cities") == ["city", "capital city"]
        assert named("head of a very small hill") == []
        query = read(own, Question("q", "which head of a small hill was in a city"))
        assert [own.type_labels[place] for place, _ in query.types] == ["head of a small hill", "city"]


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("what is the capital of Norland", 0),
        ("which countries does Norland border", 0),  # the plural of a label's word
        ("the qzwxv of Norland", 1),
        ("the qzwxv and xqvvk of Norland, qzwxv", 3),
        ("the zq of Norland", 0),  # of two letters
        ("the 12345 of Norland", 0),
        ("the Qzwxv's of Norland", 0),  # with an apostrophe it is no word alone
    ],
)
def test_words_that_are_no_english_and_in_no_label_are_strange(graph: LabelGraph, text: str, strange: int) -> None:
    assert about(graph, text, "c0").strange == strange


def test_topics_that_are_given_with_a_question_leave_no_doubt_about_names(graph: LabelGraph) -> None:
    given = read(graph, question_about(graph, "q", "the qzwxv of Lake Norland", X + "c0"))
    assert (given.strange, given.cut) == (0, False)
    assert read(graph, Question("q", "the qzwxv of Lake Norland")).strange == 2  # the other is Norland itself


def test_word_of_a_label_is_not_strange() -> None:
    with small_graph() as store:
        own = LabelGraph(store)
        assert read(own, Question("q", "which qzwxv is it")).strange == 1
        again = LabelGraph(store)
        again.labels[0] = "qzwxv of"
        assert read(again, Question("q", "which qzwxv is it")).strange == 0
        assert read(again, Question("q", "which qzwxvs are there")).strange == 0


def test_type_by_another_word_is_less_sure(graph: LabelGraph) -> None:
    [(place, confidence)] = types_in("all movies", graph)
    assert graph.type_labels[place] == "film" and 0 < confidence < 1
    assert "concept" in type_words()["term"]  # what a thesaurus holds


@pytest.mark.parametrize(
    ("text", "masked", "values"),
    [
        ("more than 5 million people", "more than n people", ["5000000"]),
        ("over 2.5k", "over n", ["2500"]),
        ("over 1,234,567", "over n", ["1234567"]),
        ("at least three", "at least n", ["3"]),
        ("two hundred", "n", ["200"]),
        ("which one is it", "which one is it", []),
        ("the 3rd", "the 3rd", []),
        ("0.5", "n", ["0.5"]),
    ],
)  # fmt: skip
def test_numbers_are_read_with_their_scales(text: str, masked: str, values: list[str]) -> None:
    found, literals = mask_values(text)
    assert " ".join(found.split()) == masked
    assert [one.text for one in literals] == values
    assert {one.datatype for one in literals} <= {XSD + "decimal"}


def test_four_digits_may_be_a_year(graph: LabelGraph) -> None:
    query = about(graph, "films of 1999")
    assert query.text == "films of n"
    assert query.values == (Literal("1999", XSD + "decimal"), Literal("1999", XSD + "gYear"))
    assert [one.datatype for one in mask_values("1500 thousand")[1]] == [XSD + "decimal"]


def test_number_that_a_label_has_stays(graph: LabelGraph) -> None:
    text, values = mask_values("the 2 of them", {"two"})
    assert (text.split(), values) == (["the", "two", "of", "them"], ())
    with small_graph() as store:
        own = LabelGraph(store)
        own.labels[0] = "top 5 list"
        assert read(own, Question("q", "top 5 list of 7")).text == "top 5 list of n"


def test_place_of_a_ranking_is_read(graph: LabelGraph) -> None:
    assert about(graph, "the second largest country").place == 2
    assert about(graph, "the 4th largest country").place == 4
    assert about(graph, "the largest country").place is None


def test_code_is_a_slot_as_the_graph_writes_it(graph: LabelGraph) -> None:
    query = about(graph, "which station has kx12?")
    [slot] = query.slots
    assert query.text == "which station has x ?"
    assert [key for _, key, _ in slot.entities] == ["KX12"]
    both = about(graph, "is KX12 in Farland", "hub")
    assert (both.text, [slot.word for slot in both.slots]) == ("is y in x", ["x", "y"])
    assert not about(graph, "who is the king").slots


def test_word_in_capitals_is_a_code_and_a_usual_word_is_none(graph: LabelGraph) -> None:
    assert [slot.entities[0][1] for slot in about(graph, "what is WQQ").slots] == ["WQQ"]


def test_misspelt_words_of_labels_are_mended(graph: LabelGraph) -> None:
    assert corrected("the populaton of", graph) == "the population of"
    assert corrected("caiptal of Norlnd", graph).startswith("capital of")
    assert corrected("the people of it's", graph) == "the people of it's"
    assert about(graph, "which coutnries border Estia", "c2").text == "which countries border x"


def test_stem_of_a_plural() -> None:
    assert [stem(word) for word in ("cities", "boxes", "buses", "bus", "is", "analysis", "films", "dress")] == [
        "city", "box", "buse", "bus", "is", "analysis", "film", "dress",
    ]  # fmt: skip


def test_graphs_do_not_share_what_was_read_of_their_labels(graph: LabelGraph) -> None:
    assert types_in("countries", graph)
    for _ in range(3):  # a graph that is gone may leave its place in memory to the next one
        with small_graph() as store:
            own = LabelGraph(store)
            assert [own.type_labels[place] for place, _ in types_in("a capital city", own)] == ["capital city"]
            del own


def test_question_without_anything_is_its_words(graph: LabelGraph) -> None:
    assert about(graph, "  why   so ?") == LabelQuery("why so ?")


def test_topic_that_the_store_does_not_have_is_no_slot(label_kg: object, graph: LabelGraph) -> None:
    assert isinstance(graph.store, KgStore)
    query = read(graph, Question("q", "who is it", topic_keys=("?",), topic_entities=(10**6,)))
    assert query == LabelQuery("who is it")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("who directed Zorblax", "Zorblax"),
        ("what is the capital of zorblax", "zorblax"),  # in small letters, but no English
        ("what is the capital of Zorblax?", "Zorblax"),
        ("Zorblax's capital", "Zorblax"),
        ("zorblax’s population", "zorblax"),
        ("the films of Mr. Stone's wife", "Mr. Stone"),
        ("how old is O'Neill", "O'Neill"),
        ("which countries border Grand Zorb City", "Grand Zorb City"),
        ("does United States of America border it", "United States of America"),  # a word of grammar within it
        ("who is the director of The Blue Moon Rises", "Blue Moon Rises"),
        ("what is it", None),
        ("which films are there", None),
        ("What is the population of the country", None),  # a capital at the start is none, and these are labels
        ("", None),
        ("?!", None),
    ],
)
def test_name_that_the_graph_does_not_have_is_found_by_its_shape(
    graph: LabelGraph, text: str, name: str | None
) -> None:
    span = name_span(text, graph)
    assert (text[span[0] : span[1]] if span else None) == name


def test_name_is_not_found_over_a_mention(graph: LabelGraph) -> None:
    for text in ("does big \ue100 Zorblax border it", "\ue100 Zorblax", "Big Zorblax \ue100"):
        span = name_span(text, graph)
        assert span is not None and "Zorblax" in text[slice(*span)] and "\ue100" not in text[slice(*span)]
    assert name_span("does \ue100 border \ue101", graph) is None


def test_given_mention_without_a_name_is_the_slot_of_the_likeliest_words(graph: LabelGraph) -> None:
    assert about(graph, "what is the capital of Zorblax", "t3").text == "what is the capital of x"
    assert about(graph, "Zorblax's capital", "t3").text == "x 's capital"
    assert about(graph, "what is the capital", "t3").text == "what is the capital", "nothing is like a name"
    two = about(graph, "does Zorblax border Umbra", "t3", "t4")
    assert two.text == "does Zorblax border Umbra" and len(two.slots) == 2, "which is which nobody knows"


def test_slot_of_a_found_name_is_in_the_order_of_the_text(graph: LabelGraph) -> None:
    query = about(graph, "does Zorblax border Norland", "c0", "t3")
    assert query.text == "does x border y"
    assert [(slot.word, slot.entities[0][1]) for slot in query.slots] == [("x", X + "t3"), ("y", X + "c0")]
    query = about(graph, "does Norland border Zorblax", "c0", "t3")
    assert query.text == "does x border y" and query.slots[0].entities[0][1] == X + "c0"


def test_chinese_question_stays_beside_a_name_that_is_not_in_it(graph: LabelGraph) -> None:
    assert "导演" in about(graph, "甲的导演是谁", "t3").text


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("films of Lake x", True),
        ("the capital of x City", True),
        ("who is x zorblax", True),  # a word of no language
        ("films of lake x", False),
        ("Films of x", False),  # the first word of a text has a capital
        ("Who Is The King Of x", False),  # as all have here
        ("which is the BBC x", False),  # in capitals it is a code
        ("what is the capital of x ?", False),
        ("Zorblax borders x", False),  # not beside it
        ("does x border y", False),
        ("x 的导演是谁", False),  # in a text without spaces this tells nothing
    ],
)
def test_mention_beside_a_part_of_a_name_is_cut(graph: LabelGraph, text: str, cut: bool) -> None:
    slots = (slot_of(graph, "x", X + "c0"), slot_of(graph, "y", X + "c1"))
    assert is_cut(text, slots, graph) is cut


def test_question_tells_whether_a_name_of_it_is_cut(graph: LabelGraph) -> None:
    assert about(graph, "who owns Lake Norland", "c0").cut
    assert not about(graph, "who owns Norland", "c0").cut


def linked(text: str, *mentions: tuple[str, float]) -> Question:
    """A question with mentions as a linker finds them in its text, each with its confidence."""
    size = len(mentions)
    return Question(
        "q", text, topic_keys=tuple(words for words, _ in mentions), topic_entities=tuple(range(size)),
        topic_weights=tuple(rho for _, rho in mentions), topic_mentions=tuple(range(size)),
    )  # fmt: skip


def test_mention_of_usual_words_may_be_no_name() -> None:
    question = linked("which network shows the office in Norland", ("network", 0.5), ("office", 0.25), ("Norland", 0.9))
    found = [(one.topic_keys, rho, words) for one, rho, words in other_readings(question)]
    assert found == [
        (("office", "Norland"), 0.5, {"network"}),
        (("network", "Norland"), 0.25, {"office"}),
        (("Norland",), 0.75, {"network", "office"}),
    ]
    for one, _, _ in other_readings(question):
        assert len(one.topic_entities) == len(one.topic_weights) == len(one.topic_keys)
        assert one.topic_mentions == tuple(range(len(one.topic_keys))) and one.text == question.text


@pytest.mark.parametrize("name", ["Network", "zorblax", "Norland", "network zorblax"])
def test_mention_with_a_capital_or_a_word_of_no_language_is_a_name(name: str) -> None:
    assert other_readings(linked(f"what is {name} of", (name, 0.5))) == []


def test_topic_that_is_given_by_its_key_has_one_reading(graph: LabelGraph) -> None:
    assert other_readings(question_about(graph, "q", "which network is it", X + "c0")) == []
