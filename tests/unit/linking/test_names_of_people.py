"""The forms that people type for a name mean its entity: adjectives, abbreviations, surnames, plurals, types."""

from __future__ import annotations

import pytest

from kgqa_core.linking.english import abbreviations, demonyms, place_names, singulars
from kgqa_core.linking.fold import fold
from kgqa_core.linking.tagger import Tagger
from tests.unit.linking.conftest import Maker, named

WORLD = {
    "ch": named("Switzerland"),
    "nl": named("Netherlands"),
    "pe": named("Peru"),
    "fr": named("France"),
    "fra": named("French"),
    "us": named("United States of America"),
    "ae": named("United Arab Emirates"),
    "nz": named("New Zealand"),
    "sa": named("South America"),
    "ba": named("Bosnia and Herzegovina"),
    "country": named("country"),
    "language": named("language"),
    "messi": named("Lionel Messi"),
    "argentina": named("Argentina"),
    "award": named("Academy Awards"),
    "pf": named("French Polynesia"),
    **{f"city{n}": named(f"Zorn{n}") for n in range(12)},
}
COUNTRIES = ("ch", "nl", "pe", "fr", "us", "ae", "nz", "ba", "argentina", "pf")
TRIPLES = [
    *((f"city{n}", "country", country) for n, country in enumerate(COUNTRIES)),
    *((f"city{n}", "country", "us") for n in range(12)),
    ("pe", "continent", "sa"),
    ("fr", "language spoken", "fra"),
    ("messi", "country of citizenship", "argentina"),
    ("messi", "award received", "award"),
]
TYPES = [*((country, "country") for country in COUNTRIES), ("fra", "language")]


@pytest.fixture(scope="module")
def world(tagger: Maker) -> Tagger:
    """The tagger of a small world."""
    return tagger(WORLD, TRIPLES, types=TYPES)


def linked(tagger: Tagger, text: str) -> set[str]:
    return {tagger.mentions.keys[entity] for entity, _ in tagger.select(tagger.link(text))}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("largest Swiss city", {"ch"}),
        ("which dutch towns have a harbour", {"nl"}),
        ("Peruvian rivers", {"pe"}),
        ("all south american rivers", {"sa"}),
        ("How old are the Peruvians?", {"pe"}),
        ("capital of the US", {"us"}),
        ("capital of the U.S.", {"us"}),
        ("population usa", {"us"}),
        ("who governs the states", {"us"}),
        ("how rich is the uae", {"ae"}),
        ("capital of the united states", {"us"}),
        ("where was messi born", {"messi"}),
        ("rivers of Bosnia", {"ba"}),
        ("who won an academy award", {"award"}),
        ("who won an acadmy award", {"award"}),
        ("capital of newzealand", {"nz"}),
        ("capital of new zea land", {"nz"}),
        ("capital of swizterland", {"ch"}),
        ("cities of the nehterlands", {"nl"}),
    ],
)
def test_the_forms_that_people_type_mean_the_entity(world: Tagger, text: str, keys: set[str]) -> None:
    assert linked(world, text) == keys


@pytest.mark.parametrize("text", ["are you sure us", "tell us a joke", "which of us is it", "give us all of it"])
def test_a_pronoun_is_no_country(world: Tagger, text: str) -> None:
    assert linked(world, text) == set()


def test_an_adjective_means_the_place_before_a_noun_and_the_language_elsewhere(world: Tagger) -> None:
    assert linked(world, "French harbours") == {"fr"}
    assert linked(world, "where is French spoken") == {"fra"}
    assert linked(world, "where do people speak french") == {"fra"}
    assert linked(world, "French-speaking places") == {"fra"}
    [mention] = [m for m in world.link("where is French spoken") if m.kind == "adjective"]
    assert mention.candidates[0].key == "fr" and not mention.chosen


def test_a_whole_name_is_preferred_to_its_parts_and_adjectives(world: Tagger) -> None:
    assert linked(world, "how large is French Polynesia") == {"pf"}
    kinds = {mention.text: mention.kind for mention in world.link("how large is French Polynesia") if mention.chosen}
    assert kinds == {"French Polynesia": "name"}


def test_an_adjective_by_rule_needs_a_place(tagger: Maker) -> None:
    linker = tagger({"m": named("Music"), "x": named("Zorn")}, [("x", "genre", "m")])
    assert linked(linker, "which musicians are there") == set()


def test_a_part_that_many_share_means_nobody(tagger: Maker) -> None:
    crowd = {f"k{n}": named(f"Lionel Zorn{n}") for n in range(12)}
    linker = tagger(crowd)
    assert linked(linker, "where was lionel born") == set()
    assert linked(linker, "where was zorn7 born") == {"k7"}


def test_a_part_is_less_sure_than_the_whole_name(world: Tagger) -> None:
    [(entity, whole)] = world.select(world.link("where was lionel messi born"))
    [(same, part)] = world.select(world.link("where was messi born"))
    assert entity == same and part < whole


def test_the_entity_that_has_the_whole_name_comes_before_one_that_has_it_in_part(tagger: Maker) -> None:
    linker = tagger({"a": named("Sydney"), "b": named("Zone Sydney")})
    assert [c.key for c in linker.link("where is Sydney")[0].candidates] == ["a", "b"]


def test_initials_need_capitals_or_an_unknown_word(tagger: Maker) -> None:
    linker = tagger({"c": named("Badminton Association of Denmark"), "d": named("Dutch Foundation of Zeal")})
    parts = {text: [m.text for m in linker.link(text) if m.kind == "part"]
             for text in ("is it bad to be late", "who leads the BAD now", "who leads the dfz")}  # fmt: skip
    assert list(parts.values()) == [[], ["BAD"], ["dfz"]]


def test_a_part_beside_an_unknown_name_is_less_likely(tagger: Maker) -> None:
    entities = {"m": named("Elaine Zorn"), **{f"k{n}": named(f"Qorx{n}") for n in range(9)}}
    linker = tagger(entities, [("m", "knows", f"k{n}") for n in range(9)])
    alone, beside = (
        next(m for m in linker.link(text) if m.text == "Elaine").link_probability
        for text in ("where was Elaine born", "where was Elaine Vandermolen born")
    )
    assert beside == pytest.approx(alone / 2, rel=1e-4)


def test_a_word_for_a_type_is_a_topic_only_where_nothing_else_is(world: Tagger) -> None:
    assert linked(world, "Which country borders France?") == {"fr"}
    assert linked(world, "What is a country?") <= {"country"}


def test_of_near_names_the_best_known_entity_comes_first(tagger: Maker) -> None:
    entities = {"town": named("Kstovo"), "land": named("Kosovo"), **{f"c{n}": named(f"Zorn{n}") for n in range(9)}}
    linker = tagger(entities, [(f"c{n}", "country", "land") for n in range(9)])
    mentions = [mention for mention in linker.link("where is ksovo") if mention.chosen]
    assert [[candidate.key for candidate in mention.candidates] for mention in mentions] == [["land", "town"]]


def test_a_mistyped_long_name_is_preferred_to_a_short_one_in_it(tagger: Maker) -> None:
    linker = tagger({"york": named("Guinea"), "whole": named("Papua New Guinea")})
    assert linked(linker, "how large is papua nwe guinea") == {"whole"}


def test_mistyped_words_of_relations_and_types_are_no_names(tagger: Maker) -> None:
    entities = {"a": named("Arae"), "b": named("Borden"), "x": named("Zorn"), "t": named("region")}
    linker = tagger(entities, [("x", "area", "a"), ("x", "border", "b")], types=[("x", "t")])
    assert linked(linker, "what is the aera of Zorn") == {"x"}
    assert linked(linker, "which reigon is Zorn in") == {"x"}


def test_place_names_come_with_the_least_change_first() -> None:
    assert [name for name, _ in place_names("nigerian")].index("nigeria") == 0
    assert "peru" in [name for name, _ in place_names("peruvian")]
    assert "london" in [name for name, _ in place_names("londoners")]
    assert place_names("swiss") == (("switzerland", True),)
    assert all(name != "nara" for name, _ in place_names("narater"))


def test_the_tables_are_folded_and_mean_something_else_than_themselves() -> None:
    for table in (demonyms(), abbreviations()):
        for word, names in table.items():
            assert word == fold(word) and word not in names
            assert all(name == fold(name) and name for name in names)
    assert all(demonyms().values())


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("countries", "country"),
        ("capital cities", "capital city"),
        ("wives", "wife"),
        ("churches", "church"),
        ("movies", "movie"),
        ("women", "woman"),
        ("counties of kent", "county of kent"),
    ],
)
def test_singulars(plural: str, singular: str) -> None:
    assert singulars(plural)[0] == plural and singular in singulars(plural)


@pytest.mark.parametrize("word", ["glass", "bus", "paris", "us", "series"])
def test_words_that_are_no_plural_stay(word: str) -> None:
    assert singulars(word) == (word,)
