"""How the topic's mention is masked."""

from __future__ import annotations

import pytest

from kgqa_core.datasets.files.masking import mask_topic
from kgqa_core.types import Question


@pytest.mark.parametrize(
    ("text", "key", "masked"),
    [
        ("what is the capital of Oman?", "Oman", "what is the capital of #?"),
        ("which woman governs Oman", "Oman", "which woman governs #"),
        ("WHO GOVERNS OMAN", "Oman", "WHO GOVERNS #"),
        ("马振霞是哪里人", "马振霞", "#是哪里人"),
        ("2018年亚运会在哪", "2018年亚运会", "#在哪"),
        ("films by $", "$", "films by #"),
        ("nothing of the kind", "Oman", "nothing of the kind"),
        ("where is New  York", "New York", "where is New York"),
        ("who lives in São Paulo", "http://example.org/id/S%C3%A3o_Paulo", "who lives in #"),
    ],
)
def test_mention_is_replaced(text: str, key: str, masked: str) -> None:
    assert mask_topic(Question("q", text, topic_keys=(key,), topic_entities=(1,)), "#") == masked


def test_longest_name_of_each_topic_is_replaced() -> None:
    question = Question("q", "Is York larger than New York City?", topic_keys=("Q60", "Q42"), topic_entities=(1, 2))
    names = {1: ["New York", "New York City"], 2: ["York"]}
    assert mask_topic(question, "#", names) == "Is # larger than #?"
