"""The grammar: relations by the shape of their labels, nested paths, every operation, and Chinese."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgqa_core.builders.questions.generate import namer
from kgqa_core.builders.questions.noun import conjugated, spelled
from kgqa_core.builders.questions.relation_words import relation_words, singular
from kgqa_core.builders.questions.wording import English
from kgqa_core.builders.questions.wording_zh import Chinese
from kgqa_core.errors import FormError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.search.schema_profile import GraphProfile, plain_label, profile
from tests.support.question_graph import build_graph

Texts = Callable[[str], set[str]]


@pytest.fixture(scope="module")
def graph_profile(film_kg: Path) -> Iterator[tuple[GraphProfile, MemoryGraph]]:
    with KgStore.open(film_kg) as store:
        yield profile(store), MemoryGraph(store)


@pytest.fixture(scope="module")
def texts(graph_profile: tuple[GraphProfile, MemoryGraph]) -> Texts:
    found, graph = graph_profile
    english = English(found, namer(graph, found))

    def of(form: str) -> set[str]:
        full = form.replace("@", "http://x/")
        return {english.write(parse(full), str(seed)).text for seed in range(200)}

    return of


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("(JOIN (R @directed_by) @f0)", {"Who directed Night A0?", "Who is the director of Night A0?"}),
        ("(JOIN @directed_by @p0)", {"Which films were directed by Ada Stone?", "What did Ada Stone direct?"}),
        ("(JOIN (R @capital) @c0)", {"What is Norland's capital?", "What is the capital of Norland?"}),
        ("(JOIN @capital @city0)", {"Norland City is the capital of which country?"}),
        ("(JOIN (R @population) @c1)", {"How many people live in Sudland?"}),
        ("(JOIN (R @date_of_birth) @p1)", {"When was Ben Stone born?"}),
        ("(JOIN (R @place_of_birth) (JOIN (R @directed_by) @f1))",
         {"What is the birthplace of the director of Night B1?"}),
        ("(AND (TYPE @film) (JOIN @has_genre @g1))", {"What are the films that are in the genre comedy?"}),
        ("(COUNT (JOIN @starred_actors @p3))", {"How many films star Dan Stone?"}),
        ("(SUM (TYPE @country) @population)", {"What is the total population of the countries?"}),
        ("(AVG (TYPE @country) @population)", {"What is the average population of the countries?"}),
        ("(SUM (JOIN @directed_by @p0) (COUNT @starred_actors))",
         {"How many actors do the films directed by Ada Stone have in total?"}),
        ("(MAX (TYPE @film) @release_year)", {"What is the latest release year of the films?"}),
        ("(MIN (TYPE @country) @population)", {"What is the lowest population of the countries?"}),
        ("(SHARE (TYPE @film) (JOIN @has_genre @g1))", {"What percentage of the films are in the genre comedy?"}),
        ("(FIRSTMAX 3 (TYPE @country) @population)",
         {"What are the three most populous countries?", "Top 3 countries by population"}),
        ("(GROUP (TYPE @film) @has_genre)", {"How many films per genre?", "Number of films by genre"}),
        ("(GROUP (TYPE @film) @has_genre (MIN @release_year))", {"Earliest release year of the films by genre"}),
        ("(VALUES (TYPE @country) @population)", {"List the countries with their populations"}),
        ("(ARGMAX (TYPE @country) @population)", {"Which country is the most populous?"}),
        ("(NTHMAX 2 (TYPE @country) @population)", {"Which country is the second most populous?"}),
        ("(GREATER @c1 @c2 @population)", {"Which is more populous, Sudland or Estia?"}),
        ("(LESS @p1 @p2 @date_of_birth)", {"Who is older, Ben Stone or Cleo Stone?"}),
        ("(AND (TYPE @country) (gt @population 5000000))", {"Which countries have more than 5 million inhabitants?"}),
        ("(HOLDS (JOIN (R @capital) @c0) @city0)", {"Is Norland City the capital of Norland?"}),
        ("(MINUS (JOIN @borders @c1) (JOIN @borders @c3))", set()),
        ("(MINUS (JOIN @has_genre (JOIN (R @has_genre) @f0)) @f0)",
         {"What are the films with the same genre as Night A0?"}),
        ("(TYPE @genre)", {"What genres are there?"}),
    ],
)  # fmt: skip
def test_a_form_is_said_in_several_ways_and_in_this_one(texts: Texts, form: str, expected: set[str]) -> None:
    found = texts(form)
    assert len(found) > 3
    near = {text.casefold() for text in found}
    assert {text.casefold() for text in expected} <= near, sorted(found)


def test_what_has_no_name_has_no_question(graph_profile: tuple[GraphProfile, MemoryGraph]) -> None:
    found, graph = graph_profile
    with pytest.raises(FormError, match="no name"):
        English(found, namer(graph, found)).write(parse("(JOIN http://x/capital http://x/nowhere)"), "0")


def test_relations_are_read_by_the_shape_of_their_labels(tmp_path: Path) -> None:
    shapes = {
        "actor_to_movie": ("movie", "", ""),
        "has_zorp": ("zorp", "", ""),
        "blipped by": ("", "was blipped by", "blipped"),
        "sharesZorpWith": ("", "", ""),
        "located in zone": ("", "is located in the zone", ""),
    }
    lines = [
        f"<http://x/{kind}{i}> <http://x/{key.replace(' ', '_')}> <http://x/{kind}{i + 1}> ."
        for key in shapes
        for kind in "ab"
        for i in range(3)
    ]
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        found = profile(store)
        for key, (noun, passive, active) in shapes.items():
            words = relation_words(found.relations[f"http://x/{key.replace(' ', '_')}"], found)
            assert noun in (*words.nouns, ""), key
            assert not passive or passive in {" ".join(pair) for pair in words.passive}, (key, words)
            assert not active or active in words.active, key
        assert relation_words(found.relations["http://x/sharesZorpWith"], found).verbs


def test_small_words() -> None:
    assert plain_label("crew member(s)") == "crew member"
    assert singular("starred actors") == "starred actor" and singular("series") == "series"
    assert [conjugated(verb, True) for verb in ("owns", "was in", "coaches", "starred in", "supplies")] == [
        "own", "were in", "coach", "starred in", "supply",
    ]  # fmt: skip
    assert "1.5 million" in spelled(1_500_000) and "1234" in spelled(1234)


def test_chinese_relations_have_chinese_questions(tmp_path: Path) -> None:
    lines = [
        f'<http://x/e{i}> <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@zh .'
        for i, name in enumerate("甲乙丙丁")
    ]
    lines += [
        '<http://x/r> <http://www.w3.org/2000/01/rdf-schema#label> "导演"@zh .',
        "<http://x/e0> <http://x/r> <http://x/e1> .",
        "<http://x/e2> <http://x/r> <http://x/e1> .",
        "<http://x/e3> <http://x/r> <http://x/e2> .",
    ]
    with KgStore.open(build_graph(tmp_path, lines, languages=("zh",))) as store:
        found, graph = profile(store), MemoryGraph(store)
        assert found.language == "zh"
        chinese = Chinese(found, namer(graph, found))

        def of(form: str) -> set[str]:
            return {chinese.write(parse(form.replace("@", "http://x/")), str(seed)).text for seed in range(150)}

        assert {"甲的导演是谁？", "谁是甲的导演？"} <= of("(JOIN (R @r) @e0)")
        assert "导演是乙的有哪些？" in of("(JOIN @r @e1)")
        assert "丁的导演的导演是谁？" in of("(JOIN (R @r) (JOIN (R @r) @e3))")
        assert "乙是甲的导演吗？" in of("(HOLDS (JOIN (R @r) @e0) @e1)")


def test_chinese_questions_have_the_nouns_and_whole_questions_of_the_thesaurus(tmp_path: Path) -> None:
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    lines = [f'<http://x/e{i}> <{label}> "{name}"@zh .' for i, name in enumerate("甲乙丙丁")]
    for key, name in (("born", "出生地"), ("zorp", "佐普"), ("led", "负责人")):
        lines += [f'<http://x/{key}> <{label}> "{name}"@zh .', f"<http://x/e0> <http://x/{key}> <http://x/e1> ."]
    lines.append("<http://x/e1> <http://x/born> <http://x/e2> .")
    with KgStore.open(build_graph(tmp_path, lines, languages=("zh",))) as store:
        found, graph = profile(store), MemoryGraph(store)
        chinese = Chinese(found, namer(graph, found))

        def of(form: str) -> set[str]:
            return {chinese.write(parse(form.replace("@", "http://x/")), str(seed)).text for seed in range(300)}

        texts = of("(JOIN (R @born) @e0)")
        assert {"甲在哪里出生？", "甲在哪里出生"} <= texts, "whole questions for the tail"
        assert any("甲的籍贯" in text for text in texts) and any("甲的出生地" in text for text in texts)
        assert "谁出生在乙？" in of("(JOIN @born @e1)"), "and for the head"
        assert not any("谁出生在" in text for text in texts)
        nested = of("(JOIN (R @born) (JOIN (R @led) @e0))")
        assert {"甲的负责人在哪里出生？", "甲的领导人在哪里出生？"} <= nested
        assert all("佐普" in text for text in of("(JOIN (R @zorp) @e0)")), "which the thesaurus does not have"
        for text in (*texts, *nested, *of("(JOIN @born @e1)")):
            assert "<x>" not in text and ("甲" in text or "乙" in text)
