"""What a question word wants, and what nouns are."""

import pytest

from kgqa_core.datasets.answer_sorts import is_person, other_nouns, sort_of_noun, wanted_sort


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("who wrote x", "person"),
        ("hey, who's the director of x?", "person"),
        ("tell me who x is married to", "person"),
        ("films of the man who wrote x", ""),
        ("when did x open", "date"),
        ("in what year was x released", "date"),
        ("please, where is x", "place"),
        ("the year when x opened", ""),
        ("what is the capital of x", ""),
        ("x 的导演是谁", "person"),
        ("x 什么时候上映", "date"),
    ],
)
def test_first_question_word_says_what_is_wanted(text: str, sort: str) -> None:
    assert wanted_sort(text) == sort


def test_earlier_of_two_question_words_counts() -> None:
    assert wanted_sort("who knows, when did x open") == "person"
    assert wanted_sort("when did x open, and who built it") == "date"


@pytest.mark.parametrize(
    ("noun", "sort"),
    [
        ("chess player", "person"),
        ("screenwriter", "person"),
        ("spouse", "person"),
        ("capital city", "place"),
        ("date of birth", "date"),
        ("release year", "date"),
        ("number of inhabitants", "number"),
        ("film", ""),
        ("qwzx", ""),
    ],
)
def test_noun_has_a_sort_where_english_says_so(noun: str, sort: str) -> None:
    assert sort_of_noun(noun) == sort
    assert is_person(noun) <= (sort == "person")


def test_other_nouns_are_of_a_type_or_of_a_relation() -> None:
    assert {"film", "movie"} <= set(other_nouns("Film"))
    assert {"writer", "author", "screenwriter"} & set(other_nouns("writer")) >= {"writer", "author"}
    assert other_nouns("qwzx") == ("qwzx",)
