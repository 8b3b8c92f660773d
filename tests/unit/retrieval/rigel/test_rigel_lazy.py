"""Losses with a last hop that is not expanded: the value and the gradients of the expanded one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.retrieval.rigel import loss as losses
from kgqa_core.retrieval.rigel.loss import WALK_LOSSES, bce, bce_walk, normalised, normalised_walk
from kgqa_core.retrieval.rigel.walk import RelationPlan, WalkOptions, walk

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


def plan_of(logits: list[torch.Tensor]) -> RelationPlan:
    *relations, attention = (torch.softmax(own, dim=-1) for own in logits)
    return RelationPlan(relations, attention)


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("exclude_topic", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_value_and_gradient_are_those_of_the_expanded_walk(
    dkg: Dkg, hops: int, exclude_topic: bool, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "_most_edges", lambda *_: 10**9)  # a hop is always large
    topics, logits, answers = random_query(hops)
    options = WalkOptions(exclude_topic, epsilon, 10**6)
    expanded = normalised(walk(dkg, topics, plan_of(logits), options).scores, answers)
    wanted = torch.autograd.grad(expanded.sum(), logits)
    found = normalised_walk(dkg, topics, plan_of(logits), answers, options)
    assert torch.allclose(found, expanded, rtol=1e-9, atol=1e-12)
    for own, other in zip(torch.autograd.grad(found.sum(), logits), wanted, strict=True):
        assert torch.allclose(own, other, rtol=1e-7, atol=1e-12)


def test_a_hub_beyond_the_budget_is_not_cut(dkg: Dkg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "LARGE", 10)
    topics, logits, _ = random_query(1)
    answers = [(ENTITIES - 1,)] * BATCH  # the last neighbour of the hub
    whole = normalised(walk(dkg, topics, plan_of(logits)).scores, answers)
    cut = normalised(walk(dkg, topics, plan_of(logits), WalkOptions(edge_budget=5)).scores, answers)
    found = normalised_walk(dkg, topics, plan_of(logits), answers, WalkOptions(edge_budget=5))
    assert cut[0] > 10 > whole[0]
    assert torch.allclose(found, whole, rtol=1e-9)


@pytest.fixture(scope="module")
def tree() -> Dkg:
    """A hub with two kinds of edges, and a leaf behind each: no entity is reached twice from the hub."""
    triples = [(0, tail % 2, tail) for tail in range(1, 20)] + [(tail, 2, tail + 20) for tail in range(1, 20)]
    return Dkg.from_triples(*zip(*triples, strict=True), 60, RELATIONS)


def tree_query(hops: int) -> tuple[EntityWeights, list[torch.Tensor], list[tuple[int, ...]]]:
    """The hub, relations that only lead away from it, and answers that are reached, that are not, and the hub."""
    torch.manual_seed(hops)
    logits = [torch.randn(BATCH, 2 * RELATIONS, dtype=torch.float64) for _ in range(hops)]
    for own in logits:
        own[:, RELATIONS:] = -1e9
    logits.append(torch.randn(BATCH, hops, dtype=torch.float64))
    topics = EntityWeights.one_hot([[0]] * BATCH)
    answers = [(1,), (2, 3, 59), (21, 22), (59,), (0, 5), (4, 25)]
    return topics.with_weight(topics.weight.double()), [own.requires_grad_() for own in logits], answers


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("exclude_topic", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_bce_is_that_of_the_expanded_walk_where_no_entity_is_reached_twice(
    tree: Dkg, hops: int, exclude_topic: bool, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "_most_edges", lambda *_: 10**9)
    topics, logits, answers = tree_query(hops)
    options = WalkOptions(exclude_topic, epsilon, 10**6)
    expanded = bce(walk(tree, topics, plan_of(logits), options).scores, answers)
    wanted = torch.autograd.grad(expanded.sum(), logits)
    found = bce_walk(tree, topics, plan_of(logits), answers, options)
    assert torch.allclose(found, expanded, rtol=1e-6)
    for own, other in zip(torch.autograd.grad(found.sum(), logits), wanted, strict=True):
        assert torch.allclose(own, other, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("exclude_topic", [False, True])
def test_bce_of_a_graph_with_several_ways_is_bounded_by_the_expanded_one_and_exact_on_answers(
    dkg: Dkg, hops: int, exclude_topic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "_most_edges", lambda *_: 10**9)
    topics, logits, answers = random_query(hops)
    options = WalkOptions(exclude_topic, edge_budget=10**6)
    scores = walk(dkg, topics, plan_of(logits), options).scores
    found, expanded = bce_walk(dkg, topics, plan_of(logits), answers, options), bce(scores, answers)
    assert (found <= expanded + 1e-9).all() and (found > 0.5 * expanded).all()
    monkeypatch.setattr(losses, "CEILING", 0.0)  # other entities cost nothing
    found, expanded = bce_walk(dkg, topics, plan_of(logits), answers, options), bce(scores, answers)
    assert torch.allclose(found, expanded, rtol=1e-6)


def test_bce_learns_an_answer_of_a_hub_that_the_budget_would_cut(dkg: Dkg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "LARGE", 10)
    topics, logits, _ = random_query(1)
    answers = [(ENTITIES - 1,)] * BATCH  # the last neighbour of the hub
    cut = bce(walk(dkg, topics, plan_of(logits), WalkOptions(edge_budget=5)).scores, answers)[0]
    whole = bce_walk(dkg, topics, plan_of(logits), answers, WalkOptions(edge_budget=5))[0]
    assert torch.autograd.grad(whole, logits)[0][0, 1] != 0
    assert whole < cut, "a cut answer counts as not reached"


def test_a_hop_within_the_budget_is_expanded_with_the_same_bits(dkg: Dkg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "last_hop", None)  # to call it would fail
    topics, logits, answers = random_query(2)
    scores = walk(dkg, topics, plan_of(logits), WalkOptions(edge_budget=10**6)).scores
    for name, lazy in WALK_LOSSES.items():
        found = lazy(dkg, topics, plan_of(logits), answers, WalkOptions(edge_budget=10**6))
        assert torch.equal(found, losses.LOSSES[name](scores, answers))
