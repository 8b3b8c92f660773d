"""Typing errors are forgiven where the words are nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kgqa_core.linking.fold import fold
from kgqa_core.linking.typos import nearest
from tests.unit.linking.conftest import Maker, named

CITIES = {
    "g": named("Gothenburg"),
    "l": named("Liverpool"),
    "h": named("杭州奥体中心游泳馆"),
    "c": named("Capital City"),
}


def distance(one: str, other: str) -> int:
    """Restricted Damerau-Levenshtein distance, by the book."""
    table = np.zeros((len(one) + 1, len(other) + 1), dtype=int)
    table[:, 0], table[0, :] = range(len(one) + 1), range(len(other) + 1)
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return int(table[-1, -1])


@pytest.mark.parametrize("text", ["Gothenbrug", "Gothenburgg", "Gothnburg", "Gotxenburg", "GOTHENBORG"])
def test_one_error_is_forgiven_unless_switched_off(tagger: Maker, text: str) -> None:
    linker = tagger(CITIES, typos=1)
    [(entity, rho)] = linker.select(linker.link(f"Where is {text}?"))
    assert entity == 0
    exact = linker.select(linker.link("Where is Gothenburg?"))[0][1]
    assert rho <= exact
    strict = tagger(CITIES, typos=0)
    assert strict.select(strict.link(f"Where is {text}?")) == []


def test_a_wrong_character_in_text_without_spaces_is_forgiven(tagger: Maker) -> None:
    linker = tagger(CITIES, typos=1)
    assert [entity for entity, _ in linker.select(linker.link("杭州澳体中心游泳馆在哪里"))] == [2]


def test_a_short_name_begins_as_it_is_typed(tagger: Maker) -> None:
    linker = tagger({"a": named("Akanda"), "o": named("Oslo City")}, typos=1)
    assert [entity for entity, _ in linker.select(linker.link("how many people live in Akandda?"))] == [0]
    assert [entity for entity, _ in linker.select(linker.link("how many people live in Kaanda?"))] == [0]
    assert linker.select(linker.link("how many people live in Wakanda?")) == []


def test_two_errors_need_a_long_name(tagger: Maker) -> None:
    linker = tagger(CITIES, typos=2)
    assert [entity for entity, _ in linker.select(linker.link("Where is Gotenbrug?"))] == [0]
    assert linker.select(linker.link("Where is Livrpol?")) == []


def test_a_word_that_is_longer_than_any_name_is_left_alone(tagger: Maker) -> None:
    """The table of distances of a word of a million letters would take terabytes."""
    linker = tagger(CITIES, typos=2)
    assert linker.select(linker.link("h" * 100_000)) == []
    assert [entity for entity, _ in linker.select(linker.link(f"Is {'h' * 99_000} in Gothenburgg?"))] == [0]


def test_usual_words_are_not_corrected(tagger: Maker) -> None:
    linker = tagger({"a": named("Hause"), "b": named("Wörld")}, typos=1)
    assert linker.link("Whose house is it in the word?") == []


def test_the_search_finds_what_the_definition_finds(tagger: Maker) -> None:
    rng = random.Random(5)
    forms = sorted({fold("".join(rng.choice("abcé国") for _ in range(rng.randint(3, 8)))) for _ in range(150)} - {""})
    linker = tagger({f"k{n}": named(form) for n, form in enumerate(forms)})
    for _ in range(30):
        wanted = fold("".join(rng.choice("abcé国") for _ in range(rng.randint(4, 8))))
        found = {(linker.mentions.names[name], errors) for name, errors in nearest(wanted, linker.mentions, 2)}
        table = {form: distance(form, wanted) for form in forms}
        reach = {form: errors for form, errors in table.items() if errors < 2 or (errors == 2 and form[0] == wanted[0])}
        least = min(reach.values(), default=0)
        expected = {(form, least) for form, errors in reach.items() if errors == least} if least else set()
        assert found == expected
