"""Rigel: a question becomes relations to follow, and following them through the graph gives the answers.

    h_q   = encoder(question)
    r_t   = softmax(W_t [h_q; r_{t-1}; …; r_1])          a distribution over the 2R directed relations
    c_t   = U_t [h_q; r_{t-1}; …; r_1],  a = softmax(c)  how much each hop counts
    x_t   = follow(x_{t-1}, r_t),        x_0 = the topic entities
    score = Σ_t a_t x_t

Sen, Mavadia, Saffari 2023 (the equations are those of Saffari et al. 2021 and Sen et al. 2021).  These are the decoder
`layer`; `label` (in `label.py`) scores relations by the text of their labels.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import GraphMismatch
from kgqa_core.kg.store import REMOVED
from kgqa_core.nn.device import to_cpu
from kgqa_core.nn.encoders import Encoder, Reader, load_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.retrieval.relation_texts import unlabelled_note
from kgqa_core.retrieval.rigel.extension import Extension, Extras, share
from kgqa_core.retrieval.rigel.label_decoder import LabelRigel, restored, stored
from kgqa_core.retrieval.rigel.questions import EncodedQuestions
from kgqa_core.retrieval.rigel.walk import Plan, Walk, combine, walk
from kgqa_core.types import INVERSE

VERSION = 1
"""Version of the stored model's layout."""
logger = logging.getLogger(__name__)


class Rigel(nn.Module):
    """The network with one output for each relation, from token ids to a `Plan`.

    relations: number of directed relations, 2R.  hops: largest number of hops, M.
    """

    def __init__(self, encoder: Encoder, relations: int, hops: int) -> None:
        super().__init__()
        self.encoder, self.relations, self.hops = encoder, relations, hops
        widths = [encoder.width + hop * relations for hop in range(hops)]
        self.relation_layers = nn.ModuleList(nn.Linear(width, relations) for width in widths)
        self.attention_layers = nn.ModuleList(nn.Linear(width, 1) for width in widths)
        self.extras: Extras | None = None

    def forward(self, ids: Tensor, mask: Tensor) -> Plan:
        """The plan of each question.  ids, mask: [batch, length]."""
        question = state = self.encoder(ids, mask)
        relations: list[Tensor] = []
        hop_scores: list[Tensor] = []
        for relation_layer, attention_layer in zip(self.relation_layers, self.attention_layers, strict=True):
            hop_scores.append(attention_layer(state))
            relations.append(torch.softmax(relation_layer(state), dim=-1))
            state = torch.cat([state, relations[-1]], dim=-1)
        attention = torch.softmax(torch.cat(hop_scores, dim=-1), dim=-1)
        return Plan(relations, attention, question if self.extras is not None else None)


class PlanningNetwork(nn.Module):
    """Another network that makes plans and has no extension.  hops: of a plan."""

    encoder: Encoder
    hops: int
    extras: Extras | None = None


@dataclass(frozen=True)
class Trained:
    """A retriever as it is stored: the network, its reader, and what it was trained for."""

    network: Rigel | LabelRigel | PlanningNetwork
    reader: Reader
    config: dict[str, Any]

    @property
    def exclude_topic(self) -> bool:
        """Whether the topic entities are removed from the entity set after each hop."""
        return bool(self.config["exclude_topic"])

    @property
    def clamp(self) -> bool:
        """Whether weights above 1 become 1 after each hop."""
        return bool(self.config.get("clamp", False))

    @property
    def extension(self) -> Extension:
        """What it has beside the plain network."""
        return Extension.stored(self.config)

    def plan(self, texts: Sequence[str], device: torch.device | None = None) -> Plan:
        """The plan of prepared texts, without gradient and without dropout."""
        self.network.eval()
        with torch.inference_mode():
            ids, mask = self.reader.batch(self.reader.read(texts))
            plan: Plan = self.network(ids.to(device), mask.to(device))
        return plan


def describe(network: Rigel | LabelRigel, encoder: dict[str, Any], dkg: Dkg, exclude_topic: bool) -> dict[str, Any]:
    """Everything beside the weights that a stored retriever is rebuilt from."""
    config = {
        "version": VERSION,
        "hops": network.hops,
        "exclude_topic": exclude_topic,
        "relation_keys": list(dkg.relation_keys),
        "encoder": encoder,
    }
    return config | {"decoder": "label"} if isinstance(network, LabelRigel) else config


def save(folder: Path, weights: dict[str, Tensor], reader: Reader, config: dict[str, Any]) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`."""
    save_model(folder, stored(weights), reader.tokenizer, config)


def load(folder: Path, dkg: Dkg) -> Trained:
    """The retriever stored in `folder`, opened on a graph.

    The decoder `layer` needs the relations that it was trained on, where an update may have removed some; `label` takes
    those that the graph has.
    Raises ArtifactError when the folder is damaged, GraphMismatch when a `layer` meets other relations.
    """
    config = load_config(folder, None, VERSION, "retriever", "relation_keys", "hops", "exclude_topic", "encoder")
    keys, by_label = config["relation_keys"], config.get("decoder") == "label"
    if not _same(keys, dkg.relation_keys):
        known, here = set(keys), set(dkg.relation_keys)
        if not by_label:
            examples = sorted(here - known)[:3] + sorted(known - here)[:3]
            raise GraphMismatch(
                f"the retriever in {folder} knows {len(keys) // 2} relations and this graph has {dkg.relations}; "
                f"they differ in {', '.join(examples) or 'their order'}. Train the retriever on this graph, or with "
                "--set rigel.decoder=label, which takes relations added later without training"
            )
        logger.info("%d relations of this graph were not there in training", len(here - known) // 2)
        if note := unlabelled_note(dkg):
            logger.warning(note)
    encoder, reader = load_encoder(folder, config["encoder"])
    hops = int(config["hops"])
    network = LabelRigel(encoder, hops) if by_label else Rigel(encoder, len(keys), hops)
    network.extras = Extension.stored(config).extras(encoder.width)
    load_weights(folder, network, lambda weights: restored(weights, list(network.state_dict())))
    return Trained(network.open(dkg, reader) if isinstance(network, LabelRigel) else network, reader, config)


def _same(trained: Sequence[str], here: Sequence[str]) -> bool:
    """Whether ids mean the relations that they meant in training, but for those that an update removed."""
    if len(trained) != len(here):
        return False
    return all(
        old == new or new.removeprefix(INVERSE).startswith(REMOVED) for old, new in zip(trained, here, strict=True)
    )


@dataclass(frozen=True)
class QueryBatch:
    """A row of plan and topics for each leg, on the CPU; a leg for each question where `ptr` is absent.

    topics: where each leg begins.  excluded: all topics of its question, where they are not `topics`.
    ptr: int64 [batch + 1], legs of each question.  share: β [batch], of the intersection.
    """

    plan: Plan
    topics: EntityWeights
    excluded: EntityWeights | None = None
    ptr: Tensor | None = None
    share: Tensor | None = None


def plan_batch(
    network: Rigel | LabelRigel | PlanningNetwork,
    reader: Reader,
    questions: EncodedQuestions,
    batch: Tensor,
    device: torch.device,
) -> QueryBatch:
    """The plan and the topics of a batch of question numbers, equal wordings encoded once."""
    if questions.starts is None or questions.leg_text is None:
        plan, _ = _to_cpu(_plan(network, reader, questions, questions.text[batch], device))
        return QueryBatch(plan, EntityWeights.one_hot([questions.topics[number] for number in batch.tolist()]))
    starts, legs = questions.starts.take(batch)
    plan = _plan(network, reader, questions, questions.leg_text[legs], device)
    extras = network.extras
    if extras is None or plan.state is None:
        return QueryBatch(_to_cpu(plan)[0], starts.sets)
    weight = extras.start(plan.state, starts, network.encoder, reader)
    if extras.gate is None:
        plan, (weight,) = _to_cpu(plan, weight)
        return QueryBatch(plan, starts.sets.with_weight(weight))
    plan, (weight, logit) = _to_cpu(plan, weight, extras.gate(plan.state).squeeze(1))
    excluded = starts.topics.repeat(starts.ptr.diff())
    return QueryBatch(plan, starts.sets.with_weight(weight), excluded, starts.ptr, share(logit, starts.ptr))


def propagate(
    graph: Dkg,
    queries: QueryBatch,
    how: str,
    *,
    exclude_topic: bool = False,
    epsilon: float = 0.0,
    edge_budget: int | None = None,
    clamp: bool = False,
) -> tuple[Walk, EntityWeights]:
    """The walk of the legs, and the scores of each question.  how: topics are intersected, `none`, `product`, `min`."""
    walked = walk(
        graph,
        queries.topics,
        queries.plan,
        exclude_topic=exclude_topic,
        epsilon=epsilon,
        edge_budget=edge_budget,
        excluded=queries.excluded,
        clamp=clamp,
    )
    if queries.ptr is None or queries.share is None:
        return walked, walked.scores
    return walked, combine(walked.scores, queries.ptr, queries.share, how)


def _plan(
    network: Rigel | LabelRigel | PlanningNetwork,
    reader: Reader,
    questions: EncodedQuestions,
    text: Tensor,
    device: torch.device,
) -> Plan:
    distinct, place = torch.unique(text, return_inverse=True)
    ids, mask = reader.batch([questions.rows[index] for index in distinct.tolist()])
    plan: Plan = network(ids.to(device), mask.to(device)).take(place.to(device))
    return plan


def _to_cpu(plan: Plan, *more: Tensor) -> tuple[Plan, tuple[Tensor, ...]]:
    """A plan and what belongs to it, moved together."""
    attention, *moved = to_cpu(plan.attention, *more, *plan.relations)
    return Plan(moved[len(more) :], attention), tuple(moved[: len(more)])
