"""What a model writes is told while it writes, without secrets, and the whole is the same as without a listener."""

from __future__ import annotations

import threading

import pytest

from kgqa_core.config import LlmOptions
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.protocol import Completion, GenerationParams, overheard
from kgqa_core.llm.streamed import StreamedReply, without_beginnings
from tests.support.token_server import TokenServer

TOKENS = ("The ", "boss ", "of ", "Cy ", "is ", "Ana.")
PARAMS = GenerationParams(max_new_tokens=16)


def model(server: TokenServer) -> OpenAIModel:
    return OpenAIModel("m", LlmOptions(base_url=server.base_url, retries=1), first_wait=0.01)


def test_tokens_are_told_before_the_reply_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with TokenServer(TOKENS, held=3) as server:
        told: list[str] = []

        def tell(prompt: str, text: str) -> None:
            assert prompt == "who?"
            told.append(text)
            if text == "The boss of ":
                server.more.set()  # which the server waits for

        [completion] = overheard(model(server), tell).generate(["who?"], PARAMS)
    assert completion == Completion("The boss of Cy is Ana.", "stop", 7, 6)
    assert told[-1] == completion.text and "The boss of " in told
    assert all(after.startswith(before) for before, after in zip(told, told[1:], strict=False))
    assert server.bodies[0]["stream"] and server.bodies[0]["stream_options"] == {"include_usage": True}


def test_without_a_listener_nothing_is_streamed_and_the_completion_is_the_same() -> None:
    with TokenServer(TOKENS) as server:
        [whole] = model(server).generate(["who?"], PARAMS)
        [heard] = overheard(model(server), lambda prompt, text: None).generate(["who?"], PARAMS)
    assert whole == heard and [bool(body.get("stream")) for body in server.bodies] == [False, True]


def test_an_endpoint_that_does_not_stream_answers_all_the_same() -> None:
    with TokenServer(TOKENS, refuses=True) as server:
        own, told = model(server), list[str]()
        for _ in range(2):
            [completion] = overheard(own, lambda prompt, text: told.append(text)).generate(["who?"], PARAMS)
            assert completion.text == "The boss of Cy is Ana."
    assert [bool(body.get("stream")) for body in server.bodies] == [True, False, False] and told == []


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    with TokenServer(TOKENS, cut=True) as server:
        own = model(server)
        own.has_answered()
        [completion] = overheard(own, lambda prompt, text: None).generate(["who?"], PARAMS)
    assert completion.text == "" and completion.finish in ("error", "unreadable") and len(server.bodies) >= 1


def test_a_key_that_a_server_repeats_is_told_in_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    told: list[str] = []
    with TokenServer(("your key ", "sk-0123", "456789ab", "cdef", " is known"), held=2) as server:

        def tell(prompt: str, text: str) -> None:
            told.append(text)
            server.more.set()

        [completion] = overheard(model(server), tell).generate(["who?"], PARAMS)
    assert key not in completion.text and not any("sk-" in text for text in told)
    assert told[0] == "your key " and told[-1].endswith(" is known")


def test_an_end_that_may_begin_a_secret_waits() -> None:
    assert without_beginnings("abc", ["bcd"]) == "a" and without_beginnings("abc", ["x"]) == "abc"
    assert without_beginnings("abcd", ["bcd"]) == "abcd", "a whole one is redacted, not held"


def test_events_are_read_however_their_bytes_are_cut_and_faults_are_kept() -> None:
    text = (
        'event: x\n\ndata: {"choices": [{"delta": {"content": "Zü"}, "logprobs": {"content": [{"logprob": -1}]}}]}'
        "\r\n\r\n"
        ': ping\n\ndata: {"choices": [{"delta": {"content": "rich"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    )
    told: list[str] = []
    reply = StreamedReply(told.append)
    for byte in text.encode():
        reply.feed(bytes([byte]))
    assert told == ["Zü", "Zürich"] and b'"finish_reason": "stop"' in reply.whole() and b"logprob" in reply.whole()
    broken = StreamedReply(told.append)
    broken.feed(b'data: {"choices": [{"delta": {"content": "Zu"}}]}\n\n')
    assert b"choices" not in broken.whole()
    broken.feed(b'data: {"error": {"message": "overloaded"}}\n\n')
    assert b"overloaded" in broken.whole()


def test_a_local_model_tells_its_tokens() -> None:
    own, told, threads = load_model("builtin", LlmOptions()), list[str](), set[str]()

    def tell(prompt: str, text: str) -> None:
        told.append(text)
        threads.add(threading.current_thread().name)

    prompt = "Question: What is the capital of France?\nAnswer:"
    [completion] = overheard(own, tell).generate([prompt], GenerationParams(max_new_tokens=8))
    [alone] = own.generate([prompt], GenerationParams(max_new_tokens=8))
    assert completion == alone and len(told) == completion.completion_tokens > 1
    assert told[-1] == completion.text
