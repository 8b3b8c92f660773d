"""One hop along weighted relations over the differentiable KG, and the heaviest edges of a hop.

`follow(x, r) = M_right^T [(M_left x) * (M_rel r)]` (Cohen et al. 2020, eq. 2) computed from the frontier: the cost is
the degree of x's entities, not the size of the graph.  `frontier_numba` holds the compiled version, `frontier_torch`
the same in torch.

Gradients are those of the dense product at the entities that were reached:
d/dx_h = Σ_(h,q,t) r_q g_t and d/dr_q = Σ_(h,q,t) x_h g_t, over the edges that were followed.  A relation that weighs
less than epsilon is skipped and gets no gradient.  Training may pass a small epsilon (1e-4, say): a softmax conserves
its mass, so what pushes the followed relations down lifts the skipped ones; but nothing lifts one of those above the
others until it is followed again.  The default, 0, is exact.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgqa_core.dkg import frontier_torch
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.errors import ConfigError, GraphMismatch

__all__ = ["EntityWeights", "follow", "trace"]

Backend = Literal["auto", "numba", "torch"]


def follow(
    dkg: Dkg,
    x: EntityWeights,
    r: Tensor,
    *,
    epsilon: float = 0.0,
    edge_budget: int | None = None,
    backend: Backend = "auto",
) -> EntityWeights:
    """Entities one hop from `x` along relations weighted by `r`, differentiable in x.weight and r.

    x: entity sets of B questions.  r: [B, 2R], inverses in the second half.  epsilon: relations with |r| below it are
    skipped.
    edge_budget: edges followed per question, heaviest sources first (ties by id), the last source cut in row order.
    Edges left out are counted in `.truncated` on top of x's own; of sources that were not reached at all, every edge
    counts, whatever its relation weighs, so that no time goes into rows beyond the budget.
    backend: `auto` takes numba on the CPU and torch elsewhere.  On the CPU the same input gives the same bits
    whatever the number of threads.
    Raises GraphMismatch when r or x was made for another DKG.
    """
    x, r = check(dkg, x, r)
    reached: EntityWeights = _backend(backend, x, r).follow(dkg, x, r, epsilon, edge_budget)
    return reached


def check(dkg: Dkg, x: EntityWeights, r: Tensor) -> tuple[EntityWeights, Tensor]:
    """x and r in one floating type, half precision as float32.  Raises GraphMismatch when they do not fit the DKG."""
    if r.dim() != 2 or r.shape[1] != 2 * dkg.relations:
        raise GraphMismatch(
            f"relation weights of shape {tuple(r.shape)} do not fit this DKG, which needs [batch, {2 * dkg.relations}] "
            f"({dkg.relations} relations and their inverses); was the retriever trained on another graph?"
        )
    if x.batch != r.shape[0]:
        raise GraphMismatch(
            f"{x.batch} entity sets and {r.shape[0]} rows of relation weights; pass one row per question"
        )
    if r.dtype not in (torch.float32, torch.float64):
        r = r.float()
    return (x if x.weight.dtype == r.dtype else x.with_weight(x.weight.to(r.dtype))), r


def trace(
    dkg: Dkg,
    x: EntityWeights,
    r: Tensor,
    k: int,
    *,
    epsilon: float = 0.0,
    edge_budget: int | None = None,
    backend: Backend = "auto",
) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
    """The k heaviest edges of a hop per question: (edge index [≤k], weight [≤k]), heaviest first, ties by edge index.

    The weight of an edge is x_head * r_relation.  The edges are those that `follow` follows with the same arguments;
    edges of weight 0 are left out.  Raises GraphMismatch as `follow` does.
    """
    x, r = check(dkg, x, r)
    best: list[tuple[NDArray[np.int64], NDArray[Any]]] = _backend(backend, x, r).trace(
        dkg, x, r, k, epsilon, edge_budget
    )
    return best


def _backend(name: Backend, x: EntityWeights, r: Tensor) -> Any:
    on_cpu = x.device.type == "cpu" and r.device.type == "cpu"
    if name == "torch" or (name == "auto" and not on_cpu):
        return frontier_torch
    if name in ("auto", "numba") and on_cpu:
        from kgqa_core.dkg import frontier_numba  # compiles, so only where it is used

        return frontier_numba
    raise ConfigError(f"backend {name!r} cannot follow on {x.device}: use 'auto', 'numba' (CPU only) or 'torch'")
