"""TransferNet: at each step the question's words that count say which relations to transfer entity scores along.

    q, h_1 … h_n = encoder(question)
    b_t  = softmax(f_t(q) · [h_1 … h_n]),  q_t = Σ_i b_ti h_i     what is read at step t
    r_t  = softmax or sigmoid of W q_t                            scores of the 2R directed relations
    x_t  = trunc(follow(x_{t-1}, r_t)),    x_0 = the topics       trunc(x) = x / max(1, x) with the divisor detached
    c    = softmax(V q),   score = Σ_t c_t x_t                    hop attention

Shi, Cao, Hou, Li, Zhang 2021, section 3.  W is shared by the steps, as published.  The transfer is `follow` of the DKG:
its cost is that of the edges that are followed, where the published code multiplies with the whole graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import GraphMismatch
from kgqa_core.nn.encoders import Encoder, load_encoder, mean_of_words
from kgqa_core.nn.saved_model import load_config, load_weights
from kgqa_core.retrieval.rigel.network import PlanningNetwork, Trained
from kgqa_core.retrieval.rigel.walk import RelationPlan

KIND, VERSION = "transfernet", 1
"""What a stored model says it is, and the version of its layout."""

FEW = -4.0
"""First bias of relations that are scored by themselves, so that training does not begin by following every edge."""


class TransferNet(PlanningNetwork):
    """The network, from token ids to a `RelationPlan`.

    relations: number of directed relations, 2R.  hops: steps, T.  relation_scores: `softmax` or `sigmoid`.
    """

    def __init__(self, encoder: Encoder, relations: int, hops: int, relation_scores: str) -> None:
        super().__init__()
        self.encoder, self.relations, self.hops, self.relation_scores = encoder, relations, hops, relation_scores
        self.steps = nn.ModuleList(
            nn.Sequential(nn.Linear(encoder.width, encoder.width), nn.Tanh()) for _ in range(hops)
        )
        self.relation_layer = nn.Linear(encoder.width, relations)
        self.hop_layer = nn.Linear(encoder.width, hops)
        if relation_scores == "sigmoid":
            nn.init.constant_(self.relation_layer.bias, FEW)

    def forward(self, ids: Tensor, mask: Tensor) -> RelationPlan:
        """The plan of each question.  ids, mask: [batch, length]."""
        states, question = self.read(ids, mask)
        relations = [
            self.score(self.relation_layer(self.attend(step, states, question, mask)[0])) for step in self.steps
        ]
        return RelationPlan(relations, torch.softmax(self.hop_layer(question), dim=-1))

    def read(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States of the words [batch, length, width], and of the question [batch, width]: their mean over words."""
        states = self.encoder.states(ids, mask)
        return states, mean_of_words(states, mask)

    def attend(self, step: nn.Module, states: Tensor, question: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """What is read at a step, q_t [batch, width], and the attention on the words, b_t [batch, length]."""
        scores = (states @ step(question).unsqueeze(-1)).squeeze(-1)
        attention = torch.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1)
        return (attention.unsqueeze(1) @ states).squeeze(1), attention

    def score(self, logits: Tensor) -> Tensor:
        """Relation scores in [0, 1].  logits: [batch, 2R]."""
        return torch.softmax(logits, dim=-1) if self.relation_scores == "softmax" else torch.sigmoid(logits)


def describe(network: TransferNet, encoder: dict[str, Any], dkg: Dkg, exclude_topic: bool) -> dict[str, Any]:
    """Everything beside the weights that a stored network is rebuilt from."""
    return {
        "kind": KIND,
        "version": VERSION,
        "hops": network.hops,
        "relation_scores": network.relation_scores,
        "exclude_topic": exclude_topic,
        "clamp": True,
        "relation_keys": list(dkg.relation_keys),
        "encoder": encoder,
    }


def load(folder: Path, dkg: Dkg) -> Trained:
    """The network stored in `folder`, for the graph that it was trained on.

    Raises ArtifactError when the folder is damaged, GraphMismatch when the graph has other relations.
    """
    config = load_config(folder, KIND, VERSION, "TransferNet", "relation_keys", "hops", "exclude_topic", "encoder")
    keys = config["relation_keys"]
    if keys != list(dkg.relation_keys):
        differ = sorted(set(keys) ^ set(dkg.relation_keys))[:3]
        raise GraphMismatch(
            f"the TransferNet in {folder} knows {len(keys) // 2} relations and this graph has {dkg.relations}; they "
            f"differ in {', '.join(differ) or 'their order'}. Train it on this graph"
        )
    encoder, reader = load_encoder(folder, config["encoder"])
    network = TransferNet(encoder, len(keys), int(config["hops"]), config["relation_scores"])
    load_weights(folder, network)
    return Trained(network, reader, config)
