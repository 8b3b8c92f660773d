"""The prompts that write LTGen, to the letter of Huang et al. (2024); what is filled in stands below the last line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kgqa_core.prompts import one_line

QA: Final = (
    "Create a question for each subject entity and relation pairs. The question should be in natural language and like "
    "what human user will ask. Your response format should be as follows:\n"
    "Entity Relation Pair: <<<entity relation pair chosen>>>\n"
    "Question: <<<generated question>>>\n"
    "Entity Relation Pairs:\n"
    "{pairs}"
)
"""Prompt of LTGen-QA."""

CONV: Final = (
    "Create a natural conversation with an agent and a user. The user ask consistent questions that require external "
    "knowledge from the triples listed below (MUST be natural and consistent, using prepositions, if not sure about "
    "the proper prepositions, the user should first ask for related questions (or the agent should first provide the "
    "related information)). The agent responds to the user and selects triples from the list below to be the ONLY "
    "knowledge source. Attach the chosen triples (if applicable) as well. The user NEVER asks questions that can be "
    "answered without the selected triples! Your response format should be as follows:\n"
    "User: <<<question>>>\n"
    "Agent: <<<answer>>>\n"
    "T: <<<selected triples>>>\n"
    "Knowledge Graph Triples:\n"
    "{triples}"
)
"""Prompt of LTGen-Conv."""

VERSION: Final = "1"
"""Version of what is filled in: one pair or triple a line, in parentheses."""

ANNOTATION_RULE: Final = (
    "A triple annotation is correct if and only if the triples fully support the query-answer pair, the answer "
    "requires no more than them, and none is unused."
)
"""What the two annotators of the quality check go by."""


def qa_prompt(pairs: Iterable[tuple[str, str]]) -> str:
    """The prompt that asks for a question for each (entity, relation), by name."""
    return QA.replace("{pairs}", "\n".join(f"({one_line(entity)}, {one_line(relation)})" for entity, relation in pairs))


def conv_prompt(triples: Iterable[tuple[str, str, str]]) -> str:
    """The prompt that asks for a conversation over some triples, by name."""
    return CONV.replace("{triples}", "\n".join(f"({', '.join(map(one_line, triple))})" for triple in triples))
