"""What is read from odd replies, and what is repaired in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kgqa_core.config import LlmOptions
from kgqa_core.llm.faults import UnreadableReply
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.protocol import Completion, GenerationParams, clean_text
from kgqa_core.llm.reply import HIDDEN_TOKENS, read_reply
from kgqa_core.prompts import chat, conversation, conversation_fields

PARAMS = GenerationParams(max_new_tokens=8)


def short(value: object) -> str:
    """The beginning of a parameter, for the name of its test."""
    return ascii(value)[:30]


def reply(usage: Any = None, content: Any = "Rome", **more: Any) -> bytes:
    """A chat completion."""
    choice = {"index": 0, "message": {"content": content}, "finish_reason": "stop", **more}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


@pytest.mark.parametrize(
    ("text", "clean"),
    [("Rome", "Rome"), ("a\nb\tc", "a\nb\tc"), ("\ud83d", "\ufffd"), ("a\ud83db", "a\ufffdb"), ("", ""), ("😀", "😀"),
     ("\ude00\ud83d", "\ufffd\ufffd"), ("\ud83d\ude00", "😀"), ("a\0b", "a\ufffdb"), ("\ud83d\0", "\ufffd\ufffd")],
)  # fmt: skip
def test_a_text_has_neither_half_surrogate_pairs_nor_nuls(text: str, clean: str) -> None:
    assert clean_text(text) == clean
    made = read_reply(reply(content=text), PARAMS)
    assert made.text == clean and bool(made.repairs) == (text != clean and text != "\ud83d\ude00")


@pytest.mark.parametrize(
    "count",
    ["1e999", "-1e999", "NaN", "-1", str(10**30), str(-(10**30)), "9" * 5000, "1.5", '"many"', "[]", "[3]", "{}",
     "true", str(2**63), str(2**31), '"٣"'],
    ids=short,
)  # fmt: skip
def test_a_count_that_is_none_is_estimated_and_marked(count: str) -> None:
    body = reply({"prompt_tokens": "HERE", "completion_tokens": 2}).replace(b'"HERE"', count.encode())
    made = read_reply(body, PARAMS, "one two three four")
    assert (made.text, made.prompt_tokens, made.completion_tokens, made.estimated) == ("Rome", 5, 2, True)
    assert made.repairs == ("prompt_tokens that are no count",)


@pytest.mark.parametrize(
    ("count", "read"), [(7, 7), (7.0, 7), ("7", 7), (None, 0), (0, 0), (HIDDEN_TOKENS, HIDDEN_TOKENS)]
)
def test_a_count_is_read_as_it_is(count: Any, read: int) -> None:
    made = read_reply(reply({"prompt_tokens": count, "completion_tokens": 2}), PARAMS, "who")
    assert made == Completion("Rome", "stop", read, 2)


@pytest.mark.parametrize("usage", [[], "many", 3, True, float("nan")])
def test_a_usage_that_is_none_is_estimated(usage: Any) -> None:
    made = read_reply(reply(usage), PARAMS, "who")
    assert (made.prompt_tokens, made.completion_tokens, made.estimated) == (1, 1, True)


@pytest.mark.parametrize(
    ("body", "text"),
    [(b"\xef\xbb\xbf" + reply(), "Rome"), (reply().decode().encode("utf-16"), "Rome"),
     (reply().replace(b"Rome", b"R\xffme"), "R\ufffdme"), (reply(content=None), ""), (reply(content=5), "5"),
     (reply(content=["Ro", {"text": "me"}, None]), "Rome"),
     (reply(content=[{"text": "\ud83d"}, {"text": "\ude00"}]), "😀"),
     (json.dumps({"choices": [None, {"message": {"content": "Rome"}}]}).encode(), "Rome"),
     (reply(logprobs=5), "Rome"), (reply(logprobs={"content": [{"logprob": "x"}]}), "Rome")],
    ids=short,
)  # fmt: skip
def test_what_can_be_read_is_read(body: bytes, text: str) -> None:
    made = read_reply(body, GenerationParams(log_probabilities=True))
    assert (made.text, made.log_probability, made.scored_tokens) == (text, None, 0)


@pytest.mark.parametrize(
    ("body", "billed"),
    [(b'{"choices": []}', True), (reply(content={}), True), (reply(content=True), True), (b'{"usage": {}}', True),
     (b"{not json", False), (b'{"error": "busy"}', False), (b"[" * 100_000, False), (b"5", False), (b"", False)],
    ids=short,
)  # fmt: skip
def test_what_cannot_be_read_says_whether_it_was_billed(body: bytes, billed: bool) -> None:
    with pytest.raises(UnreadableReply) as caught:
        read_reply(body, PARAMS)
    assert caught.value.billed == billed


def test_reply_to_a_conversation_with_tools_is_its_message_as_json() -> None:
    prompt = conversation({"messages": [{"role": "user", "content": "Who?"}], "tools": [{"type": "function"}]})
    call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": '{"answers": ["Ann"]}'}}
    odd = [{"type": "function"}, 7, {"function": {"name": "look", "arguments": {"entity": "Ann"}}}]
    message = {"role": "assistant", "content": None, "tool_calls": [call, *odd]}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    found = read_reply(body, GenerationParams(), prompt)
    assert found.finish == "stop" and json.loads(found.text) == {
        "content": "",
        "tool_calls": [
            {"name": "answer", "arguments": '{"answers": ["Ann"]}'},
            {"name": "look", "arguments": '{"entity": "Ann"}'},
        ],
    }
    plain = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Ann"}}]}).encode()
    assert json.loads(read_reply(plain, GenerationParams(), prompt).text) == {"content": "Ann", "tool_calls": []}
    assert read_reply(plain, GenerationParams(), "Who?").text == "Ann"
    silent = json.dumps({"choices": [{"message": {"role": "assistant", "content": None}}]}).encode()
    assert read_reply(silent, GenerationParams(), prompt).finish == "empty"


def test_conversation_is_sent_with_its_own_messages_and_tools() -> None:
    fields = {
        "messages": [{"role": "tool", "content": "ü", "tool_call_id": "1"}],
        "tools": [],
        "tool_choice": "required",
    }
    prompt = conversation(fields)
    assert conversation_fields(prompt) == fields and conversation_fields(chat("a", "b")) is None
    assert prompt == conversation(dict(reversed(fields.items()))), "equal requests are one prompt"
    body = OpenAIModel("m", LlmOptions(base_url="http://localhost:1/v1")).body(prompt, GenerationParams(seed=3))
    assert body == {**fields, "model": "m", "temperature": 0.0, "max_tokens": 32, "seed": 3}
