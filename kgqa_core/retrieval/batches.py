"""Questions made ready for training, and the order in which an epoch takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.nn.encoders import Reader
from kgqa_core.retrieval.starts import Starts, leg_texts, make_starts
from kgqa_core.types import Question

Path = tuple[int, tuple[int, ...], float]
"""Number of a question's leg, relation ids of a path from it, and the path's weight."""


@dataclass(frozen=True)
class Prepared:
    """Questions ready for training: text[i] points into rows (token ids of distinct texts).

    starts: their legs, where they are more than topics that are all certain; leg_text: of each leg, into rows.
    paths: relation paths that a language model's right answers speak for, (leg, relation ids, weight) by question.
    """

    rows: list[list[int]]
    text: Tensor
    topics: list[tuple[int, ...]]
    answers: list[tuple[int, ...]]
    starts: Starts | None = None
    leg_text: Tensor | None = None
    paths: Mapping[int, list[Path]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.topics)


def usable(questions: Sequence[Question], split: str) -> tuple[list[Question], list[str]]:
    """Questions of a split that can be trained on or measured, and the ids of those that cannot."""
    own = [question for question in questions if question.split == split]
    fit = [question for question in own if question.topic_entities and question.answers]
    return fit, [question.id for question in own if not (question.topic_entities and question.answers)]


def prepare(
    questions: Sequence[Question],
    reader: Reader,
    names: dict[int, list[str]],
    graph: Dkg | None = None,
    apart: bool = False,
    texts: Mapping[int, str] | None = None,
) -> tuple[Prepared, list[str]]:
    """Questions as token ids and entity ids, and what is read of each of their legs.

    apart: a leg for each mention.  texts: what is said of candidates, read where some part of the network asks for it;
    graph: the graph that they lie in, which questions with more than certain topics need.
    """
    legs = [leg_texts(question, apart, reader.topic_token, names) for question in questions]
    every = [text for own in legs for text in own]
    distinct = sorted(set(every))
    place = {text: index for index, text in enumerate(distinct)}
    starts = leg_text = None
    if apart or texts is not None or any(question.topic_weights for question in questions):
        assert graph is not None
        known = sorted(texts.items()) if texts else []
        words = dict(zip([entity for entity, _ in known], reader.read([text for _, text in known]), strict=True))
        starts = make_starts(questions, graph, apart, words)
        leg_text = torch.tensor([place[text] for text in every], dtype=torch.int64)
    prepared = Prepared(
        reader.read(distinct) if distinct else [],
        torch.tensor([place[own[0]] for own in legs], dtype=torch.int64),
        [question.topic_entities for question in questions],
        [question.answers for question in questions],
        starts,
        leg_text,
    )
    return prepared, every


def batches(
    questions: Prepared, size: int, group: int, seed: int, epoch: int, drawn: Tensor | None = None
) -> list[Tensor]:
    """Question numbers of an epoch's batches, of similar length within pools of sixteen batches.

    Questions are shuffled in groups of up to `group` that share a wording, which is then encoded once for all of them.
    drawn: numbers of the questions that the epoch takes, a number as often as it is to be taken; each once without.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    if drawn is None:
        drawn = torch.arange(len(questions))
    shuffled = drawn[torch.randperm(len(drawn), generator=generator)]
    by_wording = shuffled[torch.sort(questions.text[shuffled], stable=True).indices]
    groups: list[Tensor] = []
    counts = torch.bincount(questions.text[drawn], minlength=len(questions.rows)).tolist()
    for own in torch.split(by_wording, counts):
        groups += own.split(group)
    order = torch.cat([groups[index] for index in torch.randperm(len(groups), generator=generator).tolist()])
    lengths = torch.tensor([len(row) for row in questions.rows])[questions.text]
    cut: list[Tensor] = []
    for pool in order.split(16 * size):
        cut += pool[torch.sort(lengths[pool], stable=True).indices].split(size)
    return [cut[index] for index in torch.randperm(len(cut), generator=generator).tolist()]
