"""Questions made ready for training, and the order in which an epoch takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kgqa_core.retrieval.encoders import Reader
from kgqa_core.retrieval.text import mask_topic
from kgqa_core.types import Question


@dataclass(frozen=True)
class Prepared:
    """Questions ready for training: text[i] points into rows (token ids of distinct texts)."""

    rows: list[list[int]]
    text: Tensor
    topics: list[tuple[int, ...]]
    answers: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.topics)


def usable(questions: Sequence[Question], split: str) -> tuple[list[Question], list[str]]:
    """Questions of a split that can be trained on or measured, and the ids of those that cannot."""
    own = [question for question in questions if question.split == split]
    fit = [question for question in own if question.topic_entities and question.answers]
    return fit, [question.id for question in own if not (question.topic_entities and question.answers)]


def prepare(questions: Sequence[Question], reader: Reader, names: dict[int, list[str]]) -> tuple[Prepared, float]:
    """Questions as token ids and entity ids, and the share of tokens that the reader does not know."""
    texts = [mask_topic(question, reader.topic_token, names) for question in questions]
    distinct = sorted(set(texts))
    place = {text: index for index, text in enumerate(distinct)}
    prepared = Prepared(
        reader.read(distinct) if distinct else [],
        torch.tensor([place[text] for text in texts], dtype=torch.int64),
        [question.topic_entities for question in questions],
        [question.answers for question in questions],
    )
    return prepared, reader.unknown_share(texts)


def batches(questions: Prepared, size: int, group: int, seed: int, epoch: int) -> list[Tensor]:
    """Question numbers of an epoch's batches, of similar length within pools of sixteen batches.

    Questions are shuffled in groups of up to `group` that share a wording, which is then encoded once for all of them.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shuffled = torch.randperm(len(questions), generator=generator)
    by_wording = shuffled[torch.sort(questions.text[shuffled], stable=True).indices]
    groups: list[Tensor] = []
    counts = torch.bincount(questions.text, minlength=len(questions.rows)).tolist()
    for own in torch.split(by_wording, counts):
        groups += own.split(group)
    order = torch.cat([groups[index] for index in torch.randperm(len(groups), generator=generator).tolist()])
    lengths = torch.tensor([len(row) for row in questions.rows])[questions.text]
    cut: list[Tensor] = []
    for pool in order.split(16 * size):
        cut += pool[torch.sort(lengths[pool], stable=True).indices].split(size)
    return [cut[index] for index in torch.randperm(len(cut), generator=generator).tolist()]
