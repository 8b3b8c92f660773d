"""How long a question may be, what the longest cost, and that threads that ask one system get its answers."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kgqa_core.config import make_profile
from kgqa_core.errors import InputError, QuestionTimeout
from kgqa_core.question_limits import CHARACTERS, TOO_LONG, TOPICS, TURNS, WORDS, check_time, next_question, time_limit
from kgqa_core.runs.finished import SystemParts
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.packaged import HEAD_START
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.system import System
from kgqa_core.types import Question
from tests.support.long_questions import SHAPES, LongQuestion
from tests.support.served_graph import films

SECONDS, MEGABYTES = 10.0, 400
"""What the longest question may take (three times what it takes on a slow core), and what it may add to the memory of
the process: steps that are quadratic in the words, or worse, take more."""
GOOD = "What is the capital of Norland?"
SURROGATE = "Which film \ud800 is it?"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    """Answers with `auto` on the graph of films."""
    folders = films(tmp_path_factory.mktemp("films"))
    profile = make_profile({"answering": {"answerer": "auto"}})
    parts = SystemParts(
        folders.kg, folders.dkg, "random/triples", profile, mentions=folders.mentions, label_parser=HEAD_START
    )
    system = System.open(parts)
    system.ask(GOOD)
    return system


def peak() -> float:
    """Megabytes that the process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("shape", SHAPES)
def test_the_longest_question_of_each_shape_is_answered_or_refused_in_little_time_and_memory(
    system: System, shape: str
) -> None:
    for length in (CHARACTERS, 20_000):
        long = LongQuestion.of(shape, length)
        began, before = time.process_time(), peak()
        try:
            system.ask(long.text, long.topics, long.dialogue)
        except InputError as refusal:
            assert len(str(refusal)) < 300
        assert time.process_time() - began < SECONDS and peak() - before < MEGABYTES


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (Question("bad", "a" * (CHARACTERS + 1)), "4,001 characters, and may have 4,000"),
        (Question("bad", "a " * (WORDS + 1)), "801 words"),
        (Question("bad", "Who?", topic_keys=("a",) * (TOPICS + 1)), "51 topics"),
        (Question("bad", "Who?", topic_keys=("a" * 5000,)), "topic 'aaa.*5,000 characters"),
        (Question("bad", "Who?", dialogue=(("user", "a"),) * (TURNS + 1)), "65 earlier turns"),
        (Question("bad", "Who?", dialogue=(("user", "a" * 5000),)), "an earlier turn has 5,000"),
        (Question("bad", SURROGATE), "half of a surrogate"),
        (Question("bad", "Who\0?"), "NUL"),
        (Question("bad", " \n"), "empty"),
    ],
)  # fmt: skip
def test_a_question_beyond_the_limits_is_refused_and_the_others_of_its_batch_are_answered(
    system: System, bad: Question, named: str
) -> None:
    first, refused, last = system.answer([Question("1", GOOD), bad, Question("2", GOOD)])
    assert first.reject is None and first.answer == last.answer == system.ask(GOOD).answer
    assert refused.answer is None and refused.id == "bad"
    with pytest.raises(InputError, match=named):
        raise InputError(str(refused.reject))
    with pytest.raises(InputError, match=named):
        system.ask(bad.text, bad.topic_keys, bad.dialogue)
    refused.question.encode()


def test_a_text_that_is_linked_alone_has_a_limit_too(system: System) -> None:
    assert system.tagger is not None
    with pytest.raises(InputError, match="1,000,000 characters, and may have 100,000"):
        system.tagger.link("a" * 1_000_000)


def test_twenty_threads_get_the_answers_that_come_one_after_the_other(system: System) -> None:
    texts = [
        "Who directed Night A0?", "What does Norland border?", "Was Ben Stone born in Norland City?", "capital of Ilia",
    ]  # fmt: skip
    least = system.at_confidence(0.0)

    def ask(number: int) -> Sequence[object]:
        reply = (least if number % 2 else system).ask(texts[number % len(texts)])
        return (reply.answer, reply.form, reply.proof, reply.confidence, reply.facts, reply.topics)

    alone = [ask(number) for number in range(len(texts))]
    with ThreadPoolExecutor(20) as pool:
        together = list(pool.map(ask, range(20)))
    assert together == [alone[number % len(texts)] for number in range(20)]


def test_the_time_of_a_question_ends_and_begins_anew_with_the_next() -> None:
    check_time()
    with time_limit(0.05):
        check_time()
        time.sleep(0.06)
        with pytest.raises(QuestionTimeout, match=r"longer than 0\.05 s on this graph; ask for less"):
            check_time()
        next_question()
        check_time()
    check_time()


@pytest.mark.parametrize("step", ["kgqa_core.linking.typos", "kgqa_core.search.graph"])
def test_a_question_whose_time_is_over_is_refused_and_the_others_of_its_batch_are_answered(
    system: System, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, good = Question("slow", "Who directed Nihgt A0?"), Question("good", GOOD)
    alone, working, solve = system.ask(GOOD), [slow.id], AutoSolver._solve

    def solve_these(solver: AutoSolver, questions: Sequence[Question], *more: Any) -> list[ComputedAnswer]:
        working[:] = [one.id for one in questions]
        return solve(solver, questions, *more)

    def check() -> None:
        if {slow.id, "ask"}.intersection(working):
            raise QuestionTimeout(TOO_LONG)

    monkeypatch.setattr(AutoSolver, "_solve", solve_these)
    monkeypatch.setattr(f"{step}.check_time", check)
    refused, answered = system.answer([slow, good])
    assert answered.answer == alone.answer and answered.reject is None
    assert refused.answer is None and str(refused.reject).startswith(TOO_LONG)
    working[:] = [slow.id]
    with pytest.raises(QuestionTimeout):
        system.ask(slow.text)
