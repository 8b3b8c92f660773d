"""The loss `normalised` with a last hop that is not expanded: the value and the gradients of the expanded one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.retrieval.rigel import loss as losses
from kgqa_core.retrieval.rigel.loss import normalised, normalised_walk
from kgqa_core.retrieval.rigel.walk import Plan, walk

ENTITIES, RELATIONS, BATCH = 40, 3, 6


@pytest.fixture(scope="module")
def dkg() -> Dkg:
    """A random graph whose entity 0 is a hub."""
    draw = np.random.default_rng(5)
    triples = {tuple(row) for row in draw.integers(0, (ENTITIES, RELATIONS, ENTITIES), (150, 3)).tolist()}
    triples |= {(0, 1, tail) for tail in range(1, ENTITIES)}
    return Dkg.from_triples(*zip(*sorted(triples), strict=True), ENTITIES, RELATIONS)


def random_query(hops: int) -> tuple[EntityWeights, list[torch.Tensor], list[tuple[int, ...]]]:
    """Topics (the hub is one), relation and attention logits, and answers."""
    torch.manual_seed(hops)
    draw = np.random.default_rng(hops)
    topics = EntityWeights.one_hot([[0], *draw.integers(1, ENTITIES, (BATCH - 1, 2)).tolist()])
    logits = [torch.randn(BATCH, 2 * RELATIONS, dtype=torch.float64) for _ in range(hops)]
    logits.append(torch.randn(BATCH, hops, dtype=torch.float64))
    answers = [tuple(sorted(set(row))) for row in draw.integers(0, ENTITIES, (BATCH, 4)).tolist()]
    return topics.with_weight(topics.weight.double()), [own.requires_grad_() for own in logits], answers


def plan_of(logits: list[torch.Tensor]) -> Plan:
    *relations, attention = (torch.softmax(own, dim=-1) for own in logits)
    return Plan(relations, attention)


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("exclude_topic", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_value_and_gradient_are_those_of_the_expanded_walk(
    dkg: Dkg, hops: int, exclude_topic: bool, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "_most_edges", lambda *_: 10**9)  # a hop is always large
    topics, logits, answers = random_query(hops)
    how = {"exclude_topic": exclude_topic, "epsilon": epsilon, "edge_budget": 10**6}
    expanded = normalised(walk(dkg, topics, plan_of(logits), **how).scores, answers)
    wanted = torch.autograd.grad(expanded.sum(), logits)
    found = normalised_walk(dkg, topics, plan_of(logits), answers, **how)
    assert torch.allclose(found, expanded, rtol=1e-9, atol=1e-12)
    for own, other in zip(torch.autograd.grad(found.sum(), logits), wanted, strict=True):
        assert torch.allclose(own, other, rtol=1e-7, atol=1e-12)


def test_a_hub_beyond_the_budget_is_not_cut(dkg: Dkg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "LARGE", 10)
    topics, logits, _ = random_query(1)
    answers = [(ENTITIES - 1,)] * BATCH  # the last neighbour of the hub
    whole = normalised(walk(dkg, topics, plan_of(logits)).scores, answers)
    cut = normalised(walk(dkg, topics, plan_of(logits), edge_budget=5).scores, answers)
    found = normalised_walk(dkg, topics, plan_of(logits), answers, edge_budget=5)
    assert cut[0] > 10 > whole[0]
    assert torch.allclose(found, whole, rtol=1e-9)


def test_a_hop_within_the_budget_is_expanded_with_the_same_bits(dkg: Dkg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "last_hop", None)  # to call it would fail
    topics, logits, answers = random_query(2)
    found = normalised_walk(dkg, topics, plan_of(logits), answers, edge_budget=10**6)
    assert torch.equal(found, normalised(walk(dkg, topics, plan_of(logits), edge_budget=10**6).scores, answers))
