"""A word that is not read is offered as a name of what is near to it, where the question has an answer by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from kgqa_core.answering.reply import Answer, refusal_text
from kgqa_core.config import OwnNames, SymbolicOptions
from kgqa_core.logic.parser import parse
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import FACT, RELATION, UNREAD, NameSuggestion, Question
from tests.support.label_graph import X


@pytest.fixture(scope="module")
def solver(graph: LabelGraph, scorer: LabelScorer) -> AutoSolver:
    return AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2))


def suggested(solver: AutoSolver, text: str, missing: str) -> dict[str, tuple[str, str]]:
    """By line what it stands for, and how the question is read with it."""
    return {one.line: (one.name, read) for one, read in solver.suggestions.of(text, missing)}


def test_words_are_offered_as_names_of_what_is_near_and_of_nothing_else(solver: AutoSolver) -> None:
    population = f"relations: {{'{X}population': [inhabitants]}}"
    for text, missing in (
        ("inhabitants of Norland?", "inhabitants"),
        ("which inhabitants has it, former ones", "inhabitants, former"),
    ):
        found = suggested(solver, text, missing)
        assert found[population] == ("population", text.replace("inhabitants", "population"))
    assert f"types: {{'{X}film': [movie]}}" in suggested(solver, "how many movies are there?", "movies")
    for nonsense in ("dentist", "Narnia", "of", "17", "inhabitants"):
        assert not suggested(solver, "what is it of dentist in Narnia 17?", nonsense)


def test_a_line_is_a_names_file_whatever_the_words_are(solver: AutoSolver) -> None:
    for words in ("population: all", "population #", "population [x]"):
        lines = [yaml.safe_load(line) for line in suggested(solver, f"{words} of Norland", words)]
        assert lines and all(name in words for line in lines for [name] in OwnNames(**line).relations.values())


@pytest.mark.parametrize(("reason", "offered"), [(UNREAD, 1), (RELATION, 1), (FACT, 0)])
def test_only_what_has_an_answer_then_is_offered_of_a_declined_question(
    solver: AutoSolver, monkeypatch: pytest.MonkeyPatch, reason: str, offered: int
) -> None:
    def solve(questions: list[Question], *given: Any, chooses: bool = True) -> list[ComputedAnswer]:
        declined = ComputedAnswer("q", "none", reason=reason, missing="inhabitants")
        return [replace(declined, form=parse("x") if "population" in one.text else None) for one in questions]

    monkeypatch.setattr(solver, "_solve", solve)
    [plain] = solver.solve([Question("q", "inhabitants of Norland?")])
    [made] = solver.solve([Question("q", "inhabitants of Norland?")], suggest=True)
    [other] = solver.solve([Question("q", "inhabitants of Norland?", topic_keys=())], suggest=True)
    assert plain.suggestions == () and [one.name for one in made.suggestions] == ["population"] * offered
    assert other == made


def test_a_refusal_shows_what_its_words_may_mean() -> None:
    meant = NameSuggestion("boss", "reports to", "relations: {reports to: [boss]}")
    answer = Answer("q", "Who?", "", answerable=False, reason=UNREAD, missing="boss", suggestions=(meant,))
    shown = "I did not understand “boss”\nboss: did you mean reports to?  relations: {reports to: [boss]}"
    assert refusal_text(answer.to_dict()) == shown and answer.to_row()["suggestions"] == answer.to_dict()["suggestions"]
