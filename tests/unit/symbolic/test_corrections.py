"""A confirmed question answers the next one in its words, and no other."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from kgqa_core.config import SymbolicOptions
from kgqa_core.errors import InputError
from kgqa_core.search.graph import LabelGraph
from kgqa_core.serving.feedback import Feedback, FeedbackStore, IssuedAnswer, confirmed_questions
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.store.artifacts import Home
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.corrections import LIKELY, SURE, _swap
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question
from tests.support.label_graph import X, question_about


@pytest.fixture
def solver(graph: LabelGraph, scorer: LabelScorer) -> AutoSolver:
    return AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2))


def learn(solver: AutoSolver, *corrections: tuple[str, str, str]) -> None:
    """Takes (question, last part of its topic's key, right answer) as confirmed."""
    questions = [
        replace(question_about(solver.graph, str(number), text, X + topic), answer_keys=(right,))
        for number, (text, topic, right) in enumerate(corrections)
    ]
    solver.corrections.learn(questions, lambda one: one)


def ask(solver: AutoSolver, text: str, topic: str) -> ComputedAnswer:
    [answer] = solver.solve([question_about(solver.graph, "q", text, X + topic)])
    return answer


def test_a_question_in_the_words_of_a_confirmed_one_is_answered_by_its_form(solver: AutoSolver) -> None:
    text = "which burg rules {}?"
    before = ask(solver, text.format("Estia"), "c2")
    learn(solver, (text.format("Norland"), "c0", "Norland City"))
    for country, key in (("Norland", "c0"), ("Estia", "c2")):
        text_now = f"Which Burg rules the {country}"
        after, query = ask(solver, text_now, key), question_about(solver.graph, "q", text_now, X + key)
        chosen = solver.corrections.choose([solver.parser.read([query])[0]])
        assert chosen is not None and chosen[1].best is not None and after.form == chosen[1].best.form
        assert after.answers == (f"{country} City",)
    again = ask(solver, "which burg does not rule Estia?", "c2")
    assert again.answers != ("Estia City",) or again.confidence == before.confidence
    assert ask(solver, "which burg rules Estia and Ilia?", "c2").form != after.form


def test_a_form_has_to_be_right_for_all_questions_in_the_same_words(solver: AutoSolver) -> None:
    learn(solver, ("burg of Norland?", "c0", "Norland City"), ("burg of Estia?", "c2", "Ilia City"))
    assert not any(forms for forms, _ in solver.corrections._learnt[1].values())


def test_one_confirmed_number_is_less_sure_than_two(solver: AutoSolver, graph: LabelGraph) -> None:
    solver.calibration = None
    text, number = "how many pals has {}?", "2"
    asked = [solver.parser.read([question_about(graph, "q", text.format("Ilia"), f"{X}c5")])[0]]
    learn(solver, (text.format("Norland"), "c0", number))
    one = solver.corrections.choose(asked)
    learn(solver, (text.format("Norland"), "c0", number), (text.format("Estia"), "c2", number))
    two = solver.corrections.choose(asked)
    assert one is not None and two is not None and one[1].share == LIKELY and two[1].share in (LIKELY, SURE)


def test_a_form_says_what_is_right_alone_or_with_the_answers_that_it_gives(solver: AutoSolver) -> None:
    form, text = f"(JOIN (R {X}capital) {X}c0)", "which burg rules {}?"
    example = replace(question_about(solver.graph, "a", text.format("Norland"), f"{X}c0"), s_expression=form)
    for answers, answered in (((), True), (("Norland City",), True), (("Norland",), False)):
        solver.corrections.learn([replace(example, answer_keys=answers)], lambda one: one)
        known = solver.corrections.choose(
            solver.parser.read([question_about(solver.graph, "q", text.format("Estia"), f"{X}c2")])
        )
        assert (known is not None) == answered
        assert known is None or str(known[1].best and known[1].best.form) == form.replace("c0", "c2")
    solver.corrections.learn([replace(example, s_expression="(JOIN (R nothing) y)")], lambda one: one)
    assert not any(forms for forms, _ in solver.corrections._learnt[1].values())


def test_what_is_not_about_this_graph_teaches_nothing(solver: AutoSolver) -> None:
    def link(question: Question) -> Question:
        raise InputError("there is no such entity here")

    solver.corrections.learn([Question("", "who is x?", answer_keys=("Bo",))], link)
    assert solver.corrections._learnt[1] == {}


def test_the_last_confirmed_answer_to_a_question_counts_and_nothing_unconfirmed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert confirmed_questions(home) == []
    with contextlib.closing(FeedbackStore(tmp_path / SERVE_FOLDER)) as store:
        ids = store.issue([IssuedAnswer("Who leads?", ("a",)), IssuedAnswer("who leads", ("a",)), IssuedAnswer("Why?")])
        numbers = [store.add(Feedback(str(name), "down", (f"B{n}",)), "me").number for n, name in enumerate(ids)]
        store.confirm(numbers[1])
        store.confirm(numbers[0])
    [question] = confirmed_questions(home)
    assert (question.text, question.topic_keys, question.answer_keys) == ("Who leads?", ("a",), ("B0",))


def test_keys_with_spaces_and_keys_within_keys_are_exchanged_whole() -> None:
    form = "(JOIN (R a) <New York>)"
    assert _swap(form, {"<New York>": "\0x", "a": "b"}) == "(JOIN (R b) \0x)"
    assert _swap(form, {"New": "b", "<New": "c"}) == form.replace("<New ", "c ")
    assert _swap(form, {}) == form
