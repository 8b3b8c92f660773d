"""The encoder of the label parser: a packaged sentence encoder whose upper layers are adapted (LoRA, Hu et al. 2022).

The lower layers never change, so their states of a text are computed once and kept while training goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgqa_core.errors import ModelError
from kgqa_core.nn.encoders import Reader, load_pretrained

ADAPTED = 3
"""Upper layers that are adapted."""
RANK = 16
"""Rank of the adapters."""
MAX_TOKENS = 48
"""Tokens of a text that are read."""
_LINEARS = ("query", "key", "value", "out", "inner", "outer")


class AdaptedLinear(nn.Module):
    """A fixed linear map plus a low-rank one: W x + 2 B A x."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """[…, out] of x […, in]."""
        made: Tensor = self.base(x)
        return made + (x @ self.a.T) @ self.b.T * 2

    def merged(self) -> nn.Linear:
        """One linear map that does the same."""
        found = nn.Linear(self.base.in_features, self.base.out_features)
        with torch.no_grad():
            found.weight.copy_(self.base.weight + 2 * self.b @ self.a)
            found.bias.copy_(self.base.bias)
        return found.requires_grad_(False)


class Layer(nn.Module):
    """A layer of BERT: attention and a feed-forward network, each with its normalisation behind it."""

    query: nn.Module
    key: nn.Module
    value: nn.Module
    out: nn.Module
    inner: nn.Module
    outer: nn.Module

    def __init__(self, layer: Any, heads: int, adapted: bool, rank: int) -> None:
        super().__init__()
        own, attention = layer.attention.self, layer.attention.output
        linears = (own.query, own.key, own.value, attention.dense, layer.intermediate.dense, layer.output.dense)
        for name, linear in zip(_LINEARS, linears, strict=True):
            setattr(self, name, AdaptedLinear(linear, rank) if adapted else linear.requires_grad_(False))
        self.first, self.second = (
            attention.LayerNorm.requires_grad_(False),
            layer.output.LayerNorm.requires_grad_(False),
        )
        self.heads = heads

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """[batch, length, width] of states of that shape; mask [batch, 1, 1, length] is True at real tokens."""
        batch, length, width = states.shape

        def split(x: Tensor) -> Tensor:
            return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        seen = functional.scaled_dot_product_attention(
            split(self.query(states)), split(self.key(states)), split(self.value(states)), attn_mask=mask
        )
        states = self.first(states + self.out(seen.transpose(1, 2).reshape(batch, length, width)))
        made: Tensor = self.second(states + self.outer(functional.gelu(self.inner(states))))
        return made

    def merge(self) -> None:
        """Makes one linear map of each adapted one."""
        for name in _LINEARS:
            linear = getattr(self, name)
            if isinstance(linear, AdaptedLinear):
                setattr(self, name, linear.merged())


class TextEncoder(nn.Module):
    """Token states of short texts.  Raises ModelError when the named encoder is no BERT."""

    def __init__(self, name: str = "minilm", rank: int = RANK, adapted: int = ADAPTED) -> None:
        super().__init__()
        body, tokenizer = load_pretrained(name, "label_parser")
        if not hasattr(body, "encoder") or not hasattr(body.encoder, "layer"):
            raise ModelError(f"label_parser.encoder {name!r} has no layers like those of BERT; use 'minilm'")
        self.width = int(body.config.hidden_size)
        heads, count = int(body.config.num_attention_heads), len(body.encoder.layer)
        self.embeddings = body.embeddings.requires_grad_(False)
        self.lower_layers = nn.ModuleList(
            Layer(own, heads, False, rank) for own in body.encoder.layer[: count - adapted]
        )
        self.upper_layers = nn.ModuleList(
            Layer(own, heads, True, rank) for own in body.encoder.layer[count - adapted :]
        )
        backend = tokenizer.backend_tokenizer
        self.reader = Reader(backend, "x", int(tokenizer.pad_token_id or 0), tokenizer.unk_token_id, MAX_TOKENS)
        self._known: dict[str, Tensor] | None = None
        self.eval()

    def adapter(self) -> dict[str, Tensor]:
        """The parameters that are learnt."""
        return {name: value for name, value in self.state_dict().items() if name.endswith((".a", ".b"))}

    def merge(self) -> None:
        """Makes the adapters part of the layers, for answering; nothing can be learnt afterwards."""
        for layer in self.upper_layers:
            assert isinstance(layer, Layer)
            layer.merge()

    def remember(self, *, states: bool) -> None:
        """Whether states of the lower layers are kept by text, as training wants it; forgets those there are."""
        self._known = {} if states else None

    def forward(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """States [texts, length, width] and mask [texts, length] of texts."""
        states, mask = self._lower(texts)
        seen = mask.bool()[:, None, None, :]
        for layer in self.upper_layers:
            states = layer(states, seen)
        return states, mask

    @torch.no_grad()
    def _lower(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        if self._known is None:
            return self._below(texts)
        new = sorted({text for text in texts if text not in self._known}, key=lambda text: (len(text), text))
        for start in range(0, len(new), 64):
            own = new[start : start + 64]
            states, mask = self._below(own)
            for text, row, length in zip(own, states, mask.sum(1).tolist(), strict=True):
                self._known[text] = row[:length].clone()
        rows = [self._known[text] for text in texts]
        mask = nn.utils.rnn.pad_sequence([torch.ones(len(row), dtype=torch.long) for row in rows], batch_first=True)
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), mask

    def _below(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        ids, mask = self.reader.batch(self.reader.read(texts))
        states = self.embeddings(input_ids=ids)
        seen = mask.bool()[:, None, None, :]
        for layer in self.lower_layers:
            states = layer(states, seen)
        return states, mask
