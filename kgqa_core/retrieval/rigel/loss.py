"""What training makes small, from entity scores and gold answers alone; one value per question.

scores: Σ a_t x_t as a sparse batch, path counts included, so that a weight may exceed 1.
Both losses count the answers that were not reached, and neither gets smaller by losing mass.

`normalised_walk` and `bce_walk` compute the losses without expanding a last hop that the edge budget might cut, so that
nothing is cut, and a hub of a million edges costs next to nothing (`dkg.last_hop`).  The loss `normalised` needs the
weight on the answers and the weight in all.  Both are sums over hops, and those of the last hop follow from run lengths
and from the answers' own rows.  Of `bce` the answers are exact too; what the other entities cost follows from the runs
where no two edges lead to one entity, and is else a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.dkg.last_hop import last_hop, runs_of
from kgqa_core.dkg.sets import row_sum
from kgqa_core.retrieval.rigel.questions import WeightedPath
from kgqa_core.retrieval.rigel.walk import RelationPlan, WalkOptions, advance, join

FLOOR = 1e-8
"""Probability below which an answer counts as not reached; the worst value of one answer is -log of it, 18.4."""
STEP_FLOOR = 1e-12
"""Probability of one step of a path below which it has no gradient."""
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


def share(on_gold: Tensor, total: Tensor) -> Tensor:
    """-log of on_gold / max(1, total), [batch]."""
    return -torch.log((on_gold / total.clamp(min=1)).clamp(min=FLOOR))


def path_loss(
    plan: RelationPlan, paths: Mapping[int, Sequence[WeightedPath]], leg: Callable[[int, int], int]
) -> Tensor:
    """-log Σ_p w_p a_|p| Π_t r_t[p_t] of each question that has paths, summed.

    paths: by index of the question in the batch.  leg(question, number): row of the plan of a question's leg.
    A path that is longer than the plan has hops does not count.  Computed from logarithms: among many relations an
    untrained plan gives a path of several hops next to nothing, and it is from there that it must learn.
    """
    hops = len(plan.relations)
    losses: list[Tensor] = []
    for question, weighted in sorted(paths.items()):
        parts: list[Tensor] = []
        for number, path, weight in weighted:
            if len(path) > hops or weight <= 0:
                continue
            row = leg(question, number)
            steps = [plan.attention[row, len(path) - 1]]
            steps += [plan.relations[hop][row, relation] for hop, relation in enumerate(path)]
            parts.append(math.log(weight) + torch.stack(steps).clamp(min=STEP_FLOOR).log().sum())
        if parts:
            losses.append(-torch.logsumexp(torch.stack(parts), 0))
    return torch.stack(losses).sum() if losses else plan.attention.sum() * 0


LARGE = 1_000_000
"""Edges out of a question's last frontier from which on the hop is not expanded, where the budget is below them too.
Smaller graphs train as they always did, to the bit; following their edges costs less than encoding the question."""


@dataclass(frozen=True)
class _LargeHop:
    """A walk up to its last hop, which is too large to expand.

    sets: entities after the earlier hops.  frontier: where the last hop starts.  gold: the answers' entity sets.
    exclude: taken out after each hop, or None.
    """

    sets: list[EntityWeights]
    frontier: EntityWeights
    relations: Tensor
    attention: Tensor
    gold: EntityWeights
    exclude: EntityWeights | None
    epsilon: float

    @property
    def weights(self) -> Tensor:
        """Attention of the last hop, [batch]."""
        return self.attention[:, -1]

    def earlier(self) -> EntityWeights | None:
        """Σ a_t x_t of the earlier hops; None where there is none."""
        return join(self.sets, self.attention[:, :-1]) if self.sets else None


def _walk_or_stop(
    dkg: Dkg, topics: EntityWeights, plan: RelationPlan, answers: Sequence[Sequence[int]], options: WalkOptions
) -> EntityWeights | _LargeHop:
    """The scores of a walk, or the walk before its last hop where a question has more edges than budget and LARGE."""
    exclude = topics if options.exclude_topic else None
    attention, last = plan.attention, plan.relations[-1]
    sets = advance(dkg, topics, plan.relations[:-1], exclude, options)
    frontier = sets[-1] if sets else topics
    if options.edge_budget is None or _most_edges(dkg, frontier) <= max(options.edge_budget, LARGE):
        sets += advance(dkg, frontier, [last], exclude, options)
        return join(sets, attention)
    return _LargeHop(sets, frontier, last, attention, EntityWeights.one_hot(answers), exclude, options.epsilon)


def normalised_walk(
    dkg: Dkg, topics: EntityWeights, plan: RelationPlan, answers: Sequence[Sequence[int]], options: WalkOptions
) -> Tensor:
    """`normalised(walk(dkg, topics, plan, …).scores, answers)`, [batch], with a large last hop never cut.

    Where no question's last hop has more edges to choose from than the budget and LARGE, it is just that; else it is
    the same value and gradient up to rounding as without a budget for the last hop.
    """
    walked = _walk_or_stop(dkg, topics, plan, answers, options)
    if isinstance(walked, EntityWeights):
        return normalised(walked, answers)
    arrival = last_hop(
        dkg, walked.frontier, walked.relations, walked.gold, exclude=walked.exclude, epsilon=walked.epsilon
    )
    on_gold = walked.weights * walked.gold.with_weight(arrival.mass).sum()
    total = walked.weights * arrival.total
    for hop, entities in enumerate(walked.sets):
        scaled = entities.scale(walked.attention[:, hop])
        on_gold, total = on_gold + on_answers(scaled, answers), total + scaled.sum()
    return share(on_gold, total)


def bce_walk(
    dkg: Dkg, topics: EntityWeights, plan: RelationPlan, answers: Sequence[Sequence[int]], options: WalkOptions
) -> Tensor:
    """`bce(walk(dkg, topics, plan, …).scores, answers)`, [batch], with a large last hop never cut.

    Where no question's last hop has more edges to choose from than the budget and LARGE, it is just that.  Else the
    answers cost what they cost without a budget for the last hop.  An entity that is no answer costs -log(1 - C p) of
    each edge that leads to it and of its score from earlier hops: the same where there is but one of these, and a lower
    bound where they add up, for that function is convex and 0 at 0.
    """
    walked = _walk_or_stop(dkg, topics, plan, answers, options)
    if isinstance(walked, EntityWeights):
        return bce(walked, answers)
    gold, before = walked.gold, walked.earlier()
    arrival = last_hop(dkg, walked.frontier, walked.relations, gold, exclude=walked.exclude, epsilon=walked.epsilon)
    scores, cost = gold.with_weight(arrival.mass).scale(walked.weights).weight, _runs_cost(dkg, walked)
    if before is not None:
        scores = scores + before.lookup(gold.ptr, gold.entity)
        is_answer = answer_overlap(before, answers).is_answer
        cost = cost + before.with_weight(torch.where(is_answer, 0.0, _other_cost(before.weight))).sum()
    p = gold.with_weight(scores).clamp_normalise().weight
    reached = gold.with_weight(-torch.log(p.clamp(min=FLOOR))).sum()
    return (cost + reached) / gold.ptr.diff().clamp(min=1)


def _other_cost(scores: Tensor) -> Tensor:
    """What entities that are no answers cost, by their scores."""
    return -torch.log1p(-CEILING * scores / scores.detach().clamp(min=1))


def _runs_cost(dkg: Dkg, walked: _LargeHop) -> Tensor:
    """What the last hop's entities that are no answers cost if each is reached by one edge, [batch]."""
    skip = walked.gold
    if walked.exclude is not None:
        skip = EntityWeights.merge([skip, walked.exclude.with_weight(torch.ones_like(walked.exclude.entity).float())])
    runs = runs_of(dkg, walked.frontier, walked.relations, skip, epsilon=walked.epsilon)
    row = walked.frontier.row[runs.source]
    scores = walked.weights[row] * walked.frontier.weight[runs.source] * walked.relations[row, runs.relation]
    return row_sum(_other_cost(scores) * runs.edges, runs.ptr)


def _most_edges(dkg: Dkg, frontier: EntityWeights) -> int:
    """Edges out of the entities of the question that has most."""
    start, stop = dkg.row_bounds(frontier.entity.numpy())
    running = np.concatenate([[0], np.cumsum(stop - start)])
    return int(np.diff(running[frontier.ptr.numpy()]).max(initial=0))


LOSSES = {"bce": bce, "normalised": normalised}
"""The losses of scores."""
WALK_LOSSES = {"bce": bce_walk, "normalised": normalised_walk}
"""The same of a plan, with a large last hop that is not expanded."""
