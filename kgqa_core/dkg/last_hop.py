"""The last hop of a loss that is normalised over entities, without expanding it.

-log(Σ_answers x / max(1, Σ x)) needs two things of the last x: what lies on the answers, and how much there is.
How much there is follows from the lengths of the runs: Σ_h x_h Σ_q r_q · |run(h, q)|.  What lies on an answer follows
from its own row, walked backwards.  So a hub's million edges are never looked at: the cost is the number of the
sources' runs and the answers' degrees.  An answer without edges that lead back (a literal) is sought in the runs by
halving.

Exact, with gradients in x and r, for any epsilon; earlier hops are expanded by `follow` as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from kgqa_core.dkg import sets
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import Backend, check, follow
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.errors import GraphMismatch


@dataclass(frozen=True, eq=False)
class Arrival:
    """What a hop would reach.  mass: [m], on each answer, in the order of the answers' rows.  total: [B], on all."""

    mass: Tensor
    total: Tensor


def last_hop(
    dkg: Dkg,
    x: EntityWeights,
    r: Tensor,
    answers: EntityWeights,
    *,
    exclude: EntityWeights | None = None,
    epsilon: float = 0.0,
    backend: Backend = "auto",
) -> Arrival:
    """What `follow(dkg, x, r, …)` less `exclude` has on the answers and in all, differentiable in x.weight and r.

    answers, exclude: entity sets of B questions; their weights do not matter.  Other arguments as of `follow`.
    backend: `auto` and `numba` do not expand the hop and need the CPU; `torch` expands it and runs anywhere.
    Raises GraphMismatch as `follow` does.
    """
    x, r = check(dkg, x, r)
    for name, others in (("answers", answers), ("exclude", exclude)):
        if others is not None and others.batch != x.batch:
            raise GraphMismatch(f"{name} has {others.batch} rows for {x.batch} questions; pass one row per question")
    if backend == "torch" or x.device.type != "cpu" or r.device.type != "cpu":
        reached = follow(dkg, x, r, epsilon=epsilon, backend=backend)
        if exclude is not None:
            reached = reached.mask(exclude)
        return Arrival(reached.lookup(answers.ptr, answers.entity), reached.sum())
    if exclude is None:
        return Arrival(*_arrive(dkg, x, r, answers.ptr, answers.entity, epsilon))
    ptr, entity, (gold_index, excluded_index) = sets.union([(part.ptr, part.entity) for part in (answers, exclude)])
    mass, total = _arrive(dkg, x, r, ptr, entity, epsilon)
    counted = torch.ones(entity.shape[0], dtype=mass.dtype)
    counted[excluded_index] = 0
    left = sets.row_sum(mass * (1 - counted), ptr)
    return Arrival((mass * counted)[gold_index], total - left)


@dataclass(frozen=True, eq=False)
class Runs:
    """Edges out of entity sets by relation.  ptr: int64 [B + 1], the runs of each question.

    source: int64 [n], index in the set.  relation: int64 [n], directed.  edges: int64 [n], how many.
    """

    ptr: Tensor
    source: Tensor
    relation: Tensor
    edges: Tensor


def runs_of(dkg: Dkg, x: EntityWeights, r: Tensor, skip: EntityWeights, *, epsilon: float = 0.0) -> Runs:
    """The runs out of the entities of x by relations that weigh `epsilon` or more, without their edges to `skip`.

    r: [B, 2R].  skip: entity sets of the same questions.  Edges are not looked at one by one: an entity of `skip` is
    sought in a run by halving.
    """
    from kgqa_core.dkg.last_hop_kernels import fill_runs  # compiles, so only where it is used

    bounds, none = dkg.row_bounds(x.entity.numpy()), np.empty(0, dtype=np.int64)
    arguments = (
        dkg.rel, dkg.tail, x.ptr.numpy(), *bounds, r.detach().numpy(), epsilon, skip.ptr.numpy(), skip.entity.numpy(),
    )  # fmt: skip
    count = fill_runs(*arguments, False, none, none, none)
    source, relation, edges = (np.empty(count, dtype=np.int64) for _ in range(3))
    fill_runs(*arguments, True, source, relation, edges)
    ptr = np.searchsorted(source, x.ptr.numpy(), "left")
    return Runs(*(torch.from_numpy(array) for array in (ptr, source, relation, edges)))


def _arrive(
    dkg: Dkg, x: EntityWeights, r: Tensor, ptr: Tensor, entity: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    from kgqa_core.dkg.frontier_numba import Frontier  # compiles, so only where it is used

    frontier = Frontier(dkg, x, x.weight, r, epsilon, None)
    mass, total = _LastHop.apply(x.weight, r, _Arriving(frontier, ptr.numpy(), entity.numpy()))
    return mass, total


class _Arriving:
    """A frontier and the answers that wait for it."""

    def __init__(self, frontier: Any, ptr: NDArray[np.int64], answer: NDArray[np.int64]) -> None:
        dkg: Dkg = frontier.dkg
        if len(answer) and (int(answer.min()) < 0 or int(answer.max()) >= dkg.entities):
            bad = answer[(answer < 0) | (answer >= dkg.entities)][0]
            raise GraphMismatch(
                f"answer {bad} is not in this DKG, which has {dkg.entities} entities; was it made for another graph?"
            )
        both_ways = dkg.edges_stored == 2 * dkg.triples
        one_way = np.zeros(len(answer), dtype=np.bool_) if both_ways else dkg.is_literal(answer)
        self.frontier, self.ptr, self.answer, self.one_way = frontier, ptr, answer, one_way

    def run(self, back: bool, mass: Any, total: Any, grad_x: Any, grad_r: Any) -> None:
        """Fills mass and total, or adds their gradients to grad_x and grad_r."""
        from kgqa_core.dkg.frontier_numba import over
        from kgqa_core.dkg.last_hop_kernels import arrive

        frontier = self.frontier
        dkg: Dkg = frontier.dkg

        def work(first: int, last: int) -> None:
            arrive(
                first, last, frontier.arrays, frontier.source, dkg.rows, dkg.relations, self.ptr, self.answer,
                self.one_way, back, mass, total, grad_x, grad_r,
            )  # fmt: skip

        over(frontier.ranges, work)


class _LastHop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, r: Tensor, arriving: _Arriving) -> Any:
        frontier = arriving.frontier
        mass = np.zeros(len(arriving.answer), dtype=frontier.weight.dtype)
        total = np.zeros(frontier.batch, dtype=frontier.weight.dtype)
        arriving.run(False, mass, total, mass, frontier.r)
        ctx.arriving = arriving
        return torch.from_numpy(mass), torch.from_numpy(total)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        frontier = ctx.arriving.frontier
        grad_x, grad_r = np.zeros_like(frontier.weight), np.zeros_like(frontier.r)
        ctx.arriving.run(True, *(grad.contiguous().numpy() for grad in grads), grad_x, grad_r)
        return torch.from_numpy(grad_x), torch.from_numpy(grad_r), None
