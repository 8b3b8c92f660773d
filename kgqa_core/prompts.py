"""Prompts of the language models, to the letter of the paper (Sen et al. 2023, section 4).

A template is data: its name and version are recorded with every answer, and a changed wording gets a new version.

A question keeps its own punctuation.  The template with facts puts a full stop behind the question as the paper does,
so a question that ends in a question mark reads `…?. Answer:`; the words of a question are never altered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

WITH_FACTS: Final = 'Given the following context: "{context}" Answer the question: {question}. Answer:'
"""Prompt with knowledge, whatever its format."""

NO_KNOWLEDGE: Final = "Question: {question} Answer:"
"""Prompt of the No Knowledge baseline."""

VERSION: Final = "sen2023-1"
"""Name of this set of wordings."""


def answer_prompt(question: str, context: str | None = None) -> str:
    """The prompt that asks `question`, with `context` before it where there is one.

    An empty context is No Knowledge.  Line ends and outer blanks of both are made single blanks; nothing else changes.
    """
    asked = " ".join(question.split())
    known = " ".join(context.split()) if context else ""
    if not known:
        return NO_KNOWLEDGE.replace("{question}", asked)
    before, after = WITH_FACTS.split("{context}")
    return before + known + after.replace("{question}", asked)


def triple_form(facts: Iterable[tuple[str, str, str]]) -> str:
    """Facts as triple-form text: `(head, relation, tail), (head, relation, tail)`."""
    return ", ".join(f"({head}, {relation}, {tail})" for head, relation, tail in facts)


def prompt_digest(prompt: str) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a prompt."""
    return hashlib.sha256(prompt.encode("utf-8")).hexdigest()[:16]
