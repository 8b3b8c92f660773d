"""Questions of which a form leaves a word unread, or whose demands it does not meet, are not answered by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kgqa_core.config import SymbolicOptions
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration
from kgqa_core.symbolic.by_labels.candidates import Candidate
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.solve import ComputedAnswer
from tests.support.label_graph import Preferring, X, question_about

Ask = Callable[..., ComputedAnswer]
CAPITAL, BORDERS = "(JOIN (R capital) c0)", "(JOIN (R borders) c0)"
LARGEST, POPULATIONS = "(ARGMAX (TYPE country) population)", "(JOIN (R population) (JOIN (R borders) c0))"


@pytest.fixture(scope="module")
def ask(graph: LabelGraph, scorer: LabelScorer) -> Iterator[Ask]:
    """Asks a solver that prefers the forms with these texts, and every form where none is given."""
    flat = Calibration((1.0,) + (0.0,) * (INPUTS - 1), 0.0, 0.5)
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2, flat))
    solver.parser = Preferring(solver.graph, LabelScorer(scorer.network))

    def asked(text: str, *topics: str, forms: tuple[str, ...] = (), least: float | None = None) -> ComputedAnswer:
        def wanted(one: Candidate) -> bool:
            return not forms or str(one.form).replace(X, "") in forms

        solver.parser.wanted = wanted
        question = question_about(graph, "q", text, *(X + name for name in topics))
        [found] = (solver if least is None else solver.at_confidence(least)).solve([question])
        return found

    yield asked


@pytest.mark.parametrize(
    ("text", "topics", "form", "missing"),
    [
        ("former capital of Norland", ("c0",), CAPITAL, "former"),
        ("capital of Norland in 1950", ("c0",), CAPITAL, "1950"),
        ("how many countries are in Narnia", (), "(COUNT (TYPE country))", "Narnia"),
        ("which films are out of stock", (), "(TYPE film)", "stock"),
        ("coastal countries bordering Norland", ("c0",), BORDERS, "coastal"),
        ("which countries border Norland and Estia", ("c0", "c2"), BORDERS, "Estia"),
        ("average population of the neighbours of Norland", ("c0",), POPULATIONS, "average"),
        ("which country has the most cities", (), "(TYPE country)", "most cities"),
        ("oldest country", (), LARGEST, "oldest"),
        ("second largest country", (), LARGEST, "second"),
        ("largest city on the Moon", (), "(TYPE city)", "largest, Moon"),
    ],
)  # fmt: skip
def test_word_that_the_form_leaves_unread_forbids_the_answer(
    ask: Ask, text: str, topics: tuple[str, ...], form: str, missing: str
) -> None:
    found = ask(text, *topics, forms=(form,))
    assert (found.answers, found.reason, found.missing) == ((), "not understood", missing)
    assert found.confidence is not None and found.confidence < 0.5
