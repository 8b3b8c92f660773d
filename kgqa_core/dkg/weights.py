"""A batch of sparse entity sets with weights, and what retrieval does with them.

Row `b` holds `entity[ptr[b]:ptr[b + 1]]`, ascending and unique, with their weights.  Nothing of size batch × entities
exists.  Every operation is differentiable in the weights and works on any device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from kgqa_core.dkg import sets
from kgqa_core.dkg.sets import tidy
from kgqa_core.errors import GraphMismatch


@dataclass(frozen=True, eq=False)
class EntityWeights:
    """Weighted entity sets of a batch of B questions.

    ptr: int64 [B + 1].  entity: int64 [n], ascending and unique within a row.  weight: float [n].
    truncated: int64 [B], edges that were not followed for want of budget up to here (absent: none).
    """

    ptr: Tensor
    entity: Tensor
    weight: Tensor
    truncated: Tensor | None = None

    @classmethod
    def one_hot(cls, rows: Sequence[Sequence[int]], *, device: torch.device | str = "cpu") -> EntityWeights:
        """Weight 1 for each entity of each row; entities named twice in a row count once."""
        count = [len(row) for row in rows]
        ptr = np.zeros(len(count) + 1, dtype=np.int64)
        np.cumsum(count, out=ptr[1:])
        entity = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ptr[-1]))
        if max(count, default=0) > 1:
            ptr, entity = tidy(ptr, entity)
        weight = torch.ones(len(entity))
        return cls(torch.from_numpy(ptr).to(device), torch.from_numpy(entity).to(device), weight.to(device))

    @classmethod
    def from_rows(
        cls, rows: Sequence[dict[int, float]], *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> EntityWeights:
        """One row per mapping from entity to weight."""
        bare = cls.one_hot([list(row) for row in rows])
        weights = [row[entity] for row in rows for entity in sorted(row)]
        return cls(bare.ptr.to(device), bare.entity.to(device), torch.tensor(weights, dtype=dtype, device=device))

    @property
    def batch(self) -> int:
        """Number of rows."""
        return self.ptr.shape[0] - 1

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.weight.device

    @cached_property
    def row(self) -> Tensor:
        """The row of each entity, int64 [n]."""
        return sets.rows_of(self.ptr, self.entity.shape[0])

    def to(self, device: torch.device | str) -> EntityWeights:
        """The same sets on another device."""
        truncated = None if self.truncated is None else self.truncated.to(device)
        return EntityWeights(self.ptr.to(device), self.entity.to(device), self.weight.to(device), truncated)

    def with_weight(self, weight: Tensor) -> EntityWeights:
        """The same sets with other weights, [n]."""
        other = EntityWeights(self.ptr, self.entity, weight, self.truncated)
        if "row" in self.__dict__:
            other.__dict__["row"] = self.row
        return other

    def scale(self, row_weights: Tensor) -> EntityWeights:
        """Every weight times the factor of its row, row_weights: [B]."""
        return self.with_weight(self.weight * sets.spread(row_weights, self.ptr, self.entity.shape[0]))

    def clamp_normalise(self) -> EntityWeights:
        """p = x / max(1, x.detach()): weights above 1 (several paths) become 1 and keep a gradient."""
        return self.with_weight(self.weight / self.weight.detach().clamp(min=1))

    def take(self, rows: Tensor) -> EntityWeights:
        """Some rows, each at most once; -1 is an empty row.  rows: int64 [m]."""
        ptr, index = sets.indices_of(self.ptr, rows)
        truncated = None if self.truncated is None else self.truncated[rows.clamp(min=0)] * (rows >= 0)
        return EntityWeights(ptr, self.entity[index], sets.select(self.weight, index), truncated)

    def repeat(self, counts: Tensor) -> EntityWeights:
        """Each row repeated `counts` times, without gradient.  counts: int64 [B]."""
        ptr, index = sets.indices_of(
            self.ptr, torch.repeat_interleave(torch.arange(self.batch, device=counts.device), counts)
        )
        return EntityWeights(ptr, self.entity[index], self.weight.detach()[index])

    def sum(self) -> Tensor:
        """Total weight of each row, [B]."""
        return sets.row_sum(self.weight, self.ptr)

    def mask(self, others: EntityWeights) -> EntityWeights:
        """The sets without the entities that `others` holds in the same row (whatever their weights)."""
        self._same_batch(others)
        ptr, remaining = sets.without((self.ptr, self.entity), (others.ptr, others.entity))
        return EntityWeights(ptr, self.entity[remaining], sets.select(self.weight, remaining), self.truncated)

    def lookup(self, ptr: Tensor, entities: Tensor) -> Tensor:
        """Weights [m] of the queried entities, 0 where absent; ptr: int64 [B + 1] divides entities [m] into rows."""
        if ptr.shape[0] != self.ptr.shape[0]:
            raise GraphMismatch(
                f"lookup asks for {ptr.shape[0] - 1} rows of a batch of {self.batch}; pass one row per question"
            )
        ptr, entities = ptr.to(self.device), entities.to(self.device)
        index = sets.locate((self.ptr, self.entity), (ptr, entities.long()))
        if not self.entity.shape[0]:
            return self.weight.new_zeros(entities.shape[0])
        return torch.where(index >= 0, self.weight[index.clamp(min=0)], self.weight.new_zeros(()))

    @staticmethod
    def merge(parts: Sequence[EntityWeights]) -> EntityWeights:
        """The union of several batches, row by row, with summed weights (and summed truncation)."""
        if not parts:
            raise GraphMismatch("merge needs at least one batch of entity weights")
        first = parts[0]
        for other in parts[1:]:
            first._same_batch(other)
        if len(parts) == 1:
            return first
        cut = [part.truncated for part in parts if part.truncated is not None]
        truncated = torch.stack(cut).sum(0) if cut else None
        ptr, entity, indices = sets.union([(part.ptr, part.entity) for part in parts])
        weight = sets.scatter_sum(entity.shape[0], indices, [part.weight for part in parts])
        return EntityWeights(ptr, entity, weight, truncated)

    def top(self, k: int) -> list[list[tuple[int, float]]]:
        """The k heaviest (entity, weight) of each row, heaviest first, ties by id."""
        return sets.top(self.ptr, self.entity, self.weight.detach(), k)

    def to_rows(self) -> list[dict[int, float]]:
        """One mapping from entity to weight per row; for tests and display."""
        ptr, entity, weight = self.ptr.tolist(), self.entity.tolist(), self.weight.detach().tolist()
        return [dict(zip(entity[a:b], weight[a:b], strict=True)) for a, b in zip(ptr, ptr[1:], strict=False)]

    def _same_batch(self, other: EntityWeights) -> None:
        if other.batch != self.batch:
            raise GraphMismatch(f"entity weights of {self.batch} and of {other.batch} questions cannot be combined")
