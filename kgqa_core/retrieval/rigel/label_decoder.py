"""Rigel whose relations are texts: a graph that has relations added later is used without training.

    e_r   = label encoder(text of r)                       whatever the number of relations
    v_r   = n(e_r + P e_r + p),  v_inv(r) = n(e_r + P' e_r + p')      n: to length 1
    s_t   = [h_q; Σ_r r_1 v_r; …; Σ_r r_{t-1} v_r]         the question, and what the earlier hops chose
    r_t   = softmax(exp(κ) v · n(h_q + Q_t s_t))           over the relations that the graph at hand has
    c_t   = U_t s_t,  a = softmax(c)

No weight has the number of relations in its shape.

What encodes the labels.  A pretrained encoder has a frozen copy for them, which runs once when a graph is opened; what
is learnt of relations are the two small maps P and P', which start near zero.  Encoding 501 labels in every step, with
gradients, would cost more than a batch of questions does; and labels that move while a few are trained lose their
likeness to the others, which is all that an unseen relation has.  A scratch encoder knows nothing before training, so
questions and labels share it and its vocabulary, and the labels are encoded anew in every step.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kgqa_core.dkg.csr import Dkg
from kgqa_core.nn.encoders import Encoder, Pretrained, Reader
from kgqa_core.retrieval.relation_texts import relation_texts
from kgqa_core.retrieval.rigel.extension import Extras
from kgqa_core.retrieval.rigel.walk import Plan

SCALE = 20.0
"""exp(κ) before training: MiniLM's cosines differ by tenths."""
SMALL = 0.02
"""Standard deviation of the maps before training."""
CHUNK = 256
"""Labels that a pretrained encoder reads at once."""
logger = logging.getLogger(__name__)


class LabelRigel(nn.Module):
    """The network, from token ids to a `Plan` over the relations of the graph it was last opened on.

    hops: largest number of hops, M.
    """

    def __init__(self, encoder: Encoder, hops: int) -> None:
        super().__init__()
        self.encoder, self.hops = encoder, hops
        width = encoder.width
        self.label_encoder: Encoder | None = None
        if isinstance(encoder, Pretrained):
            self.label_encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.directions = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.query_layers = nn.ModuleList(nn.Linear(width * (hop + 1), width) for hop in range(hops))
        self.attention_layers = nn.ModuleList(nn.Linear(width * (hop + 1), 1) for hop in range(hops))
        self.log_scale = nn.Parameter(torch.tensor(math.log(SCALE)))
        for layer in [*self.directions, *self.query_layers]:
            nn.init.normal_(layer.weight, std=SMALL)  # type: ignore[arg-type]
            nn.init.normal_(layer.bias, std=SMALL)  # type: ignore[arg-type]
        self._labels: tuple[Tensor, Tensor] | None = None
        self._removed: Tensor | None = None
        self._encoded: Tensor | None = None
        self.extras: Extras | None = None

    def open(self, dkg: Dkg, reader: Reader) -> LabelRigel:
        """Takes the relations of a graph for those to choose from."""
        texts = relation_texts(dkg)
        self._labels = reader.batch(reader.read(texts))
        removed = torch.tensor([not text for text in texts] * 2)
        self._removed = removed if bool(removed.any()) else None
        self._encoded = None
        return self

    def train(self, mode: bool = True) -> LabelRigel:
        """As of any module; the frozen label encoder stays without dropout, and a shared one is read anew."""
        super().train(mode)
        if self.label_encoder is not None:
            self.label_encoder.eval()
        elif mode:
            self._encoded = None
        return self

    def forward(self, ids: Tensor, mask: Tensor) -> Plan:
        """The plan of each question.  ids, mask: [batch, length]."""
        question = self.encoder(ids, mask)
        vectors = self._vectors()
        scale = self.log_scale.exp()
        state = question
        relations: list[Tensor] = []
        hop_scores: list[Tensor] = []
        for query_layer, attention_layer in zip(self.query_layers, self.attention_layers, strict=True):
            hop_scores.append(attention_layer(state))
            query = nn.functional.normalize(question + query_layer(state), dim=-1)
            logits = scale * (query @ vectors.T)
            if self._removed is not None:
                logits = logits.masked_fill(self._removed.to(logits.device), -torch.inf)
            relations.append(torch.softmax(logits, dim=-1))
            state = torch.cat([state, relations[-1] @ vectors], dim=-1)
        attention = torch.softmax(torch.cat(hop_scores, dim=-1), dim=-1)
        return Plan(relations, attention, question if self.extras is not None else None)

    def _vectors(self) -> Tensor:
        """v of the 2R directed relations, inverses in the second half, [2R, width]."""
        own = self._label_states()
        both = [nn.functional.normalize(own + direction(own), dim=-1) for direction in self.directions]
        return torch.cat(both)

    def _label_states(self) -> Tensor:
        """e of the R relations, [R, width]; cached where the encoder does not change."""
        if self._labels is None:
            raise RuntimeError("open the retriever on a graph before querying it")
        if self._encoded is not None and self._encoded.device == self.log_scale.device:
            return self._encoded
        if self.label_encoder is not None:
            with torch.no_grad():
                self._encoded = _encode(self.label_encoder, *self._labels, self.log_scale.device)
            return self._encoded
        encoded = _encode(self.encoder, *self._labels, self.log_scale.device)
        if not self.training:
            self._encoded = encoded.detach()
        return encoded


def stored(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights without those that the label encoder has in common with the question encoder."""
    return {
        name: value
        for name, value in weights.items()
        if not name.startswith("label_encoder.") or not torch.equal(value, weights[name.removeprefix("label_")])
    }


def restored(weights: dict[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """The weights of all names from stored ones; undoes `stored`."""
    return weights | {
        name: weights[name.removeprefix("label_")]
        for name in names
        if name not in weights and name.removeprefix("label_") in weights
    }


def _encode(encoder: Encoder, ids: Tensor, mask: Tensor, device: torch.device) -> Tensor:
    parts = zip(ids.split(CHUNK), mask.split(CHUNK), strict=True)
    return torch.cat([encoder(own.to(device), real.to(device)) for own, real in parts])
