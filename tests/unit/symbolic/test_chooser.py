"""A language model chooses among the best plans of a question, and where it does not the answer is the parser's own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions, SymbolicOptions, make_profile
from kgqa_core.errors import BudgetReached, ConfigError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration, Choice, PlanVerdict
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.by_labels.unread import Unread
from kgqa_core.symbolic.chooser import MOST, PLANS, PlanChooser, confidence_of, read_verdict
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import RELATION, UNSURE
from tests.support.chat_server import ChatServer, Fault
from tests.support.label_graph import Preferring, X, question_about
from tests.support.models import save_causal

FLAT = Calibration((1.0,) + (0.0,) * (INPUTS - 1), 0.0, 0.4)
"""Confidence is the answer's probability."""
CAPITAL, NEAR = "(JOIN (R capital) c0)", "(JOIN (R capital) (JOIN (R borders) c0))"
TEXT = "what is the capital of Norland?"
Solvers = Callable[..., AutoSolver]


@pytest.fixture(scope="module")
def base(graph: LabelGraph, scorer: LabelScorer) -> AutoSolver:
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
    solver.parser = Preferring(solver.graph, scorer)
    return solver


@pytest.fixture
def make(base: AutoSolver) -> Solvers:
    """Solvers that find two forms equally likely, with a chooser behind a server."""

    def made(chooser: PlanChooser | None, *forms: str, least: float | None = None) -> AutoSolver:
        own = copy(base)
        own.parser = copy(base.parser)
        own.parser.unread = lambda *_: Unread()  # type: ignore[method-assign]
        own.chooser, own.min_confidence = chooser, least
        own.parser.wanted = lambda one: str(one.form).replace(X, "") in (forms or (CAPITAL, NEAR))  # type: ignore[attr-defined]
        return own

    return made


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def opened(server: ChatServer, *plan: Any, **more: Any) -> PlanChooser:
    """A chooser whose model always says the same: a plan and what is missing, or a text."""
    text = plan[0] if len(plan) == 1 else json.dumps(dict(zip(("plan", "missing"), plan, strict=True)))
    server.reply, server._drawn = lambda prompt: text, False
    llm = LlmOptions(base_url=server.base_url, retries=0, attempts=2, **more.pop("llm", {}))
    return PlanChooser.open("openai:m", llm=llm, **more)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def ask(solver: AutoSolver, text: str = TEXT, *, suggest: bool = False) -> ComputedAnswer:
    [found] = solver.solve([question_about(solver.graph, "q", text, X + "c0")], suggest=suggest)
    return found


def test_the_second_plan_is_answered_with_its_proof_when_it_is_chosen(make: Solvers, server: ChatServer) -> None:
    own = ask(make(None))
    found = ask(make(opened(server, "2", "")))
    other = {CAPITAL: NEAR, NEAR: CAPITAL}[str(own.form).replace(X, "")]
    assert str(found.form).replace(X, "") == other and found.answers != own.answers
    assert found.proof == execute(parse(str(found.form)), make(None).store).proof != ()
    assert found.confidence == MOST and found.chooser == "openai:m: plan 2 of 7" and own.chooser is None
    [body] = server.bodies
    seen = json.loads(body["messages"][-1]["content"])
    assert seen["question"] == TEXT and len(seen["plans"]) == 7 <= PLANS
    asks = {plan["asks for"]: plan["finds"] for plan in seen["plans"]}
    assert asks["capital of Norland"] == ["Norland City"] and all(len(finds) <= 5 for finds in asks.values())
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["plan"]["enum"] == [*map(str, range(1, 8)), "none"]
    assert "http" not in body["messages"][-1]["content"], "no key of the graph is sent"


def test_a_number_of_the_question_stands_in_the_words_of_a_plan(make: Solvers, server: ChatServer) -> None:
    ask(make(opened(server, "1", "")), "cities with a population of more than 1200 in Norland")
    [prompt] = server.prompts
    assert "more than 1200" in prompt and " n" not in [plan["asks for"][-2:] for plan in json.loads(prompt)["plans"]]


def test_a_plan_that_both_choose_has_the_higher_confidence(make: Solvers, server: ChatServer) -> None:
    own = ask(make(None, CAPITAL))
    found = ask(make(opened(server, "1", ""), CAPITAL))
    assert found.form == own.form and found.answers == own.answers
    assert own.confidence is not None and found.confidence is not None and found.confidence >= own.confidence > 0.9


def test_a_plan_against_which_the_parser_is_sure_is_not_answered(make: Solvers, server: ChatServer) -> None:
    found = ask(make(opened(server, "2", ""), CAPITAL), suggest=True)
    assert (found.answers, found.reason, found.missing, found.suggestions) == ((), UNSURE, None, ())
    assert found.readings[1].answers == ("Norland City",), "its own first plan is offered"
    assert found.confidence is not None and found.confidence < 0.01
    assert ask(make(opened(server, "2", ""), CAPITAL, least=0.0)).answers, "nothing is declined at 0"


def test_none_declines_and_says_what_is_missing(make: Solvers, server: ChatServer) -> None:
    found = ask(make(opened(server, "none", "the  old\ncapital"), CAPITAL))
    assert (found.answers, found.reason, found.missing) == ((), RELATION, "the old capital")
    assert found.chooser == "openai:m: none of 7, missing: the old capital"
    assert found.confidence is not None and found.confidence < 0.4
    assert ask(make(opened(server, "none", ""), CAPITAL, least=0.1)).reason == RELATION
    assert ask(make(opened(server, "none", ""), CAPITAL, least=0.0)).answers, "nothing is declined at 0"


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("Norland City", "no JSON object"),
        ('{"plan": "11", "missing": ""}', "'11' is none of 7 plans"),
        ('{"plan": ["1"], "missing": ""}', "is none of 7 plans"),
        ('{"plan": null, "missing": ""}', "is none of 7 plans"),
        ('{"plan": "1", "missing": 7}', "is none of 7 plans"),
        ("", "empty"),
        ("[" * 9000 + "{}", "no JSON object|is none of"),
        (Fault(status=500), "500"),
        (Fault(status=401), "does not answer"),
        (Fault(hang_up=True), "Connection|connection"),
        (Fault(garbage=True), "JSON"),
        (Fault(refusal="I must not"), "refused"),
    ],
)
def test_the_answer_is_the_parsers_own_with_a_warning_when_there_is_no_choice(
    make: Solvers, server: ChatServer, said: str | Fault, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    if isinstance(said, Fault):
        server.always("", said)
    chooser = opened(server, said if isinstance(said, str) else "unused")
    with caplog.at_level(logging.WARNING, "kgqa"):
        own, found = ask(make(None, CAPITAL)), ask(make(chooser, CAPITAL))
    assert (found.answers, found.form, found.confidence) == (own.answers, own.form, own.confidence) and own.answers
    assert any(part in str(found.chooser) for part in fault.split("|")), found.chooser
    assert "chose no plan for 1 of 1 questions, which are answered without it" in caplog.text
    assert sum(chooser.counts.values()) == chooser.counts["unreadable"] + chooser.counts["failed"] == 1


def test_an_endpoint_that_is_gone_costs_the_choice_alone(make: Solvers) -> None:
    with ChatServer() as server:
        chooser = opened(server, "2", "")
    found = ask(make(chooser, CAPITAL))
    assert found.answers == ("Norland City",) and "no choice: the endpoint" in str(found.chooser)


def test_what_was_chosen_is_not_asked_again(make: Solvers, server: ChatServer, tmp_path: Path) -> None:
    first = ask(make(opened(server, "2", "", cache=tmp_path)))
    again = ask(make(opened(server, "1", "", cache=tmp_path)))
    assert server.stats()["requests"] == 1 and again == first
    unread = opened(server, "nothing", cache=tmp_path)
    for _ in range(2):
        assert "no JSON" in str(ask(make(unread), "which is the capital of Norland?").chooser)
    assert server.stats()["requests"] == 1 + 2, "each of llm.attempts once"


def test_a_budget_that_is_reached_ends_a_run_and_leaves_a_question_to_the_parser(
    make: Solvers, server: ChatServer
) -> None:
    limits = BudgetOptions(max_calls=1)
    solver = make(opened(server, "2", "", llm={"budget": limits}))
    assert "plan 2" in str(ask(solver).chooser)
    left = ask(solver, "capital of Norland")
    assert "1 of 1 calls are spent" in str(left.chooser) and left.answers
    run = make(opened(server, "2", "", budget=Budget(limits)))
    ask(run)
    with pytest.raises(BudgetReached, match="max_calls"):
        ask(run, "capital of Norland")


def test_threads_do_not_wait_for_the_model_of_another(make: Solvers, server: ChatServer) -> None:
    turns = Semaphore(1)
    solver, server.gate = make(opened(server, "2", "", turns=turns)), 2  # nobody is answered before both have asked

    def one(text: str) -> ComputedAnswer:
        with turns:
            return ask(solver, text)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(one, [TEXT, "capital of Norland"]))
    assert [one.confidence for one in found] == [MOST, MOST] and turns.acquire(blocking=False)
    assert not turns.acquire(blocking=False)


def test_a_local_model_can_write_nothing_but_a_choice(make: Solvers, tmp_path: Path) -> None:
    chooser = PlanChooser.open(f"hf:{save_causal(tmp_path / 'model', positions=1024)}", llm=LlmOptions(attempts=1))
    found = ask(make(chooser, CAPITAL))
    assert "no choice" not in str(found.chooser) and chooser.counts.total() == 1 and not chooser.counts["unreadable"]
    [choice] = chooser.model.generate(["which?"], GenerationParams(choices=("cat", "dog")))
    assert choice.text in ("cat", "dog") and choice.completion_tokens == len("cat") + 1


@pytest.mark.parametrize("text", ['{"plan": 2}', '<think>{no}</think>```json\n{"plan": "2", "missing": ""}\n```'])
def test_a_choice_is_read_from_what_models_write_around_it(text: str) -> None:
    assert read_verdict(text, 3) == PlanVerdict(1, 3)


@pytest.mark.parametrize(("share", "least", "most"), [(0.02, 0.05, 0.1), (0.1, 0.3, 0.31), (0.3, MOST, MOST)])
def test_a_choice_against_the_parser_is_never_surer_than_a_half(share: float, least: float, most: float) -> None:
    assert least <= confidence_of(Choice(None, share, 0.0, verdict=PlanVerdict(1, 3)), 0.9, 0.4) <= most


@pytest.mark.parametrize("name", ["builtin", "openai:", "auto"])
def test_a_model_that_cannot_choose_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' cannot choose plans; write openai:MODEL"):
        make_profile({"symbolic": {"chooser": name}})
