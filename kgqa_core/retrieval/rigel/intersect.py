"""What the topics of a question lead to together: the union of their entities and their intersection, mixed.

    y_j   = Σ_t a_jt x_jt,  p_j = y_j / max(1, y_j)        of each topic j, with its own plan
    score = (1 - β) Σ_j y_j + β Π_j p_j                    or min_j p_j in place of the product

Sen, Oliya, Saffari 2021 (Rigel-Intersect).  All of it on the union of what was reached: nothing has the size of batch ×
entities.  A question with one topic has the score y_1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kgqa_core.dkg import sets
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import GraphMismatch


def combine(legs: EntityWeights, ptr: Tensor, share: Tensor, how: str) -> EntityWeights:
    """One entity set for each question from those of its legs; differentiable in weights and share.

    legs: y of each leg.  ptr: int64 [batch + 1], legs of each question.  share: β [batch].  how: `product` or `min`.
    """
    if int(ptr[-1]) != legs.batch or share.shape[0] != ptr.shape[0] - 1:
        raise GraphMismatch(f"{legs.batch} legs and {share.shape[0]} shares do not fit {ptr.shape[0] - 1} questions")
    count = ptr.diff()
    most = int(count.max()) if count.shape[0] else 0
    slots = [legs.take(torch.where(count > leg, ptr[:-1] + leg, -1)) for leg in range(most)]
    if most < 2:
        return slots[0] if slots else legs
    bounds, entity, places = sets.union([(slot.ptr, slot.entity) for slot in slots])
    size = entity.shape[0]
    row = sets.rows_of(bounds, size)
    together = sets.scatter_sum(size, places, [slot.weight for slot in slots])
    common: Tensor | None = None
    for leg, (slot, place) in enumerate(zip(slots, places, strict=True)):
        reached = sets.scatter_sum(size, [place], [slot.clamp_normalise().weight])
        if common is None:
            common = reached
            continue
        there = (count > leg)[row]
        met = common * reached if how == "product" else torch.minimum(common, reached)
        common = torch.where(there, met, common)
    assert common is not None
    part = sets.spread(share.to(together.dtype), bounds, size)
    weight = torch.where((count > 1)[row], (1 - part) * together + part * common, together)
    cut = [slot.truncated for slot in slots if slot.truncated is not None]
    return EntityWeights(bounds, entity, weight, torch.stack(cut).sum(0) if cut else None)
