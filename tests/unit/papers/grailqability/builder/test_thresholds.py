"""Thresholds believe what was right on dev, and what is below them is NK."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from kgqa_core.papers.grailqability.builder.evaluate import (
    Doubted,
    Thresholds,
    Tried,
    decide,
    nothing_share,
    tune,
    tune_nothing,
)
from kgqa_core.papers.grailqability.metrics import Predicted
from kgqa_core.papers.grailqability.parsing.parsed_forms import ParsedForm

BEST = ParsedForm("q", 0, "(JOIN r e)", math.log(0.8), rho=0.5, answers=("a",))
NEXT = ParsedForm("q", 1, "(JOIN s e)", math.log(0.2), rho=0.9, answers=("b",))
NONE = ParsedForm("q", 0, None, math.log(0.9))


def test_only_the_first_form_counts_and_below_a_threshold_it_is_nk() -> None:
    believed = Predicted("(JOIN r e)", frozenset({"a"}))
    assert decide([BEST, NEXT]) == decide([BEST, NEXT], Thresholds(0.5, 0.79)) == believed
    assert decide([BEST, NEXT], Thresholds(0.51, 0.0)) == decide([BEST], Thresholds(0.0, 0.81)) == Predicted()
    assert decide([NONE]) == decide([NONE], Thresholds()) == Predicted()


def test_no_form_at_all_is_no_prediction_and_nk_where_there_are_thresholds() -> None:
    assert decide([]) is None
    assert decide([], Thresholds()) == Predicted()


def value(tried: list[Tried], thresholds: Thresholds) -> float:
    return sum(
        one.believed if one.rho >= thresholds.entity and one.probability >= thresholds.form else one.dropped
        for one in tried
    )


def test_tuning_by_hand() -> None:
    # right when sure of entity and form; wrong, and NK, where either is low
    tried = [
        Tried(0.9, 0.9, 1, 0), Tried(0.8, 0.7, 1, 0), Tried(0.2, 0.95, 0, 1), Tried(0.9, 0.3, 0, 1),
        Tried(0.7, 0.6, 0, 0),
    ]  # fmt: skip
    found = tune(tried)
    assert value(tried, found) == 4
    assert found == Thresholds(pytest.approx(0.45), pytest.approx(0.45))


def test_where_everything_is_right_everything_is_believed_and_where_nothing_is_nothing() -> None:
    assert tune([Tried(0.3, 0.4, 1, 0), Tried(0.1, 0.2, 1, 0)]) == Thresholds()
    assert tune([]) == Thresholds()
    none = tune([Tried(1.0, 1.0, 0, 1), Tried(1.0, 0.5, 0, 1)])
    assert none.form > 1.0


@pytest.mark.parametrize("seed", range(8))
def test_no_other_thresholds_are_better(seed: int) -> None:
    draw = random.Random(seed)
    tried = [
        Tried(draw.choice((0.1, 0.4, 0.4, 0.8)), round(draw.random(), 1), *draw.choice([(1, 0), (0, 1), (0, 0)]))
        for _ in range(60)
    ]
    found = value(tried, tune(tried))
    grid = [number / 20 - 0.01 for number in range(22)]
    assert found == max(value(tried, Thresholds(*pair)) for pair in itertools.product(grid, grid))


def form(text: str | None, score: float) -> ParsedForm:
    return ParsedForm("q", 0, text, score, answers=() if text is None else ("a",))


def test_no_form_is_believed_from_its_probability_on() -> None:
    rows = [form(None, math.log(0.6)), form("(A)", math.log(0.3)), form("(B)", math.log(0.1))]
    assert nothing_share(rows) == pytest.approx(0.6)
    believed = decide(rows, Thresholds(nothing=0.7))
    assert believed is not None and believed.form == "(A)" and believed.answers == {"a"}
    dropped = decide(rows, Thresholds(nothing=0.5))
    assert dropped is not None and dropped.form is None
    assert decide([], Thresholds(nothing=0.5)) == decide([form(None, -1.0)], Thresholds(nothing=0.9))


def test_the_threshold_on_no_form_keeps_what_can_be_answered() -> None:
    answerable = [Doubted(n / 1000, 1.0, 0.0, True) for n in range(400)]
    lost = [Doubted(0.1 + n / 1000, 0.0, 1.0, False) for n in range(500)]
    cut = tune_nothing([*answerable, *lost], 0.8)
    kept = sum(one.nothing < cut for one in answerable) / 400
    half = 1.96 * math.sqrt(kept * (1 - kept) / 400)
    assert 0.8 <= kept - half < 0.803, "no more is kept than the interval asks for"
    assert tune_nothing([*answerable, *lost], 0.5) < cut
    assert tune_nothing([*answerable, *lost], 1.0) > 0.398, "no answerable question may lose its form"
    assert tune_nothing([Doubted(0.5, 0.0, 0.0, True), *lost], 0.8) > 0.59, "out of reach: nothing is dropped in vain"
