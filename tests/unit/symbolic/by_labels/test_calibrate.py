"""Confidence: candidates with one answer share their probability; what is fitted rises with how likely an answer is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kgqa_core.logic.forms import Entity
from kgqa_core.search.candidates import Candidate, LabelQuery
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration, Choice, answer_key, calibrate, choices, choose
from kgqa_core.symbolic.by_labels.parser import Prepared, Ranked, columns
from kgqa_core.symbolic.by_labels.scorer import FEATURES, LIKENESS
from kgqa_core.symbolic.by_labels.unread import Unread


def candidate(nodes: list[int] | None, value: int | bool | None = None, missing: bool = False) -> Candidate:
    own = None if nodes is None else np.array(nodes, dtype=np.int64)
    return Candidate(Entity("x"), 0, own, value, (), (), (), 1.0, 0.0, missing)


def ranked(scored: list[tuple[Candidate, float]], none: float) -> Ranked:
    """Candidates with their scores, best first."""
    features, blank = np.zeros((len(scored), FEATURES), dtype=np.float32), [""] * len(scored)
    prepared = Prepared("q", LabelQuery("?"), [one for one, _ in scored], blank, blank, features, None)  # type: ignore[arg-type]
    likeness = np.zeros((len(scored), LIKENESS), dtype=np.float32)
    return Ranked(prepared, list(range(len(scored))), [score for _, score in scored], none, likeness)


def test_candidates_with_one_answer_share_their_probability() -> None:
    two, other = (candidate([1, 2]), candidate([1, 2])), candidate([3])
    choice, second = choices(ranked([(other, 1.0), (two[0], 0.9), (two[1], 0.9)], none=0.0), 10)
    total = math.exp(1.0) + 2 * math.exp(0.9) + 1
    assert choice.best is two[0] and choice.place == 1
    assert choice.share == pytest.approx(2 * math.exp(0.9) / total)
    assert second.best is other and second.share == pytest.approx(math.exp(1.0) / total)
    assert choice.share + second.share + choice.none == pytest.approx(1.0)


def test_count_of_one_is_no_yes_and_no_set() -> None:
    keys = {answer_key(one) for one in (candidate(None, 1), candidate(None, True), candidate([1]), candidate([]))}
    assert len(keys) == 4
    assert answer_key(candidate(None, 1)) == answer_key(candidate(None, 1))


def test_equal_answers_are_tied_by_their_rank() -> None:
    first, second = candidate([1]), candidate([2])
    assert choose(ranked([(first, 1.0), (second, 1.0)], 0.0)).best is first


def test_question_without_candidates_has_no_answer() -> None:
    choice = choose(ranked([], 0.0))
    assert (choice.best, choice.share, choice.none, choice.empty) == (None, 0.0, 1.0, False)
    assert choice.inputs() == [0.0] * INPUTS
    assert Calibration((1.0,) * INPUTS, 5.0).confidence(choice) == 0.0


@pytest.mark.parametrize(
    ("one", "empty"),
    [
        (candidate([1]), False), (candidate([]), False), (candidate(None, 0), False), (candidate(None, 3), False),
        (candidate(None, False), False), (candidate(None, False, missing=True), True),
    ],
)  # fmt: skip
def test_a_missing_fact_is_no_answer_and_none_and_no_are(one: Candidate, empty: bool) -> None:
    assert choose(ranked([(one, 1.0)], 0.0)).empty is empty


@pytest.mark.parametrize(
    ("unread", "expected"),
    [
        (Unread(), [0.0, 0.0, 0.0, 0.0, 1.0]),
        (Unread(likely=1), [0.5, 0.0, 0.0, 0.0, 0.0]),
        (Unread(("x",), alone=3), [0.0, 1.0, 0.0, 0.0, 0.0]),
        (Unread(("x", ""), True, bound=1), [0.0, 0.0, 1.0, 1.0, 0.0]),
        (None, [0.0, 0.0, 0.0, 1.0, 0.0]),
    ],
)
def test_confidence_reads_likeness_features_and_unread_words_of_the_best_candidate(
    unread: Unread | None, expected: list[float]
) -> None:
    features = np.zeros((3, FEATURES), dtype=np.float32)
    features[1, columns("worst", "covered", "left")], features[0] = (0.75, 0.5, 1.0), 9.0
    best = Candidate(Entity("x"), 0, np.array([2]), None, (), (), (), rho=0.5, score=0.0)
    made = [candidate([1]), best, candidate([3])]
    prepared = Prepared("q", LabelQuery("?"), made, [""] * 3, [""] * 3, features, None)  # type: ignore[arg-type]
    likeness = np.array([[0.1, 0.2, 0.3, 0.4, 0.5], [9.0] * LIKENESS, [9.0] * LIKENESS], dtype=np.float32)
    left = {} if unread is None else {0: unread}
    choice = choose(Ranked(prepared, [1, 0, 2], [2.0, 1.0, 0.0], 0.0, likeness, left))
    total = math.exp(2) + math.exp(1) + 2
    share, none = math.exp(2) / total, 1 / total
    logits = [math.log(p / (1 - p)) for p in (share, none, share / (share + math.exp(1) / total))]
    read_all = logits[1] if unread is not None and not unread.words else 0.0
    assert choice.best is best and len(choice.inputs()) == INPUTS == 14
    assert choice.inputs() == pytest.approx([*logits, 0.2, 0.0, 0.5, 1.0, *expected, 0.75, read_all], abs=1e-6)


def some_choices(shares: list[float]) -> list[Choice]:
    """Choices whose best answer has these probabilities; the rest is on `none`."""
    return [choose(ranked([(candidate([1]), math.log(share / (1 - share)))], 0.0)) for share in shares]


def test_fitted_confidence_rises_with_the_probability() -> None:
    shares = [n / 41 for n in range(1, 41)]
    choices = some_choices(shares)
    fitted = calibrate(choices, [share > 0.4 for share in shares], threshold=0.6)
    assert fitted is not None and fitted.threshold == 0.6
    found = [fitted.confidence(one) for one in choices]
    assert found == sorted(found) and 0 <= found[0] < 0.1 and 0.9 < found[-1] <= 1
    assert calibrate(choices, [share > 0.4 for share in shares], threshold=0.6) == fitted


def test_fitted_confidence_is_the_share_of_right_answers() -> None:
    choices = some_choices([0.5] * 8000)
    fitted = calibrate(choices, [n % 4 > 0 for n in range(8000)])
    assert fitted is not None
    assert fitted.confidence(choices[0]) == pytest.approx(0.75, abs=0.02)


def test_few_questions_move_the_confidence_less_than_many() -> None:
    moved = []
    for times in (5, 2000):
        choices = some_choices([0.3] * 4 * times)
        fitted = calibrate(choices, [n % 4 > 0 for n in range(4 * times)])
        assert fitted is not None
        moved.append(fitted.confidence(choices[0]) - 0.3)
    assert 0.01 < moved[0] < moved[1] - 0.05


def test_few_questions_move_the_confidence_a_little_from_the_start_and_none_leave_it() -> None:
    start = Calibration((0.5,) + (0.0,) * (INPUTS - 1), -1.0)
    [choice], nobody = some_choices([0.8]), choose(ranked([], 0.0))
    before = start.confidence(choice)
    assert calibrate([], [], start=start) == calibrate([nobody], [False], start=start) == start
    for right in (True, False):
        moved = calibrate([choice] * 5, [right] * 5, start=start).confidence(choice) - before
        assert 0.001 < (moved if right else -moved) < 0.1


def test_extreme_inputs_keep_confidence_in_range() -> None:
    [choice] = some_choices([1 - 1e-9])
    for weight in (1e6, -1e6):
        assert 0 <= Calibration((weight,) * INPUTS, 0.0).confidence(choice) <= 1
