"""Odd replies on their way through the cache, the budget and the file of paid answers."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions
from kgqa_core.errors import EndpointError, StorageError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE, Identity, Request, open_cache
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import PromptBatch, generate_cached, identity_of, peek
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.llm.store import open_store
from tests.support.chat_server import ChatServer
from tests.support.odd_replies import OddReply

PARAMS = GenerationParams(max_new_tokens=8)


def reply(usage: Any = None, content: Any = "Rome", **more: Any) -> bytes:
    """A chat completion."""
    choice = {"index": 0, "message": {"content": content}, "finish_reason": "stop", **more}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def wire(body: bytes, *headers: str) -> OddReply:
    """A whole reply with status 200."""
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers])
    return OddReply("", None, [head.encode() + b"\r\n\r\n" + body])


@pytest.mark.parametrize(
    "odd",
    [reply(content="half \ud83d"), reply({"prompt_tokens": 10**30}),
     reply({"prompt_tokens": 1}).replace(b"1}", b"1e999}")],
)  # fmt: skip
def test_one_odd_reply_of_fifty_five_loses_none_and_none_is_paid_twice(odd: bytes, tmp_path: Path) -> None:
    prompts = [f"p{number:02}" for number in range(55)]
    with ChatServer(odd=lambda prompt, *_: wire(odd) if prompt == "p37" else None) as server:
        for _ in range(2):
            budget = Budget(BudgetOptions(max_tokens=10**6), ledger=tmp_path / FILE)
            model = OpenAIModel("stub", LlmOptions(base_url=server.base_url), budget=budget)
            found = generate_cached(model, PromptBatch(prompts, PARAMS, cache=open_cache(tmp_path)))
            assert [each.completion.finish for each in found if each.completion] == ["stop"] * 55
        assert len(server.prompts) == 55
        assert budget.spent().tokens < 55 * 3 + 100
    assert open_cache(tmp_path).stats()["entries"] == 55


def test_repairs_are_kept_exported_and_forgotten_with_their_completion(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    request = Request(Identity("openai", "", "m", "m"), PARAMS, "who")
    odd = Completion("Rome", "stop", 1, 1, repairs=("completion_tokens that are no count",), estimated=True)
    cache.put(request, odd)
    cache.flush()
    assert cache.get([request])[request.key].completion == odd
    assert cache.stats()["repaired"] == 1
    cache.export(tmp_path / "all.jsonl")
    entry = json.loads((tmp_path / "all.jsonl").read_text())
    assert entry["repairs"] == list(odd.repairs) and entry["estimated"] is True
    cache.clear()
    assert cache.stats()["repaired"] == 0


@pytest.mark.parametrize(
    "bad", [Completion("x", prompt_tokens=10**30), Completion("x", log_probability=float("nan")),
            Completion([]), Completion("x", finish=None)]  # type: ignore[arg-type]
)  # fmt: skip
def test_a_completion_that_cannot_be_stored_is_spent_and_its_neighbours_are_kept(
    bad: Completion, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = open_cache(tmp_path)
    requests = [Request(Identity("openai", "", "m", "m"), PARAMS, f"p{number}") for number in range(20)]
    for number, request in enumerate(requests):
        cache.put(request, bad if number == 7 else Completion(f"a{number}"))
    cache.flush()
    found = cache.get(requests)
    assert [found[request.key].completion.text for request in requests[:7] + requests[8:]] == [
        f"a{number}" for number in range(20) if number != 7
    ]
    spent = found[requests[7].key]
    assert spent.completion.finish == "unreadable" and "cannot be stored" in (spent.reason or "")
    assert caplog.text.count("cannot be stored") == 1


def test_a_row_that_cannot_be_written_fails_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "rows.sqlite", "CREATE TABLE rows (number INTEGER NOT NULL)")

    def write(connection: Any, numbers: Any) -> list[None]:
        connection.executemany("INSERT INTO rows VALUES (?)", [(number,) for number in numbers])
        return [None] * len(numbers)

    for number in (1, 2, 10**30, None, 3):
        store.post(write, number)
    with pytest.raises(StorageError, match="a row cannot be written .*all others are written"):
        store.flush()
    store.flush()
    assert store.read("SELECT number FROM rows ORDER BY 1") == [(1,), (2,), (3,)]


def test_a_completion_that_cannot_be_read_is_a_spent_attempt_with_its_reason(tmp_path: Path) -> None:
    with ChatServer(odd=lambda prompt, *_: wire(b'{"choices": []}') if prompt == "bad" else None) as server:
        for number in range(3):
            model = OpenAIModel("stub", LlmOptions(base_url=server.base_url, retries=1), first_wait=0.001)
            found = generate_cached(model, PromptBatch(["good", "bad"], PARAMS, cache=open_cache(tmp_path), attempts=2))
            assert found[0].completion is not None and found[0].completion.text == "echo good"
            assert found[1].completion is None and found[1].cached == (number > 0)
            assert found[1].spent == ("unreadable reply: no choice with a message",) * 2
        assert server.prompts.count("bad") == 4, "two attempts of two tries each, and never again"
    [_, given_up] = peek(
        identity_of(model), PromptBatch(["good", "bad"], PARAMS, cache=open_cache(tmp_path), attempts=2)
    )
    assert given_up.cached and given_up.spent == found[1].spent


def test_an_endpoint_that_never_answered_spends_no_attempts(tmp_path: Path) -> None:
    with ChatServer(odd=lambda *_: wire(b'{"choices": []}')) as server:
        model = OpenAIModel("stub", LlmOptions(base_url=server.base_url, retries=0))
        assert generate_cached(model, PromptBatch(["a"], PARAMS, cache=open_cache(tmp_path)))[0].failed
    assert open_cache(tmp_path).stats()["entries"] == 0


def test_an_odd_count_stays_booked_in_full() -> None:
    odd = wire(reply({"prompt_tokens": -(10**30), "completion_tokens": 1}))
    with ChatServer(odd=lambda *_: odd) as server:
        budget = Budget(BudgetOptions(max_tokens=1000))
        model = OpenAIModel("stub", LlmOptions(base_url=server.base_url), budget=budget)
        reserved = budget.reserve(model.name, 3 + 64, 8)
        budget.settle(reserved, paid=False)
        assert model.generate(["who"], PARAMS)[0].text == "Rome"
        assert budget.spent().tokens == reserved.tokens


def test_the_log_names_the_first_prompt_and_what_was_odd(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with ChatServer(odd=lambda *_: wire(reply(content="\ud83d"))) as server:
        OpenAIModel("stub", LlmOptions(base_url=server.base_url)).generate(["Who\x1b[31m?"], PARAMS)
    assert "1 replies were odd and were repaired; the first, to 'Who\ufffd[31m?': characters" in caplog.text


@pytest.mark.parametrize(("status", "ends"), [("404", False), ("403", False), ("401", True)])
def test_a_refusal_of_one_prompt_ends_no_run_of_an_endpoint_that_has_answered(
    status: str, ends: bool, tmp_path: Path
) -> None:
    refused = OddReply("", None, [f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()])
    prompts = ["a", "bad", "c", "d", "e"]
    with ChatServer(odd=lambda prompt, *_: refused if prompt == "bad" else None) as server:
        model = OpenAIModel("stub", LlmOptions(base_url=server.base_url, retries=0, concurrency=1))
        if ends:
            with pytest.raises(EndpointError, match=f"status {status}.*'bad'"):
                generate_cached(model, PromptBatch(prompts, PARAMS, cache=open_cache(tmp_path)))
            return
        for _ in range(2):  # the second meets it first
            model = OpenAIModel("stub", LlmOptions(base_url=server.base_url, retries=0, concurrency=1))
            found = generate_cached(model, PromptBatch(prompts, PARAMS, cache=open_cache(tmp_path)))
            assert [each.failed for each in found] == [False, True, False, False, False]
        assert len(server.prompts) == 6
