"""Prompts of the language models, to the letter of the papers (Sen et al. 2023, section 4; Wu et al. 2023).

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

TEMPLATES: Final = {"sen2023": WITH_FACTS, "rra2023": READ_TEXT}
"""Prompts with knowledge, by name."""

VERSION: Final = "2"
"""Version of these wordings."""


def answer_prompt(question: str, context: str | None = None, template: str = "sen2023") -> str:
    """The prompt that asks `question`, with `context` before it where there is one.

    An empty context is No Knowledge.  Line ends and outer blanks of both are made single blanks; nothing else changes.
    """
    asked = " ".join(question.split())
    known = " ".join(context.split()) if context else ""
    if not known:
        return NO_KNOWLEDGE.replace("{question}", asked)
    before, after = TEMPLATES[template].split("{context}")
    return before + known + after.replace("{question}", asked)


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
