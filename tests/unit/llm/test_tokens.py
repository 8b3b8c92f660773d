"""Counts, estimates and bounds of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ModelError
from kgqa_core.llm.builtin.model import WEIGHTS
from kgqa_core.llm.tokens import bound, counter, estimate

TEXTS = ("", "a", "What is the capital of Zorvelnik?", "沈岭的国籍是什么", "Ünïcode and 国籍 mixed", "\ud800 lone")


def test_the_estimate_follows_its_rule() -> None:
    assert [estimate(text) for text in ("", "a", "abcd", "abcde", "国籍", "ab国籍")] == [0, 1, 1, 2, 2, 3]
    assert [estimate(text) for text in ("Осло", "Größe", "とうきょう", "서울", "،")] == [2, 2, 5, 2, 1]


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_has_more_tokens_than_the_bound(text: str) -> None:
    count, exact = counter("builtin", LlmOptions())
    assert exact and bound(text) >= count(text.encode("utf-8", "replace").decode()) + 64 - 1
    assert bound(text) >= estimate(text)


def test_an_endpoints_tokenizer_is_used_where_one_is_named() -> None:
    named = LlmOptions(tokenizers={"openai:a": "builtin", "openai:b": str(WEIGHTS)})
    text = "What is the capital of Zorvelnik?"
    counts = [counter(spec, named) for spec in ("openai:a", "openai:b", "builtin", f"hf:{WEIGHTS}")]
    assert all(exact for _, exact in counts) and len({count(text) for count, _ in counts}) == 1
    assert counts[0][0](text) > 0
    assert counter("openai:c", named) == (estimate, False)


def test_a_tokenizer_that_is_none_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{not json")
    with pytest.raises(ModelError, match="cannot be loaded.*builtin"):
        counter("openai:m", LlmOptions(tokenizers={"openai:m": str(tmp_path)}))
