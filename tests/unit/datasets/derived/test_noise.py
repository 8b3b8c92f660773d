"""The way people type: seeded, composable, and harmless to what a question names."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.config.generated_questions import NoiseOptions
from kgqa_core.datasets.derived.noise import KINDS, Noise, joined, pieces, typing_errors
from kgqa_core.datasets.derived.thesaurus import thesaurus

TEXTS = (
    ("What is the capital of Burkina Faso?", ("Burkina Faso",)),
    ("Who directed Inception?", ("Inception",)),
    ("Which countries whose language is French have more than 2 million people?", ("French",)),
    ("Name the second largest city in Chad", ("Chad",)),
    ("Chad", ("Chad",)),
)


def only(**rates: float) -> NoiseOptions:
    return NoiseOptions.none().model_copy(update={"share": 1.0, **rates})


def change(name: str, text: str, *mentions: str, seed: int = 0) -> str:
    return joined(KINDS[name](pieces(text, mentions), random.Random(seed)))


@given(st.sampled_from(TEXTS), st.integers(0, 10**6), st.text(max_size=5))
def test_the_same_seed_gives_the_same_text(question: tuple[str, tuple[str, ...]], seed: int, key: str) -> None:
    options = NoiseOptions(share=1.0)
    assert Noise(options, seed).apply(*question, key) == Noise(options, seed).apply(*question, key)


@given(st.text(), st.lists(st.text(min_size=1, max_size=5), max_size=3), st.integers(0, 100))
def test_rates_of_zero_change_nothing(text: str, mentions: list[str], seed: int) -> None:
    assert Noise(NoiseOptions.none(), seed).apply(text, mentions) == text
    assert Noise(only(), seed).apply(text, mentions) == text


@given(st.text(min_size=1), st.lists(st.text(min_size=1, max_size=8), max_size=4))
def test_pieces_put_together_are_the_text(text: str, mentions: list[str]) -> None:
    assert joined(pieces(text, mentions)) == text


@given(st.sampled_from(TEXTS), st.integers(0, 10**6))
def test_mentions_stay_whole_where_no_change_touches_names(question: tuple[str, tuple[str, ...]], seed: int) -> None:
    text, mentions = question
    rates = {name: 0.7 for name in KINDS if name not in ("lower_case", "apostrophes")}
    noised = Noise(only(**rates), seed).apply(text, mentions)
    assert all(mention in noised for mention in mentions)


@given(st.sampled_from(TEXTS), st.integers(0, 10**6))
def test_some_word_is_always_left(question: tuple[str, tuple[str, ...]], seed: int) -> None:
    rates = dict.fromkeys(KINDS, 1.0)
    assert Noise(only(**rates), seed).apply(*question).strip()


@pytest.mark.parametrize(
    ("name", "text", "mention", "expected"),
    [
        ("lower_case", "Who directed Inception?", "Inception", {"who directed inception?"}),
        ("contractions", "What is the capital of Chad?", "Chad", {"What's the capital of Chad?"}),
        ("articles", "What is the capital of the Gambia?", "the Gambia", {"What is capital of the Gambia?"}),
        ("numerals", "The second city of Chad", "Chad", {"The 2nd city of Chad"}),
        ("numerals", "More than 1.2 in 2 of Chad", "Chad", {"More than 1.2 in two of Chad"}),
        ("telegraphic", "What is the capital of Chad?", "Chad", {"capital Chad", "Chad capital"}),
        ("question_words", "What is the capital of Chad?", "Chad", {"the capital of Chad", "capital of Chad"}),
        ("keywords", "What is the capital of Chad?", "Chad", {"capital Chad"}),
        ("passive", "Who directed Inception?", "Inception",
         {"Inception was directed by who?", "Inception was directed by whom?", "By whom was Inception directed?",
          "By who was Inception directed?"}),
        ("relative_clauses", "countries whose language is French", "French",
         {"countries with language French", "countries with French as language",
          "countries that have French as their language"}),
        ("synonyms", "Which movie is it?", "", {"Which film is it?", "Which feature film is it?",
                                                "Which picture is it?"}),
    ],
)  # fmt: skip
def test_a_change_does_what_its_name_says(name: str, text: str, mention: str, expected: set[str]) -> None:
    got = {" ".join(change(name, text, mention, seed=seed).split()) for seed in range(40)}
    assert got <= expected and got


def test_typing_errors_are_one_letter_and_rarer_in_names() -> None:
    text, name = "population " * 300, "Madagascar " * 300
    parts = pieces(text + name, [name])
    wrong = typing_errors(parts, random.Random(1), 0.6)
    changed = [
        sum(word != right for word, right in zip(part.text.split(), before.text.split(), strict=True))
        for part, before in zip(wrong, parts, strict=True)
    ]
    assert 0 < 2 * changed[1] < changed[0]
    assert {abs(len(word) - len("population")) for word in wrong[0].text.split()} <= {0, 1}


def test_the_thesaurus_knows_labels_in_any_case() -> None:
    entry = thesaurus().relation("Place of Birth")
    assert entry is not None and "birthplace" in entry.nouns
    assert thesaurus().relation("has genre") is thesaurus().relation("Genre")
    assert thesaurus().relation("no such relation") is None
    assert "movie" in thesaurus().type("Film")
