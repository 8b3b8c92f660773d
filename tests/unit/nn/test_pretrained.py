"""Encoders of Transformers: what a checkpoint lacks is never random."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertModel

from kgqa_core.config import HopPathOptions
from kgqa_core.errors import ModelError
from kgqa_core.nn.encoders import new_encoder
from kgqa_core.nn.sentence_encoder import SentenceEncoder
from tests.support.passages import tiny_encoder


def test_an_encoder_without_pooler_is_the_same_each_time_that_it_is_loaded(tmp_path: Path) -> None:
    name = tiny_encoder(tmp_path)
    whole = SentenceEncoder(name)
    BertModel.from_pretrained(name, add_pooling_layer=False).save_pretrained(name)
    first, second = SentenceEncoder(name), SentenceEncoder(name)
    assert (first.weights, first.digest) == (second.weights, second.digest)
    texts = ["king of the river city", "own17"]
    assert (first.encode(texts) == whole.encode(texts)).all()
    tokenizer, model = AutoTokenizer.from_pretrained(name), BertModel.from_pretrained(name).eval()
    for text, vector in zip(texts, first.encode(texts), strict=True):
        with torch.inference_mode():
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
        assert torch.cosine_similarity(torch.tensor(vector).float(), mean, dim=0) > 0.9999


def test_a_pooler_that_the_weights_lack_is_not_pooled_with(tmp_path: Path) -> None:
    name = tiny_encoder(tmp_path)
    options = HopPathOptions(encoder=name, pooling="pooler")
    new_encoder(options, lambda token: [], "hop_path")
    BertModel.from_pretrained(name, add_pooling_layer=False).save_pretrained(name)
    with pytest.raises(ModelError, match="hop_path.pooling: .* has no weights of its pooling layer; use cls"):
        new_encoder(options, lambda token: [], "hop_path")


def test_an_encoder_that_lacks_a_layer_is_refused(tmp_path: Path) -> None:
    name = tiny_encoder(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    gone = next(key for key in weights if "attention.self.query.weight" in key)
    save_file({key: value for key, value in weights.items() if key != gone}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="its weights lack encoder.layer.0.attention.self.query.weight"):
        SentenceEncoder(name)
