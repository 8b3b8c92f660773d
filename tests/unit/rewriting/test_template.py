"""Sentences by rule: what they name, which triples they tell, and how relations are said."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.kg.verbalise import is_cvt
from kgqa_core.rewriting.alpaca import read_pairs
from kgqa_core.rewriting.phrases import phrase, plural, words
from kgqa_core.rewriting.template import Named, paragraph, sentences
from tests.support.examples import examples

NAMES = st.one_of(
    st.sampled_from(
        ["Ada", "Bob", "The Hague", "Ångström", "1999-02-03", "Mary, Queen of Scots", "杭州", "CVT1", "CVT2", "CVT3"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8),
)
RELATIONS = st.one_of(
    st.sampled_from(
        [
            "capital",
            "directed_by",
            "<inv>-capital",
            "film.film.starring",
            "has_genre",
            "in_language",
            "located in",
            "part of",
            "出生地",
            "shares border with",
            "member of sports team",
            "/people/person/spouse_s./people/marriage/spouse",
            "birthPlace",
            "_",
            "of",
        ]
    ),
    st.text(min_size=1, max_size=12),
)


def text_of(*triples: Named, language: str = "en", variant: int = 0) -> str:
    return paragraph(sentences(triples, language, variant), language)


def variants(*triples: Named, language: str = "en") -> set[str]:
    return {text_of(*triples, language=language, variant=variant) for variant in range(12)}


@examples(400)
@given(st.lists(st.tuples(NAMES, RELATIONS, NAMES), max_size=8), st.sampled_from(["en", "zh", "de"]), st.integers(0, 7))
def test_every_triple_is_told_once_and_by_the_names_of_its_entities(
    triples: list[Named], language: str, variant: int
) -> None:
    found = sentences(triples, language, variant)
    assert {place for each in found for place in each.triples} == set(range(len(triples)))
    assert [each.triples[0] for each in found] == sorted(each.triples[0] for each in found)
    for each in found:
        ends = {end for place in each.triples for end in (triples[place][0], triples[place][2]) if not is_cvt(end)}
        assert all(end in each.text for end in ends), (each, ends)
    assert found == sentences(list(triples), language, variant), "the same triples read the same"


@examples(100)
@given(st.lists(st.tuples(NAMES, RELATIONS, NAMES), min_size=1, max_size=6), st.sampled_from(["en", "zh"]))
def test_nameless_nodes_are_not_named(triples: list[Named], language: str) -> None:
    other = [tuple("Ada" if name in ("CVT3", "") else name for name in triple) for triple in triples]
    plain = [triple for triple in other if not any("CVT" in part for part in triple)]
    hidden = [("Ada", "spouse", "CVT1"), ("CVT1", "start", "1999")]
    assert "CVT" not in text_of(*plain, *hidden, language=language)  # type: ignore[arg-type]


def test_a_noun_is_said_in_several_ways() -> None:
    assert variants(("France", "capital", "Paris")) == {
        "The capital of France is Paris.",
        "Paris is the capital of France.",
        "France has the capital Paris.",
    }


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        ("capital of", "X is the capital of Y."),
        ("located in", "X is located in Y."),
        (
            "located in the administrative territorial entity",
            "X is located in the administrative territorial entity Y.",
        ),
        ("shares border with", "X shares border with Y."),
        ("member of sports team", "X is a member of the sports team Y."),
        ("instance of", "X is an instance of Y."),
        ("part of", "X is part of Y."),
        ("born_in", "X was born in Y."),
        ("named after", "X is named after Y."),
        ("appeared_in_tv_program", "X appeared in the tv program Y."),
        ("language spoken", "The language spoken in X is Y."),
        ("area in square kilometres", "The area of X in square kilometres is Y."),
        ("borders", "X borders Y."),
        ("book.author.works_written", "The works written by X include Y."),
    ],
)
def test_a_relation_that_reads_as_a_verb_or_role_is_said_so(relation: str, text: str) -> None:
    assert variants(("X", relation, "Y")) == {text}


def test_a_participle_with_by_is_said_actively_too() -> None:
    assert variants(("Jaws", "film.film.directed_by", "Steven")) == {
        "Jaws was directed by Steven.",
        "Steven directed Jaws.",
    }
    assert variants(("Emma", "written_by", "Jane")) == {"Emma was written by Jane.", "Jane wrote Emma."}


def test_an_inverse_relation_is_said_as_the_graph_stores_it() -> None:
    assert variants(("Paris", "<inv>-capital", "France")) == variants(("France", "capital", "Paris"))


def test_triples_that_share_head_and_relation_make_one_sentence() -> None:
    found = sentences([("X", "member", "A"), ("X", "age", "7"), ("X", "member", "B"), ("X", "member", "C")])
    assert [each.triples for each in found] == [(0, 2, 3), (1,)]
    assert "The members of X are A, B and C." in variants(
        ("X", "member", "A"), ("X", "member", "B"), ("X", "member", "C")
    )


def test_triples_that_share_relation_and_tail_make_one_sentence() -> None:
    films = [("Persona", "directed_by", "Ingmar"), ("Saraband", "directed_by", "Ingmar")]
    assert "Persona and Saraband were directed by Ingmar." in variants(*films)
    assert [each.triples for each in sentences(films)] == [(0, 1)]


def test_a_chain_may_be_told_in_one_sentence() -> None:
    found = variants(("France", "capital", "Paris"), ("Paris", "mayor", "Anne"))
    assert "The capital of France is Paris. The mayor of Paris is Anne." in found
    assert "Paris is the capital of France, and Anne is the mayor of Paris." in found


def test_a_nameless_node_is_told_by_what_hangs_on_it() -> None:
    marriage = [
        ("Ada", "people.person.spouse_s", "CVT1"),
        ("CVT1", "people.marriage.spouse", "Bob"),
        ("CVT1", "people.marriage.from", "1999"),
    ]
    assert variants(*marriage) == {"In the spouses of Ada, the spouse is Bob and the from is 1999."}
    roles = [
        ("Jaws", "cast", "CVT1"),
        ("CVT1", "actor", "Roy"),
        ("Jaws", "cast", "CVT2"),
        ("CVT2", "actor", "Lorraine"),
    ]
    assert "The actors in the cast of Jaws are Roy and Lorraine." in variants(*roles)
    assert variants(("CVT1", "actor", "Roy"), ("CVT1", "film", "Jaws")) == {
        "Together, the actor is Roy and the film is Jaws."
    }


def test_chinese_is_said_in_chinese() -> None:
    assert variants(("曹缘", "出生地", "长沙"), language="zh") == {
        "曹缘的出生地是长沙。",
        "曹缘的出生地为长沙。",
        "长沙是曹缘的出生地。",
    }
    assert "曹缘的项目有跳水和游泳。" in variants(("曹缘", "项目", "跳水"), ("曹缘", "项目", "游泳"), language="zh")
    assert text_of(("长沙", "<inv>-出生地", "曹缘"), language="zh-CN") in variants(
        ("曹缘", "出生地", "长沙"), language="zh"
    )


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("film.film.directed_by", "directed by"),
        ("/people/person/place_of_birth", "place of birth"),
        ("birthPlace", "birth place"),
        ("ISO code", "ISO code"),
        ("capital-of", "capital of"),
        ("<inv>-has_genre", "has genre"),
        ("http://example.org/ontology#bornIn", "born in"),
        ("containedby", "contained by"),
        ("出生地", "出生地"),
        ("_", "_"),
    ],
)
def test_labels_become_words(label: str, text: str) -> None:
    assert words(label) == text


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("country", "countries"),
        ("place of birth", "places of birth"),
        ("languages spoken", "languages spoken"),
        ("child", "children"),
        ("boss", "bosses"),
        ("day", "days"),
        ("series", "series"),
        ("", ""),
    ],
)
def test_plurals_are_formed_at_the_head_of_the_noun(noun: str, several: str) -> None:
    assert plural(noun) == several


def test_no_label_breaks_the_grammar() -> None:
    draw = random.Random(5)
    for _ in range(2000):
        label = "".join(draw.choices("ab_. -/#of by的", k=draw.randint(1, 9)))
        parts = phrase(label)
        assert parts.is_verb or parts.noun, label


def test_published_graphs_are_told_in_full(shared_data: Path) -> None:
    for name in ("WQSP", "MetaQA", "ZJQA"):
        pairs = read_pairs(shared_data / "rra_kg2text/finetune-llama" / name)
        for number, pair in enumerate(pairs[::7]):
            found = sentences(pair.named, pair.language, number)
            assert {place for each in found for place in each.triples} == set(range(len(pair.named)))
            assert not any(is_cvt(word.strip(".,")) for each in found for word in each.text.split())
