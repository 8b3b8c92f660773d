"""The schema items of a graph, its relations and types, and a retriever of those that a question speaks of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Elements, Form, elements
from kgqa_core.logic.schema import Schema
from kgqa_core.nn.encoders import Encoder, Pretrained, Reader
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenReader
from kgqa_core.papers.grailqability.parsing.word_overlap import SHARES, TextWords, WordOverlap, crossed
from kgqa_core.papers.grailqability.parsing.words import in_words


@dataclass(frozen=True)
class Items:
    """relations, classes: keys of what has triples or entities, ascending.  words: what is read of each key."""

    relations: tuple[str, ...]
    classes: tuple[str, ...]
    words: Mapping[str, str]

    @property
    def keys(self) -> tuple[str, ...]:
        """Every item, relations first."""
        return (*self.relations, *self.classes)

    @cached_property
    def overlap(self) -> WordOverlap:
        """Of the words of all items."""
        return WordOverlap(sorted(self.words.values()))


def items_of(store: KgStore, schema: Schema) -> Items:
    """The items of a graph.  An item without label is read by the tail of its key."""
    relations = tuple(sorted(key for key, relation in schema.relations.items() if relation.triples))
    classes = tuple(sorted(schema.types))
    named = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
    ids = store.entity_ids(classes)
    names = store.names(ids.values())
    item_names = {key: names[i] for key, i in ids.items()} | {key: named[key] for key in relations}
    return Items(relations, classes, {key: in_words(item_names.get(key, key)) for key in (*relations, *classes)})


SCALE = 10.0
"""exp(κ) before training."""
BATCH = 256
"""Texts that are encoded at once."""
SAMPLED = 256
"""Items that a step compares with, where a graph has more."""


SHARED = 0.5
"""Weight of each share of words before training."""


class TwoTower(nn.Module):
    """The network, from vectors of questions and of labels to scores: a cosine, and what shared words add to it.

    A pretrained encoder does not learn: the two maps begin as the identity, so that its own likeness is what they mend.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.question, self.label = (nn.Linear(encoder.width, encoder.width) for _ in range(2))
        if isinstance(encoder, Pretrained):
            encoder.requires_grad_(False)
            for layer in (self.question, self.label):
                nn.init.eye_(layer.weight)
                nn.init.zeros_(layer.bias)
        self.log_scale = nn.Parameter(torch.tensor(math.log(SCALE)))
        self.shared = nn.Parameter(torch.tensor([SHARED] * 3 + [0.0] * (SHARES - 3)))

    def questions(self, vectors: Tensor) -> Tensor:
        """[batch, width] of length 1."""
        return nn.functional.normalize(self.question(vectors), dim=-1)

    def labels(self, vectors: Tensor) -> Tensor:
        """[batch, width] of length 1."""
        return nn.functional.normalize(self.label(vectors), dim=-1)


@dataclass(frozen=True)
class ItemRetriever:
    """The network and how its texts are read.  states: of a pretrained encoder, by which it reads."""

    network: TwoTower
    reader: Reader
    states: FrozenReader | None = None

    def loss(
        self, texts: Sequence[str], words: TextWords, gold: Sequence[frozenset[int]],
        labels: Sequence[str], label_words: TextWords,
    ) -> Tensor:  # fmt: skip
        """Mean over the gold items of each text of the cross entropy against the items that are not gold.

        words, label_words: of the texts and of the labels.  gold: indices in `labels` of each text's items, one at
        least.
        """
        indices = list(range(len(labels)))
        if len(labels) > SAMPLED:
            wanted = set().union(*gold)
            others = torch.randperm(len(labels))[:SAMPLED].tolist()
            indices = sorted(wanted | set(others))
        device = self.network.log_scale.device
        column = {index: number for number, index in enumerate(indices)}
        scores = self._questions(texts) @ self._labels([labels[index] for index in indices]).T
        shares = torch.from_numpy(crossed(words, label_words.of(indices))).float().to(device)
        scores = (scores + (shares * self.network.shared).sum(-1)) * self.network.log_scale.exp()
        is_gold = torch.zeros(scores.shape, dtype=torch.bool)
        for row, items in enumerate(gold):
            is_gold[row, [column[item] for item in items]] = True
        is_gold = is_gold.to(device)
        wrong = scores.masked_fill(is_gold, float("-inf")).logsumexp(-1, keepdim=True)
        each = torch.logaddexp(scores, wrong) - scores
        return ((each * is_gold).sum(-1) / is_gold.sum(-1)).mean()

    @torch.inference_mode()
    def scores(self, texts: Sequence[str], items: Items) -> Tensor:
        """[texts, items], on the CPU, items in the order of `items.keys`; equal texts are encoded once."""
        self.network.eval()
        overlap = items.overlap
        words = [items.words[key] for key in items.keys]
        distinct, labels = sorted(set(texts), key=lambda text: (len(text), text)), sorted(set(words))
        q = self._encoded(distinct, self._questions)
        i = self._encoded(labels, self._labels)
        scores, weights = q @ i.T, self.network.shared.cpu().double().numpy()
        named = overlap.labels(labels)
        for at in range(0, len(distinct), BATCH):
            shares = crossed(overlap.read(distinct[at : at + BATCH]), named)
            scores[at : at + BATCH] += torch.from_numpy(shares @ weights).float()
        index, label = ({text: n for n, text in enumerate(distinct_texts)} for distinct_texts in (distinct, labels))
        return scores[[index[text] for text in texts]][:, [label[text] for text in words]]

    def _encoded(self, texts: Sequence[str], encode) -> Tensor:  # type: ignore[no-untyped-def]
        if not texts:
            return torch.zeros(0, self.network.encoder.width)
        return torch.cat([encode(texts[at : at + BATCH]).cpu() for at in range(0, len(texts), BATCH)])

    def _questions(self, texts: Sequence[str]) -> Tensor:
        return self.network.questions(self._vectors(texts))

    def _labels(self, texts: Sequence[str]) -> Tensor:
        return self.network.labels(self._vectors(texts))

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        device = self.network.log_scale.device
        if self.states is not None:
            return self.states.vectors(texts).to(device)
        ids, mask = self.reader.batch(self.reader.read(texts))
        vectors: Tensor = self.network.encoder(ids.to(device), mask.to(device))
        return vectors


def gold_items(gold: Sequence[Form | None], index: Mapping[str, int]) -> list[frozenset[int]]:
    """Indices of the items that each gold form uses; none for NK."""
    used = [Elements() if form is None else elements(form) for form in gold]
    return [
        frozenset(index[key] for key in (*used_elements.relations, *used_elements.classes) if key in index)
        for used_elements in used
    ]


def recall_at(scores: Tensor, wanted: Sequence[frozenset[int]], relations: int, size: int) -> float | None:
    """Share of the gold relations that are among the `size` best of the graph by score alone; None without any."""
    hits = total = 0
    for row, items in enumerate(wanted):
        relevant = {item for item in items if item < relations}
        if relevant:
            best = set(torch.argsort(scores[row, :relations], descending=True, stable=True)[:size].tolist())
            hits, total = hits + len(relevant & best), total + len(relevant)
    return hits / total if total else None
