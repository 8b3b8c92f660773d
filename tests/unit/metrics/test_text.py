"""Outputs against gold answers: containment, equality, sets of names, knowledge match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.metrics.registry import METRICS, measure, metric_names
from kgqa_core.metrics.text import (
    GoldAnswers,
    contains,
    contains_substring,
    ekm,
    exact,
    f1,
    first_hit,
    hit_rra,
    hit_rra_substring,
    km,
    rkm,
)

OUTPUT = [METRICS[name].functions["output"] for name in metric_names("output")]
LONG_TAIL = [METRICS[name].functions["long_tail"] for name in metric_names("long_tail")]

PARIS = GoldAnswers([("Paris", "City of Light")])


@pytest.mark.parametrize("metric", OUTPUT)
def test_best_and_worst(metric) -> None:
    assert metric(PARIS, "Paris") == 1.0
    assert metric(PARIS, "London") == 0.0
    assert metric(PARIS, "") == 0.0


@pytest.mark.parametrize("metric", [*OUTPUT, *LONG_TAIL])
@pytest.mark.parametrize("gold", [[], [()], [("",)], [("…", "the")]])
def test_empty_names_never_match(metric, gold) -> None:
    for output in ("", "the", "…", "Paris"):
        assert metric(GoldAnswers(gold), output) == 0.0


@pytest.mark.parametrize(("name", "output"), [("4", "There are 14."), ("no", "Norway"), ("no", "I don't know")])
def test_the_two_containment_readings_differ_inside_words_and_numbers(name: str, output: str) -> None:
    gold = GoldAnswers([(name,)])
    assert contains(gold, output) == 0.0
    assert contains_substring(gold, output) == 1.0
    assert hit_rra(gold, output) == 0.0
    assert hit_rra_substring(gold, output) == 1.0


def test_a_number_is_not_contained_in_its_decimals_or_its_negative() -> None:
    assert contains(GoldAnswers([("3",)]), "3.14") == 0.0
    assert contains(GoldAnswers([("5",)]), "It is -5.") == 0.0
    assert contains(GoldAnswers([("234",)]), "1,234 people") == 0.0


def test_contains_reads_aliases_and_rra_does_not() -> None:
    output = "It is the City of Light!"
    assert contains(PARIS, output) == 1.0
    assert hit_rra(PARIS, output) == hit_rra_substring(PARIS, output) == 0.0


def test_contains_normalises_and_rra_only_lowers() -> None:
    gold = GoldAnswers([("Guinea-Bissau",)])
    assert contains(gold, "guinea bissau") == 1.0
    assert hit_rra_substring(gold, "guinea bissau") == 0.0
    assert hit_rra(gold, "in GUINEA-BISSAU, surely") == 1.0


def test_any_of_several_gold_answers_suffices_for_containment() -> None:
    assert contains(GoldAnswers([("Oslo",), ("Bergen",)]), "I believe Bergen.") == 1.0


def test_chinese_is_contained_without_spaces() -> None:
    gold = GoldAnswers([("北京",)])
    assert contains(gold, "首都是北京市。") == contains_substring(gold, "首都是北京市。") == 1.0
    assert hit_rra(gold, "首都是北京市。") == 1.0
    assert contains(gold, "北方的京城") == 0.0


@pytest.mark.parametrize(
    ("name", "output"), [("1,234", "1234.0"), ("1234", "1,234"), ("1.0E6", "1000000"), ("Yes", "yes.")]
)
def test_exact_compares_numbers_by_value_and_ignores_form(name: str, output: str) -> None:
    assert exact(GoldAnswers([(name,)]), output) == 1.0


def test_exact_wants_nothing_else() -> None:
    assert exact(PARIS, "the city of light") == 1.0
    assert exact(PARIS, "Paris, France") == 0.0
    assert exact(GoldAnswers([("1234",)]), "1235") == 0.0


def test_exact_takes_a_list_of_all_answers_and_no_other_list() -> None:
    gold = GoldAnswers([("Austria", "AT"), ("Trinidad and Tobago",), ("Italy",)])
    assert exact(gold, "Italy, AT and Trinidad and Tobago") == 1.0
    assert exact(gold, "Italy") == 1.0
    assert exact(gold, "Italy, Austria") == 0.0
    assert exact(gold, "Italy, Austria, Trinidad and Tobago, Spain") == 0.0
    assert exact(GoldAnswers([("Paris",)]), "Paris, Paris") == 0.0


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Oslo, Bergen", 1.0),
        ("Bergen and Oslo", 1.0),
        ("Bergen;Oslo", 1.0),
        ("Oslo\nBergen", 1.0),
        ("Oslo", 2 / 3),  # P 1, R 1/2
        ("Oslo, oslo", 2 / 3),  # a set
        ("Oslo, Kristiania", 2 / 3),  # an alias of the same answer
        ("Oslo, Paris", 1 / 2),  # P 1/2, R 1/2
        ("Oslo, Bergen, Paris, Rome", 2 / 3),  # P 1/2, R 1
        ("Paris", 0.0),
    ],
)
def test_f1_by_hand(output: str, expected: float) -> None:
    gold = GoldAnswers([("Oslo", "Kristiania"), ("Bergen",)])
    assert f1(gold, output) == pytest.approx(expected)


def test_f1_takes_names_with_separators_whole() -> None:
    gold = GoldAnswers([("Trinidad and Tobago",), ("Washington, D.C.",), ("1,234",)])
    assert f1(gold, "Washington, D.C., 1,234 and Trinidad and Tobago") == 1.0
    assert f1(gold, "Trinidad and Tobago") == pytest.approx(0.5)
    assert f1(gold, "Trinidad, Tobago, D.C.") == 0.0


def test_f1_counts_gold_answers_of_one_name_once() -> None:
    assert f1(GoldAnswers([("Springfield",), ("Springfield",)]), "Springfield") == 1.0


def test_f1_gives_a_shared_alias_to_an_answer_not_yet_named() -> None:
    gold = GoldAnswers([("Congo-Brazzaville", "Congo"), ("Congo-Kinshasa", "Congo")])
    assert f1(gold, "Congo-Brazzaville, Congo") == 1.0


NAMES = st.sampled_from(["Paris", "no", "4", "1,234", "New York", "北京", "Trinidad and Tobago", "a", "…"])


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=2), max_size=3),
    st.lists(NAMES, max_size=4),
    st.sampled_from([" ", ", ", ""]),
)
def test_stricter_metrics_imply_looser_ones(answers: list[list[str]], words: list[str], glue: str) -> None:
    gold, output = GoldAnswers(answers), glue.join(words)
    values = measure("output", gold, output)
    assert all(0 <= value <= 1 for value in values.values())
    assert values["exact"] <= values["contains"] <= values["contains_substring"]
    assert values["hit_rra"] <= values["hit_rra_substring"]
    assert values["exact"] <= values["hits_at_1"] <= values["contains"]


@pytest.mark.parametrize(
    ("output", "hit"),
    [
        ("Oslo", 1.0),
        ("oslo, Rome", 1.0),
        ("Rome, Oslo", 0.0),
        ("Trinidad and Tobago, Rome", 1.0),
        ("Trinidad", 0.0),
        ("It is Oslo.", 0.0),
        ("", 0.0),
    ],
)
def test_only_the_first_answer_that_is_listed_is_a_first_hit(output: str, hit: float) -> None:
    assert first_hit(GoldAnswers([("Oslo", "Christiania"), ("Trinidad and Tobago",)]), output) == hit
    assert first_hit(GoldAnswers([]), output) == 0.0


@given(st.lists(NAMES, max_size=4, unique=True), st.lists(NAMES, max_size=4, unique=True))
def test_f1_of_single_names_is_symmetric(left: list[str], right: list[str]) -> None:
    plain = lambda names: [name for name in names if name not in ("a", "…", "Trinidad and Tobago")]  # noqa: E731
    left, right = plain(left), plain(right)
    forward = f1(GoldAnswers([(name,) for name in left]), "; ".join(right))
    backward = f1(GoldAnswers([(name,) for name in right]), "; ".join(left))
    assert forward == pytest.approx(backward)


CAST = GoldAnswers([("Ann Lee",), ("Bo Chen", "陈波"), ("Cy Young", "C. Young")])


def test_any_share_and_all_by_hand() -> None:
    assert measure("long_tail", CAST, "Ann Lee and 陈波 played in it.") == {"km": 1.0, "rkm": 2 / 3, "ekm": 0.0}
    assert measure("long_tail", CAST, "ann lee; Bo Chen; c young!") == {"km": 1.0, "rkm": 1.0, "ekm": 1.0}
    assert measure("long_tail", CAST, "Nobody that I know.") == {"km": 0.0, "rkm": 0.0, "ekm": 0.0}


@pytest.mark.parametrize("metric", LONG_TAIL)
def test_best_and_worst_of_knowledge_match(metric) -> None:
    gold = GoldAnswers([("Paris", "City of Light")])
    assert metric(gold, "It is the City of Light.") == 1.0
    assert metric(gold, "London") == metric(gold, "") == 0.0


def test_an_answer_that_is_part_of_a_word_or_number_is_not_named() -> None:
    gold = GoldAnswers([("4",), ("Nor",)])
    assert rkm(gold, "14 Norwegians") == 0.0
    assert rkm(gold, "4 Norwegians") == 0.5


def test_answers_of_the_same_first_name_count_once_and_a_shared_alias_names_both() -> None:
    twins = GoldAnswers([("Springfield", "Springfield, Ohio"), ("Springfield", "Springfield, Texas"), ("Dayton",)])
    assert rkm(twins, "Springfield") == 0.5
    shared = GoldAnswers([("Georgia (state)", "Georgia"), ("Georgia (country)", "Georgia")])
    assert ekm(shared, "It is Georgia.") == 1.0


WORDS = st.sampled_from(["Oslo", "Rome", "New York", "York", "北京", "12", "the", "…", ""])
GOLD = st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=4)


@given(GOLD, st.lists(WORDS, max_size=6).map(" ".join))
def test_km_is_at_least_rkm_and_rkm_at_least_ekm(answers: list[list[str]], output: str) -> None:
    gold = GoldAnswers(answers)
    assert 1 >= km(gold, output) >= rkm(gold, output) >= ekm(gold, output) >= 0
    assert km(gold, output) == contains(gold, output)
    assert (rkm(gold, output) == 1) == (ekm(gold, output) == 1)


@given(GOLD, st.permutations(range(4)), st.lists(WORDS, max_size=6).map(" ".join))
def test_the_order_of_the_answers_does_not_matter(answers, order, output: str) -> None:
    turned = [answers[place] for place in order if place < len(answers)]
    assert measure("long_tail", GoldAnswers(answers), output) == measure("long_tail", GoldAnswers(turned), output)
