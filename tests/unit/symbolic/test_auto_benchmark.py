"""The benchmark of `auto`: what counts as exact, as a hit, and as within reach of a chooser."""

from __future__ import annotations

import pytest

from benchmarks.answers import auto_figures as figures
from benchmarks.answers.people import among_ten, ece_of_chance
from kgqa_core.config import SymbolicOptions
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question
from tests.support.label_graph import Preferring, X, question_about

TWINS = Question("1", "Where is London?", answer_keys=("gb", "ca"), answer_names=(("London",), ("London",)))
AREA = Question("2", "How large is Malta?", answer_type="number", answer_keys=("316",), answer_names=(("316",),))


def test_an_entity_is_compared_by_key_and_the_whole_set_is_needed() -> None:
    assert figures.is_exact(TWINS, ("ca", "gb"), ("London",))
    assert not figures.is_exact(TWINS, ("gb",), ("London",))
    assert not figures.is_exact(TWINS, ("ca", "gb", "us"), ("London",))


@pytest.mark.parametrize(("answer", "exact"), [("316", True), ("316.0", True), ("3,16e2", False), ("317", False)])
def test_a_number_is_compared_by_its_value(answer: str, exact: bool) -> None:
    assert figures.is_exact(AREA, ("literal",), (answer,)) is exact


def test_nothing_is_neither_exact_nor_a_hit() -> None:
    nothing = Question("3", "?")
    assert not figures.is_exact(nothing, (), ()) and not figures.is_hit(nothing, ()) and not figures.is_hit(TWINS, ())


def test_calibration_error_by_chance_falls_with_the_number_of_answers() -> None:
    few, many = ece_of_chance([0.6, 0.9] * 10), ece_of_chance([0.6, 0.9] * 1000)
    assert few is not None and many is not None and 0.05 < few < 0.2 and many < 0.02
    assert ece_of_chance([]) is None and ece_of_chance([1.0] * 5) == 0


def test_only_the_first_answer_is_a_hit() -> None:
    assert figures.is_hit(TWINS, ("ca", "us"))
    assert not figures.is_hit(TWINS, ("us", "ca"))


def test_figures_count_declined_questions_as_wrong_and_leave_them_out_of_the_calibration() -> None:
    solved = [
        ComputedAnswer("1", "none", answers=("London",), keys=("gb", "ca"), confidence=1.0),
        ComputedAnswer("2", "none", confidence=0.1),
    ]
    found = figures.figures([TWINS, AREA], solved)
    assert (found["exact"]["share"], found["declined"]["share"], found["exact_of_answered"]["share"]) == (0.5, 0.5, 1.0)
    assert found["ece"] == 0.0


def test_a_right_answer_is_among_ten_where_any_of_the_plans_finds_it(graph: LabelGraph, scorer: LabelScorer) -> None:
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2))
    solver.parser = Preferring(solver.graph, scorer)
    question = question_about(solver.graph, "q", "what is the capital of Norland?", X + "c0")
    gold = [["Norland City"], ["Nowhere"], []]
    rows = [{"answerable": bool(names), "answers": names, "type": "direct"} for names in gold]
    assert among_ten(rows, solver, [question] * 3) == [True, False]
