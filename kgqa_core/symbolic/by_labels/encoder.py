"""The encoder of the label parser: a packaged sentence encoder whose upper layers are adapted (LoRA, Hu et al. 2022).

The lower layers never change, so their states of a text are computed once and kept while training goes on.  Texts are
packed, those of equal length side by side: nothing is computed for padding, and each distinct text is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgqa_core.errors import ModelError
from kgqa_core.nn.encoders import Reader, load_pretrained
from kgqa_core.nn.products import product, speed_up

ADAPTED = 3
"""Upper layers that are adapted."""
RANK = 16
"""Rank of the adapters."""
MAX_TOKENS = 48
"""Tokens of a text that are read."""
AT_ONCE, MOST_TEXTS = 64, 10_000
"""Texts whose lower states are computed at once, and whose token ids are held."""
_LINEARS = ("query", "key", "value", "out", "inner", "outer")


class _Adapted(torch.autograd.Function):
    """x (W + 2 B A)^T + bias, of which A and B learn: their gradients never need that of the whole matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
        whole = torch.addmm(weight, b, a, alpha=2)
        ctx.save_for_backward(x, whole, a, b)
        return product(x, whole, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, whole, a, b = ctx.saved_tensors
        (above,) = gradients
        twice = 2 * product(above, b.t())
        below = product(above, whole.t()) if ctx.needs_input_grad[0] else None
        return below, None, None, product(twice.t(), x.t()), 2 * product(above.t(), product(x, a).t())


class AdaptedLinear(nn.Module):
    """A fixed linear map plus a low-rank one: W x + 2 B A x."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """[rows, out] of x [rows, in]."""
        output: Tensor = _Adapted.apply(x, self.base.weight, self.base.bias, self.a, self.b)  # type: ignore[no-untyped-call]
        return output

    def merged(self) -> nn.Linear:
        """One linear map that does the same."""
        linear = nn.Linear(self.base.in_features, self.base.out_features)
        with torch.no_grad():
            linear.weight.copy_(self.base.weight + 2 * self.b @ self.a)
            linear.bias.copy_(self.base.bias)
        return _plain(linear)


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
            setattr(self, name, AdaptedLinear(linear, rank) if adapted else _plain(linear))
        self.first, self.second = (
            attention.LayerNorm.requires_grad_(False),
            layer.output.LayerNorm.requires_grad_(False),
        )
        self.heads = heads

    def forward(self, states: Tensor, blocks: Sequence[tuple[int, int]]) -> Tensor:
        """[tokens, width] of states of that shape.  blocks: (texts, their length) of each run of texts."""
        width = states.shape[1]
        sizes = [texts * length for texts, length in blocks]

        def split(x: Tensor) -> list[Tensor]:
            return [
                own.view(texts, length, self.heads, width // self.heads).transpose(1, 2)
                for own, (texts, length) in zip(x.split(sizes), blocks, strict=True)
            ]

        parts = zip(split(self.query(states)), split(self.key(states)), split(self.value(states)), strict=True)
        seen = torch.cat(
            [
                functional.scaled_dot_product_attention(*part).transpose(1, 2).reshape(size, width)
                for part, size in zip(parts, sizes, strict=True)
            ]
        )
        states = self.first(states + self.out(seen))
        made: Tensor = self.second(states + self.outer(functional.gelu(self.inner(states))))
        return made

    def merge(self) -> None:
        """Makes one linear map of each adapted one."""
        for name in _LINEARS:
            linear = getattr(self, name)
            if isinstance(linear, AdaptedLinear):
                setattr(self, name, linear.merged())


def _plain(layer: nn.Linear) -> nn.Linear:
    """A linear map that does not learn."""
    speed_up(layer)
    return layer.requires_grad_(False)


@dataclass(frozen=True)
class PackedTexts:
    """Token states of distinct texts, the shortest first.

    states: [tokens, width].  blocks: (texts, their length) of each run of texts.  place: [texts] the one of the
    distinct texts that each of the given ones is.
    """

    states: Tensor
    blocks: tuple[tuple[int, int], ...]
    place: Tensor

    def mean(self) -> Tensor:
        """The mean of each text's states [texts, width]."""
        return torch.cat([own.mean(1) for own in self._runs(self.states)])[self.place]

    def padded(self, values: Tensor, fill: float = 0.0) -> Tensor:
        """[texts, length, n] of values [tokens, n], with `fill` behind each text that is shorter than the longest."""
        longest = max(length for _, length in self.blocks)
        runs = [functional.pad(own, (0, 0, 0, longest - own.shape[1]), value=fill) for own in self._runs(values)]
        return torch.cat(runs)[self.place]

    @property
    def lengths(self) -> Tensor:
        """Tokens of each text [texts]."""
        each = [torch.full((texts,), length) for texts, length in self.blocks]
        return torch.cat(each)[self.place]

    def _runs(self, values: Tensor) -> list[Tensor]:
        parts = values.split([texts * length for texts, length in self.blocks])
        return [part.view(*block, -1) for part, block in zip(parts, self.blocks, strict=True)]


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
        self._ids: dict[str, list[int]] = {}
        self.held = 0
        self.eval()

    def adapter(self) -> dict[str, Tensor]:
        """The parameters that are learnt."""
        return {name: value for name, value in self.state_dict().items() if name.endswith((".a", ".b"))}

    def merge(self) -> None:
        """Makes the adapters part of the layers, for answering; nothing can be learnt afterwards."""
        for layer in self.upper_layers:
            assert isinstance(layer, Layer)
            layer.merge()

    def learn(self, layers: int) -> None:
        """Lets the adapters of the last so many layers learn, and holds the others; forgets states that were kept."""
        self.held = len(self.upper_layers) - layers
        for number, layer in enumerate(self.upper_layers):
            for name, value in layer.named_parameters():
                if name.endswith((".a", ".b")):
                    value.requires_grad_(number >= self.held)
        self._known = {} if self.remembers else None

    @property
    def remembers(self) -> bool:
        """Whether states of the lower layers are kept by text."""
        return self._known is not None

    def remember(self, *, states: bool) -> None:
        """Whether states of the lower layers are kept by text from now on, as training wants it."""
        self._known = (self._known or {}) if states else None

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text; those that were read lately are not read again."""
        ids = self._ids  # which another thread may replace
        new = [text for text in dict.fromkeys(texts) if text not in ids]
        if len(ids) + len(new) > MOST_TEXTS:
            ids = self._ids = {}
            new = list(dict.fromkeys(texts))
        ids.update(zip(new, self.reader.read(new), strict=True) if new else ())
        return [ids[text] for text in texts]

    def forward(self, texts: Sequence[str]) -> PackedTexts:
        """States of at least one text."""
        distinct = list(dict.fromkeys(texts))
        rows = None if self._known is None else self._remembered(distinct, self._known)
        ids = self.token_ids(distinct) if rows is None else []
        lengths = [len(row) for row in (ids if rows is None else rows)]
        order = sorted(range(len(distinct)), key=lambda number: lengths[number])
        blocks = _blocks([lengths[number] for number in order])
        if rows is None:
            states = self._below([ids[number] for number in order], blocks)
        else:
            states = torch.cat([rows[number] for number in order])
        for layer in self.upper_layers[self.held :]:
            states = layer(states, blocks)
        index = {distinct[number]: row for row, number in enumerate(order)}
        return PackedTexts(states, blocks, torch.tensor([index[text] for text in texts]))

    @torch.no_grad()
    def _remembered(self, texts: Sequence[str], known: dict[str, Tensor]) -> list[Tensor]:
        """States of the lower layers of each text [length, width]."""
        new = [text for text in texts if text not in known]
        for own, lengths in self._batches(new):
            states = self._below([ids for _, ids in own], _blocks(lengths))
            known |= {text: row.clone() for (text, _), row in zip(own, states.split(lengths), strict=True)}
        return [known[text] for text in texts]

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[tuple[str, list[int]]], list[int]]]:
        """(text, token ids) of some texts at a time, the shortest first, and their lengths."""
        read = zip(texts, self.token_ids(texts), strict=True)
        order = sorted(read, key=lambda one: (len(one[1]), one[0]))
        for start in range(0, len(order), AT_ONCE):
            own = order[start : start + AT_ONCE]
            yield own, [len(ids) for _, ids in own]

    @torch.no_grad()
    def _below(self, ids: Sequence[Sequence[int]], blocks: Sequence[tuple[int, int]]) -> Tensor:
        """States of the lower layers [tokens, width] of texts, the shortest first."""
        longest = len(ids[-1])
        table = torch.tensor([[*row, *[0] * (longest - len(row))] for row in ids])
        real = torch.arange(longest) < torch.tensor([len(row) for row in ids])[:, None]
        states = self.embeddings(input_ids=table)[real]
        for layer in (*self.lower_layers, *self.upper_layers[: self.held]):
            states = layer(states, blocks)
        return states


def _blocks(lengths: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(texts, length) of each run of equal lengths."""
    return tuple((len(list(own)), length) for length, own in groupby(lengths))
