"""The two ways in which a form of reply travels: as a tool call, and as structured output by a JSON schema.

A policy keeps a dialogue of turns; a protocol writes it as the messages of a chat-completions request and reads the
reply.  Only what was read is sent back, in our own wording, so that a request depends on nothing that a server makes
up, such as the ids of its calls, and equal explorations share their cached completions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kgqa_core.papers.peers.agent.forms import TEXT, ParsedReply, ReplyForm, UnreadableStep, object_schema
from kgqa_core.prompts import conversation, without_thoughts

NAME, THOUGHT = "operation", "thought"
"""Properties of a reply by schema beside the arguments: which form it is, and what the model thinks first."""


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """What a model replied, and what it was answered; reply is None where it could not be read."""

    reply: ParsedReply | None
    observation: str


class ReplyProtocol(Protocol):
    """Writes requests and reads replies."""

    name: str

    def request(self, system: str, user: str, turns: Sequence[DialogueTurn], forms: Sequence[ReplyForm]) -> str:
        """The prompt that asks for one of some forms after a dialogue."""

    def read(self, text: str, forms: Sequence[ReplyForm]) -> ParsedReply:
        """The reply in a completion.  Raises UnreadableStep."""


class ToolCalls:
    """Forms as functions that the model must call (`tools`, `tool_choice`)."""

    name = "tools"

    def request(self, system: str, user: str, turns: Sequence[DialogueTurn], forms: Sequence[ReplyForm]) -> str:
        """Each turn is an assistant's message with its one call, and the tool's message that answers it."""
        messages = _opening(system, user)
        for number, turn in enumerate(turns, start=1):
            if turn.reply is None:
                messages.append({"role": "user", "content": turn.observation})
                continue
            call = {"name": turn.reply.form, "arguments": json.dumps(turn.reply.arguments, ensure_ascii=False)}
            call_id = f"call{number:05d}"  # nine letters and digits, which all servers take
            messages += [
                {
                    "role": "assistant", "content": turn.reply.thought,
                    "tool_calls": [{"id": call_id, "type": "function", "function": call}],
                },
                {"role": "tool", "tool_call_id": call_id, "content": turn.observation},
            ]  # fmt: skip
        functions = [
            {"name": form.name, "description": form.description, "parameters": form.schema, "strict": True}
            for form in forms
        ]
        choice: Any = "required"
        if len(forms) == 1:
            choice = {"type": "function", "function": {"name": forms[0].name}}
        return conversation(
            {
                "messages": messages,
                "tools": [{"type": "function", "function": function} for function in functions],
                "tool_choice": choice,
                "parallel_tool_calls": False,
            }
        )

    def read(self, text: str, forms: Sequence[ReplyForm]) -> ParsedReply:
        """The first call; a message without one, or with arguments that do not fit, is unreadable."""
        message = json.loads(text)
        if not message["tool_calls"]:
            raise UnreadableStep("a message without a tool call")
        call = message["tool_calls"][0]
        form = _form(call["name"], forms)
        return ParsedReply(
            form.name, form.check(_object(call["arguments"])), without_thoughts(message["content"]).strip()
        )


class JsonSchema:
    """Forms as one JSON schema that the reply follows (`response_format`)."""

    name = "json"

    def request(self, system: str, user: str, turns: Sequence[DialogueTurn], forms: Sequence[ReplyForm]) -> str:
        """Each turn is an assistant's message, an object, and a user's message that begins with `Observation:`."""
        described = "\n".join(f"- {form.name}({', '.join(form.properties)}): {form.description}" for form in forms)
        instruction = (
            f"{system}\nReply with one JSON object; arguments that an operation does not have are empty.\n{described}"
        )
        messages = _opening(instruction, user)
        for turn in turns:
            if turn.reply is None:
                messages.append({"role": "user", "content": turn.observation})
                continue
            reply = {THOUGHT: turn.reply.thought, NAME: turn.reply.form, **turn.reply.arguments}
            messages += [
                {"role": "assistant", "content": json.dumps(reply, ensure_ascii=False)},
                {"role": "user", "content": f"Observation: {turn.observation}"},
            ]
        properties = {name: schema for form in forms for name, schema in form.properties.items()}
        operation = {**TEXT, "enum": [form.name for form in forms]}
        schema = object_schema({THOUGHT: TEXT, NAME: operation, **properties})
        json_schema = {"name": "reply", "strict": True, "schema": schema}
        return conversation(
            {"messages": messages, "response_format": {"type": "json_schema", "json_schema": json_schema}}
        )

    def read(self, text: str, forms: Sequence[ReplyForm]) -> ParsedReply:
        """The object, also from a fenced block; one whose arguments do not fit is unreadable."""
        written = without_thoughts(text).strip()
        if written.startswith("```"):
            written = written.strip("`").removeprefix("json").strip()
        arguments = _object(written)
        form = _form(arguments.get(NAME), forms) if len(forms) > 1 or NAME in arguments else forms[0]
        return ParsedReply(form.name, form.check(arguments), str(arguments.get(THOUGHT) or "").strip())


PROTOCOLS: dict[str, ReplyProtocol] = {protocol.name: protocol for protocol in (ToolCalls(), JsonSchema())}
"""By `agent.protocol`."""


def _opening(system: str, user: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _form(name: object, forms: Sequence[ReplyForm]) -> ReplyForm:
    for form in forms:
        if form.name == name:
            return form
    raise UnreadableStep(f"{str(name)[:60]!r}, which is none of {', '.join(form.name for form in forms)}")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableStep("arguments that are no JSON") from None
    if not isinstance(value, dict):
        raise UnreadableStep("JSON that is no object")
    return value
