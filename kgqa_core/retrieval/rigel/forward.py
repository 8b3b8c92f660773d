"""A batch of questions as the network asks the graph: plans and start weights of their legs, and what these lead to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.nn.encoders import Reader
from kgqa_core.retrieval.batches import Prepared
from kgqa_core.retrieval.label import LabelRigel
from kgqa_core.retrieval.rigel.intersect import combine
from kgqa_core.retrieval.rigel.network import Rigel, Walk, walk
from kgqa_core.retrieval.rigel.plan import Plan


@dataclass(frozen=True)
class Asked:
    """A row of plan and topics for each leg; a leg for each question where `ptr` is absent.

    topics: where each leg begins, on the CPU.  excluded: all topics of its question, where they are not `topics`.
    ptr: int64 [batch + 1], legs of each question.  share: β [batch], of the intersection.
    """

    plan: Plan
    topics: EntityWeights
    excluded: EntityWeights | None = None
    ptr: Tensor | None = None
    share: Tensor | None = None


def ask(network: Rigel | LabelRigel, reader: Reader, questions: Prepared, batch: Tensor, device: torch.device) -> Asked:
    """What the network asks for a batch of question numbers, equal wordings encoded once."""
    if questions.starts is None or questions.leg_text is None:
        plan = _plan(network, reader, questions, questions.text[batch], device)
        return Asked(plan, EntityWeights.one_hot([questions.topics[number] for number in batch.tolist()]))
    starts, legs = questions.starts.take(batch)
    plan = _plan(network, reader, questions, questions.leg_text[legs], device)
    topics, extras = starts.sets, network.extras
    if extras is None or plan.state is None:
        return Asked(plan, topics)
    topics = extras.start(plan.state, starts, network.encoder, reader)
    if extras.gate is None:
        return Asked(plan, topics)
    excluded = starts.topics.repeat(starts.ptr.diff())
    return Asked(plan, topics, excluded, starts.ptr, extras.share(plan.state, starts.ptr))


def lead(
    graph: Dkg,
    asked: Asked,
    how: str,
    *,
    exclude_topic: bool = False,
    epsilon: float = 0.0,
    edge_budget: int | None = None,
) -> tuple[Walk, EntityWeights]:
    """Where the legs led, and the scores of each question.  how: topics are intersected, `none`, `product`, `min`."""
    led = walk(
        graph,
        asked.topics,
        asked.plan,
        exclude_topic=exclude_topic,
        epsilon=epsilon,
        edge_budget=edge_budget,
        excluded=asked.excluded,
    )
    if asked.ptr is None or asked.share is None:
        return led, led.scores
    return led, combine(led.scores, asked.ptr, asked.share, how)


def _plan(network: Rigel | LabelRigel, reader: Reader, questions: Prepared, text: Tensor, device: torch.device) -> Plan:
    distinct, place = torch.unique(text, return_inverse=True)
    ids, mask = reader.batch([questions.rows[index] for index in distinct.tolist()])
    plan: Plan = network(ids.to(device), mask.to(device)).take(place.to(device))
    return plan
