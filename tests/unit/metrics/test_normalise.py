"""Text as the metrics compare it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.metrics.normalise import join, normalise, tokens
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Lord of the Rings!", "lord of rings"),
        ("  An apple, a day. ", "apple day"),
        ("O'Brien’s", "obriens"),
        ("U.S.A.", "usa"),
        ("Guinea-Bissau", "guinea bissau"),
        ("1.Paris", "1 paris"),
        ("Theatre", "theatre"),
        ("ＡＢＣ", "abc"),
        ("Cafe\u0301", "café"),
        ("$5", "5"),
        ("?!…", ""),
        ("The", ""),
        ("", ""),
    ],
)
def test_case_punctuation_articles_and_spaces_go(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize("text", ["1,234", "1234", "1234.0", "1,234.00", "1.234e3", "１，２３４", "+1234"])
def test_a_number_has_one_form(text: str) -> None:
    assert tokens(text) == ("1234",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.14", ("3.14",)),
        ("-5", ("-5",)),
        ("−5", ("-5",)),
        ("1990-1995", ("1990", "1995")),
        ("2,5", ("2", "5")),
        (".5", ("0.5",)),
        ("-.5", ("-0.5",)),
        ("v1.2", ("v1", "2")),
        ("007", ("007",)),
        ("-0", ("0",)),
        ("it is 12.", ("it", "is", "12")),
        ("2019-05-03", ("2019", "05", "03")),
    ],
)
def test_sign_and_decimal_point_belong_to_their_number(text: str, expected: tuple[str, ...]) -> None:
    assert tokens(text) == expected


def test_chinese_characters_are_tokens_and_punctuation_goes_by_category() -> None:
    assert tokens("《马丁·路德》，1483年！") == ("马", "丁", "路", "德", "1483", "年")
    assert normalise("马丁·路德") == normalise("马丁路德") == "马丁路德"


def test_numbers_keep_their_form_in_chinese_text() -> None:
    assert tokens("身高1.85米") == ("身", "高", "1.85", "米")
    assert tokens("人口1,234.0万") == ("人", "口", "1234", "万")
    assert tokens("1990年-1995年") == ("1990", "年", "1995", "年")


def test_an_article_inside_chinese_text_is_a_letter() -> None:
    assert tokens("A座") == ("a", "座")


def test_korean_keeps_its_spaces() -> None:
    assert tokens("대한 민국") == ("대한", "민국")


@examples(500)
@given(st.text(alphabet=st.sampled_from("aTh 北1,.-'+§$0京"), max_size=20))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.lists(st.sampled_from(["paris", "4", "北", "京", "new", "york"]), max_size=8), st.data())
def test_a_run_of_tokens_is_a_substring_of_the_whole(words: list[str], data: st.DataObject) -> None:
    low = data.draw(st.integers(0, len(words)))
    high = data.draw(st.integers(low, len(words)))
    assert join(tuple(words[low:high])) in join(tuple(words))
