"""Entities are found in a question by their own labels, in their own case, the longest first."""

from __future__ import annotations

from kgqa_core.system import _longest, _mentions

INDEX = {
    "new york": [1],
    "york": [2],
    "york city": [3],
    "paris": [4, 5],
    "of": [6],
    "杭州": [7],
    "杭州市": [8],
    "it": [9],
}


def found(text: str) -> list[int]:
    return _longest(_mentions(text, INDEX))


def test_longest_mention_wins_and_hides_what_it_overlaps() -> None:
    assert found("Where is New York?") == [1]
    assert found("Is York far?") == [2]


def test_ambiguous_label_is_not_taken() -> None:
    assert found("What about Paris?") == []


def test_mentions_start_and_end_at_word_boundaries() -> None:
    assert found("Yorkshire and proofs") == []
    assert found("is it (York)?") == [9, 2]


def test_text_without_spaces_is_read_by_character() -> None:
    assert found("杭州市的区有哪些") == [8]
    assert found("去杭州吧") == [7]


def test_mentions_come_in_order_of_the_text() -> None:
    assert found("杭州 or New York, of course") == [7, 1, 6]
