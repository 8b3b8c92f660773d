"""A reply that comes as server-sent events, as the whole reply that it would have been."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any


class StreamedReply:
    """Takes the bytes of a reply as they come.  on_text: is told the text so far whenever there is more of it."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._rest = b""
        self._text, self._refusal = "", ""
        self._log_probabilities: list[Any] = []
        self._finish: Any = None
        self._usage: Any = None
        self._fault: dict[str, Any] | None = None
        self.events = 0

    def feed(self, data: bytes) -> None:
        """The next bytes; what is no event is passed over."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        before = len(self._text)
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[len(b"data:") :].strip())
        if len(self._text) > before:
            self._on_text(self._text)

    def _event(self, data: bytes) -> None:
        try:
            event = json.loads(data)
        except ValueError:  # `[DONE]`, or none of the protocol
            return
        if not isinstance(event, dict):
            return
        self.events += 1
        self._usage = event.get("usage") or self._usage
        if "error" in event:
            self._fault = event
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta = {"content": choice["text"]} if "text" in choice else choice.get("delta")
        for name in ("content", "refusal"):
            text = delta.get(name) if isinstance(delta, dict) else None
            if isinstance(text, str):
                self._text, self._refusal = (
                    (self._text + text, self._refusal) if name == "content" else (self._text, self._refusal + text)
                )
        self._finish = choice.get("finish_reason") or self._finish
        scores = choice.get("logprobs")
        for name in ("content", "token_logprobs"):
            if isinstance(scores, dict) and isinstance(scores.get(name), list):
                self._log_probabilities += [{"logprob": x} if name == "token_logprobs" else x for x in scores[name]]

    def whole(self) -> bytes:
        """The reply as JSON; without a choice where it ended before its end, which nothing reads as an answer."""
        if self._fault is not None:
            return json.dumps(self._fault).encode()
        reply: dict[str, Any] = {"usage": self._usage} if self._usage else {}
        if self._finish is not None:
            message = {"role": "assistant", "content": self._text, "refusal": self._refusal or None}
            choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self._finish}
            if self._log_probabilities:
                choice["logprobs"] = {"content": self._log_probabilities}
            reply["choices"] = [choice]
        return json.dumps(reply).encode()


def without_beginnings(text: str, secrets: Sequence[str]) -> str:
    """The text without an end with which a secret may begin.

    >>> without_beginnings("the key is sk-12", ["sk-1234567890"])
    'the key is '
    """
    held = (n for secret in secrets for n in range(1, len(secret)) if text.endswith(secret[:n]))
    return text[: len(text) - max(held, default=0)]
