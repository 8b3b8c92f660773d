"""Facts told as sentences: the wording by hand, and what the judgement of a rewriting finds."""

from __future__ import annotations

from random import Random

import pytest

from tools.builtin_reader.evaluate import judge
from tools.builtin_reader.names import Names
from tools.builtin_reader.sentences import tell, tell_freely, words
from tools.builtin_reader.worlds import World, build, order


@pytest.mark.parametrize(
    ("facts", "sentences"),
    [
        ([("Zorvel", "capital", "Tamba")], "The capital of Zorvel is Tamba."),
        ([("Zorvel", "<inv>-country", "Pelka")], "Zorvel is the country of Pelka."),
        ([("Ulm", "located_in", "Tamba")], "Ulm is located in Tamba."),
        ([("Ulm", "<inv>-located in", "A"), ("Ulm", "<inv>-located in", "B")], "A and B are located in Ulm."),
        ([("Ulm", "<inv>-shares border with", "Orl")], "Orl shares border with Ulm."),
        ([("Ulm", "member", name) for name in "ABC"], "The members of Ulm are A, B and C."),
        ([("Ann Zorv", "people.person.place_of_birth", "Pelka")], "The place of birth of Ann Zorv is Pelka."),
        ([("Ann Zorv", "child", "Bob Zorv Jr.")], "The child of Ann Zorv is Bob Zorv Jr."),
        (
            [("Orl", "gov.officials", "CVT1"), ("CVT1", "office_holder", "Ann"), ("CVT1", "from", "1994")],
            "The officials of Orl: office holder Ann and from 1994.",
        ),
        (
            [("Ann", "<inv>-holder", "CVT1"), ("CVT1", "<inv>-officials", "Orl"), ("Ann", "sex", "female")],
            "Ann as holder: officials of Orl. The sex of Ann is female.",
        ),
        ([("Orl", "officials", "CVT1")], "The officials of Orl is CVT1."),
    ],
)
def test_facts_are_told_in_plain_english(facts: list[tuple[str, str, str]], sentences: str) -> None:
    assert tell(facts, chinese=False) == sentences
    assert judge(facts, sentences, chinese=False).faithful


@pytest.mark.parametrize(
    ("facts", "sentences"),
    [
        ([("沈岭", "出生地", "河州市"), ("沈岭", "国籍", "乌兰国")], "沈岭的出生地是河州市。沈岭的国籍是乌兰国。"),
        ([("乌兰国", "<inv>-国籍", "沈岭")], "沈岭的国籍是乌兰国。"),
        ([("河队", "成员", "沈岭"), ("河队", "成员", "吴可")], "河队的成员有沈岭和吴可。"),
        ([("沈岭", "奖项", "CVT1"), ("CVT1", "时间", "2019年")], "沈岭的奖项，时间是2019年。"),
    ],
)
def test_facts_are_told_in_plain_chinese(facts: list[tuple[str, str, str]], sentences: str) -> None:
    assert tell(facts, chinese=True) == sentences
    assert judge(facts, sentences, chinese=True).faithful


def test_words_of_labels() -> None:
    labels = {"film.film.directed_by": "directed by", "hasCapital": "has capital", "Is Part Of": "is part of"}
    assert {label: words(label) for label in labels} == labels


@pytest.mark.parametrize(
    ("text", "missing", "invented"),
    [
        ("The capital of Zorvel is Tambo.", ("Tamba",), ("Tambo",)),
        ("The capital of Zorvel is Tamba in 1999.", (), ("1999", "in")),
        ("", ("Tamba", "Zorvel"), ()),
    ],
)
def test_a_judgement_names_what_is_missing_and_what_is_invented(
    text: str, missing: tuple[str, ...], invented: tuple[str, ...]
) -> None:
    found = judge([("Zorvel", "capital", "Tamba")], text, chinese=False)
    assert (found.missing, found.invented, found.faithful) == (missing, invented, False)


def test_an_invented_chinese_character_is_seen() -> None:
    assert judge([("沈岭", "国籍", "乌兰国")], "沈岭的国籍是乌兰国人。", chinese=True).invented == ("人",)


@pytest.mark.parametrize("chinese", [False, True])
def test_free_sentences_hold_every_name(chinese: bool) -> None:
    random = Random(8)
    names = Names(random)
    for _ in range(200):
        world = World(random, names, chinese, "plain")
        shown = order(world, build(world, "2-hop", 2), 2, oracle=False)
        text = tell_freely(random, shown, chinese=chinese)
        assert all(edge.head in text and edge.tail in text for edge in shown)
