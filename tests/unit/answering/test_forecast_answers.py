"""Forecasts of the answering stage are what it then asks, by the server's count."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import polars as pl
import pytest

from kgqa_core.answering.answer import answer
from kgqa_core.answering.forecast import forecast_exploration, typical_answer
from kgqa_core.config import AgentOptions, AnsweringOptions, LlmOptions, Price
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.evaluation.judge import judge_answers
from kgqa_core.llm.forecast import CHAT, Assumed, Recorder, Sent
from kgqa_core.llm.tokens import estimate
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer, Fault

QUESTIONS = [
    Question(id=f"q{number:02d}", text=f"Who is number {number}?", split="test", answer_names=(("never looked at",),))
    for number in range(10)
] + [
    Question(id=f"t{place}", text="?", split="train", answer_names=((name,),))
    for place, name in enumerate(("x", "Rome", "a very long name indeed"))
]
BARE = "Question: Who is number {}? Answer:"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Arguments that plan and stage share; q09 has no knowledge."""
    for name in ("questions", "knowledge", "cache"):
        (tmp_path / name).mkdir()
    write_questions(tmp_path / "questions", QUESTIONS)
    texts = [f"({question.id}, is, me)" for question in QUESTIONS[:9]]
    pl.DataFrame({"question": [question.id for question in QUESTIONS[:9]], "text": texts}).with_columns(
        retriever=pl.lit("rigel"), format=pl.lit("triples")
    ).write_parquet(tmp_path / "knowledge" / "knowledge.parquet")
    return {
        "questions": tmp_path / "questions",
        "knowledge": tmp_path / "knowledge",
        "name": "rigel/triples",
        "options": AnsweringOptions(answerer="openai:m"),
        "llm": LlmOptions(base_url="http://localhost:1/v1", prices={"openai:m": Price(prompt=1.0, completion=10.0)}),
        "seed": 7,
    }


def cache_of(given: dict[str, Any]) -> Path:
    """The folder of the response cache, beside the questions."""
    folder: Path = given["questions"].parent / "cache"
    return folder


def record(given: dict[str, Any], **more: Any) -> Recorder:
    recorder = Recorder("answers", "openai:m", given["llm"], assumed=Assumed(typical_answer(QUESTIONS)), **more)
    answer(Workspace(Path(mkdtemp(dir=cache_of(given))), cache=cache_of(given), model=recorder), **given)
    return recorder


def test_what_is_recorded_is_what_the_server_then_sees(given: dict[str, Any], tmp_path: Path) -> None:
    with ChatServer(reply=lambda prompt: "Rome") as server:
        given["llm"] = LlmOptions(base_url=server.base_url, retries=0, concurrency=1)
        before = record(given).amount
        server.fail("number 3", Fault(status=500))
        (tmp_path / "one").mkdir()
        answer(Workspace(tmp_path / "one", cache=cache_of(given)), **given)
        assert before.calls == len(server.prompts)
        assert before.prompt_tokens == sum(estimate(prompt) + CHAT[1] for prompt in server.prompts)
        again = record(given)
        assert (again.calls, again.cached) == (1, 9)
        assert again.prompt_tokens == estimate(server.prompts[3]) + CHAT[1]
        (tmp_path / "two").mkdir()
        answer(Workspace(tmp_path / "two", cache=cache_of(given)), **given)
        assert len(server.prompts) == before.calls + again.calls
    assert record(given).calls == 0


def test_money_follows_the_prices_and_the_median_gold_answer_of_training(given: dict[str, Any]) -> None:
    total = record(given).amount
    assert total.completion_tokens == 10 * estimate("Rome")
    assert total.cost == pytest.approx((total.prompt_tokens + 10 * total.completion_tokens) / 1e6)


def test_the_limit_is_that_of_the_stage(given: dict[str, Any]) -> None:
    given["options"] = AnsweringOptions(answerer="openai:m", limit=4)
    assert record(given).calls == 4


def test_prompts_that_another_experiment_asks_are_planned_once(given: dict[str, Any]) -> None:
    sent: Sent = {}
    calls = [
        record(given | {"name": name, "knowledge": knowledge}, sent=sent).calls
        for name, knowledge in (
            ("none", None),
            ("rigel/triples", given["knowledge"]),
            ("rigel/triples", given["knowledge"]),
        )
    ]
    assert calls == [10, 9, 0] and len(sent) == 19


def test_answers_stand_for_those_that_are_judged(given: dict[str, Any], tmp_path: Path) -> None:
    """Ten answers of the median gold answer's length; the judge reads them, and its range follows theirs."""
    ends = {}
    for end in (None, 0, 1):
        answers = Path(mkdtemp(dir=tmp_path))
        reader = Recorder("answers", "openai:m", given["llm"], end, Assumed("Rome"))
        answer(Workspace(answers, cache=cache_of(given), model=reader), **given)
        judge = Recorder(
            "judged", "openai:m", given["llm"], end, Assumed("yes", prompts="not written yet"), reads=[reader]
        )
        judge_answers(
            Workspace(Path(mkdtemp(dir=tmp_path)), model=judge),
            questions=given["questions"],
            answers=answers,
            model="openai:m",
            llm=given["llm"],
        )
        ends[end] = judge
    plan = ends[None].plan(ends[0], ends[1])
    assert plan.calls == 10 and plan.prompt_tokens > 10 * 50 and "not written yet" in plan.assumptions
    assert plan.low is not None and plan.high is not None
    assert plan.low.prompt_tokens < plan.prompt_tokens < plan.high.prompt_tokens - 10 * 20


def test_plan_of_an_agent_is_what_its_limits_allow(tmp_path: Path) -> None:
    """Two questions with a topic and one without, at most 10 calls and 5,000 tokens each."""
    asked = [Question(f"q{number}", "Who?", topic_entities=(number,) * (number < 2)) for number in range(3)]
    write_questions(tmp_path, asked)
    options = AnsweringOptions(answerer="agent:openai:m")
    llm = LlmOptions(prices={"openai:m": Price(prompt=1.0, completion=4.0)})
    agent = AgentOptions(calls=10, tokens=5_000, max_new_tokens=100)
    found = forecast_exploration(
        questions=tmp_path, name="topics/triples", options=options, limits=agent, llm=llm, seed=7
    )  # fmt: skip
    assert (found.stage, found.model, found.calls) == ("answers topics/triples", "openai:m", 20)
    assert (found.prompt_tokens, found.completion_tokens) == (8_000, 2_000)
    assert found.cost == pytest.approx(2 * 5_000 * 4 / 1e6) and found.assumptions
