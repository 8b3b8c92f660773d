"""Endpoints that have only /completions, as base models have: the prompt is one text, all else is as of a chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgqa_core.answering.registry import check_explorer
from kgqa_core.config import BudgetOptions, LlmOptions, make_profile
from kgqa_core.errors import BudgetReached, ConfigError, EndpointError, ModelError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import check_chat, identify, load_model
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import PromptBatch, generate_cached, identity_of
from kgqa_core.llm.protocol import Completion, GenerationParams, overheard
from kgqa_core.llm.reply import read_reply
from kgqa_core.prompts import answer_prompt, chat, conversation
from kgqa_core.symbolic.chooser import PlanChooser
from tests.support.chat_server import ChatServer, Fault
from tests.support.token_server import TokenServer

PARAMS = GenerationParams(max_new_tokens=8)
SCORED = GenerationParams(max_new_tokens=8, log_probabilities=True)


def options(base_url: str, **more: object) -> LlmOptions:
    endpoints = {"base": {"base_url": base_url, "api": "completions"}, "chat": {"base_url": base_url}}
    return LlmOptions.model_validate({"endpoints": endpoints, "timeout_seconds": 5.0, "retries": 2} | more)


def make(base_url: str, budget: Budget | None = None, **more: object) -> OpenAIModel:
    return OpenAIModel("opt", options(base_url, **more), "base", budget=budget, first_wait=0.01)


def test_a_prompt_is_sent_as_one_text_and_its_continuation_is_the_completion() -> None:
    prompts = ["Question: who? Answer:", chat("Be brief.", "User: Who?"), answer_prompt("Who?", "(a, b, c)")]
    with ChatServer(lambda prompt: f" {prompt[:2]} x", lacks="/chat/completions") as server:
        out = make(server.base_url).generate(prompts, GenerationParams(8, stop=("\n",), seed=3))
    assert [body["prompt"] for body in server.bodies] == [
        "Question: who? Answer:", "Be brief.\n\nUser: Who?\nAgent:",
        'Given the following context: "(a, b, c)" Answer the question: Who?. Answer:',
    ]  # fmt: skip
    assert out[0] == Completion(" Qu x", "stop", 3, 2)
    body = server.bodies[0]
    assert not body.keys() & {"messages", "logprobs"}
    assert (body["model"], body["max_tokens"], body["temperature"], body["stop"]) == ("opt", 8, 0, ["\n"])


@pytest.mark.parametrize(
    "fault",
    [Fault(status=429), Fault(status=500), Fault(hang_up=True), Fault(cut=True), Fault(garbage=True),
     Fault(choices=False), Fault(delay=1.0)],
    ids=["429", "500", "hang-up", "cut", "garbage", "no choices", "slow"],
)  # fmt: skip
def test_a_passing_fault_is_tried_again(fault: Fault) -> None:
    with ChatServer() as server:
        server.fail("b", fault)
        out = make(server.base_url, timeout_seconds=0.4).generate(["a", "b", "c"], PARAMS)
    assert [completion.text for completion in out] == ["echo a", "echo b", "echo c"]
    assert server.prompts.count("b") == 2


@pytest.mark.parametrize(
    ("choice", "text", "finish"),
    [({"text": " Rome", "finish_reason": "length"}, " Rome", "length"), ({"text": ""}, "", "empty"),
     ({"text": None}, "", "empty"), ({"text": "R\ud83dx\0"}, "R\ufffdx\ufffd", "stop"), ({"text": 7}, "7", "stop")],
)  # fmt: skip
def test_texts_are_cleaned_as_those_of_a_chat(choice: dict[str, object], text: str, finish: str) -> None:
    read = read_reply(json.dumps({"choices": [5, choice]}).encode(), PARAMS, "p")
    assert (read.text, read.finish) == (text, finish)


def test_probabilities_are_summed_whether_streamed_or_whole() -> None:
    with ChatServer(lambda prompt: "New York") as server:
        [whole] = make(server.base_url).generate(["a"], SCORED)
    assert (whole.log_probability, whole.scored_tokens, server.bodies[0]["logprobs"]) == (-1.0, 2, 1)
    for scores in ({"token_logprobs": [None, -1.0]}, {"token_logprobs": []}, {"token_logprobs": "x"}, 7):
        reply = json.dumps({"choices": [{"text": "x", "logprobs": scores}]}).encode()
        assert read_reply(reply, SCORED) == Completion("x")
    with TokenServer(["New ", "York"]) as tokens:
        told: list[str] = []
        own = overheard(make(tokens.base_url), lambda prompt, text: told.append(text))
        [streamed] = own.generate(["a"], SCORED)
    assert streamed == Completion("New York", "stop", 7, 2, log_probability=-0.5, scored_tokens=2)
    assert told[-1] == "New York" and tokens.bodies[0]["stream"]


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    with TokenServer(["New ", "York"], cut=True) as server:
        own = make(server.base_url, retries=1)
        own.has_answered()
        [completion] = overheard(own, lambda prompt, text: None).generate(["a"], PARAMS)
    assert completion.text == "" and len(server.bodies) == 2


def test_a_completion_is_cached_apart_from_the_chat_of_the_same_server(tmp_path: Path) -> None:
    with ChatServer() as server:
        llm = options(server.base_url)
        for spec in ("openai:m@base", "openai:m@chat") * 2:
            cache = open_cache(tmp_path)
            generate_cached(load_model(spec, llm), PromptBatch(["a", "b"], PARAMS, cache=cache))
            assert identify(spec, llm) == identity_of(load_model(spec, llm))
    assert ["prompt" in body for body in server.bodies] == [True, True, False, False]


def test_the_budget_stops_before_the_call_that_would_exceed_it() -> None:
    with ChatServer() as server, pytest.raises(BudgetReached):
        make(server.base_url, Budget(BudgetOptions(max_calls=2)), concurrency=1).generate(["a", "b", "c"], PARAMS)
    assert len(server.prompts) == 2


def test_a_server_of_a_base_model_says_where_it_is_to_be_named() -> None:
    with ChatServer(lacks="/chat/completions") as server:
        with pytest.raises(EndpointError, match="api: completions"):
            OpenAIModel("opt", options(server.base_url), "chat").generate(["a"], PARAMS)
        assert make(server.base_url).generate(["a"], PARAMS)[0].text == "echo a"
    with ChatServer(lacks="/v1/completions") as server, pytest.raises(EndpointError) as fault:
        make(server.base_url).generate(["a"], PARAMS)
    assert "/v1/completions does not answer" in str(fault.value) and "api: completions" not in str(fault.value)


def test_what_needs_a_chat_is_refused_by_name() -> None:
    llm = options("http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"'openai:m@base' is behind /completions.*llm\.endpoints\.base\.api"):
        PlanChooser.open("openai:m@base", llm=llm)
    assert PlanChooser.open("openai:m@chat", llm=llm).model.name == "openai:m@chat"
    with pytest.raises(ModelError, match="behind /completions"):
        check_explorer("agent:openai:m@base", llm)
    for fine in ("builtin", "hf:x", "openai:m@chat", "openai:m"):
        check_chat(fine, llm)
    with pytest.raises(ModelError, match="behind /completions"):
        make("http://127.0.0.1:9/v1").generate([conversation({"messages": []})], PARAMS)


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(ConfigError, match="api"):
        make_profile({"llm": {"endpoints": {"x": {"base_url": "http://h/v1", "api": "complete"}}}})
