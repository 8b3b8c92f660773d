"""Citations are found by their words alone, and what is no triple of the prompt is seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.papers.ltgen.parse import Citable, Citation, NameMatcher

TRIPLES = (
    ("Oslo", "country", "Norway"),
    ("Oslo", "country", "Norway and Sweden"),
    ("Washington, D.C.", "languages spoken, written or signed", "English"),
    ("Oslo", "population", "700000"),
    ("奥斯陆", "国家", "挪威"),
    ("The Hague", "located in", "South Holland"),
)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("(Oslo, country, Norway)", (0,)),
        ("(oslo, COUNTRY, norway), (Oslo, population, 700,000)", (0, 3)),
        ("1. Oslo | country | Norway\n2. <Oslo, population, 700000>", (0, 3)),
        ("- Oslo -> country -> Norway\n- Oslo — population — 700000", (0, 3)),
        ("[('Oslo', 'country', 'Norway'), ('The Hague', 'located in', 'South Holland')]", (0, 5)),
        ("(Washington, D.C., languages spoken, written or signed, English)", (2,)),
        ("(Oslo, country, Norway and Sweden)", (1,)),
        ("（奥斯陆，国家，挪威）", (4,)),
        ("(Oslo, country, Norway), (Oslo, country, Norway)", (0,)),
        ("Triples: (Hague, located in, South Holland) and (Oslo, population, 700000)", (5, 3)),
        ("(Oslo,\ncountry,\nNorway)", (0,)),
        ("Oslo country Norway", (0,)),
    ],
)
def test_triples_are_found_however_they_are_written(text: str, places: tuple[int, ...]) -> None:
    found = Citable(TRIPLES).read(text)
    assert (found.indices, found.foreign) == (places, "")


@pytest.mark.parametrize(
    "text",
    [
        "(Oslo, mayor, Anne)",
        "(Oslo, country, Norway), (Oslo, mayor, Anne)",
        "(Norway, country, Oslo)",
        "(Oslo, country, Norwegian)",
        "(Oslo, population, 70000)",
        "(Oslo, country)",
        "Oslo country Norway indeed",
    ],
)
def test_what_is_no_triple_of_the_prompt_is_foreign(text: str) -> None:
    assert Citable(TRIPLES).read(text).foreign == text


@pytest.mark.parametrize("text", ["", "None", "N/A", "T:", "No triples were used", "-", "(none)"])
def test_no_citation_is_no_foreign_one(text: str) -> None:
    found = Citable(TRIPLES).read(text)
    assert (found.indices, found.foreign) == ((), "")


NAME = st.text(alphabet="abcdefgh ,.-'()0123456789é巴黎", min_size=1, max_size=12).filter(lambda text: text.strip())


@given(st.lists(st.tuples(NAME, NAME, NAME), min_size=1, max_size=6), st.sampled_from([", ", " | ", " - ", "; "]))
def test_a_list_of_all_choices_cites_nothing_foreign(choices: list[tuple[str, str, str]], joint: str) -> None:
    wordy = [choice for choice in choices if Citable([choice]).read(" ".join(choice)).indices]
    for choice in wordy:
        assert Citable([choice]).read(f"({joint.join(choice)})") == Citation((0,))


def test_names_are_found_on_word_boundaries_and_short_aliases_are_not_looked_for() -> None:
    mentions = NameMatcher()
    assert mentions.any(("Ada Byron", "Countess of Lovelace"), "Was ada byron (the poet) there?")
    assert mentions.any(("Ada Byron", "Countess of Lovelace"), "the Countess of Lovelace's machine".replace("'s", ""))
    assert not mentions.any(("Ada",), "Adair was there")
    assert not mentions.any(("United States", "US"), "Tell us more")
    assert mentions.any(("法国", "法"), "他在法国吗")
    assert mentions.part(("Marie Curie",), "Where was Curie born?") and not mentions.part(("Marie Curie",), "Where?")
    assert not mentions.any(("!!!",), "any text")
