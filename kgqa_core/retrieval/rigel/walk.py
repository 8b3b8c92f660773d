"""A plan of relations, where it leads through the graph, and what the legs of a question lead to together.

    x_t   = follow(x_{t-1}, r_t),  score = Σ_t a_t x_t     of each leg
    y_j   = Σ_t a_jt x_jt,  p_j = y_j / max(1, y_j)        of each topic j, with its own plan
    score = (1 - β) Σ_j y_j + β Π_j p_j                    or min_j p_j in place of the product

Sen, Oliya, Saffari 2021 (Rigel-Intersect).  All of it on the union of what was reached: nothing has the size of batch ×
entities.  A question with one topic has the score y_1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kgqa_core.dkg import sets
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow
from kgqa_core.errors import GraphMismatch


@dataclass(frozen=True)
class RelationPlan:
    """What the network wants to do with a batch: relations[t]: [batch, 2R] for each hop; attention: [batch, hops].

    state: h_q [batch, width], where an extension of the network reads it.
    """

    relations: list[Tensor]
    attention: Tensor
    state: Tensor | None = None

    def take(self, rows: Tensor) -> RelationPlan:
        """The plans of some rows, repeated as often as they are named."""
        state = None if self.state is None else self.state[rows]
        return RelationPlan([relations[rows] for relations in self.relations], self.attention[rows], state)


@dataclass(frozen=True)
class Walk:
    """The steps of a plan: sets[t] is x_t (sets[0] the topics); scores is Σ a_t x_t; truncated: int64 [batch] edges."""

    sets: list[EntityWeights]
    scores: EntityWeights
    truncated: Tensor


@dataclass(frozen=True)
class WalkOptions:
    """How a plan is followed.

    exclude_topic: removes the topics from the entity set after each hop.  epsilon: relations that weigh less are
    skipped.  edge_budget: edges followed per question and hop.  clamp: weights above 1 become 1 after each hop, and
    keep a gradient.
    """

    exclude_topic: bool = False
    epsilon: float = 0.0
    edge_budget: int | None = None
    clamp: bool = False


def walk(
    dkg: Dkg,
    topics: EntityWeights,
    plan: RelationPlan,
    options: WalkOptions = WalkOptions(),
    excluded: EntityWeights | None = None,
) -> Walk:
    """Follows a plan on the CPU through the graph, which lies there; differentiable in the plan and in topics.

    topics: x_0 [batch].  excluded: what `exclude_topic` removes, where that is not the topics.
    """
    exclude = (topics if excluded is None else excluded) if options.exclude_topic else None
    sets = [topics, *advance(dkg, topics, plan.relations, exclude, options)]
    cut = sets[-1].truncated
    scores = join(sets[1:], plan.attention)
    return Walk(sets, scores, torch.zeros(topics.batch, dtype=torch.int64) if cut is None else cut)


def advance(
    dkg: Dkg, start: EntityWeights, relations: Sequence[Tensor], exclude: EntityWeights | None, options: WalkOptions
) -> list[EntityWeights]:
    """The entity sets after each of some hops, less `exclude`."""
    sets = [start]
    for weights in relations:
        step = follow(dkg, sets[-1], weights, epsilon=options.epsilon, edge_budget=options.edge_budget)
        step = step.clamp_normalise() if options.clamp else step
        sets.append(step.mask(exclude) if exclude is not None else step)
    return sets[1:]


def join(sets: Sequence[EntityWeights], attention: Tensor) -> EntityWeights:
    """Σ a_t x_t of the sets after each hop.  attention: [batch, hops]."""
    return EntityWeights.merge([entities.scale(attention[:, hop]) for hop, entities in enumerate(sets)])


def combine(legs: EntityWeights, ptr: Tensor, share: Tensor, how: str) -> EntityWeights:
    """One entity set for each question from those of its legs; differentiable in weights and share.

    legs: y of each leg.  ptr: int64 [batch + 1], legs of each question.  share: β [batch].  how: `product` or `min`.
    """
    if int(ptr[-1]) != legs.batch or share.shape[0] != ptr.shape[0] - 1:
        raise GraphMismatch(f"{legs.batch} legs and {share.shape[0]} shares do not fit {ptr.shape[0] - 1} questions")
    count = ptr.diff()
    most = int(count.max()) if count.shape[0] else 0
    slots = [legs.take(torch.where(count > leg, ptr[:-1] + leg, -1)) for leg in range(most)]
    if most < 2:
        return slots[0] if slots else legs
    bounds, entity, indices = sets.union([(slot.ptr, slot.entity) for slot in slots])
    size = entity.shape[0]
    row = sets.rows_of(bounds, size)
    together = sets.scatter_sum(size, indices, [slot.weight for slot in slots])
    common: Tensor | None = None
    for leg, (slot, index) in enumerate(zip(slots, indices, strict=True)):
        reached = sets.scatter_sum(size, [index], [slot.clamp_normalise().weight])
        if common is None:
            common = reached
            continue
        there = (count > leg)[row]
        met = common * reached if how == "product" else torch.minimum(common, reached)
        common = torch.where(there, met, common)
    assert common is not None
    part = sets.spread(share.to(together.dtype), bounds, size)
    weight = torch.where((count > 1)[row], (1 - part) * together + part * common, together)
    cut = [slot.truncated for slot in slots if slot.truncated is not None]
    return EntityWeights(bounds, entity, weight, torch.stack(cut).sum(0) if cut else None)


@dataclass(frozen=True)
class QueryBatch:
    """A row of plan and topics for each leg, on the CPU; a leg for each question where `ptr` is absent.

    topics: where each leg begins.  excluded: all topics of its question, where they are not `topics`.
    ptr: int64 [batch + 1], legs of each question.  share: β [batch], of the intersection.
    """

    plan: RelationPlan
    topics: EntityWeights
    excluded: EntityWeights | None = None
    ptr: Tensor | None = None
    share: Tensor | None = None


def propagate(graph: Dkg, queries: QueryBatch, intersect: str, options: WalkOptions) -> tuple[Walk, EntityWeights]:
    """The walk of the legs, and the scores of each question.  intersect: `none`, `product` or `min` of the topics."""
    walked = walk(graph, queries.topics, queries.plan, options, queries.excluded)
    if queries.ptr is None or queries.share is None:
        return walked, walked.scores
    return walked, combine(walked.scores, queries.ptr, queries.share, intersect)
