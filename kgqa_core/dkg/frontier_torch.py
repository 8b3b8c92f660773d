"""`follow` and `trace` in plain torch: the reference for the kernel, and what runs on CUDA.

Edges of the frontier are expanded into index tensors; autograd does the rest.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.errors import GraphMismatch

DENSE = 1 << 28
"""Pairs of question and entity up to which sums take an array of all of them; beyond, keys are sorted."""


@dataclass(frozen=True)
class Edges:
    """Edges out of a frontier: index in x, row, edge index, relation, tail; each int64 [n].  cut: int64 [B]."""

    source: Tensor
    row: Tensor
    edge: Tensor
    relation: Tensor
    tail: Tensor
    cut: Tensor


def tensors(dkg: Dkg, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """ptr (int64), rel (signed, of its width) and tail of a DKG on a device, moved once and cached."""
    cached = dkg._scratch.get(str(device))
    if cached is None:
        rel = dkg.rel.view(np.int16 if dkg.rel.dtype == np.uint16 else np.int32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the arrays are read-only, and nobody writes to the tensors
            ptr = torch.from_numpy(dkg.rows.astype(np.int64)).to(device)
            cached = (ptr, *(torch.from_numpy(array).to(device) for array in (rel, dkg.tail)))
        dkg._scratch[str(device)] = cached
    return cached


def expand(dkg: Dkg, x: EntityWeights, r: Tensor, epsilon: float, edge_budget: int | None) -> Edges:
    """The edges that are followed: relations of weight below epsilon skipped, then the budget applied per question."""
    ptr, rel, tail = tensors(dkg, x.device)
    entity, row = x.entity.long(), x.row
    if len(entity) and (int(entity.max()) >= dkg.entities or int(entity.min()) < 0):
        bad = int(entity.max()) if int(entity.min()) >= 0 else int(entity.min())
        raise GraphMismatch(
            f"entity {bad} is not in this DKG, which has {dkg.entities} entities; was it made for another graph?"
        )
    order = None
    if edge_budget is not None:
        # heaviest first, ties by id, row by row: two stable sorts
        order = torch.sort(-x.weight.detach(), stable=True).indices
        order = order[torch.sort(row[order], stable=True).indices]
        entity, row = entity[order], row[order]
    last = ptr.shape[0] - 1  # rows from here on are empty
    start = ptr[entity.clamp(max=last)]
    degree = ptr[(entity + 1).clamp(max=last)] - start
    total = int(degree.sum())
    ends = degree.cumsum(0)
    source = torch.repeat_interleave(torch.arange(len(entity), device=x.device), degree, output_size=total)
    rows = row
    edge = torch.arange(total, device=x.device) + (start - ends + degree)[source]
    relation = rel[edge].long() & (0xFFFF if rel.dtype == torch.int16 else 0xFFFFFFFF)
    row = row[source]
    if epsilon > 0:
        live = r.detach()[row, relation].abs() >= epsilon
        source, edge, relation, row = source[live], edge[live], relation[live], row[live]
    cut = torch.zeros(x.batch, dtype=torch.int64, device=x.device)
    if edge_budget is not None:
        count = torch.bincount(row, minlength=x.batch)
        nth = torch.arange(len(row), device=x.device) - (count.cumsum(0) - count)[row]
        followed = nth < edge_budget
        cut = _truncation(x.batch, rows, degree, source, followed, edge_budget)
        source, edge, relation, row = source[followed], edge[followed], relation[followed], row[followed]
    if order is not None:
        source = order[source]
    return Edges(source, row, edge, relation, tail[edge].long(), cut)


def _truncation(batch: int, row: Tensor, degree: Tensor, source: Tensor, followed: Tensor, budget: int) -> Tensor:
    """Edges left out of each question: live ones of the source that is cut, and whole rows of the sources after it."""
    live, dropped = (torch.bincount(part, minlength=len(row)) for part in (source, source[~followed]))
    before = torch.cat([live.new_zeros(1), live.cumsum(0)])
    used = before[:-1] - before[torch.searchsorted(row, row)]  # by the question's sources before this one
    none = torch.zeros(batch, dtype=torch.int64, device=row.device)
    return none.index_add(0, row, torch.where(used >= budget, degree, dropped))


def follow(dkg: Dkg, x: EntityWeights, r: Tensor, epsilon: float, edge_budget: int | None) -> EntityWeights:
    """See `kgqa_core.dkg.follow.follow`; x.weight and r must be of one type."""
    edges = expand(dkg, x, r, epsilon, edge_budget)
    key = edges.row * dkg.entities + edges.tail
    unique, weight = _sums(key, _values(x, r, edges), x.batch * dkg.entities)
    ptr = torch.searchsorted(unique, torch.arange(x.batch + 1, device=x.device) * dkg.entities)
    entity = unique % max(dkg.entities, 1)
    truncated = edges.cut if x.truncated is None else x.truncated + edges.cut
    return EntityWeights(ptr, entity, weight, truncated)


def _values(x: EntityWeights, r: Tensor, edges: Edges) -> Tensor:
    """What each edge carries, [n].  By `index_select`, whose gradient is summed in place and not sorted."""
    of_relation = r.reshape(-1).index_select(0, edges.row * r.shape[1] + edges.relation)
    return x.weight.index_select(0, edges.source) * of_relation


def _sums(key: Tensor, value: Tensor, below: int) -> tuple[Tensor, Tensor]:
    """The distinct keys, ascending, and the sum of the values of each.  below: a bound of the keys."""
    if below > DENSE:
        unique, inverse = torch.unique(key, return_inverse=True)
        return unique, value.new_zeros(unique.shape[0]).index_add(0, inverse, value)
    there = torch.zeros(below, dtype=torch.bool, device=key.device)
    there[key] = True
    unique = there.nonzero().squeeze(1)
    return unique, value.new_zeros(below).index_add(0, key, value).index_select(0, unique)


def trace(
    dkg: Dkg, x: EntityWeights, r: Tensor, k: int, epsilon: float, edge_budget: int | None
) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
    """See `kgqa_core.dkg.follow.trace`."""
    with torch.no_grad():
        edges = expand(dkg, x, r, epsilon, edge_budget)
        value = _values(x, r, edges).cpu().numpy()
        row, edge = edges.row.cpu().numpy(), edges.edge.cpu().numpy()
    live = value != 0
    value, row, edge = value[live], row[live], edge[live]
    order = np.lexsort((edge, -value, row))
    bounds = np.searchsorted(row[order], np.arange(x.batch + 1))
    best = [order[a : min(a + k, b)] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    return [(edge[chosen], value[chosen]) for chosen in best]
