"""How many tokens a text has: counted with a model's tokenizer, estimated without one, bounded for a budget."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ModelError

Counter = Callable[[str], int]

CHARACTERS_A_TOKEN = 4
"""ASCII characters of one token of English text, roughly."""

LETTERS_A_TOKEN = 2
"""Characters of one token in other alphabets, roughly: from less than two to nearly four, by the tokenizer."""

EAST_ASIAN = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\uffef\U0001b000-\U0003ffff]"
)
"""Characters of Chinese, Japanese and Korean, each about one token."""

ROOM = 64
"""Tokens that a chat template may put around a prompt, for `bound`."""


def estimate(text: str) -> int:
    """Tokens of a text by rule: one for four ASCII characters, for two of other alphabets, for an East Asian one."""
    ascii_characters = sum(character < "\x80" for character in text)
    east_asian = len(EAST_ASIAN.findall(text))
    others = len(text) - ascii_characters - east_asian
    return math.ceil(ascii_characters / CHARACTERS_A_TOKEN + others / LETTERS_A_TOKEN) + east_asian


def bound(prompt: str) -> int:
    """More tokens than a prompt can have for an endpoint: its UTF-8 bytes and room for the chat template.

    No tokenizer in use makes two tokens of one byte.
    """
    return len(prompt.encode("utf-8", "replace")) + ROOM


def counter(spec: str, llm: LlmOptions) -> tuple[Counter, bool]:
    """A function that counts a text's tokens for a model, and whether it counts (True) or estimates (False).

    Counts with the model's own tokenizer: that of `llm.tokenizers` (`builtin`, a folder or a hub id) for an endpoint.
    Raises ModelError when that tokenizer cannot be loaded.
    """
    kind, _, rest = spec.partition(":")
    source = rest if kind == "hf" else "builtin" if kind == "builtin" else llm.tokenizers.get(spec)
    if source is None:
        return estimate, False
    return _load(source), True


@lru_cache(maxsize=8)
def _load(source: str) -> Counter:
    if source == "builtin":
        from kgqa_core.llm.builtin.model import WEIGHTS

        source = str(WEIGHTS)
    file = Path(source).expanduser() / "tokenizer.json"
    try:
        if file.is_file():
            from tokenizers import Tokenizer

            plain = Tokenizer.from_str(json.dumps(json.loads(file.read_text(encoding="utf-8"))))
            plain.no_padding()
            plain.no_truncation()
            return lambda text: len(plain.encode(text).ids)
        from transformers import AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception as fault:
        first = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
        raise ModelError(
            f"tokenizer '{source}' cannot be loaded: {first}; give `builtin`, a folder with tokenizer.json or a hub id"
        ) from fault
    return lambda text: len(tokenizer(text, verbose=False)["input_ids"])
