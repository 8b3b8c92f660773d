"""Forecasts of the answering stage are what it then asks, by the server's count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.answering.answer import answer
from kgqa_core.answering.forecast import forecast_answers, forecast_exploration
from kgqa_core.config import AgentOptions, AnsweringOptions, LlmOptions, Price
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.llm.forecast import CHAT
from kgqa_core.llm.tokens import estimate
from kgqa_core.types import Question
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
        "cache": tmp_path / "cache",
    }


def test_the_plan_counts_what_the_server_then_sees(given: dict[str, Any], tmp_path: Path) -> None:
    with ChatServer(reply=lambda prompt: "Rome") as server:
        given["llm"] = LlmOptions(base_url=server.base_url, retries=0, concurrency=1)
        before = forecast_answers(**given)
        server.fail("number 3", Fault(status=500))
        (tmp_path / "one").mkdir()
        answer(tmp_path / "one", **given)
        assert (before.calls, before.cached, before.model, before.stage) == (
            len(server.prompts), 0, "openai:m", "answers rigel/triples",
        )  # fmt: skip
        assert before.prompt_tokens == sum(estimate(prompt) + CHAT[1] for prompt in server.prompts)
        again = forecast_answers(**given)
        assert (again.calls, again.cached, again.prompt_tokens) == (1, 9, estimate(server.prompts[3]) + CHAT[1])
        (tmp_path / "two").mkdir()
        answer(tmp_path / "two", **given)
        assert len(server.prompts) == before.calls + again.calls
    assert forecast_answers(**given).calls == 0


def test_money_follows_the_prices_and_the_median_gold_answer_of_training(given: dict[str, Any]) -> None:
    found = forecast_answers(**given)
    assert found.completion_tokens == 10 * estimate("Rome")
    assert found.cost == pytest.approx((found.prompt_tokens + 10 * found.completion_tokens) / 1e6)
    assert "answers as long as the median gold answer" in found.assumptions


def test_the_limit_is_that_of_the_stage(given: dict[str, Any]) -> None:
    given["options"] = AnsweringOptions(answerer="openai:m", limit=4)
    assert forecast_answers(**given).calls == 4


def test_texts_stand_for_knowledge_that_is_not_written_yet(given: dict[str, Any]) -> None:
    given |= {"knowledge": None, "name": "rigel/rewritten"}
    without = forecast_answers(**given)
    assert without.prompt_tokens == sum(estimate(BARE.format(number)) + CHAT[1] for number in range(10))
    guessed = forecast_answers(**given, texts={"q00": "told " * 50})
    assert guessed.prompt_tokens > without.prompt_tokens + 50
    assert any("not written yet" in text for text in guessed.assumptions)
    assert not any("not written yet" in text for text in forecast_answers(**given | {"name": "none"}).assumptions)


def test_prompts_that_another_experiment_asks_are_planned_once(given: dict[str, Any]) -> None:
    planned: set[str] = set()
    calls = [
        forecast_answers(**given | {"name": name, "knowledge": knowledge}, planned=planned).calls
        for name, knowledge in (
            ("none", None),
            ("rigel/triples", given["knowledge"]),
            ("rigel/triples", given["knowledge"]),
        )
    ]
    assert calls == [10, 9, 0] and len(planned) == 19


def test_plan_of_an_agent_is_what_its_limits_allow(tmp_path: Path) -> None:
    """Two questions with a topic and one without, at most 10 calls and 5,000 tokens each."""
    asked = [Question(f"q{number}", "Who?", topic_entities=(number,) * (number < 2)) for number in range(3)]
    write_questions(tmp_path, asked)
    options = AnsweringOptions(answerer="agent:openai:m")
    llm = LlmOptions(prices={"openai:m": Price(prompt=1.0, completion=4.0)})
    agent = AgentOptions(calls=10, tokens=5_000, max_new_tokens=100)
    found = forecast_exploration(
        questions=tmp_path, name="topics/triples", options=options, agent=agent, llm=llm, seed=7
    )  # fmt: skip
    assert (found.stage, found.model, found.calls) == ("answers topics/triples", "openai:m", 20)
    assert (found.prompt_tokens, found.completion_tokens) == (8_000, 2_000)
    assert found.cost == pytest.approx(2 * 5_000 * 4 / 1e6) and found.assumptions
