"""Containment, equality and sets: hand-computed cases, best, worst and boundary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.metrics.text import (
    TEXT_METRICS,
    Gold,
    contains,
    contains_substring,
    exact,
    f1,
    hit_rra,
    hit_rra_substring,
)

PARIS = Gold([("Paris", "City of Light")])


@pytest.mark.parametrize("metric", TEXT_METRICS.values(), ids=TEXT_METRICS)
def test_best_and_worst(metric) -> None:
    assert metric(PARIS, "Paris") == 1.0
    assert metric(PARIS, "London") == 0.0
    assert metric(PARIS, "") == 0.0


@pytest.mark.parametrize("metric", TEXT_METRICS.values(), ids=TEXT_METRICS)
@pytest.mark.parametrize("gold", [[], [()], [("",)], [("…", "the")]])
def test_empty_names_never_match(metric, gold) -> None:
    for output in ("", "the", "…", "Paris"):
        assert metric(Gold(gold), output) == 0.0


@pytest.mark.parametrize(("name", "output"), [("4", "There are 14."), ("no", "Norway"), ("no", "I don't know")])
def test_the_two_containment_readings_differ_inside_words_and_numbers(name: str, output: str) -> None:
    gold = Gold([(name,)])
    assert contains(gold, output) == 0.0
    assert contains_substring(gold, output) == 1.0
    assert hit_rra(gold, output) == 0.0
    assert hit_rra_substring(gold, output) == 1.0


def test_a_number_is_not_contained_in_its_decimals_or_its_negative() -> None:
    assert contains(Gold([("3",)]), "3.14") == 0.0
    assert contains(Gold([("5",)]), "It is -5.") == 0.0
    assert contains(Gold([("234",)]), "1,234 people") == 0.0


def test_contains_reads_aliases_and_rra_does_not() -> None:
    output = "It is the City of Light!"
    assert contains(PARIS, output) == 1.0
    assert hit_rra(PARIS, output) == hit_rra_substring(PARIS, output) == 0.0


def test_contains_normalises_and_rra_only_lowers() -> None:
    gold = Gold([("Guinea-Bissau",)])
    assert contains(gold, "guinea bissau") == 1.0
    assert hit_rra_substring(gold, "guinea bissau") == 0.0
    assert hit_rra(gold, "in GUINEA-BISSAU, surely") == 1.0


def test_any_of_several_gold_answers_suffices_for_containment() -> None:
    assert contains(Gold([("Oslo",), ("Bergen",)]), "I believe Bergen.") == 1.0


def test_chinese_is_contained_without_spaces() -> None:
    gold = Gold([("北京",)])
    assert contains(gold, "首都是北京市。") == contains_substring(gold, "首都是北京市。") == 1.0
    assert hit_rra(gold, "首都是北京市。") == 1.0
    assert contains(gold, "北方的京城") == 0.0


@pytest.mark.parametrize(
    ("name", "output"), [("1,234", "1234.0"), ("1234", "1,234"), ("1.0E6", "1000000"), ("Yes", "yes.")]
)
def test_exact_compares_numbers_by_value_and_ignores_form(name: str, output: str) -> None:
    assert exact(Gold([(name,)]), output) == 1.0


def test_exact_wants_nothing_else() -> None:
    assert exact(PARIS, "the city of light") == 1.0
    assert exact(PARIS, "Paris, France") == 0.0
    assert exact(Gold([("1234",)]), "1235") == 0.0


def test_exact_takes_a_list_of_all_answers_and_no_other_list() -> None:
    gold = Gold([("Austria", "AT"), ("Trinidad and Tobago",), ("Italy",)])
    assert exact(gold, "Italy, AT and Trinidad and Tobago") == 1.0
    assert exact(gold, "Italy") == 1.0
    assert exact(gold, "Italy, Austria") == 0.0
    assert exact(gold, "Italy, Austria, Trinidad and Tobago, Spain") == 0.0
    assert exact(Gold([("Paris",)]), "Paris, Paris") == 0.0


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
    gold = Gold([("Oslo", "Kristiania"), ("Bergen",)])
    assert f1(gold, output) == pytest.approx(expected)


def test_f1_takes_names_with_separators_whole() -> None:
    gold = Gold([("Trinidad and Tobago",), ("Washington, D.C.",), ("1,234",)])
    assert f1(gold, "Washington, D.C., 1,234 and Trinidad and Tobago") == 1.0
    assert f1(gold, "Trinidad and Tobago") == pytest.approx(0.5)
    assert f1(gold, "Trinidad, Tobago, D.C.") == 0.0


def test_f1_counts_gold_answers_of_one_name_once() -> None:
    assert f1(Gold([("Springfield",), ("Springfield",)]), "Springfield") == 1.0


def test_f1_gives_a_shared_alias_to_an_answer_not_yet_named() -> None:
    gold = Gold([("Congo-Brazzaville", "Congo"), ("Congo-Kinshasa", "Congo")])
    assert f1(gold, "Congo-Brazzaville, Congo") == 1.0


NAMES = st.sampled_from(["Paris", "no", "4", "1,234", "New York", "北京", "Trinidad and Tobago", "a", "…"])


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=2), max_size=3),
    st.lists(NAMES, max_size=4),
    st.sampled_from([" ", ", ", ""]),
)
def test_stricter_metrics_imply_looser_ones(answers: list[list[str]], words: list[str], glue: str) -> None:
    gold, output = Gold(answers), glue.join(words)
    values = {name: metric(gold, output) for name, metric in TEXT_METRICS.items()}
    assert all(0 <= value <= 1 for value in values.values())
    assert values["exact"] <= values["contains"] <= values["contains_substring"]
    assert values["hit_rra"] <= values["hit_rra_substring"]


@given(st.lists(NAMES, max_size=4, unique=True), st.lists(NAMES, max_size=4, unique=True))
def test_f1_of_single_names_is_symmetric(left: list[str], right: list[str]) -> None:
    plain = lambda names: [name for name in names if name not in ("a", "…", "Trinidad and Tobago")]  # noqa: E731
    left, right = plain(left), plain(right)
    forward = f1(Gold([(name,) for name in left]), "; ".join(right))
    backward = f1(Gold([(name,) for name in right]), "; ".join(left))
    assert forward == pytest.approx(backward)
