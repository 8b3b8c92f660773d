"""What training makes small, from entity scores and gold answers alone; one value per question.

scores: Σ a_t x_t as a sparse batch, path counts included, so that a weight may exceed 1.
Both losses count the answers that were not reached, and neither gets smaller by losing mass.

`normalised_walk` computes the loss `normalised` without expanding a last hop that the edge budget might cut.  The loss
needs the weight on the answers and the weight in all.  Both are sums over hops, and those of the last hop follow from
run lengths and from the answers' own rows (`dkg.last_hop`): nothing is followed, so nothing is cut, and a hub of a
million edges costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.dkg.last_hop import last_hop
from kgqa_core.retrieval.rigel.walk import Plan, advance, join

FLOOR = 1e-8
"""Probability below which an answer counts as not reached; the worst value of one answer is -log of it, 18.4."""
CEILING = 0.99
"""An entity's probability is at most this where it is no answer: bounds loss (4.6) and gradient (100) of one entity."""


@dataclass(frozen=True)
class AnswerOverlap:
    """How scores meet answers: is_answer: bool [n], of each touched entity; missed, answers: float [batch]."""

    is_answer: Tensor
    missed: Tensor
    answers: Tensor


def answer_overlap(scores: EntityWeights, answers: Sequence[Sequence[int]]) -> AnswerOverlap:
    """Which touched entities are answers, and how many distinct answers each question did not touch."""
    gold = EntityWeights.one_hot(answers)
    is_answer = gold.lookup(scores.ptr, scores.entity) > 0
    count = gold.sum()
    return AnswerOverlap(is_answer, count - scores.with_weight(is_answer.to(count.dtype)).sum(), count)


def bce(scores: EntityWeights, answers: Sequence[Sequence[int]]) -> Tensor:
    """Binary cross-entropy over entities (Sen et al. 2023), [batch].

    With p = x / max(1, x.detach()): (Σ_answers -log p + Σ_others -log(1 - p)) / number of answers.  Entities that
    are neither touched nor answers have p = 0 and cost nothing; an answer that is not reached costs -log FLOOR,
    without gradient.  The division lets every question weigh alike, however many answers it has.
    """
    overlap = answer_overlap(scores, answers)
    p = scores.clamp_normalise().weight
    cost = torch.where(overlap.is_answer, -torch.log(p.clamp(min=FLOOR)), -torch.log1p(-CEILING * p))
    return (scores.with_weight(cost).sum() - overlap.missed * math.log(FLOOR)) / overlap.answers.clamp(min=1)


def normalised(scores: EntityWeights, answers: Sequence[Sequence[int]]) -> Tensor:
    """-log of the answers' share of the retrieved mass, [batch].

    The share is Σ_answers x / max(1, Σ x): mass that followed relations which lead nowhere stays in the denominator,
    so that a question that loses everything has the worst value, -log FLOOR, and never the best.
    """
    return share(on_answers(scores, answers), scores.sum())


def on_answers(scores: EntityWeights, answers: Sequence[Sequence[int]]) -> Tensor:
    """Weight that lies on the answers, [batch]."""
    return scores.with_weight(scores.weight * answer_overlap(scores, answers).is_answer).sum()


def share(found: Tensor, total: Tensor) -> Tensor:
    """-log of found / max(1, total), [batch]."""
    return -torch.log((found / total.clamp(min=1)).clamp(min=FLOOR))


LOSSES = {"bce": bce, "normalised": normalised}
LARGE = 1_000_000
"""Edges out of a question's last frontier from which on the hop is not expanded, where the budget is below them too.
Smaller graphs train as they always did, to the bit; following their edges costs less than encoding the question."""


def normalised_walk(
    dkg: Dkg,
    topics: EntityWeights,
    plan: Plan,
    answers: Sequence[Sequence[int]],
    *,
    exclude_topic: bool = False,
    epsilon: float = 0.0,
    edge_budget: int | None = None,
    excluded: EntityWeights | None = None,
) -> Tensor:
    """`normalised(walk(dkg, topics, plan, …).scores, answers)`, [batch], with a large last hop never cut.

    Where no question's last hop has more edges to choose from than the budget and LARGE, it is just that; else it is
    the same value and gradient up to rounding as without a budget for the last hop.
    """
    exclude = (topics if excluded is None else excluded) if exclude_topic else None
    attention = plan.attention.cpu()
    last = plan.relations[-1].cpu()
    sets = advance(dkg, topics, plan.relations[:-1], exclude, epsilon, edge_budget)
    frontier = sets[-1] if sets else topics
    if edge_budget is None or _most_edges(dkg, frontier) <= max(edge_budget, LARGE):
        sets += advance(dkg, frontier, [last], exclude, epsilon, edge_budget)
        return normalised(join(sets, attention), answers)
    gold = EntityWeights.one_hot(answers)
    arrival = last_hop(dkg, frontier, last, gold, exclude=exclude, epsilon=epsilon)
    found = attention[:, -1] * gold.with_weight(arrival.mass).sum()
    total = attention[:, -1] * arrival.total
    for hop, entities in enumerate(sets):
        scaled = entities.scale(attention[:, hop])
        found, total = found + on_answers(scaled, answers), total + scaled.sum()
    return share(found, total)


def _most_edges(dkg: Dkg, frontier: EntityWeights) -> int:
    """Edges out of the entities of the question that has most."""
    start, stop = dkg.row_bounds(frontier.entity.numpy())
    running = np.concatenate([[0], np.cumsum(stop - start)])
    return int(np.diff(running[frontier.ptr.numpy()]).max(initial=0))
