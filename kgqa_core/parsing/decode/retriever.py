"""Dense retrieval of schema items: one encoder reads questions and labels, and two maps bring them together.

    s(q, i) = exp(κ) n(P enc(q)) · n(P' enc(label of i))        n: to length 1

Trained with the items of the gold form against all others of the graph, or a sample of them (Chen et al. 2021,
section 3.1, in whose place of two BERTs there is one encoder).  Each distinct label is encoded once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kgqa_core.nn.encoders import Encoder, Reader
from kgqa_core.parsing.decode.items import Items

SCALE = 10.0
"""exp(κ) before training."""
BATCH = 256
"""Texts that are encoded at once."""
SAMPLED = 256
"""Items that a step compares with, where a graph has more."""


class TwoTower(nn.Module):
    """The network, from token ids of questions and of labels to scores."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.question, self.label = (nn.Linear(encoder.width, encoder.width) for _ in range(2))
        self.log_scale = nn.Parameter(torch.tensor(math.log(SCALE)))

    def questions(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[batch, width] of length 1."""
        return nn.functional.normalize(self.question(self.encoder(ids, mask)), dim=-1)

    def labels(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[batch, width] of length 1."""
        return nn.functional.normalize(self.label(self.encoder(ids, mask)), dim=-1)


@dataclass(frozen=True)
class Retriever:
    """The network and how its texts are read."""

    network: TwoTower
    reader: Reader

    def loss(self, texts: Sequence[str], gold: Sequence[frozenset[int]], labels: Sequence[str]) -> Tensor:
        """Mean over the gold items of each text of the cross entropy against the items that are not gold.

        gold: places in `labels` of each text's items, one at least.
        """
        places = list(range(len(labels)))
        if len(labels) > SAMPLED:
            wanted = set().union(*gold)
            others = torch.randperm(len(labels))[:SAMPLED].tolist()
            places = sorted(wanted | set(others))
        device = self.network.log_scale.device
        own = {place: number for number, place in enumerate(places)}
        scores = self._questions(texts) @ self._labels([labels[place] for place in places]).T
        scores = scores * self.network.log_scale.exp()
        is_gold = torch.zeros(scores.shape, dtype=torch.bool)
        for row, items in enumerate(gold):
            is_gold[row, [own[item] for item in items]] = True
        is_gold = is_gold.to(device)
        wrong = scores.masked_fill(is_gold, float("-inf")).logsumexp(-1, keepdim=True)
        each = torch.logaddexp(scores, wrong) - scores
        return ((each * is_gold).sum(-1) / is_gold.sum(-1)).mean()

    @torch.inference_mode()
    def scores(self, texts: Sequence[str], items: Items) -> Tensor:
        """[texts, items] cosines, on the CPU, items in the order of `items.keys`; equal texts are encoded once."""
        self.network.eval()
        words = [items.words[key] for key in items.keys]
        distinct, labels = sorted(set(texts), key=lambda text: (len(text), text)), sorted(set(words))
        q = self._encoded(distinct, self._questions)
        i = self._encoded(labels, self._labels)
        place, label = ({text: n for n, text in enumerate(own)} for own in (distinct, labels))
        return q[[place[text] for text in texts]] @ i[[label[text] for text in words]].T

    def _encoded(self, texts: Sequence[str], encode) -> Tensor:  # type: ignore[no-untyped-def]
        if not texts:
            return torch.zeros(0, self.network.encoder.width)
        return torch.cat([encode(texts[at : at + BATCH]).cpu() for at in range(0, len(texts), BATCH)])

    def _questions(self, texts: Sequence[str]) -> Tensor:
        return self.network.questions(*self._read(texts))

    def _labels(self, texts: Sequence[str]) -> Tensor:
        return self.network.labels(*self._read(texts))

    def _read(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        ids, mask = self.reader.batch(self.reader.read(texts))
        device = self.network.log_scale.device
        return ids.to(device), mask.to(device)


def chosen(
    scores: Tensor, items: Items, anchored: Collection[str], relations: int, classes: int
) -> tuple[list[str], list[str]]:
    """The relations and types of a question, best first.

    scores: [items] of the question.  Two thirds of the relations are the best of the graph; then come those that the
    topics have (`anchored`), then the next best.
    """
    order = torch.argsort(scores[: len(items.relations)], descending=True, stable=True).tolist()
    ranked = [items.relations[place] for place in order]
    sure = math.ceil(relations * 2 / 3)
    found = [*ranked[:sure], *sorted(ranked[sure:], key=lambda key: key not in anchored)][:relations]
    of_classes = torch.argsort(scores[len(items.relations) :], descending=True, stable=True)[:classes].tolist()
    return found, [items.classes[place] for place in of_classes]
