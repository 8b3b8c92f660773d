"""BERT (Devlin et al. 2019) as an encoder: the states of Transformers' `BertModel`, bit for bit, without importing it.

Importing Transformers takes three to four seconds, most of a command that answers one question.  Weights have the
names that they have there, its pooling layer included, which is stored and not computed.  `is_plain` says which
configurations this is; others are left to Transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

DEFAULTS: Mapping[str, Any] = {
    "output_hidden_states": False,
    "output_attentions": False,
    "return_dict": True,
    "chunk_size_feed_forward": 0,
    "is_encoder_decoder": False,
    "id2label": {0: "LABEL_0", 1: "LABEL_1"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "problem_type": None,
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "use_cache": True,
    "classifier_dropout": None,
    "is_decoder": False,
    "add_cross_attention": False,
    "bos_token_id": None,
    "eos_token_id": None,
    "tie_word_embeddings": True,
    "model_type": "bert",
}
"""What Transformers' `BertConfig` says where a config.json does not; stored retrievers hold all of it."""
_PLAIN: Mapping[str, tuple[Any, ...]] = {
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "chunk_size_feed_forward": (0, None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
}


class BertConfig:
    """A configuration by the names of config.json, with the defaults of Transformers."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.__dict__.update({**DEFAULTS, **given})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the configuration of the encoder has no {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))


def is_plain(config: Mapping[str, Any]) -> bool:
    """Whether a configuration is one that `Bert` computes."""
    given = {"model_type": None, **config}
    return all(given.get(name, values[0]) in values for name, values in _PLAIN.items())


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer with the ids and words of its special tokens, by the names that Transformers gives them."""

    backend_tokenizer: Tokenizer
    mask_token: str | None
    pad_token_id: int | None
    unk_token_id: int | None


@dataclass(frozen=True)
class EncoderOutput:
    """last_hidden_state: [batch, length, width]."""

    last_hidden_state: Tensor


class Embeddings(nn.Module):
    """The sum of a token's vector, its position's and that of the first sentence, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor) -> Tensor:
        """[batch, length, width] of ids [batch, length]."""
        indices = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        states = self.word_embeddings(input_ids) + self.token_type_embeddings(torch.zeros_like(input_ids))
        normalised: Tensor = self.dropout(self.LayerNorm(states + self.position_embeddings(indices)))
        return normalised


class SelfAttention(nn.Module):
    """Scaled dot-product attention of several heads."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)
        self.size = width // config.num_attention_heads

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """[batch, length, width] of states of that shape; mask [batch, 1, length, length] is True at real tokens."""
        shape = (*states.shape[:-1], -1, self.size)
        query, key, value = (
            projection(states).view(shape).transpose(1, 2) for projection in (self.query, self.key, self.value)
        )
        share = self.dropout.p if self.training else 0.0
        seen = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=share, scale=self.size**-0.5
        )
        return seen.transpose(1, 2).reshape(states.shape)


class Output(nn.Module):
    """A linear map, added to what came before it and normalised."""

    def __init__(self, config: BertConfig, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, states: Tensor, before: Tensor) -> Tensor:
        """[batch, length, width] of states [batch, length, inner width] and those before them."""
        normalised: Tensor = self.LayerNorm(self.dropout(self.dense(states)) + before)
        return normalised


class Attention(nn.Module):
    """Self-attention and its output."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Output(config, config.hidden_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """[batch, length, width] of states of that shape."""
        output: Tensor = self.output(self.self(states, mask), states)
        return output


class Dense(nn.Module):
    """One linear map under the name `dense`."""

    def __init__(self, config: BertConfig, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, width)

    def forward(self, states: Tensor) -> Tensor:
        """[batch, length, inner width] of states [batch, length, width]."""
        output: Tensor = self.dense(states)
        return output


class BertLayer(nn.Module):
    """Attention and a feed-forward network, each with its normalisation behind it."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Dense(config, config.intermediate_size)
        self.output = Output(config, config.intermediate_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """[batch, length, width] of states of that shape."""
        states = self.attention(states, mask)
        output: Tensor = self.output(functional.gelu(self.intermediate(states)), states)
        return output


class Layers(nn.Module):
    """The layers, under the name that they have in a file of weights."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """The encoder, without weights: they are to be loaded.

    config: of which `is_plain` holds.  Draws no random numbers.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        with _NoInitialValues():
            self.embeddings = Embeddings(config)
            self.encoder = Layers(config)
            self.pooler = Dense(config, config.hidden_size)

    def get_input_embeddings(self) -> nn.Embedding:
        """The vectors of the tokens."""
        return self.embeddings.word_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> EncoderOutput:
        """The last states of ids [batch, length]; attention_mask [batch, length] is 1 at real tokens."""
        mask = attention_of(attention_mask)
        return EncoderOutput(self.upper(self.lower(input_ids, mask, 0), mask, 0))

    def lower(self, input_ids: Tensor, mask: Tensor | None, layers: int) -> Tensor:
        """States after the embeddings and the first so many layers; mask: of `attention_of`."""
        states: Tensor = self.embeddings(input_ids)
        for layer in self.encoder.layer[:layers]:
            states = layer(states, mask)
        return states

    def upper(self, states: Tensor, mask: Tensor | None, layers: int) -> Tensor:
        """The last states, of those after the first so many layers."""
        for layer in self.encoder.layer[layers:]:
            states = layer(states, mask)
        return states


def attention_of(mask: Tensor) -> Tensor | None:
    """What each token attends to [batch, 1, length, length], of a mask [batch, length]; None where that is all."""
    if bool(mask.all()):
        return None
    batch, length = mask.shape
    return mask.bool()[:, None, None, :].expand(batch, 1, length, length)


class _NoInitialValues(torch.overrides.TorchFunctionMode):
    """Modules made inside have memory for their weights and no values in it, as by `torch.nn.utils.skip_init`."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return kwargs["tensor"] if kwargs and "tensor" in kwargs else args[0]
        return function(*args, **(kwargs or {}))


def load_bert(folder: Path) -> tuple[Bert, LoadedTokenizer]:
    """Encoder and tokenizer of a folder with config.json, model.safetensors and the tokenizer's three files.

    The weights are read when they are used, from the file, as those that Transformers loads.
    Raises OSError, ValueError or KeyError where something is missing.
    """
    config = BertConfig(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    body = Bert(config)
    body.load_state_dict(load_file(folder / "model.safetensors"), strict=False, assign=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    words = json.loads((folder / "special_tokens_map.json").read_text(encoding="utf-8"))
    pad, unknown = (tokenizer.token_to_id(words[name]) for name in ("pad_token", "unk_token"))
    return body.eval(), LoadedTokenizer(tokenizer, words["mask_token"], pad, unknown)
