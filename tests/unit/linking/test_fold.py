"""Names and texts are folded alike, and every folded atom knows where it came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.linking import kernels
from kgqa_core.linking.fold import fold, fold_text, is_unspaced, keys


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("São Tomé & Príncipe", "sao tome and principe"),
        ("ＡＢＣ　１２３", "abc 123"),
        ("Guinea-Bissau", "guinea bissau"),
        ("O’Brien", "o brien"),
        ("J. K. Rowling", "jk rowling"),
        ("J.K. Rowling", "jk rowling"),
        ("John F. Kennedy", "john f kennedy"),
        ("U.S. Army", "us army"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("Ёлка", "елка"),
        ("C++", "c++"),
        ("cafe\u0301", "cafe"),
        ("ab\u200dcd\u00ad", "abcd"),
        ("ﬁnal", "final"),
        ("第19届 亚运会", "第19届亚运会"),
        ("《梦三国２》", "梦三国2"),
        ("ｶﾞﾝﾀﾞﾑ", "ガンダム"),
        ("ガンダム", "ガンダム"),
        ("0:㈠", "0一"),
        ("한국 은행", "한국 은행"),
        ("हिन्दी", "हिन्दी"),
        ("القُرآن", "القران"),
        ("!!!", ""),
        ("", ""),
    ],
)
def test_a_name_is_folded_for_case_width_accents_and_punctuation(name: str, folded: str) -> None:
    assert fold(name) == folded


def test_voicing_marks_of_kana_and_vowels_of_thai_are_no_accents() -> None:
    assert fold("か") != fold("が")
    assert fold("กา") != fold("ก")


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing_and_the_text_of_a_name_is_the_name(name: str) -> None:
    folded = fold(name)
    assert fold(folded) == folded
    assert fold_text(name).data.tobytes().decode("utf-8", "surrogatepass") == folded


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_atoms_lie_in_order_and_cover_letters_of_the_text(text: str) -> None:
    folded = fold_text(text)
    stretches = list(zip(folded.first.tolist(), folded.last.tolist(), strict=True))
    assert all(0 <= first < last <= len(text) for first, last in stretches)
    assert all(
        before[1] <= after[0] or before == after for before, after in zip(stretches, stretches[1:], strict=False)
    )
    plain = [place for place, sign in enumerate(text) if sign.isascii() and sign.isalnum()]
    assert all(any(first <= place < last for first, last in stretches) for place in plain)


def test_the_ascii_short_cut_folds_as_the_long_way_does() -> None:
    for name in ("Route 66/A", "a_b (c)", " x  y ", 'The "Wall"!', "semi;colon", "1,234"):
        assert fold(name) == fold(name + "\u200b")


def test_a_name_is_also_found_without_its_apostrophe_bracket_or_article() -> None:
    assert keys("O'Brien") == [("o brien", True), ("obrien", False)]
    assert keys("Mercury (planet)") == [("mercury planet", True), ("mercury", False)]
    assert keys("The Beatles") == [("the beatles", True), ("beatles", False)]
    assert keys("第一站（杭州）") == [("第一站杭州", True), ("第一站", False)]
    assert keys("(planet)") == [("planet", True)]
    assert keys("?") == []
    assert keys("x" * 500) == []


def test_the_compiled_script_test_is_the_one_of_the_fold() -> None:
    for code in [*range(0x20, 0x3400), *range(0x4DB0, 0x4E10), *range(0x9FF0, 0xA010), 0xF8FF, 0xF900, 0xFB00, 0x20000]:
        assert kernels._unspaced(code) == is_unspaced(chr(code)), hex(code)
