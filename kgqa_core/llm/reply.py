"""From the bytes of a reply to a completion: what is odd in it is repaired or estimated and marked, never passed on.

A text has no half of a surrogate pair and no NUL afterwards, and a token count is one that the request can have cost,
so that every completion can be stored, sent again and summed.  The reply to a conversation with tools is a message
whose text and tool calls are one JSON object, so that it is stored as every text is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kgqa_core.llm.faults import UnreadableReply
from kgqa_core.llm.protocol import Completion, Finish, GenerationParams, clean_text, cut_at_stop
from kgqa_core.llm.tokens import bound, estimate
from kgqa_core.prompts import conversation_fields

HIDDEN_TOKENS = 2**17
"""Tokens that a server may count beyond those of the prompt or of the longest output: its own instructions, thoughts
that it does not show.  A count above is no count."""

LONGEST_NUMBER = 400
"""Digits of an integer that is read; a longer one is infinite."""


def read_reply(data: bytes, params: GenerationParams, prompt: str | None = None) -> Completion:
    """The completion in a reply, with what was repaired in it.

    prompt: bounds the count of its tokens; where it is a conversation with tools, the completion is `message_text`.
    Raises UnreadableReply when the reply is no completion, or one without a message or a text that can be read.
    """
    repairs: list[str] = []
    reply = _parse(data, repairs)
    billed = "choices" in reply or "usage" in reply
    choice = _choice(reply, billed=billed)
    message = choice["message"]
    text, finish = _text(message, choice.get("finish_reason"), repairs)
    if finish != "refusal":
        text = cut_at_stop(text, params.stop)
        calls = tool_calls(message.get("tool_calls"))
        finish = finish if text.strip() or calls else "empty"
        if finish != "empty" and prompt is not None and "tools" in (conversation_fields(prompt) or ()):
            text = message_text(text, calls)
    written = Completion(text, finish)
    if params.log_probabilities and finish != "refusal":
        scored, number = _log_probability(choice)
        written = replace(written, log_probability=scored, scored_tokens=number)
    return _counted(written, reply.get("usage"), prompt, params.max_new_tokens, repairs)


def tool_calls(given: object) -> list[tuple[str, str]]:
    """Name and arguments, as the text that they came in, of each call that has both; other entries are left out."""
    calls = []
    for call in given if isinstance(given, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            calls.append((clean_text(function["name"]), clean_text(written)))
    return calls


def message_text(text: str, calls: Sequence[tuple[str, str]]) -> str:
    """A message with tool calls as one text.

    >>> message_text("", [("answer", '{"answers": ["Rome"]}')])
    '{"content": "", "tool_calls": [{"arguments": "{\\"answers\\": [\\"Rome\\"]}", "name": "answer"}]}'
    """
    listed = [{"arguments": arguments, "name": name} for name, arguments in calls]
    return json.dumps({"content": text, "tool_calls": listed}, ensure_ascii=False)


def _parse(data: bytes, repairs: list[str]) -> dict[str, Any]:
    try:
        encoding = json.detect_encoding(data)
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            text = data.decode(encoding, "replace")
            repairs.append(f"bytes that are no {encoding}")
        reply = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError) as fault:
        raise UnreadableReply("no JSON" if isinstance(fault, ValueError) else "JSON that is too deep") from fault
    if not isinstance(reply, dict):
        raise UnreadableReply("JSON that is no object")
    return reply


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


def _choice(reply: dict[str, Any], *, billed: bool) -> dict[str, Any]:
    """The first choice that has a message, or a text as the choices of /completions have."""
    choices = reply.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
            return choice
        if isinstance(choice, dict) and "text" in choice:
            return {**choice, "message": {"content": choice["text"]}}
    raise UnreadableReply("no choice with a message" if billed else "no completion", billed=billed)


def _text(message: dict[str, Any], reason: object, repairs: list[str]) -> tuple[str, Finish]:
    """What a message says and how it ended."""
    refusal, content = message.get("refusal"), _joined(message.get("content"))
    declined = isinstance(refusal, str) and bool(refusal.strip())
    if declined or reason == "content_filter":
        text, finish = str(refusal) if declined else "", "refusal"
    elif content is None:
        raise UnreadableReply(f"a content that is no text ({type(message['content']).__name__})", billed=True)
    else:
        text, finish = content, "length" if reason == "length" else "stop"
    clean = clean_text(text)
    if clean != text:
        repairs.append("characters that no text has")
    return clean, "refusal" if finish == "refusal" else "length" if finish == "length" else "stop"


def _joined(content: object) -> str | None:
    """The text of a content: as it is, of its parts, of a number; None for what is none of these."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, int | float) and not isinstance(content, bool):
        return str(content)
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return None


def _counted(
    written: Completion, usage: object, prompt: str | None, longest: int, repairs: list[str]
) -> Completion:  # fmt: skip
    """With its token counts; those that are none are estimated and marked.  A reply without usage has none."""
    if usage is None:
        return replace(written, repairs=tuple(repairs))
    if not isinstance(usage, dict):
        usage = {"prompt_tokens": math.nan, "completion_tokens": math.nan}
    most = (bound(prompt) if prompt is not None else 0, max(longest, bound(written.text)))
    counts, estimated = [], False
    for name, room, text in zip(
        ("prompt_tokens", "completion_tokens"), most, (prompt or "", written.text), strict=True
    ):  # fmt: skip
        count = _count(usage.get(name), room + HIDDEN_TOKENS)
        if count is None:
            repairs.append(f"{name} that are no count")
            count, estimated = estimate(text), True
        counts.append(count)
    return replace(
        written, prompt_tokens=counts[0], completion_tokens=counts[1], repairs=tuple(repairs), estimated=estimated
    )


def _count(value: object, most: int) -> int | None:
    """A number of tokens from 0 to `most`; 0 for none, None for what is no such number."""
    if value is None:
        return 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or not 0 <= value <= most or value != int(value):
        return None
    return int(value)


def _log_probability(choice: dict[str, Any]) -> tuple[float | None, int]:
    """The sum over the tokens that a reply scores, and their number; (None, 0) where it scores none."""
    try:
        scores = choice.get("logprobs") or {}
        tokens = scores.get("token_logprobs") or [token["logprob"] for token in scores.get("content") or []]
        values = [float(token) for token in tokens]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None, 0
    total = sum(values)
    known = bool(values) and math.isfinite(total) and max(values) < 0.01
    return (round(total, 6), len(values)) if known else (None, 0)
