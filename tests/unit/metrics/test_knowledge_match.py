"""KM, rKM and eKM: hand-computed cases, their order, and that KM is containment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.metrics.knowledge_match import KNOWLEDGE_METRICS, ekm, km, knowledge_match, rkm
from kgqa_core.metrics.text import Gold, contains

CAST = Gold([("Ann Lee",), ("Bo Chen", "陈波"), ("Cy Young", "C. Young")])


def test_any_share_and_all_by_hand() -> None:
    assert knowledge_match(CAST, "Ann Lee and 陈波 played in it.") == {"km": 1.0, "rkm": 2 / 3, "ekm": 0.0}
    assert knowledge_match(CAST, "ann lee; Bo Chen; c young!") == {"km": 1.0, "rkm": 1.0, "ekm": 1.0}
    assert knowledge_match(CAST, "Nobody that I know.") == {"km": 0.0, "rkm": 0.0, "ekm": 0.0}


@pytest.mark.parametrize("metric", KNOWLEDGE_METRICS.values(), ids=KNOWLEDGE_METRICS)
def test_best_and_worst(metric) -> None:
    gold = Gold([("Paris", "City of Light")])
    assert metric(gold, "It is the City of Light.") == 1.0
    assert metric(gold, "London") == metric(gold, "") == 0.0


@pytest.mark.parametrize("metric", KNOWLEDGE_METRICS.values(), ids=KNOWLEDGE_METRICS)
@pytest.mark.parametrize("gold", [[], [()], [("",)], [("…", "the")]])
def test_empty_names_never_match(metric, gold) -> None:
    for output in ("", "the", "…", "Paris"):
        assert metric(Gold(gold), output) == 0.0


def test_an_answer_that_is_part_of_a_word_or_number_is_not_named() -> None:
    gold = Gold([("4",), ("Nor",)])
    assert rkm(gold, "14 Norwegians") == 0.0
    assert rkm(gold, "4 Norwegians") == 0.5


def test_answers_of_the_same_first_name_count_once_and_a_shared_alias_names_both() -> None:
    twins = Gold([("Springfield", "Springfield, Ohio"), ("Springfield", "Springfield, Texas"), ("Dayton",)])
    assert rkm(twins, "Springfield") == 0.5
    shared = Gold([("Georgia (state)", "Georgia"), ("Georgia (country)", "Georgia")])
    assert ekm(shared, "It is Georgia.") == 1.0


WORDS = st.sampled_from(["Oslo", "Rome", "New York", "York", "北京", "12", "the", "…", ""])
GOLD = st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=4)


@given(GOLD, st.lists(WORDS, max_size=6).map(" ".join))
def test_km_is_at_least_rkm_and_rkm_at_least_ekm(answers: list[list[str]], output: str) -> None:
    gold = Gold(answers)
    assert 1 >= km(gold, output) >= rkm(gold, output) >= ekm(gold, output) >= 0
    assert km(gold, output) == contains(gold, output)
    assert (rkm(gold, output) == 1) == (ekm(gold, output) == 1)


@given(GOLD, st.permutations(range(4)), st.lists(WORDS, max_size=6).map(" ".join))
def test_the_order_of_the_answers_does_not_matter(answers, order, output: str) -> None:
    turned = [answers[place] for place in order if place < len(answers)]
    assert knowledge_match(Gold(answers), output) == knowledge_match(Gold(turned), output)
