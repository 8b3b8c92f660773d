"""Prompts of the language models, to the letter of the papers (Sen et al. 2023, section 4; Wu et al. 2023; Huang et
al. 2024).

A template is data: its name and version are recorded with every answer, and a changed wording gets a new version.

A question keeps its own punctuation.  The template with facts puts a full stop behind the question as the paper does,
so a question that ends in a question mark reads `…?. Answer:`; the words of a question are never altered.

A prompt is one text, also where it is a chat of a system and a user message: `chat` joins the two by a sign that no
other prompt begins with, and each backend sends them as its models want them (`messages`, `plain`).  A conversation of
many messages, with tools or a schema of the reply, is such a text too (`conversation`), so that it is cached and booked
as every prompt is; only endpoints take one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

WITH_FACTS: Final = 'Given the following context: "{context}" Answer the question: {question}. Answer:'
"""Prompt with knowledge, whatever its format."""

NO_KNOWLEDGE: Final = "Question: {question} Answer:"
"""Prompt of the No Knowledge baseline."""

READ_TEXT: Final = (
    "Below are the facts that might be relevant to answer the question: {context} Question: {question} Answer:"
)
"""Prompt with knowledge of Retrieve-Rewrite-Answer, its template T2."""

REWRITE: Final = (
    "Your task is to transform a knowledge graph to a sentence or multiple sentences. "
    "The knowledge graph is: {triples}. The sentence is:"
)
"""Prompt that turns triple-form text into sentences, template T1 of Retrieve-Rewrite-Answer."""

REWRITE_CHINESE: Final = "请将下列三元组转化为一句或多句话：{triples}。"
"""T1 as the corpus published for ZJQA words it."""

DESCRIBE: Final = "Describe the following data: {triples}"
"""Prompt of data-to-text models of the MVP type (Tang et al. 2022), for `described_triples`."""

RESPOND: Final = (
    "You are a helpful assistant. People will provide you with a dialogue, and your task is to respond to the last "
    "query in the conversation."
)
"""System prompt of LTGen without knowledge."""

RESPOND_WITH_KNOWLEDGE: Final = f"{RESPOND} Relevant knowledge that may assist you is provided above the dialogue."
"""System prompt of LTGen with knowledge."""

SPEAKERS: Final = {"user": "User", "agent": "Agent"}
"""How a dialogue names who speaks."""

CHAT: Final = "\x1e"
"""Begins a chat, and stands between its messages: a separator that no text keeps, for it counts as white space."""

TEMPLATES: Final = {
    "sen2023": WITH_FACTS,
    "rra2023": READ_TEXT,
    "ltgen2024": f"{CHAT}{RESPOND_WITH_KNOWLEDGE}{CHAT}{{context}}\n\n{{question}}",
}
"""Prompts with knowledge, by name."""

BARE: Final = {
    "sen2023": NO_KNOWLEDGE,
    "rra2023": NO_KNOWLEDGE,
    "ltgen2024": f"{CHAT}{RESPOND}{CHAT}{{question}}",
}
"""Prompts without knowledge, by name."""

VERSION: Final = "2"
"""Version of these wordings."""

_THOUGHT: Final = re.compile(r"\A.*</think(?:ing)?>|<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE)


def answer_prompt(
    question: str,
    context: str | None = None,
    template: str = "sen2023",
    dialogue: Sequence[tuple[str, str]] = (),
) -> str:
    """The prompt that asks `question`, with `context` before it where there is one.

    An empty context is No Knowledge.  Line ends and outer blanks of both are made single blanks; nothing else changes.
    dialogue: earlier turns as (`user` or `agent`, text), oldest first, which only `ltgen2024` shows; it also keeps the
    lines of the context.
    """
    if template == "ltgen2024":
        turns = "\n".join(f"{SPEAKERS[role]}: {one_line(text)}" for role, text in (*dialogue, ("user", question)))
        known = "\n".join(filter(None, map(one_line, context.split("\n")))) if context else ""
    else:
        turns = one_line(question)
        known = one_line(context) if context else ""
    if not known:
        return BARE[template].replace("{question}", turns)
    before, after = TEMPLATES[template].split("{context}")
    return before + known + after.replace("{question}", turns)


def chat(system: str, user: str) -> str:
    """A prompt of two messages.  Raises ValueError when one of them holds the sign between them."""
    if CHAT in system or CHAT in user:
        raise ValueError("a message of a chat holds the sign U+001E, which stands between messages; take it out")
    return f"{CHAT}{system}{CHAT}{user}"


def messages(prompt: str) -> tuple[str | None, str]:
    """System and user message of a prompt; one that is no chat is all the user's.

    >>> messages(chat("Be brief.", "Who?"))
    ('Be brief.', 'Who?')
    >>> messages("Who?")
    (None, 'Who?')
    """
    first, sign, rest = prompt.removeprefix(CHAT).partition(CHAT)
    return (first, rest) if sign and prompt.startswith(CHAT) else (None, prompt)


def conversation(fields: Mapping[str, Any]) -> str:
    """A prompt of many messages.  fields: `messages` of a chat-completions request, and `tools`, `response_format` and
    the like where it has them.  Equal fields make equal prompts."""
    return CHAT * 2 + json.dumps(fields, ensure_ascii=False, sort_keys=True)


def conversation_fields(prompt: str) -> dict[str, Any] | None:
    """The fields that `conversation` was given; None for any other prompt.

    >>> conversation_fields(conversation({"messages": [{"role": "user", "content": "Who?"}]}))
    {'messages': [{'content': 'Who?', 'role': 'user'}]}
    >>> conversation_fields(chat("Be brief.", "Who?"))
    """
    if not prompt.startswith(CHAT * 2):
        return None
    fields: dict[str, Any] = json.loads(prompt[len(CHAT) * 2 :])
    return fields


def plain(prompt: str) -> str:
    """A prompt as one text, for models that know no messages: a chat is its messages and the agent's turn.

    >>> plain(chat("Be brief.", "User: Who?"))
    'Be brief.\\n\\nUser: Who?\\nAgent:'
    """
    system, user = messages(prompt)
    return user if system is None else f"{system}\n\n{user}\n{SPEAKERS['agent']}:"


def single_question(prompt: str) -> str:
    """A prompt of `ltgen2024` as one question with its context, for models that were trained on these alone.

    The earlier turns are lost.  Any other prompt is itself, as plain text.

    >>> single_question(answer_prompt("Where?", "(a, b, c)", "ltgen2024", [("user", "Who?")]))
    'Given the following context: "(a, b, c)" Answer the question: Where?. Answer:'
    """
    system, user = messages(prompt)
    if system not in (RESPOND, RESPOND_WITH_KNOWLEDGE):
        return plain(prompt)
    known, _, dialogue = user.rpartition("\n\n")
    return answer_prompt(dialogue.split("\n")[-1].removeprefix(f"{SPEAKERS['user']}: "), known)


def without_thoughts(output: str) -> str:
    """What a model answered, without its reasoning, which reasoning models put between `<think>` and `</think>`.

    A thought that broke off leaves nothing.  Some endpoints leave out the sign that opens it.

    >>> without_thoughts("<think>Oslo or Rome?</think>In Rome.")
    'In Rome.'
    """
    return _THOUGHT.sub("", output)


def rewrite_prompt(triples: str, language: str = "en") -> str:
    """T1 with triple-form text, in the wording of a language (`zh`, else English)."""
    wording = REWRITE_CHINESE if language.partition("-")[0] == "zh" else REWRITE
    return wording.replace("{triples}", " ".join(triples.split()))


def spaced_triples(facts: Iterable[tuple[str, str, str]]) -> str:
    """Facts as the corpora of Retrieve-Rewrite-Answer write them: `(s, r, o) (s, r, o)`, no commas between."""
    return " ".join(f"({head}, {relation}, {tail})" for head, relation, tail in facts)


def described_triples(facts: Iterable[tuple[str, str, str]]) -> str:
    """Facts as data-to-text models of the MVP type read them: `s | r | o [SEP] s | r | o`."""
    return " [SEP] ".join(f"{head} | {relation} | {tail}" for head, relation, tail in facts)


def triple_form(facts: Iterable[tuple[str, str, str]]) -> str:
    """Facts as triple-form text: `(head, relation, tail), (head, relation, tail)`."""
    return ", ".join(f"({head}, {relation}, {tail})" for head, relation, tail in facts)


def prompt_digest(prompt: str) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a prompt."""
    return hashlib.sha256(prompt.encode("utf-8")).hexdigest()[:16]


def one_line(text: str) -> str:
    """A text on one line, whatever it holds: blanks of any kind are single spaces."""
    return " ".join(text.split())
