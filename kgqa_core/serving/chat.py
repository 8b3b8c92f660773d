"""OpenAI's chat protocol over an answer: its text with the proof as citations, whole or in pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kgqa_core.answering.reply import Answer, refusal_text
from kgqa_core.errors import InputError
from kgqa_core.question_limits import CHARACTERS, TURNS
from kgqa_core.serving.ask_record import Ask
from kgqa_core.serving.messages import ChatMessage, ChatRequest, served_json

_DECLINES = ("I am not sure", "I did not understand")
CITED = 5
"""Triples of the proof that a text cites at most."""
UNDERSTOOD = "\n(understood as: "
"""What begins the line that says how a question that refers back was read."""


def question_of(request: ChatRequest) -> Ask:
    """The question of a chat: its last message, which is the user's, with the latest turns before.

    A number behind a reply that offers readings asks the question before it again, in that reading.
    Raises InputError where the last message is not the user's or is empty.
    """
    spoken, reading = list[ChatMessage](), 0
    for message in (one for one in request.messages if one.role in ("user", "assistant")):
        number = message.text.strip().rstrip(".)")
        if len(spoken) > 1 and message.role == "user" and _offers(spoken[-1], number) and spoken[-2].role == "user":
            spoken.pop()
            reading = int(number)
        else:
            spoken.append(message)
            reading = 0
    if not spoken or spoken[-1].role != "user" or not spoken[-1].text.strip():
        raise InputError("the last message must be the user's and have a text; it is the question")
    dialogue = tuple(_turn(message) for message in spoken[-TURNS - 1 : -1])
    topics, least = tuple(request.topics), request.min_confidence
    return Ask(spoken[-1].text.strip(), topics, dialogue, request.knowledge, least, reading)


def _offers(message: ChatMessage, number: str) -> bool:
    """Whether a message is a decline that offers a reading of a number."""
    return message.text.startswith(_DECLINES) and number.isdigit() and f"\n{number}. " in message.text


def _turn(message: ChatMessage) -> tuple[str, str]:
    text = message.text
    if message.role == "assistant":  # citations are no part of what was said, and an answer may be a long list
        end = "\n\n" if text.startswith(_DECLINES) else "\n\n[1] "
        return "agent", text.split(end, 1)[0].split(UNDERSTOOD, 1)[0].replace(" [1]", "")[:CHARACTERS]
    return "user", text


def answer_text(answer: Answer) -> str:
    """What a chat shows: the answer with its proof as numbered citations, or why there is none."""
    if answer.answer is None or not answer.listed:
        why, *lines = refusal_text(answer.to_dict()).split("\n")
        end = "" if why.endswith("?") else "."
        return "\n\n".join(filter(None, [f"{why[0].upper()}{why[1:]}{end}", "\n".join(lines)]))
    words = answer.wording or ", ".join(answer.listed)
    cited = answer.proof[:CITED]
    read = f"{UNDERSTOOD}{answer.understood})" if answer.understood else ""
    if not cited:
        return words + read
    rest = answer.proof_rows - len(cited)
    lines = [f"[{number}] {text}" for number, text in enumerate(cited, start=1)]
    lines += [f"… and {rest:,} more"] if rest > 0 else []
    return f"{words} [1]{read}\n\n" + "\n".join(lines)


def usage(ask: Ask, text: str) -> dict[str, int]:
    """Words read and written, where the protocol has tokens: a graph's answer costs none."""
    read = len(ask.question.split()) + sum(len(turn.split()) for _, turn in ask.dialogue)
    written = len(text.split())
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def completion(identity: str, created: int, model: str, ask: Ask, answer: Answer, record: dict[str, Any]) -> Any:
    """A whole chat completion; `kgqa` has the answer as `POST /ask` gives it."""
    text = answer_text(answer)
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": identity, "object": "chat.completion", "created": created, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": usage(ask, text), "kgqa": record,
    }  # fmt: skip


class Chunks:
    """The same as server-sent events; of a step before the last, `done`, one without text that has it in `kgqa_step`,
    but for what a language model writes, which is text at once.

    What the whole text has more than what was written follows at the end; where it is another, such as a decline, all
    of it in a new paragraph.  `kgqa` is in the one that ends the text.
    """

    def __init__(self, identity: str, created: int, model: str, ask: Ask, with_usage: bool) -> None:
        self._head = {"id": identity, "object": "chat.completion.chunk", "created": created, "model": model}
        self._ask, self._with_usage, self._sent = ask, with_usage, ""

    def __call__(self, step: str, data: Any) -> Iterator[str]:
        """The events of a step."""
        if step == "written":
            yield self._text(data["text"])
            return
        if step != "done":
            yield self._event(_choice(), kgqa_step={"step": step, **data})
            return
        text = answer_text(data.answer)
        rest = text.removeprefix(self._sent)
        if self._sent and not text.startswith(self._sent):
            rest = f"\n\n{text}"
        for piece in re.findall(r"\s*\S+\s*", rest):
            yield self._text(piece)
        yield self._event(_choice("stop"), kgqa=served_json(data))
        if self._with_usage:
            yield self._event(usage=usage(self._ask, text))
        yield "data: [DONE]\n\n"

    def _text(self, piece: str) -> str:
        first = {} if self._sent else {"role": "assistant"}
        self._sent += piece
        return self._event(_choice(**first, content=piece))

    def _event(self, *choices: dict[str, Any], **more: Any) -> str:
        return f"data: {json.dumps({**self._head, 'choices': choices, **more}, ensure_ascii=False)}\n\n"


def _choice(finish: str | None = None, **delta: str) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def ask_events(step: str, data: Any) -> Iterator[str]:
    """The events of `POST /ask`: the steps, then `answer`, `proof` and, with the whole reply, `done`."""
    events = {step: data}
    if step == "done":
        record = served_json(data)
        proof = {name: record.get(name) for name in ("proof", "proof_rows")}
        answer = {
            name: record.get(name) for name in ("answer", "answers", "confidence", "declined", "reason", "missing")
        }
        events = {"answer": answer, "proof": proof, "done": record}
    for name, value in events.items():
        yield f"event: {name}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n"
