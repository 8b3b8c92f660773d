"""`follow` and `trace` on the CPU: ranges of questions on threads, wrapped for autograd."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from kgqa_core.dkg import kernels
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.errors import GraphMismatch

Array = NDArray[Any]
DENSE_ENTITIES = 1 << 25
"""Largest graph for which each thread keeps a dense accumulator (4 or 8 bytes an entity)."""
EDGES_PER_THREAD = 50_000
"""Frontier edges that make another thread worth its start."""
RANGE_ENTITIES = 1 << 22
"""Largest bound on the output of one range of questions, unless a single question exceeds it."""

_pool: tuple[int, int, ThreadPoolExecutor] | None = None


class Workspace:
    """An accumulator that is all zeros between calls, and output buffers that are reused."""

    def __init__(self, entities: int, bound: int, dtype: Any, dense: bool) -> None:
        words = (entities + 63) // 64 if dense else 0
        table = 0 if dense else int(kernels.table_mask(bound)) + 1
        self.acc: Array = np.zeros(entities if dense else table, dtype=dtype)
        self.words: Array = np.zeros(words, dtype=np.uint64)
        self.groups: Array = np.zeros((words + 63) // 64, dtype=np.uint64)
        self.keys: Array = np.full(table, -1, dtype=np.int64)
        self.touched: Array = np.empty(0 if dense else bound, dtype=np.int64)
        self.entity: Array = np.empty(0, dtype=np.int64)
        self.weight: Array = np.empty(0, dtype=dtype)
        self.dense, self.bound = dense, bound

    def reserve(self, bound: int) -> None:
        """Room for the output of one range."""
        if len(self.entity) < bound:
            self.entity, self.weight = np.empty(bound, dtype=np.int64), np.empty(bound, dtype=self.weight.dtype)


@contextmanager
def workspace(dkg: Dkg, bound: int, dtype: Any) -> Iterator[Workspace]:
    """A workspace for this thread alone; dropped, not reused, when the kernel was interrupted."""
    dense = dkg.entities <= DENSE_ENTITIES
    shelf: list[Workspace] = dkg._scratch.setdefault(f"workspaces {np.dtype(dtype)}", [])
    try:
        space = shelf.pop()
    except IndexError:
        space = Workspace(dkg.entities, bound, dtype, dense)
    if space.dense != dense or (not dense and space.bound < bound):
        space = Workspace(dkg.entities, bound, dtype, dense)
    yield space
    if len(space.entity) > RANGE_ENTITIES:
        space.entity, space.weight = space.entity[:0].copy(), space.weight[:0].copy()
    shelf.append(space)


def _ranges(cost: Array, bound: Array) -> list[tuple[int, int]]:
    """Contiguous ranges of questions of about equal cost, one or more per thread."""
    batch = len(cost)
    threads = max(1, min(torch.get_num_threads(), batch, 1 + int(cost.sum()) // EDGES_PER_THREAD))
    if threads == 1 and int(bound.sum()) <= RANGE_ENTITIES:
        return [(0, batch)] if batch else []
    share = np.cumsum(cost + 1) * threads
    slice_of = np.minimum((share - 1) // max(int(share[-1]) // threads, 1), threads - 1) if batch else share
    ranges: list[tuple[int, int]] = []
    start, room = 0, 0
    for b in range(batch):
        if b > start and (slice_of[b] != slice_of[b - 1] or room + bound[b] > RANGE_ENTITIES):
            ranges.append((start, b))
            start, room = b, 0
        room += int(bound[b])
    if batch:
        ranges.append((start, batch))
    return ranges


def _over(ranges: list[tuple[int, int]], work: Callable[[int, int], Any]) -> list[Any]:
    """work(first, last) for each range, in order; on threads when there are several."""
    global _pool
    threads = torch.get_num_threads()
    if len(ranges) < 2 or threads < 2:
        return [work(first, last) for first, last in ranges]
    if _pool is None or _pool[:2] != (os.getpid(), threads):  # a forked child has no threads of its parent's pool
        _pool = (os.getpid(), threads, ThreadPoolExecutor(threads, thread_name_prefix="dkg"))
    return list(_pool[2].map(lambda span: work(*span), ranges))


class _Plan:
    """What forward and backward of one hop share."""

    def __init__(self, dkg: Dkg, x: EntityWeights, weight: Array, r: Array, epsilon: float, budget: int | None) -> None:
        self.dkg, self.r, self.epsilon = dkg, r, float(epsilon)
        self.xptr: Array = x.ptr.numpy()
        self.source: Array = x.entity.numpy()
        self.weight = weight
        self.cost: Array = kernels.costs(dkg.ptr, self.xptr, self.source)
        if len(self.cost) and self.cost[0] < 0:
            bad = self.source[(self.source < 0) | (self.source >= dkg.entities)][0]
            raise GraphMismatch(
                f"entity {bad} is not in this DKG, which has {dkg.entities} entities; was it made for another graph?"
            )
        self.order: Array | None = None
        self.budget = -1
        if budget is not None:
            over = np.flatnonzero(self.cost > budget)
            if len(over):
                self.budget = int(budget)
                self.order = np.arange(len(self.source))
                for b in over:
                    span = slice(self.xptr[b], self.xptr[b + 1])
                    self.order[span] = self.xptr[b] + np.argsort(-weight[span], kind="stable")
                self.source, self.weight = self.source[self.order], weight[self.order]
        follows = self.cost if self.budget < 0 else np.minimum(self.cost, self.budget)
        self.bound: Array = np.minimum(follows, dkg.entities)
        self.ranges = _ranges(follows, self.bound)

    @property
    def frontier(self) -> tuple[Any, ...]:
        """The arguments that every kernel takes after the range and the arrays of the graph."""
        return self.xptr, self.source, self.weight, self.r, self.epsilon, self.budget


class _Follow(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, r: Tensor, dkg: Dkg, x: EntityWeights, epsilon: float, budget: int | None
    ) -> Any:
        plan = _Plan(dkg, x, weight.detach().contiguous().numpy(), r.detach().contiguous().numpy(), epsilon, budget)
        batch = x.batch
        count, cut = np.zeros(batch, dtype=np.int64), np.zeros(batch, dtype=np.int64)

        def work(first: int, last: int) -> tuple[Array, Array]:
            mine = plan.bound[first:last]
            with workspace(dkg, int(mine.max(initial=0)), plan.weight.dtype) as space:
                space.reserve(int(mine.sum()))
                written = kernels.forward(
                    first, last, dkg.ptr, dkg.rel, dkg.tail, *plan.frontier, plan.bound, space.acc, space.words,
                    space.groups, space.keys, space.touched, space.entity, space.weight, count, cut,
                )  # fmt: skip
                return space.entity[:written].copy(), space.weight[:written].copy()

        parts = _over(plan.ranges, work) or [(np.empty(0, np.int64), np.empty(0, plan.weight.dtype))]
        entity, value = parts[0] if len(parts) == 1 else (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        ptr = np.zeros(batch + 1, dtype=np.int64)
        np.cumsum(count, out=ptr[1:])
        ctx.plan, ctx.ptr, ctx.entity = plan, ptr, entity
        outputs = torch.from_numpy(value), torch.from_numpy(ptr), torch.from_numpy(entity), torch.from_numpy(cut)
        ctx.mark_non_differentiable(*outputs[1:])
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        plan: _Plan = ctx.plan
        dkg, ptr, entity = plan.dkg, ctx.ptr, ctx.entity
        grads: Array = grad.contiguous().numpy()
        grad_x, grad_r = np.zeros_like(plan.weight), np.zeros_like(plan.r)

        def work(first: int, last: int) -> None:
            with workspace(dkg, int(plan.bound[first:last].max(initial=0)), plan.weight.dtype) as space:
                kernels.backward(
                    first, last, dkg.ptr, dkg.rel, dkg.tail, *plan.frontier, ptr, entity, grads, space.acc, space.keys,
                    grad_x, grad_r,
                )  # fmt: skip

        _over(plan.ranges, work)
        if plan.order is not None:
            back = np.empty_like(grad_x)
            back[plan.order] = grad_x
            grad_x = back
        return torch.from_numpy(grad_x), torch.from_numpy(grad_r), None, None, None, None


def follow(dkg: Dkg, x: EntityWeights, r: Tensor, epsilon: float, edge_budget: int | None) -> EntityWeights:
    """See `kgqa_core.dkg.follow.follow`; CPU tensors, x.weight and r of one type."""
    weight, ptr, entity, cut = _Follow.apply(x.weight, r, dkg, x, epsilon, edge_budget)
    return EntityWeights(ptr, entity, weight, cut if x.truncated is None else x.truncated + cut)


def trace(
    dkg: Dkg, x: EntityWeights, r: Tensor, k: int, epsilon: float, edge_budget: int | None
) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
    """See `kgqa_core.dkg.follow.trace`."""
    plan = _Plan(dkg, x, x.weight.detach().contiguous().numpy(), r.detach().contiguous().numpy(), epsilon, edge_budget)
    edge = np.zeros((x.batch, k), dtype=np.int64)
    weight, count = np.zeros((x.batch, k), dtype=plan.weight.dtype), np.zeros(x.batch, dtype=np.int64)
    _over(
        plan.ranges,
        lambda first, last: kernels.heaviest(first, last, dkg.ptr, dkg.rel, *plan.frontier, k, edge, weight, count),
    )
    return [(edge[b, : count[b]].copy(), weight[b, : count[b]].copy()) for b in range(x.batch)]
