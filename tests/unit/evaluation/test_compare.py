"""Helpful and Harmful on questions that can be counted on the fingers."""

from __future__ import annotations

import random

import pytest

from kgqa_core.evaluation.experiment_tables import baselines, compare
from kgqa_core.types import Question

RECORDS = [
    Question(
        id=f"q{number}", text="?", split="test", hops=1 + number % 2, complexity=("generic", "multi-hop")[number % 2]
    )
    for number in range(8)
] + [Question(id="t0", text="?", split="train")]


def rows(bits: str) -> dict[str, dict[str, float]]:
    """Right or wrong for q0, q1, …; the exact metric is the other way round."""
    return {f"q{i}": {"hit_rra": float(bit == "1"), "exact": float(bit == "0")} for i, bit in enumerate(bits)}


NONE, TRIPLES, TOLD = "none/none/m", "rigel/triples/m", "rigel/rewritten/m"
SCORED = {NONE: rows("00000011"), TRIPLES: rows("00011100"), TOLD: rows("01111110"), "rigel/-/-": {"q0": {"x": 1.0}}}


def found(experiment: str, baseline: str, metric: str = "hit_rra") -> dict:
    return next(
        row
        for row in compare(SCORED, RECORDS)
        if (row["experiment"], row["baseline"], row["metric"]) == (experiment, baseline, metric)
    )


def test_fixed_and_broken_questions_are_counted() -> None:
    row = found(TOLD, NONE)
    # fixed: q1 to q5; broken: q7; q6 is right and q0 wrong with both
    assert (row["helpful"], row["harmful"], row["n"], row["split"]) == (5, 1, 8, "test")
    assert row["p"] == pytest.approx(2 * 7 / 64, abs=5e-4)
    row = found(TOLD, TRIPLES)
    assert (row["helpful"], row["harmful"], row["p"]) == (3, 0, 0.25)


def test_groups_add_up_to_the_whole() -> None:
    row = found(TOLD, NONE)
    assert row["by_hops"] == {
        "1": {"helpful": 2, "harmful": 0, "n": 4},  # q2, q4
        "2": {"helpful": 3, "harmful": 1, "n": 4},  # q1, q3, q5; q7
    }
    assert row["by_complexity"]["generic"] == row["by_hops"]["1"]
    assert row["by_complexity"]["generic+multi-hop"] == {"helpful": 5, "harmful": 1, "n": 8}


def test_each_metric_has_its_own_row_and_swapping_swaps() -> None:
    right, wrong = found(TOLD, NONE), found(TOLD, NONE, "exact")
    assert (wrong["helpful"], wrong["harmful"], wrong["p"]) == (right["harmful"], right["helpful"], right["p"])


def test_baselines_are_no_knowledge_and_every_retrievers_triples_of_the_same_answerer() -> None:
    names = [
        NONE,
        TRIPLES,
        TOLD,
        "kaping/triples/m",
        "kaping/template/m",
        "rigel/-/-",
        "none/none/n",
        "kaping/triples/n",
    ]
    assert baselines(TOLD, names) == ["kaping/triples/m", NONE, TRIPLES]
    assert baselines(TRIPLES, names) == ["kaping/triples/m", NONE]
    assert baselines(NONE, names) == baselines("rigel/-/-", names) == baselines("-/-/predictions", names) == []
    assert baselines("rigel/rewritten/hf:a/b", ["none/none/hf:a/b", "none/none/hf:a/c"]) == ["none/none/hf:a/b"]


def test_only_questions_that_both_were_asked_in_the_shown_split_are_compared() -> None:
    scored = {
        NONE: rows("0000") | {"t0": {"hit_rra": 0.0, "exact": 0.0}},
        TOLD: rows("111111") | {"t0": rows("1")["q0"]},
    }
    row = compare(scored, RECORDS)[0]
    assert (row["helpful"], row["n"], row["split"]) == (4, 4, "test")
    assert compare({NONE: rows("0"), TOLD: {}}, RECORDS) == []


def test_the_best_the_worst_and_the_equal() -> None:
    best = compare({NONE: rows("0" * 8), TOLD: rows("1" * 8)}, RECORDS)[0]
    worst = compare({NONE: rows("1" * 8), TOLD: rows("0" * 8)}, RECORDS)[0]
    equal = compare({NONE: rows("01" * 4), TOLD: rows("01" * 4)}, RECORDS)[0]
    assert (best["helpful"], best["harmful"], best["p"]) == (8, 0, 0.00781)
    assert (worst["helpful"], worst["harmful"], worst["p"]) == (0, 8, 0.00781)
    assert (equal["helpful"], equal["harmful"], equal["p"]) == (0, 0, 1.0)


def test_the_difference_of_the_means_is_helpful_less_harmful() -> None:
    draw = random.Random(3)
    for _ in range(50):
        a, b = ("".join(draw.choice("01") for _ in range(8)) for _ in range(2))
        row = next(row for row in compare({NONE: rows(a), TOLD: rows(b)}, RECORDS) if row["metric"] == "hit_rra")
        assert row["helpful"] - row["harmful"] == b.count("1") - a.count("1")
