"""The lazy last hop: equal to expanding it, gradients included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.dkg.last_hop import last_hop
from kgqa_core.errors import GraphMismatch

ENTITIES, RELATIONS, FIRST_LITERAL = 60, 5, 45


def graph(literal_inverses: bool = False) -> Dkg:
    draw = np.random.default_rng(0)
    hub = [(3, relation, tail) for relation in (1, 4) for tail in range(ENTITIES)]
    triples = np.concatenate([draw.integers(0, [FIRST_LITERAL, RELATIONS, ENTITIES], (300, 3)), hub])
    columns, literals = np.unique(triples, axis=0).T, [(FIRST_LITERAL, ENTITIES)]
    return Dkg.from_triples(*columns, ENTITIES, RELATIONS, literals=literals, literal_inverses=literal_inverses)


def problem() -> tuple[EntityWeights, Tensor, EntityWeights]:
    draw = np.random.default_rng(1)
    rows = [{int(e): float(draw.random()) for e in draw.choice(ENTITIES, n, replace=False)} for n in (0, 1, 7, 40)]
    rows[1] = {3: 0.75}
    r = torch.from_numpy(draw.dirichlet(np.ones(2 * RELATIONS), 4))
    answers = EntityWeights.one_hot([[1, 50], [3, 7, 46, 59], [], list(range(0, ENTITIES, 3))])
    return EntityWeights.from_rows(rows, dtype=torch.float64), r, answers


def measured(dkg: Dkg, backend: Any, **options: Any) -> list[Tensor]:
    x, r, answers = problem()
    w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
    found = last_hop(dkg, x.with_weight(w), q, answers, backend=backend, **options)
    goal = torch.linspace(0.5, 2, len(found.mass), dtype=torch.float64)
    (-torch.log(found.mass.clamp(min=1e-8)) @ goal + torch.log(found.total.clamp(min=1)).sum()).backward()
    assert w.grad is not None and q.grad is not None
    return [found.mass.detach(), found.total.detach(), w.grad, q.grad]


@pytest.mark.parametrize("literal_inverses", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.08])
@pytest.mark.parametrize("exclude", [False, True])
def test_lazy_equals_expanded_with_gradients(literal_inverses: bool, epsilon: float, exclude: bool) -> None:
    topics = EntityWeights.one_hot([[4], [3, 7], [2, 9, 40, 46], [0, 3, 50]]) if exclude else None
    options = {"epsilon": epsilon, "exclude": topics}
    dkg = graph(literal_inverses)
    for lazy, expanded in zip(measured(dkg, "auto", **options), measured(dkg, "torch", **options), strict=True):
        torch.testing.assert_close(lazy, expanded)


def test_answers_that_are_reached_weigh_something() -> None:
    mass, total, *_ = measured(graph(), "auto")
    assert bool((mass > 0).sum() > 10) and bool((total[1:] > 0).all()) and float(total[0]) == 0


def test_gradients_pass_gradcheck() -> None:
    x, r, answers = problem()
    dkg, topics = graph(), EntityWeights.one_hot([[4], [3, 7], [2, 9, 40, 46], [0, 3, 50]])

    def hop(weight: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        found = last_hop(dkg, x.with_weight(weight), relations, answers, exclude=topics)
        return found.mass, found.total

    assert torch.autograd.gradcheck(hop, (x.weight.clone().requires_grad_(), r.clone().requires_grad_()))


def test_an_answer_of_another_graph_and_a_wrong_batch_are_refused() -> None:
    x, r, answers = problem()
    with pytest.raises(GraphMismatch, match="answers has 1 rows for 4 questions"):
        last_hop(graph(), x, r, EntityWeights.one_hot([[1]]))
    with pytest.raises(GraphMismatch, match="exclude has 1 rows"):
        last_hop(graph(), x, r, answers, exclude=EntityWeights.one_hot([[1]]))
    with pytest.raises(GraphMismatch, match="answer 60 is not in this DKG"):
        last_hop(graph(), x, r, EntityWeights.one_hot([[60], [], [], []]))
