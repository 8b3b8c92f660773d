"""Passages have so many words, lose none, and never cross documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.passages.table import LONGEST_WORD, chunk


def test_a_passage_has_so_many_words_and_the_last_what_is_left() -> None:
    text = " ".join(f"w{number}" for number in range(250))
    assert [len(part.split()) for part in chunk(text, 100)] == [100, 100, 50]
    assert " ".join(chunk(text, 100)) == text


def test_chinese_is_counted_by_two_characters_to_a_word() -> None:
    text = "北京是中华人民共和国的首都，也是全国的政治中心。" * 20
    parts = chunk(text, 50)
    assert "".join(parts) == text
    sizes = [sum("\u3400" <= sign <= "\u9fff" for sign in part) for part in parts]
    assert set(sizes[:-1]) == {100} and 0 < sizes[-1] <= 100


def test_signs_stay_with_their_character() -> None:
    parts = chunk("他说：「北京很大。」我同意！", 1)
    assert parts == ["他说：", "「北京", "很大。」", "我同", "意！"]


def test_marks_of_thai_stay_with_their_letter() -> None:
    text = "ที่นี่" * 30
    assert "".join(chunk(text, 10)) == text
    assert all(part[0] not in "\u0e31\u0e34\u0e35\u0e48\u0e49" for part in chunk(text, 10))


def test_mixed_text_counts_both() -> None:
    assert chunk("北京 Beijing 大学 is old", 2) == ["北京 Beijing", "大学 is", "old"]


def test_what_is_no_word_is_cut() -> None:
    parts = chunk("A" * (LONGEST_WORD * 250), 100)
    assert [len(part) for part in parts] == [LONGEST_WORD * 100, LONGEST_WORD * 100, LONGEST_WORD * 50]


@given(st.text(max_size=400).map(lambda text: " ".join(text.split())), st.integers(min_value=1, max_value=20))
def test_nothing_is_lost_or_repeated(text: str, words: int) -> None:
    parts = chunk(text, words)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part.strip() == part and part for part in parts)
