"""The order of the questions of an epoch: batches of similar length, equal wordings together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def epoch_batches(
    rows: Sequence[Sequence[int]],
    text: Tensor,
    size: int,
    group: int,
    seed: int,
    epoch: int,
    sample: Tensor | None = None,
) -> list[Tensor]:
    """Question numbers of an epoch's batches, of similar length within pools of sixteen batches.

    Questions are shuffled in groups of up to `group` that share a wording, which is then encoded once for all of them.
    rows: token ids of each wording.  text: int64 [questions], wording of each question.
    sample: numbers of the questions of the epoch, with repetitions; every question once where it is None.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    if sample is None:
        sample = torch.arange(len(text))
    shuffled = sample[torch.randperm(len(sample), generator=generator)]
    by_wording = shuffled[torch.sort(text[shuffled], stable=True).indices]
    groups: list[Tensor] = []
    counts = torch.bincount(text[sample], minlength=len(rows)).tolist()
    for own in torch.split(by_wording, counts):
        groups += own.split(group)
    order = torch.cat([groups[index] for index in torch.randperm(len(groups), generator=generator).tolist()])
    lengths = torch.tensor([len(row) for row in rows])[text]
    cut: list[Tensor] = []
    for pool in order.split(16 * size):
        cut += pool[torch.sort(lengths[pool], stable=True).indices].split(size)
    return [cut[index] for index in torch.randperm(len(cut), generator=generator).tolist()]
