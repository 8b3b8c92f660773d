"""A question as the decoder reads it: mentions and values masked, and what can stand in its slots.

Mentions are numbered in the order of the text and masked by `[E1]`, `[E2]`, …, numbers and dates by `[V1]`, …; the
candidates of one mention are slots of their own that share its token.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from tokenizers import Tokenizer
from torch import Tensor

from kgqa_core.datasets.derived.form_values import VALUES, values_in
from kgqa_core.datasets.files.masking import mask_names
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Literal
from kgqa_core.logic.measures import TIME, measure
from kgqa_core.nn.encoders import PAD as PADDING
from kgqa_core.nn.encoders import SPECIAL, UNKNOWN, Reader
from kgqa_core.papers.grailqability.parsing.decode.actions import END, NK, NUMBER, PAD, Slots
from kgqa_core.papers.grailqability.parsing.decode.network import FORWARD, INVERSE, LEAF, DecoderBatch
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenReader
from kgqa_core.papers.grailqability.parsing.item_retriever import Items
from kgqa_core.papers.grailqability.parsing.rng.slots import mentions_of

Near = Mapping[str, Mapping[str, tuple[bool, bool]]]
"""Entity → relation → whether the entity is a head of it, and whether it is a tail of it."""


def near(store: KgStore, keys: Iterable[str]) -> Near:
    """The relations that each entity has, in either direction."""
    rows = store.connection.execute(
        "WITH wanted AS (SELECT id, key FROM entities WHERE kind = 'entity' AND key IN "
        "(SELECT unnest($1::VARCHAR[]))) "
        "SELECT w.key, r.key, bool_or(t.side = 0), bool_or(t.side = 1) FROM wanted w JOIN ("
        "SELECT DISTINCT head AS id, relation, 0 AS side FROM triples WHERE head IN (SELECT id FROM wanted) "
        "UNION ALL SELECT DISTINCT tail, relation, 1 FROM triples WHERE tail IN (SELECT id FROM wanted)) t "
        "ON t.id = w.id JOIN relations r ON r.id = t.relation GROUP BY 1, 2 ORDER BY 1, 2",
        [sorted(set(keys))],
    ).fetchall()
    nearby: dict[str, dict[str, tuple[bool, bool]]] = {}
    for entity, relation, head, tail in rows:
        nearby.setdefault(entity, {})[relation] = (bool(head), bool(tail))
    return nearby


def chosen(
    scores: Tensor, items: Items, anchored: Collection[str], relations: int, classes: int
) -> tuple[list[str], list[str]]:
    """The relations and types of a question, best first.

    scores: [items] of the question.  Two thirds of the relations are the best of the graph; then come those that the
    topics have (`anchored`), then the next best.
    """
    order = torch.argsort(scores[: len(items.relations)], descending=True, stable=True).tolist()
    ranked = [items.relations[index] for index in order]
    sure = math.ceil(relations * 2 / 3)
    chosen_relations = [*ranked[:sure], *sorted(ranked[sure:], key=lambda key: key not in anchored)][:relations]
    of_classes = torch.argsort(scores[len(items.relations) :], descending=True, stable=True)[:classes].tolist()
    return chosen_relations, [items.classes[index] for index in of_classes]


MOST_MENTIONS = 6
"""Mentions that have a token of their own."""
MENTIONS = tuple(f"[E{number}]" for number in range(1, MOST_MENTIONS + 1))
LITERALS = tuple(f"[V{number}]" for number in range(1, VALUES + 1))
PLACEHOLDERS = (*MENTIONS, *LITERALS)


@dataclass(frozen=True, slots=True)
class Worded:
    """A masked text, the topics with the place of their mention, and the literals with the place of their value.

    A value that may be a number or a year is two literals.
    """

    text: str
    topics: tuple[tuple[Topic, int], ...] = ()
    literals: tuple[tuple[Literal, int], ...] = ()


def worded(
    example: ParseExample, known: Mapping[str, object], mentions: int, candidates: int, types: Collection[str] = ()
) -> Worded:
    """How a question is read.

    known: keys of the graph's entities; other topics are left out.  mentions, candidates: of the question, and of one
    mention, at most, the surest first.  types: of the graph; words that may name one stay beside their token.
    """
    topics = [topic for topic in example.topics if topic.key in known]
    text = " ".join(example.text.split())
    mentioned = mentions_of(text, topics, min(mentions, MOST_MENTIONS))
    masked = mask_names(text, [([words], token) for (_, words), token in zip(mentioned, MENTIONS, strict=False)])
    values = values_in(mask_names(text, [([words], " ") for _, words in mentioned]))
    masked = mask_names(masked, [([value.text], token) for value, token in zip(values, LITERALS, strict=False)])
    of_types = {topic.number for topic in topics if topic.key in types}
    named = zip(mentioned, MENTIONS, strict=False)
    masked = mask_names(masked, [([token], f"{token} {name}") for (n, name), token in named if n in of_types])
    slots: dict[str, tuple[Topic, int]] = {}
    for index, (number, _) in enumerate(mentioned):
        of_mention = sorted((t for t in topics if t.number == number), key=lambda t: (-t.rho, t.key))
        for topic in list({t.key: t for t in of_mention if t.key not in slots}.values())[:candidates]:
            slots[topic.key] = (topic, index)
    literals = [
        (literal, index)
        for index, value in enumerate(values)
        for literal in (value.number, value.time)
        if literal is not None
    ]
    return Worded(masked, tuple(slots.values()), tuple(dict(literals).items()))


FEATURES = 2 + 3 * MOST_MENTIONS
"""Numbers that describe a slot: confidence of a topic, score of an item, whether the topics of each mention have a
relation as its head and as its tail, and which mention a topic is of."""

READ = FEATURES + 2
"""The same, and what `standing` says of each slot."""

TYPES_READ = 2
"""Types of a topic that are read."""


@dataclass(frozen=True)
class DecoderRow:
    """A question for the decoder.

    text: masked.  labels, kinds, features: of each slot, in the order of `slots`.  mentions: words that name each
    topic, for they may be others than a name (a linker takes "capital" for a place too).  actions: those that write the
    gold form and END; empty where there is none to learn.
    """

    text: str
    slots: Slots
    labels: tuple[str, ...]
    kinds: tuple[int, ...]
    features: tuple[tuple[float, ...], ...]
    mentions: tuple[str, ...] = ()
    actions: tuple[int, ...] = ()


def make_row(
    words: Worded,
    relations: Sequence[str],
    classes: Sequence[str],
    scores: Mapping[str, float],
    items: Items,
    nearby: Near,
    types: Mapping[str, frozenset[str]],
) -> DecoderRow:
    """A question with what was retrieved for it, its actions still missing.

    scores: of the retrieved items.  nearby: relations of the topics.  types: of the topics, by key.
    """
    slots = Slots(
        tuple(topic.key for topic, _ in words.topics), tuple(classes), tuple(value for value, _ in words.literals),
        tuple(relations),
    )  # fmt: skip
    nothing = (0.0,) * FEATURES
    labels, features = [], []
    for topic, index in words.topics:
        topic_types = sorted(types.get(topic.key, ()))[:TYPES_READ]
        labels.append(" ".join([MENTIONS[index], *(items.words.get(key, "") for key in topic_types)]).strip())
        is_of = [0.0] * MOST_MENTIONS
        is_of[index] = 1.0
        features.append((topic.rho, *nothing[1:-MOST_MENTIONS], *is_of))
    for key in classes:
        labels.append(items.words[key])
        features.append((0.0, scores[key], *nothing[2:]))
    for literal, index in words.literals:
        measured = measure(literal)
        labels.append(f"{LITERALS[index]} {'time' if measured is not None and measured.dim == TIME else 'number'}")
        features.append(nothing)
    for key in relations:
        labels.append(items.words[key])
        has = [False] * (2 * MOST_MENTIONS)
        for topic, index in words.topics:
            head, tail = nearby.get(topic.key, {}).get(key, (False, False))
            has[2 * index] |= head
            has[2 * index + 1] |= tail
        features.append((0.0, scores[key], *map(float, has), *nothing[-MOST_MENTIONS:]))
    sizes = (len(slots.topics), len(slots.classes), len(slots.literals), len(slots.relations))
    kinds = tuple(kind for kind, size in enumerate(sizes) for _ in range(size))
    mentions = tuple(topic.mention.lower() for topic, _ in words.topics)
    return DecoderRow(words.text, slots, tuple(labels), kinds, tuple(features), mentions)


def standing(row: DecoderRow) -> list[tuple[float, float]]:
    """Of each slot four times what its score lacks of the best of its kind, and 1 / its place among them, by score."""
    scores: dict[int, list[float]] = {}
    for kind, features in zip(row.kinds, row.features, strict=True):
        scores.setdefault(kind, []).append(features[1])
    return [(4 * (own - of_kind[0]), 1 / place) for of_kind in scores.values() for place, own in enumerate(of_kind, 1)]


CLASSES_LOST = 0.4
"""Share of the rows with types that lose a type and no relation."""


def drop_random_items(rows: Sequence[DecoderRow], missing: float) -> list[DecoderRow]:
    """The rows without one relation or type each, as a graph would give them that lacks it.

    missing: share of the rows with a form that lose an item which their form needs, and then have none; the others
    lose one that they do not need, for the number of slots must not be informative.  A row without such a one stays.
    """
    draws = torch.rand(len(rows), 3).tolist()
    fewer = []
    for row, (which, where, kind) in zip(rows, draws, strict=True):
        first, size = row.slots.first_relation, len(row.slots.relations)
        needed = frozenset((action - first) % size for action in row.actions if action >= first)
        classes = frozenset(a - row.slots.first_class for a in row.actions if _is_class(row.slots, a))
        answerable = not needed and not classes or which >= missing
        of_class = kind < CLASSES_LOST and bool(row.slots.classes if answerable else classes)
        of_class = of_class or (not answerable and not needed)
        needed_items, every = (classes, len(row.slots.classes)) if of_class else (needed, size)
        lost = sorted(set(range(every)) - needed_items if answerable else needed_items)
        fewer.append(_without(row, lost[int(where * len(lost))], of_class, answerable) if lost else row)
    return fewer


def _is_class(slots: Slots, action: int) -> bool:
    return slots.first_class <= action < slots.first_literal


def _without(row: DecoderRow, index: int, of_class: bool, answerable: bool) -> DecoderRow:
    """A row without its relation, or type, at a place."""
    slots = row.slots
    remaining = [item for number, item in enumerate(slots.classes if of_class else slots.relations) if number != index]
    fewer = replace(slots, classes=tuple(remaining)) if of_class else replace(slots, relations=tuple(remaining))
    lost = index + (len(slots.topics) if of_class else slots.items - len(slots.relations))
    actions = row.actions if answerable else (NUMBER[NK], NUMBER[END])
    first, size = slots.first_relation, len(slots.relations)

    def moved(action: int) -> int:
        """The number of an action among fewer: forward ones behind the lost one move by one, inverse ones by two."""
        if of_class:
            return action - (action > slots.first_class + index)
        if action < first:
            return action
        inverse, relation = divmod(action - first, size)
        return action - inverse - (relation > index)

    return replace(
        row, slots=fewer,
        labels=row.labels[:lost] + row.labels[lost + 1 :], kinds=row.kinds[:lost] + row.kinds[lost + 1 :],
        features=row.features[:lost] + row.features[lost + 1 :], actions=tuple(map(moved, actions)),
    )  # fmt: skip


def slot_actions(mentions: int, candidates: int, classes: int, relations: int) -> int:
    """How many actions beyond the fixed ones a question has at most; each value is a number and a time."""
    return mentions * candidates + classes + 2 * len(LITERALS) + 2 * relations


def reader_of(tokenizer: Tokenizer, max_tokens: int) -> Reader:
    """A reader of a vocabulary that was learnt from the questions."""
    return Reader(tokenizer, "", SPECIAL.index(PADDING), SPECIAL.index(UNKNOWN), max_tokens)


class Batcher:
    """Makes batches; each distinct text is read once.  actions: beyond the fixed ones, of any question at most."""

    def __init__(self, reader: Reader | FrozenReader, actions: int) -> None:
        self.reader, self.actions = reader, actions
        self._read: dict[str, list[int]] = {}

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        new = sorted({text for text in texts if text not in self._read})
        self._read |= dict(zip(new, self.reader.read(new), strict=True)) if new else {}
        return [self._read[text] for text in texts]

    def batch(
        self, rows: Sequence[DecoderRow], device: torch.device, shuffle: bool = False
    ) -> tuple[DecoderBatch, Tensor]:
        """The tensors of some rows, and their actions [batch, length], padded.

        shuffle: the slots of a row stand in a random order, so that nothing is learnt of it, and half of the rows are
        read without the words of their mentions, so that little is learnt of names.
        """
        words, mask = self.reader.batch(self.tokens([row.text for row in rows]))
        bare = (torch.rand(len(rows)) < 0.5).tolist() if shuffle else [False] * len(rows)
        own_labels = [row.labels if without else named(row) for row, without in zip(rows, bare, strict=True)]
        distinct = sorted({label for labels in own_labels for label in labels}) or [""]
        number = {label: index for index, label in enumerate(distinct)}
        labels, labels_mask = self.reader.batch(self.tokens(distinct))
        most = max([1, *(len(row.labels) for row in rows)])
        shape = (len(rows), most)
        label, kind, there = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
        features = torch.zeros(*shape, READ)
        item = torch.full((len(rows), self.actions), -1)
        role = torch.zeros((len(rows), self.actions), dtype=torch.long)
        for index, row in enumerate(rows):
            size = len(row.labels)
            if not size:
                continue
            order = torch.randperm(size) if shuffle else torch.arange(size)
            label[index, order] = torch.tensor([number[label_text] for label_text in own_labels[index]])
            kind[index, order] = torch.tensor(row.kinds)
            features[index, order] = torch.tensor([(*f, *s) for f, s in zip(row.features, standing(row), strict=True)])
            there[index, :size] = 1
            slots_of_actions, roles = pointed(row.slots)
            item[index, : len(slots_of_actions)] = order[torch.tensor(slots_of_actions)]
            role[index, : len(slots_of_actions)] = torch.tensor(roles)
        longest = max([1, *(len(row.actions) for row in rows)])
        actions = torch.full((len(rows), longest), NUMBER[PAD])
        for index, row in enumerate(rows):
            actions[index, : len(row.actions)] = torch.tensor(row.actions, dtype=torch.long)
        tensors = (words, mask, labels, labels_mask, label, kind, features, there, item, role)
        return DecoderBatch(*(tensor.to(device) for tensor in tensors)), actions.to(device)


def named(row: DecoderRow) -> tuple[str, ...]:
    """The label of each slot, with the words of their mention in those of topics."""
    topics = tuple(f"{label} {words}" for label, words in zip(row.labels, row.mentions, strict=False))
    return topics + row.labels[len(topics) :]


def pointed(slots: Slots) -> tuple[list[int], list[int]]:
    """Slot and role of each action beyond the fixed ones, in their order."""
    leaves = slots.items - len(slots.relations)
    relations = list(range(leaves, slots.items))
    items = [*range(leaves), *relations, *relations]
    return items, [LEAF] * leaves + [FORWARD] * len(relations) + [INVERSE] * len(relations)


class Orders:
    """The batches of each epoch, the same number in every epoch.

    repeats: questions of one wording that an epoch has at most; each epoch samples others of them.
    """

    def __init__(self, rows: Sequence[DecoderRow], size: int, repeats: int, seed: int) -> None:
        self.size, self.repeats, self.seed = size, repeats, seed
        index = {text: number for number, text in enumerate(dict.fromkeys(row.text for row in rows))}
        self.wording = torch.tensor([index[row.text] for row in rows])
        self.lengths = torch.tensor([len(row.text.split()) + len(row.labels) for row in rows])
        total = int(torch.bincount(self.wording).clamp(max=repeats).sum())
        self.per_epoch = -(-total // size)

    def of(self, epoch: int) -> list[Tensor]:
        """Numbers of an epoch's batches, of similar length within pools of sixteen batches."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        shuffled = torch.randperm(len(self.wording), generator=generator)
        by_wording = shuffled[torch.sort(self.wording[shuffled], stable=True).indices]
        counts = torch.bincount(self.wording)
        first = torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        sample = by_wording[torch.arange(len(by_wording)) - first < self.repeats]
        sample = sample[torch.randperm(len(sample), generator=generator)]
        cut: list[Tensor] = []
        for pool in sample.split(16 * self.size):
            cut += pool[torch.sort(self.lengths[pool], stable=True).indices].split(self.size)
        return [cut[index] for index in torch.randperm(len(cut), generator=generator).tolist()]
