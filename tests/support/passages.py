"""Corpora and encoders for tests of passages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = ("hill", "river", "city", "bridge", "mayor", "king", "poet", "school", "team", "song", "war", "island")


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """JSON lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def documents(number: int, words: int = 12) -> list[dict[str, str]]:
    """So many documents, each of words that only it has and of common ones."""
    return [
        {
            "id": f"d{place}",
            "title": f"Title{place}",
            "text": " ".join(
                [f"own{place}", *(WORDS[(place * 7 + word * word) % len(WORDS)] for word in range(words))]
            ),
        }
        for place in range(number)
    ]


def tiny_encoder(folder: Path, seed: int = 0) -> str:
    """A BERT of one layer with random weights, which reads the words of WORDS and single letters and digits."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    vocabulary = {token: place for place, token in enumerate(["[PAD]", "[UNK]", "[CLS]", *WORDS, *letters])}
    tokenizer = Tokenizer(
        models.WordPiece(
            vocabulary | {f"##{sign}": len(vocabulary) + place for place, sign in enumerate(letters)}, unk_token="[UNK]"
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary) + len(letters), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=130,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder, safe_serialization=True)
    fast.save_pretrained(folder)
    return str(folder)
