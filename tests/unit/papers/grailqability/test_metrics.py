"""EM, F1(R) and F1(L) as the published evaluator of GrailQAbility defines them, on cases that were counted by hand."""

from __future__ import annotations

import pytest

from kgqa_core.papers.grailqability.metrics import GoldForm, Predicted, exact_match, f1_lenient, f1_regular, scores


def equal(one: str, other: str) -> bool:
    return one.split() == other.split()


def some(*answers: str) -> frozenset[str]:
    return frozenset(answers)


ANSWERABLE = GoldForm("(JOIN r e)", some("a", "b"), some("a", "b", "c", "d"))
NO_ANSWER = GoldForm("(JOIN r e)", some(), some("a", "b"))
NO_FORM = GoldForm(None, some(), some("a", "b"))
NO_COUNT = GoldForm(None, some("0"), some("7"))


@pytest.mark.parametrize(
    ("gold", "predicted", "lenient", "regular", "em"),
    [
        (ANSWERABLE, Predicted("(JOIN r e)", some("z")), 1.0, 1.0, 1.0),  # EM forces F1
        (ANSWERABLE, Predicted("(JOIN s e)", some("a", "b")), 1.0, 1.0, 0.0),
        (ANSWERABLE, Predicted("(JOIN s e)", some("a", "z")), 0.5, 0.5, 0.0),  # P 1/2, R 1/2
        # against the modified gold P 1/2 R 1/2; against the ideal one P 2/2 R 2/4: the best of each, P 1 R 1/2
        (ANSWERABLE, Predicted("(JOIN s e)", some("a", "c")), 2 / 3, 0.5, 0.0),
        # modified P 2/3 R 2/2; ideal P 3/3 R 3/4: P 1 R 1, though neither gold alone gives 1
        (ANSWERABLE, Predicted("(JOIN s e)", some("a", "b", "c")), 1.0, 0.8, 0.0),
        (ANSWERABLE, Predicted(None, some()), 0.0, 0.0, 0.0),
        (ANSWERABLE, None, 0.0, 0.0, 0.0),
        (NO_ANSWER, Predicted("(JOIN r e)", some("a")), 1.0, 1.0, 1.0),
        (NO_ANSWER, Predicted("(JOIN s e)", some()), 1.0, 1.0, 0.0),  # both empty
        (NO_ANSWER, Predicted(None, some()), 1.0, 1.0, 0.0),
        (NO_ANSWER, Predicted("(JOIN s e)", some("a", "b")), 1.0, 0.0, 0.0),  # the ideal answer
        (NO_ANSWER, Predicted("(JOIN s e)", some("a", "z")), 0.5, 0.0, 0.0),
        (NO_FORM, Predicted(None, some("z")), 1.0, 1.0, 1.0),
        (NO_FORM, Predicted("", some()), 1.0, 1.0, 1.0),
        (NO_FORM, Predicted("NK", some()), 1.0, 1.0, 1.0),
        (NO_FORM, Predicted("(JOIN s e)", some()), 1.0, 1.0, 0.0),
        (NO_FORM, Predicted("(JOIN s e)", some("z")), 0.0, 0.0, 0.0),
        (NO_FORM, None, 0.0, 0.0, 0.0),
        (NO_COUNT, Predicted("(COUNT x)", some("0")), 1.0, 1.0, 0.0),
        (NO_COUNT, Predicted("(COUNT x)", some("7")), 1.0, 0.0, 0.0),
        (NO_COUNT, Predicted("(COUNT x)", some()), 0.0, 0.0, 0.0),  # the gold is "0", not empty
        (NO_COUNT, Predicted("(COUNT x)", some("3")), 0.0, 0.0, 0.0),
    ],
)
def test_hand_computed(gold: GoldForm, predicted: Predicted | None, lenient: float, regular: float, em: float) -> None:
    assert f1_lenient(gold, predicted, equal) == pytest.approx(lenient)
    assert f1_regular(gold, predicted, equal) == pytest.approx(regular)
    assert exact_match(gold, predicted, equal) == em
    assert list(scores(gold, predicted, equal)) == ["F1(L)", "F1(R)", "EM"]


def test_a_form_where_there_is_none_is_never_compared() -> None:
    def never(one: str, other: str) -> bool:
        raise AssertionError

    assert exact_match(NO_FORM, Predicted("(JOIN r e)"), never) == 0.0
    assert exact_match(ANSWERABLE, Predicted(None), never) == 0.0
