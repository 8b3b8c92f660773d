"""Set arithmetic behind `EntityWeights`: compiled on the CPU, sort and search in torch elsewhere; and its gradients.

Indices are unique where they matter, so gathers and scatters need no atomic sums and are deterministic on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Part = tuple[Tensor, Tensor]
"""(ptr [B + 1], entity [n]), entities ascending and unique within a row."""


def on_cpu(tensor: Tensor) -> bool:
    """Whether the compiled loops can read it."""
    return tensor.device.type == "cpu"


def rows_of(ptr: Tensor, n: int) -> Tensor:
    """The row of each of n entries, int64 [n]."""
    return torch.repeat_interleave(torch.arange(ptr.shape[0] - 1, device=ptr.device), ptr.diff(), output_size=n)


def indices_of(ptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """ptr of some rows, -1 being an empty one, and the index of each of their entries, int64 [n]."""
    there = rows >= 0
    start = ptr[rows.clamp(min=0)]
    count = torch.where(there, ptr[rows.clamp(min=0) + 1] - start, torch.zeros_like(start))
    new = torch.zeros(rows.shape[0] + 1, dtype=torch.int64, device=ptr.device)
    new[1:] = count.cumsum(0)
    total = int(new[-1])
    owner = torch.repeat_interleave(torch.arange(rows.shape[0], device=ptr.device), count, output_size=total)
    return new, torch.arange(total, device=ptr.device) + (start - new[:-1])[owner]


def tidy(ptr: NDArray[np.int64], entity: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of entities in any order, ascending and without repetition: ptr and entity."""
    row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    order = np.lexsort((entity, row))
    row, entity = row[order], entity[order]
    new = np.ones(len(entity), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (entity[1:] != entity[:-1])
    bounds = np.zeros(len(ptr), dtype=np.int64)
    np.cumsum(np.bincount(row[new], minlength=len(ptr) - 1), out=bounds[1:])
    return bounds, entity[new]


def locate(sets: Part, wanted: Part) -> Tensor:
    """The index in `sets` of each wanted entity of its row, -1 where absent; wanted in any order.  int64 [m]."""
    (ptr, entity), (wanted_ptr, query) = sets, wanted
    if on_cpu(ptr):
        from kgqa_core.dkg.set_kernels import locate as compiled

        return torch.from_numpy(compiled(*(part.numpy() for part in (ptr, entity, wanted_ptr, query))))
    n, m = entity.shape[0], query.shape[0]
    if not n or not m:
        return torch.full_like(query, -1)
    stride = int(torch.maximum(entity.max(), query.max())) + 1
    keys, target = rows_of(ptr, n) * stride + entity, rows_of(wanted_ptr, m) * stride + query
    index = torch.searchsorted(keys, target).clamp(max=n - 1)
    return torch.where(keys[index] == target, index, torch.full_like(index, -1))


def without(sets: Part, others: Part) -> tuple[Tensor, Tensor]:
    """ptr of the sets without the others' entities, and the indices that stay."""
    ptr, entity = sets
    if on_cpu(ptr):
        from kgqa_core.dkg.set_kernels import without as compiled

        new_ptr, remaining = compiled(*(part.numpy() for part in (*sets, *others)))
        return torch.from_numpy(new_ptr), torch.from_numpy(remaining)
    index = locate(sets, others)
    remains = torch.ones(entity.shape[0], dtype=torch.bool, device=entity.device)
    remains[index[index >= 0]] = False
    before = torch.zeros(entity.shape[0] + 1, dtype=torch.int64, device=entity.device)
    before[1:] = remains.cumsum(0)
    return before[ptr], remains.nonzero().squeeze(1)


def union(parts: Sequence[Part]) -> tuple[Tensor, Tensor, list[Tensor]]:
    """ptr and entity of the row-wise union, and the index of each part's entities in it."""
    if on_cpu(parts[0][0]):
        from kgqa_core.dkg.set_kernels import union as compiled

        ptr, entity, *indices = compiled([(part[0].numpy(), part[1].numpy()) for part in parts])
        return torch.from_numpy(ptr), torch.from_numpy(entity), [torch.from_numpy(index) for index in indices]
    batch, device = parts[0][0].shape[0] - 1, parts[0][0].device
    stride = max([1, *(int(entity.max()) + 1 for _, entity in parts if entity.shape[0])])
    keys = torch.cat([rows_of(ptr, entity.shape[0]) * stride + entity for ptr, entity in parts])
    unique, inverse = torch.unique(keys, return_inverse=True)
    bounds = torch.searchsorted(unique, torch.arange(batch + 1, device=device) * stride)
    return bounds, unique % stride, list(inverse.split([entity.shape[0] for _, entity in parts]))


def top(ptr: Tensor, entity: Tensor, weight: Tensor, k: int) -> list[list[tuple[int, float]]]:
    """The k heaviest (entity, weight) of each row, heaviest first, ties by entity."""
    from kgqa_core.dkg.set_kernels import top as compiled

    bounds, ids, values = ptr.cpu().numpy(), entity.cpu().numpy(), weight.cpu().contiguous().numpy()
    if k > 256:  # the compiled loop inserts into a short sorted list
        rows = [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        indices = [row.start + np.argsort(-values[row], kind="stable")[:k] for row in rows]
    else:
        index, count = compiled(bounds, values, k)
        indices = [of_row[:n] for of_row, n in zip(index, count, strict=True)]
    return [list(zip(ids[index].tolist(), values[index].tolist(), strict=True)) for index in indices]


def row_sum(weight: Tensor, ptr: Tensor) -> Tensor:
    """Sum of each row, [B]; gradient in weight."""
    result: Tensor = _RowSum.apply(weight, ptr)
    return result


def spread(values: Tensor, ptr: Tensor, n: int) -> Tensor:
    """The value of each entry's row, [n]; gradient in values [B]."""
    result: Tensor = _Spread.apply(values, ptr, n)
    return result


def select(weight: Tensor, index: Tensor) -> Tensor:
    """weight[index] for indices that are unique; gradient in weight."""
    result: Tensor = _Select.apply(weight, index)
    return result


def scatter_sum(size: int, indices: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """[size], the sum of parts put at their indices, which are unique within a part; gradient in the weights."""
    result: Tensor = _ScatterSum.apply(size, list(indices), *weights)
    return result


def _segment_sum(values: Tensor, ptr: Tensor) -> Tensor:
    if not values.shape[0]:
        return torch.zeros(ptr.shape[0] - 1, dtype=values.dtype, device=values.device)
    return torch.segment_reduce(values, "sum", offsets=ptr, initial=0)


class _RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, ptr: Tensor) -> Tensor:
        ctx.save_for_backward(ptr)
        ctx.n = weight.shape[0]
        return _segment_sum(weight, ptr)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return spread(grads[0], ctx.saved_tensors[0], ctx.n), None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ptr: Tensor, n: int) -> Tensor:
        ctx.save_for_backward(ptr)
        return torch.repeat_interleave(values, ptr.diff(), output_size=n)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return row_sum(grads[0].contiguous(), *ctx.saved_tensors), None, None


class _Select(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.size = weight.shape[0]
        return weight[index]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (index,) = ctx.saved_tensors
        return scatter_sum(ctx.size, [index], [grads[0]]), None


class _ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, size: int, indices: list[Tensor], *weights: Tensor) -> Tensor:
        ctx.save_for_backward(*indices)
        total = torch.zeros(size, dtype=weights[0].dtype, device=weights[0].device)
        for number, (index, weight) in enumerate(zip(indices, weights, strict=True)):
            total[index] = weight if number == 0 else total[index] + weight
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *(select(grads[0], index) for index in ctx.saved_tensors)
