"""How many tokens a text has: counted with a model's tokenizer, estimated without one, bounded for a budget."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ModelError

Counter = Callable[[str], int]

CHARACTERS_A_TOKEN = 4
"""ASCII characters of one token of English text, roughly."""

ROOM = 64
"""Tokens that a chat template may put around a prompt, for `bound`."""


def estimate(text: str) -> int:
    """Tokens of a text by rule: one for four ASCII characters, one for any other character, rounded up."""
    ascii_characters = sum(character < "\x80" for character in text)
    return math.ceil(ascii_characters / CHARACTERS_A_TOKEN) + len(text) - ascii_characters


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
