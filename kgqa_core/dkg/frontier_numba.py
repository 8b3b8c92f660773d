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

from kgqa_core.dkg import kernels, plan_kernels, ranked_kernels
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.plan_kernels import FrontierArrays
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.errors import GraphMismatch

Array = NDArray[Any]
DENSE_ENTITIES = 1 << 22
"""Largest graph for which each thread keeps a number for every entity; above, ranks in a bitmap."""
EDGES_PER_THREAD = 400_000
"""Frontier edges that make another thread worth its start."""
RANGE_ENTITIES = 1 << 22
"""Largest bound on the output of one range of questions, unless a single question exceeds it."""

_pool: tuple[int, int, ThreadPoolExecutor] | None = None


class KernelScratch:
    """Scratch of one thread, in pages that exist once touched: sums and bitmaps that are all zeros between calls."""

    def __init__(self, entities: int, dtype: Any, dense: bool) -> None:
        words = (entities + 63) // 64
        groups = (words + 63) // 64
        self.dense = dense
        self.acc: Array = np.zeros(entities if dense else 0, dtype=dtype)
        self.seen: Array = np.zeros(entities if dense else 0, dtype=dtype)
        self.words: Array = np.zeros(words if dense else (words, 2), dtype=np.uint64)
        self.groups: Array = np.zeros(groups, dtype=np.uint64)
        self.tops: Array = np.zeros((groups + 63) // 64, dtype=np.uint64)


@contextmanager
def kernel_scratch(dkg: Dkg, dtype: Any) -> Iterator[KernelScratch]:
    """Scratch for this thread alone; dropped, not reused, when the kernel was interrupted."""
    dense = dkg.entities <= DENSE_ENTITIES
    free: list[KernelScratch] = dkg._scratch.setdefault(("kernel scratch", np.dtype(dtype).char, dense), [])
    try:
        scratch = free.pop()
    except IndexError:
        scratch = KernelScratch(dkg.entities, dtype, dense)
    yield scratch
    free.append(scratch)


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


def over(ranges: list[tuple[int, int]], work: Callable[[int, int], Any]) -> list[Any]:
    """work(first, last) for each range, in order; on threads when there are several."""
    global _pool
    if len(ranges) < 2:
        return [work(first, last) for first, last in ranges]
    threads = torch.get_num_threads()
    if threads < 2:
        return [work(first, last) for first, last in ranges]
    if _pool is None or _pool[:2] != (os.getpid(), threads):  # a forked child has no threads of its parent's pool
        _pool = (os.getpid(), threads, ThreadPoolExecutor(threads, thread_name_prefix="dkg"))
    return list(_pool[2].map(lambda span: work(*span), ranges))


class Frontier:
    """The edges that a hop follows, as ranges [start, stop) of one row each; forward and backward share it.

    weight: [n], r: [B, 2R], of one type.  cost: int64 [B], edges out of a question's sources before any budget.
    bound: int64 [B], at most so many entities are reached.  cut: int64 [B], edges left out for want of budget.
    """

    def __init__(
        self, dkg: Dkg, x: EntityWeights, weight: Tensor, r: Tensor, epsilon: float, budget: int | None
    ) -> None:
        self.dkg, self.epsilon, self.batch = dkg, float(epsilon), x.batch
        self.weight: Array = weight.detach().contiguous().numpy()
        self.r: Array = r.detach().contiguous().numpy()
        self.xptr: Array = x.ptr.numpy()
        source: Array = x.entity.numpy()
        self.source = source
        self.start, self.stop = np.empty(len(source), dtype=np.int64), np.empty(len(source), dtype=np.int64)
        self.cost, self.cut = np.zeros(self.batch, dtype=np.int64), np.zeros(self.batch, dtype=np.int64)
        bad = plan_kernels.spans(dkg.rows, dkg.entities, self.xptr, source, self.start, self.stop, self.cost)
        if bad >= 0:
            raise GraphMismatch(
                f"entity {source[bad]} is not in this DKG, which has {dkg.entities} entities; was it made for another "
                "graph?"
            )
        follows = self.cost
        if budget is not None and (self.cost > budget).any():
            follows = np.minimum(self.cost, budget)
            bits = self.weight.view(np.uint32 if self.weight.itemsize == 4 else np.uint64)
            for span in _ranges(self.cost, follows):
                plan_kernels.clip(
                    *span, dkg.rel, self.xptr, bits, self.r, self.epsilon, int(budget), self.cost, self.start,
                    self.stop, self.cut,
                )  # fmt: skip
        self.bound: Array = np.minimum(follows, dkg.entities)
        self.ranges = _ranges(follows, self.bound)

    @property
    def arrays(self) -> FrontierArrays:
        """What every kernel takes after its range."""
        ends = self.dkg.rel, self.dkg.tail, self.xptr
        return FrontierArrays(*ends, self.start, self.stop, self.weight, self.r, self.epsilon)

    def forward(self) -> tuple[Array, Array, Array]:
        """ptr [B + 1], entity [n] and weight [n] of what is reached."""
        count = np.zeros(self.batch, dtype=np.int64)

        def work(first: int, last: int) -> tuple[Array, Array]:
            bound = int(self.bound[first:last].sum())
            entity, value = np.empty(bound, dtype=np.int64), np.empty(bound, dtype=self.weight.dtype)
            with kernel_scratch(self.dkg, self.weight.dtype) as scratch:
                if scratch.dense:
                    sums = self.cost, scratch.acc, scratch.words, scratch.groups
                    written = kernels.forward(first, last, self.arrays, *sums, entity, value, count)
                else:
                    marks = scratch.words, scratch.groups, scratch.tops
                    written = ranked_kernels.forward(first, last, self.arrays, *marks, entity, value, count)
            if 2 * written >= bound:
                return entity[:written], value[:written]
            return entity[:written].copy(), value[:written].copy()

        parts = over(self.ranges, work)
        if len(parts) == 1:
            entity, value = parts[0]
        else:
            empty: tuple[Array, Array] = np.empty(0, np.int64), np.empty(0, self.weight.dtype)
            entity, value = (np.concatenate([part[i] for part in [*parts, empty]]) for i in (0, 1))
        ptr = np.zeros(self.batch + 1, dtype=np.int64)
        np.cumsum(count, out=ptr[1:])
        return ptr, entity, value

    def backward(self, ptr: Array, entity: Array, grads: Array) -> tuple[Array, Array]:
        """Gradients [n] and [B, 2R] of the sources' weights and of r, from those of what was reached."""
        grad_x, grad_r = np.zeros_like(self.weight), np.zeros_like(self.r)

        def work(first: int, last: int) -> None:
            with kernel_scratch(self.dkg, self.weight.dtype) as scratch:
                reached = scratch.seen if scratch.dense else scratch.words
                kernels.backward(first, last, self.arrays, ptr, entity, grads, reached, grad_x, grad_r)

        over(self.ranges, work)
        return grad_x, grad_r


class _Follow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, r: Tensor, frontier: Frontier) -> Any:
        ptr, entity, value = frontier.forward()
        ctx.frontier, ctx.ptr, ctx.entity = frontier, ptr, entity
        outputs = torch.from_numpy(value), torch.from_numpy(ptr), torch.from_numpy(entity)
        ctx.mark_non_differentiable(*outputs[1:])
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        grads = ctx.frontier.backward(ctx.ptr, ctx.entity, grad.contiguous().numpy())
        return torch.from_numpy(grads[0]), torch.from_numpy(grads[1]), None


def follow(dkg: Dkg, x: EntityWeights, r: Tensor, epsilon: float, edge_budget: int | None) -> EntityWeights:
    """See `kgqa_core.dkg.follow.follow`; CPU tensors, x.weight and r of one type."""
    frontier = Frontier(dkg, x, x.weight, r, epsilon, edge_budget)
    if torch.is_grad_enabled() and (x.weight.requires_grad or r.requires_grad):
        weight, ptr, entity = _Follow.apply(x.weight, r, frontier)
    else:
        ptr, entity, weight = (torch.from_numpy(part) for part in frontier.forward())
    cut = torch.from_numpy(frontier.cut)
    return EntityWeights(ptr, entity, weight, cut if x.truncated is None else x.truncated + cut)


def trace(
    dkg: Dkg, x: EntityWeights, r: Tensor, k: int, epsilon: float, edge_budget: int | None
) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
    """See `kgqa_core.dkg.follow.trace`."""
    frontier = Frontier(dkg, x, x.weight, r, epsilon, edge_budget)
    edge = np.zeros((x.batch, k), dtype=np.int64)
    weight, count = np.zeros((x.batch, k), dtype=frontier.weight.dtype), np.zeros(x.batch, dtype=np.int64)
    arrays = frontier.arrays
    over(frontier.ranges, lambda first, last: kernels.heaviest(first, last, arrays, k, edge, weight, count))
    return [(edge[b, : count[b]].copy(), weight[b, : count[b]].copy()) for b in range(x.batch)]
