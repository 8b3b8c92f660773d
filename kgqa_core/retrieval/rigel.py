"""Rigel: a question becomes relations to follow, and following them through the graph gives the answers.

    h_q   = encoder(question)
    r_t   = softmax(W_t [h_q; r_{t-1}; …; r_1])          a distribution over the 2R directed relations
    c_t   = U_t [h_q; r_{t-1}; …; r_1],  a = softmax(c)  how much each hop counts
    x_t   = follow(x_{t-1}, r_t),        x_0 = the topic entities
    score = Σ_t a_t x_t

Sen, Mavadia, Saffari 2023 (the equations are those of Saffari et al. 2021 and Sen et al. 2021).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow
from kgqa_core.errors import ArtifactError, GraphMismatch
from kgqa_core.retrieval.encoders import Encoder, Reader, load_encoder

VERSION = 1
"""Version of the stored model's layout."""


@dataclass(frozen=True)
class Plan:
    """What the network wants to do with a batch: relations[t]: [batch, 2R] for each hop; attention: [batch, hops]."""

    relations: list[Tensor]
    attention: Tensor

    def take(self, rows: Tensor) -> Plan:
        """The plans of some rows, repeated as often as they are named."""
        return Plan([relations[rows] for relations in self.relations], self.attention[rows])

    def cpu(self) -> Plan:
        """The plan where the graph lies."""
        return Plan([relations.cpu() for relations in self.relations], self.attention.cpu())


@dataclass(frozen=True)
class Walk:
    """Where a plan led: sets[t] is x_t (sets[0] the topics); scores is Σ a_t x_t; truncated: int64 [batch] edges."""

    sets: list[EntityWeights]
    scores: EntityWeights
    truncated: Tensor


class Rigel(nn.Module):
    """The network, from token ids to a `Plan`.

    relations: number of directed relations, 2R.  hops: largest number of hops, M.
    """

    def __init__(self, encoder: Encoder, relations: int, hops: int) -> None:
        super().__init__()
        self.encoder, self.relations, self.hops = encoder, relations, hops
        widths = [encoder.width + hop * relations for hop in range(hops)]
        self.relation_layers = nn.ModuleList(nn.Linear(width, relations) for width in widths)
        self.attention_layers = nn.ModuleList(nn.Linear(width, 1) for width in widths)

    def forward(self, ids: Tensor, mask: Tensor) -> Plan:
        """The plan of each question.  ids, mask: [batch, length]."""
        state = self.encoder(ids, mask)
        relations: list[Tensor] = []
        hop_scores: list[Tensor] = []
        for relation_layer, attention_layer in zip(self.relation_layers, self.attention_layers, strict=True):
            hop_scores.append(attention_layer(state))
            relations.append(torch.softmax(relation_layer(state), dim=-1))
            state = torch.cat([state, relations[-1]], dim=-1)
        return Plan(relations, torch.softmax(torch.cat(hop_scores, dim=-1), dim=-1))


def walk(
    dkg: Dkg,
    topics: EntityWeights,
    plan: Plan,
    *,
    exclude_topic: bool = False,
    epsilon: float = 0.0,
    edge_budget: int | None = None,
) -> Walk:
    """Follows a plan through the graph, on the CPU where the graph lies; differentiable in the plan.

    topics: x_0 [batch].  exclude_topic: takes the topics out of the entity set after each hop.
    epsilon: relations that weigh less are skipped.  edge_budget: edges followed per question and hop.
    """
    sets = [topics]
    attention = plan.attention.cpu()
    for relations in plan.relations:
        step = follow(dkg, sets[-1], relations.cpu(), epsilon=epsilon, edge_budget=edge_budget)
        sets.append(step.mask(topics) if exclude_topic else step)
    scores = EntityWeights.merge([entities.scale(attention[:, hop]) for hop, entities in enumerate(sets[1:])])
    cut = sets[-1].truncated
    return Walk(sets, scores, torch.zeros(topics.batch, dtype=torch.int64) if cut is None else cut)


@dataclass(frozen=True)
class Trained:
    """A retriever as it is stored: the network, its reader, and what it was trained for."""

    network: Rigel
    reader: Reader
    config: dict[str, Any]

    @property
    def exclude_topic(self) -> bool:
        """Whether the topic entities are taken out of the entity set after each hop."""
        return bool(self.config["exclude_topic"])

    def plan(self, texts: Sequence[str], device: torch.device | None = None) -> Plan:
        """The plan of prepared texts, without gradient and without dropout."""
        self.network.eval()
        with torch.inference_mode():
            ids, mask = self.reader.batch(self.reader.read(texts))
            plan: Plan = self.network(ids.to(device), mask.to(device))
        return plan


def describe(network: Rigel, encoder: dict[str, Any], dkg: Dkg, exclude_topic: bool) -> dict[str, Any]:
    """Everything beside the weights that a stored retriever is rebuilt from."""
    return {
        "version": VERSION,
        "hops": network.hops,
        "exclude_topic": exclude_topic,
        "relation_keys": list(dkg.relation_keys),
        "encoder": encoder,
    }


def save(folder: Path, weights: dict[str, Tensor], reader: Reader, config: dict[str, Any]) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`."""
    reader.tokenizer.no_truncation()
    reader.tokenizer.no_padding()
    (folder / "tokenizer.json").write_text(reader.tokenizer.to_str(pretty=False), encoding="utf-8")
    (folder / "config.json").write_text(
        json.dumps(config, sort_keys=True, ensure_ascii=False, indent=1), encoding="utf-8"
    )
    scratch = folder / "model.safetensors.tmp"
    save_file({name: weights[name].cpu().contiguous() for name in sorted(weights)}, str(scratch))
    os.replace(scratch, folder / "model.safetensors")


def load(folder: Path, dkg: Dkg) -> Trained:
    """The retriever stored in `folder`, for a graph with the relations that it was trained on.

    Raises ArtifactError when the folder is damaged, GraphMismatch when the graph has other relations.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        keys = config["relation_keys"]
        if config["version"] != VERSION:
            raise ArtifactError(
                f"the retriever in {folder} has layout {config['version']}, not {VERSION}; train it again"
            )
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise ArtifactError(f"{folder} does not hold a trained retriever ({fault}); train one first") from None
    if keys != list(dkg.relation_keys):
        known = set(keys)
        here = set(dkg.relation_keys)
        examples = sorted(here - known)[:3] + sorted(known - here)[:3]
        raise GraphMismatch(
            f"the retriever in {folder} knows {len(keys) // 2} relations and this graph has {dkg.relations}; "
            f"they differ in {', '.join(examples) or 'their order'}. Train the retriever on this graph"
        )
    encoder, reader = load_encoder(folder, config["encoder"])
    network = Rigel(encoder, len(keys), int(config["hops"]))
    try:
        network.load_state_dict(load_file(str(folder / "model.safetensors")))
    except (OSError, SafetensorError, RuntimeError) as fault:
        reason = str(fault).strip().splitlines()[0]
        raise ArtifactError(
            f"the weights in {folder} do not fit their config ({reason}); train the retriever again"
        ) from None
    network.eval()
    return Trained(network, reader, config)
