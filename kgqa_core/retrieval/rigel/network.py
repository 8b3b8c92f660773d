"""Rigel: a question becomes relations to follow, and following them through the graph gives the answers.

    h_q   = encoder(question)
    r_t   = a distribution over the 2R directed relations, from h_q and the earlier hops' choices
    c_t   = U_t [h_q; what the earlier hops chose],  a = softmax(c)      how much each hop counts
    x_t   = follow(x_{t-1}, r_t),  x_0 = the topic entities
    score = Σ_t a_t x_t                                                  (`walk`)

Sen, Mavadia, Saffari 2023 (the equations are those of Saffari et al. 2021 and Sen et al. 2021).  The decoder `layer`
has one output for each relation:

    r_t   = softmax(W_t [h_q; r_{t-1}; …; r_1])

The decoder `label` takes relations as texts, so that a graph with relations added later is used without training; no
weight has the number of relations in its shape:

    e_r   = label encoder(text of r)
    v_r   = n(e_r + P e_r + p),  v_inv(r) = n(e_r + P' e_r + p')         n: to length 1
    s_t   = [h_q; Σ_r r_1 v_r; …; Σ_r r_{t-1} v_r]
    r_t   = softmax(exp(κ) v · n(h_q + Q_t s_t))                         over the relations of the graph at hand

What encodes the labels.  A pretrained encoder has a frozen copy for them, which runs once when a graph is opened; what
is learnt of relations are the two small maps P and P', which start near zero.  Encoding 501 labels in every step, with
gradients, would cost more than a batch of questions does; and labels that move while a few are trained lose their
likeness to the others, which is all that an unseen relation has.  A scratch encoder knows nothing before training, so
questions and labels share it and its vocabulary, and the labels are encoded anew in every step.

Beside the plain network there may be a learnt weighting of where it starts, and an intersection of what the topics lead
to (`walk.combine`):

    s_i   = σ(logit ρ_i + g(h_q, i))         start weight of candidate i; ρ_i = 1 stays 1
    g     = v · tanh(W [P h_q ∘ Q e_i; logit ρ_i; c_i; d_i])
    β     = σ(u · mean of h_q)               how much the intersection counts against the union

e_i is the mean embedding of the words of the candidate's types and description, c_i its share of its mention's
popularity, d_i its popularity.  v begins at zero, so that training begins at the tagger's ρ; the gradient reaches s
through the graph.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from kgqa_core.config import RigelOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import GraphMismatch
from kgqa_core.kg.store import REMOVED
from kgqa_core.nn.device import to_cpu
from kgqa_core.nn.encoders import Encoder, Pretrained, Reader, load_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.retrieval.relation_texts import relation_texts, unlabelled_note
from kgqa_core.retrieval.rigel.questions import FEATURES, EncodedQuestions, Starts
from kgqa_core.retrieval.rigel.walk import QueryBatch, RelationPlan
from kgqa_core.types import INVERSE

VERSION = 1
"""Version of the stored model's layout."""
logger = logging.getLogger(__name__)

SHARED = 32
"""Width in which question and candidate are compared."""
HIDDEN = 32
MIN_RHO = 1e-4
"""ρ below which a candidate counts as this sure, so that its logarithm is finite."""
RHO_SCALE = 4.0
"""What logits of ρ are divided by, to be of the size of the other features."""

LABEL_SCALE = 20.0
"""exp(κ) before training: MiniLM's cosines differ by tenths."""
SMALL = 0.02
"""Standard deviation of the maps before training."""
CHUNK = 256
"""Labels that a pretrained encoder reads at once."""

Intersection = Literal["none", "product", "min"]


@dataclass(frozen=True)
class Extension:
    """Which parts a retriever has.  candidates: of each mention, at which a soft start begins."""

    soft_start: bool = False
    candidates: int = 1
    intersect: Intersection = "none"

    @classmethod
    def wanted(cls, options: RigelOptions) -> Extension:
        """Those that the options enable."""
        return cls(options.soft_start, options.candidates if options.soft_start else 1, options.intersect)

    @classmethod
    def stored(cls, config: dict[str, Any]) -> Extension:
        """What a stored retriever was trained with."""
        return cls(**config.get("extension", {}))

    def config(self) -> dict[str, Any]:
        """As the config of a stored retriever has it: nothing where there is none."""
        return {"extension": asdict(self)} if self != Extension() else {}

    @property
    def apart(self) -> bool:
        """Whether topics are followed apart."""
        return self.intersect != "none"

    def extras(self, width: int) -> Extras | None:
        """The parts, untrained; None where there is none.  width: of h_q.

        They take their first weights from the generator's state and leave it as it is, so that no other random
        number depends on them.
        """
        if not (self.soft_start or self.apart):
            return None
        with torch.random.fork_rng(devices=[]):
            return Extras(self, width)


class PlanningNetwork(nn.Module):
    """A network that makes a `RelationPlan` from token ids.

    hops: of a plan.  extras: its parts beside the plain network.
    """

    encoder: Encoder
    hops: int
    by_label = False

    def __init__(self) -> None:
        super().__init__()
        self.extras: Extras | None = None

    def open(self, dkg: Dkg, reader: Reader) -> Self:
        """The network ready for a graph; one with an output for each relation is as it is."""
        return self


class Rigel(PlanningNetwork):
    """The decoder `layer`, with one output for each relation, from token ids to a `RelationPlan`.

    relations: number of directed relations, 2R.  hops: largest number of hops, M.
    """

    def __init__(self, encoder: Encoder, relations: int, hops: int, extension: Extension) -> None:
        super().__init__()
        self.encoder, self.relations, self.hops = encoder, relations, hops
        widths = [encoder.width + hop * relations for hop in range(hops)]
        self.relation_layers = nn.ModuleList(nn.Linear(width, relations) for width in widths)
        self.attention_layers = nn.ModuleList(nn.Linear(width, 1) for width in widths)
        self.extras = extension.extras(encoder.width)

    def forward(self, ids: Tensor, mask: Tensor) -> RelationPlan:
        """The plan of each question.  ids, mask: [batch, length]."""
        question = state = self.encoder(ids, mask)
        relations: list[Tensor] = []
        hop_scores: list[Tensor] = []
        for relation_layer, attention_layer in zip(self.relation_layers, self.attention_layers, strict=True):
            hop_scores.append(attention_layer(state))
            relations.append(torch.softmax(relation_layer(state), dim=-1))
            state = torch.cat([state, relations[-1]], dim=-1)
        attention = torch.softmax(torch.cat(hop_scores, dim=-1), dim=-1)
        return RelationPlan(relations, attention, question if self.extras is not None else None)


class LabelRigel(PlanningNetwork):
    """The decoder `label`, from token ids to a `RelationPlan` over the relations of the graph it was last opened on.

    hops: largest number of hops, M.
    """

    by_label = True

    def __init__(self, encoder: Encoder, hops: int, extension: Extension) -> None:
        super().__init__()
        self.encoder, self.hops = encoder, hops
        width = encoder.width
        self.label_encoder: Encoder | None = None
        if isinstance(encoder, Pretrained):
            self.label_encoder = copy.deepcopy(encoder).requires_grad_(False)
        self.directions = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.query_layers = nn.ModuleList(nn.Linear(width * (hop + 1), width) for hop in range(hops))
        self.attention_layers = nn.ModuleList(nn.Linear(width * (hop + 1), 1) for hop in range(hops))
        self.log_scale = nn.Parameter(torch.tensor(math.log(LABEL_SCALE)))
        for layer in [*self.directions, *self.query_layers]:
            nn.init.normal_(layer.weight, std=SMALL)  # type: ignore[arg-type]
            nn.init.normal_(layer.bias, std=SMALL)  # type: ignore[arg-type]
        self._labels: tuple[Tensor, Tensor] | None = None
        self._removed: Tensor | None = None
        self._encoded: Tensor | None = None
        self.extras = extension.extras(width)

    def open(self, dkg: Dkg, reader: Reader) -> Self:
        """Takes the relations of a graph for those to choose from."""
        texts = relation_texts(dkg)
        self._labels = reader.batch(reader.read(texts))
        removed = torch.tensor([not text for text in texts] * 2)
        self._removed = removed if bool(removed.any()) else None
        self._encoded = None
        return self

    def train(self, mode: bool = True) -> Self:
        """As of any module; the frozen label encoder stays without dropout, and a shared one is read anew."""
        super().train(mode)
        if self.label_encoder is not None:
            self.label_encoder.eval()
        elif mode:
            self._encoded = None
        return self

    def forward(self, ids: Tensor, mask: Tensor) -> RelationPlan:
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
        return RelationPlan(relations, attention, question if self.extras is not None else None)

    def _vectors(self) -> Tensor:
        """v of the 2R directed relations, inverses in the second half, [2R, width]."""
        labels = self._label_states()
        both = [nn.functional.normalize(labels + direction(labels), dim=-1) for direction in self.directions]
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


def _encode(encoder: Encoder, ids: Tensor, mask: Tensor, device: torch.device) -> Tensor:
    parts = zip(ids.split(CHUNK), mask.split(CHUNK), strict=True)
    return torch.cat([encoder(part.to(device), real.to(device)) for part, real in parts])


class Extras(nn.Module):
    """The parts that a plain network does not have."""

    def __init__(self, extension: Extension, width: int) -> None:
        super().__init__()
        self.weighting = Weighting(width) if extension.soft_start else None
        self.gate = nn.Linear(width, 1) if extension.apart else None
        if self.gate is not None:
            nn.init.zeros_(self.gate.weight)
            nn.init.zeros_(self.gate.bias)

    def start(self, state: Tensor, starts: Starts, encoder: Encoder, reader: Reader) -> Tensor:
        """The weights of the entities that each leg begins with.  state: [legs, width]."""
        if self.weighting is None:
            return starts.sets.weight
        device = state.device
        distinct, index = torch.unique(starts.sets.entity, return_inverse=True)
        ids, mask = reader.batch([starts.words.get(entity, []) for entity in distinct.tolist()] or [[]])
        words = encoder.words(ids.to(device), mask.to(device))[index.to(device)]
        weights = starts.sets.weight.to(device), starts.features.to(device)
        weight: Tensor = self.weighting(state[starts.sets.row.to(device)], words, *weights)
        return weight


class Weighting(nn.Module):
    """A candidate's start weight from ρ, the question and what is known of the candidate.

    width: of h_q and of the embedding of the candidate's text.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.question = nn.Linear(width, SHARED, bias=False)
        self.text = nn.Linear(width, SHARED, bias=False)
        self.hidden = nn.Linear(SHARED + 1 + FEATURES, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, state: Tensor, words: Tensor, rho: Tensor, features: Tensor) -> Tensor:
        """Start weights [n] in (0, 1).  state, words: [n, width]; rho: [n]; features: [n, 2]."""
        logit = torch.logit(rho.clamp(MIN_RHO, 1 - MIN_RHO))
        known = torch.cat([(logit / RHO_SCALE).unsqueeze(1), features], dim=1)
        both = torch.cat([self.question(state) * self.text(words), known], dim=1)
        moved = torch.sigmoid(logit + self.out(torch.tanh(self.hidden(both))).squeeze(1))
        return torch.where(rho >= 1, rho, moved)


def plan_batch(
    network: PlanningNetwork, reader: Reader, questions: EncodedQuestions, batch: Tensor, device: torch.device
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


def share(logit: Tensor, ptr: Tensor) -> Tensor:
    """β of each question, [batch].  logit: of each leg, [legs].  ptr: int64 [batch + 1], legs of each question."""
    count = ptr.diff()
    total = torch.zeros(count.shape[0], dtype=logit.dtype)
    for leg in range(int(count.max())):
        there = count > leg
        total = total + torch.where(there, logit[(ptr[:-1] + leg).clamp(max=logit.shape[0] - 1)], 0.0)
    return torch.sigmoid(total / count.clamp(min=1))


def _plan(
    network: PlanningNetwork, reader: Reader, questions: EncodedQuestions, text: Tensor, device: torch.device
) -> RelationPlan:
    distinct, inverse = torch.unique(text, return_inverse=True)
    ids, mask = reader.batch([questions.rows[index] for index in distinct.tolist()])
    plan: RelationPlan = network(ids.to(device), mask.to(device)).take(inverse.to(device))
    return plan


def _to_cpu(plan: RelationPlan, *more: Tensor) -> tuple[RelationPlan, tuple[Tensor, ...]]:
    """A plan and what belongs to it, moved together."""
    attention, *moved = to_cpu(plan.attention, *more, *plan.relations)
    return RelationPlan(moved[len(more) :], attention), tuple(moved[: len(more)])


@dataclass(frozen=True)
class Trained:
    """A retriever as it is stored: the network, its reader, and what it was trained for."""

    network: PlanningNetwork
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

    def plan(self, texts: Sequence[str]) -> RelationPlan:
        """The plan of prepared texts, without gradient and without dropout."""
        self.network.eval()
        with torch.inference_mode():
            ids, mask = self.reader.batch(self.reader.read(texts))
            plan: RelationPlan = self.network(ids, mask)
        return plan


def describe(network: PlanningNetwork, encoder: dict[str, Any], dkg: Dkg, exclude_topic: bool) -> dict[str, Any]:
    """Everything beside the weights that a stored retriever is rebuilt from."""
    config = {
        "version": VERSION,
        "hops": network.hops,
        "exclude_topic": exclude_topic,
        "relation_keys": list(dkg.relation_keys),
        "encoder": encoder,
    }
    return config | {"decoder": "label"} if network.by_label else config


def save(folder: Path, weights: dict[str, Tensor], reader: Reader, config: dict[str, Any]) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`."""
    save_model(folder, stored(weights), reader.tokenizer, config)


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
    extension = Extension.stored(config)
    network = LabelRigel(encoder, hops, extension) if by_label else Rigel(encoder, len(keys), hops, extension)
    load_weights(folder, network, lambda weights: restored(weights, list(network.state_dict())))
    return Trained(network.open(dkg, reader), reader, config)


def _same(trained: Sequence[str], here: Sequence[str]) -> bool:
    """Whether ids mean the relations that they meant in training, but for those that an update removed."""
    if len(trained) != len(here):
        return False
    return all(
        old == new or new.removeprefix(INVERSE).startswith(REMOVED) for old, new in zip(trained, here, strict=True)
    )
