"""The loss `normalised` without expanding a last hop that the edge budget might cut.

It asks for the weight on the answers and for the weight in all.  Both are sums over hops, and those of the last hop
follow from run lengths and from the answers' own rows (`dkg.last_hop`): nothing is followed, so nothing is cut, and a
hub of a million edges costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.dkg.last_hop import last_hop
from kgqa_core.retrieval.rigel.loss import normalised, on_answers, share
from kgqa_core.retrieval.rigel.network import advance, join
from kgqa_core.retrieval.rigel.plan import Plan

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
