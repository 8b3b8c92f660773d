"""Questions made ready for the decoder: their slots, and the tensors of a batch of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from kgqa_core.logic.measures import TIME, measure
from kgqa_core.parsing.decode.actions import NUMBER, PAD, Slots
from kgqa_core.parsing.decode.items import Items, Near
from kgqa_core.parsing.decode.network import FORWARD, INVERSE, LEAF, Batch
from kgqa_core.parsing.decode.wording import LITERALS, MENTIONS, MOST_MENTIONS, Worded
from kgqa_core.training.encoders import PAD as PADDING
from kgqa_core.training.encoders import SPECIAL, UNKNOWN, Reader

FEATURES = 2 + 2 * MOST_MENTIONS
"""Numbers that describe a slot: confidence of a topic, score of an item, and whether the topics of each mention have a
relation as its head, and as its tail."""

TYPES_READ = 2
"""Types of a topic that are read."""


@dataclass(frozen=True)
class Row:
    """A question for the decoder.

    text: masked.  labels, kinds, features: of each slot, in the order of `slots`.  actions: those that write the gold
    form and END; empty where there is none to learn.
    """

    text: str
    slots: Slots
    labels: tuple[str, ...]
    kinds: tuple[int, ...]
    features: tuple[tuple[float, ...], ...]
    actions: tuple[int, ...] = ()


def make_row(
    words: Worded,
    relations: Sequence[str],
    classes: Sequence[str],
    scores: Mapping[str, float],
    items: Items,
    nearby: Near,
    types: Mapping[str, frozenset[str]],
) -> Row:
    """A question with what was retrieved for it, its actions still missing.

    scores: of the retrieved items.  nearby: relations of the topics.  types: of the topics, by key.
    """
    slots = Slots(
        tuple(topic.key for topic, _ in words.topics), tuple(classes), tuple(value for value, _ in words.literals),
        tuple(relations),
    )  # fmt: skip
    nothing = (0.0,) * FEATURES
    labels, features = [], []
    for topic, place in words.topics:
        own = sorted(types.get(topic.key, ()))[:TYPES_READ]
        labels.append(" ".join([MENTIONS[place], *(items.words.get(key, "") for key in own)]).strip())
        features.append((topic.rho, *nothing[1:]))
    for key in classes:
        labels.append(items.words[key])
        features.append((0.0, scores[key], *nothing[2:]))
    for literal, place in words.literals:
        found = measure(literal)
        labels.append(f"{LITERALS[place]} {'time' if found is not None and found.dim == TIME else 'number'}")
        features.append(nothing)
    for key in relations:
        labels.append(items.words[key])
        has = [False] * (2 * MOST_MENTIONS)
        for topic, place in words.topics:
            head, tail = nearby.get(topic.key, {}).get(key, (False, False))
            has[2 * place] |= head
            has[2 * place + 1] |= tail
        features.append((0.0, scores[key], *map(float, has)))
    sizes = (len(slots.topics), len(slots.classes), len(slots.literals), len(slots.relations))
    kinds = tuple(kind for kind, size in enumerate(sizes) for _ in range(size))
    return Row(words.text, slots, tuple(labels), kinds, tuple(features))


def slot_actions(mentions: int, candidates: int, classes: int, relations: int) -> int:
    """How many actions beyond the fixed ones a question has at most; each value is a number and a time."""
    return mentions * candidates + classes + 2 * len(LITERALS) + 2 * relations


def reader_of(tokenizer: Tokenizer, max_tokens: int) -> Reader:
    """A reader of a vocabulary that was learnt from the questions."""
    return Reader(tokenizer, "", SPECIAL.index(PADDING), SPECIAL.index(UNKNOWN), max_tokens)


class Batcher:
    """Makes batches; each distinct text is read once.  actions: beyond the fixed ones, of any question at most."""

    def __init__(self, reader: Reader, actions: int) -> None:
        self.reader, self.actions = reader, actions
        self._read: dict[str, list[int]] = {}

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        new = sorted({text for text in texts if text not in self._read})
        self._read |= dict(zip(new, self.reader.read(new), strict=True)) if new else {}
        return [self._read[text] for text in texts]

    def batch(self, rows: Sequence[Row], device: torch.device, shuffle: bool = False) -> tuple[Batch, Tensor]:
        """The tensors of some rows, and their actions [batch, length], padded.

        shuffle: the slots of a row stand in a drawn order, so that nothing is learnt of it.
        """
        words, mask = self.reader.batch(self.tokens([row.text for row in rows]))
        distinct = sorted({label for row in rows for label in row.labels}) or [""]
        number = {label: place for place, label in enumerate(distinct)}
        labels, labels_mask = self.reader.batch(self.tokens(distinct))
        most = max([1, *(len(row.labels) for row in rows)])
        shape = (len(rows), most)
        label, kind, there = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
        features = torch.zeros(*shape, FEATURES)
        item = torch.full((len(rows), self.actions), -1)
        role = torch.zeros((len(rows), self.actions), dtype=torch.long)
        for place, row in enumerate(rows):
            size = len(row.labels)
            if not size:
                continue
            order = torch.randperm(size) if shuffle else torch.arange(size)
            label[place, order] = torch.tensor([number[one] for one in row.labels])
            kind[place, order] = torch.tensor(row.kinds)
            features[place, order] = torch.tensor(row.features)
            there[place, :size] = 1
            own, roles = pointed(row.slots)
            item[place, : len(own)] = order[torch.tensor(own)]
            role[place, : len(own)] = torch.tensor(roles)
        longest = max([1, *(len(row.actions) for row in rows)])
        actions = torch.full((len(rows), longest), NUMBER[PAD])
        for place, row in enumerate(rows):
            actions[place, : len(row.actions)] = torch.tensor(row.actions, dtype=torch.long)
        tensors = (words, mask, labels, labels_mask, label, kind, features, there, item, role)
        return Batch(*(tensor.to(device) for tensor in tensors)), actions.to(device)


def pointed(slots: Slots) -> tuple[list[int], list[int]]:
    """Slot and role of each action beyond the fixed ones, in their order."""
    leaves = slots.items - len(slots.relations)
    relations = list(range(leaves, slots.items))
    items = [*range(leaves), *relations, *relations]
    return items, [LEAF] * leaves + [FORWARD] * len(relations) + [INVERSE] * len(relations)


def order_of(rows: Sequence[Row], size: int, seed: int, epoch: int) -> list[Tensor]:
    """Numbers of an epoch's batches, of similar length within pools of sixteen batches."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    lengths = torch.tensor([len(row.text.split()) * 64 + len(row.labels) for row in rows])
    shuffled = torch.randperm(len(rows), generator=generator)
    cut: list[Tensor] = []
    for pool in shuffled.split(16 * size):
        cut += pool[torch.sort(lengths[pool], stable=True).indices].split(size)
    return [cut[index] for index in torch.randperm(len(cut), generator=generator).tolist()]
