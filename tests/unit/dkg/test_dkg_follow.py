"""`follow` and `trace`: equal to the dense product, exact gradients, budget, determinism, faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kgqa_core.dkg import frontier_numba, frontier_torch
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow, trace
from kgqa_core.errors import ConfigError, GraphMismatch
from tests.support.reified import sparse_maps

ENTITIES, RELATIONS = 60, 5
BACKENDS = ["torch", "torch-sorted", "numba", "numba-ranked"]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numba-ranked":
        monkeypatch.setattr(frontier_numba, "DENSE_ENTITIES", 0)
        return "numba"
    if request.param == "torch-sorted":
        monkeypatch.setattr(frontier_torch, "DENSE", 0)
        return "torch"
    return str(request.param)


@pytest.fixture
def dkg() -> Dkg:
    draw = np.random.default_rng(0)
    hub = [
        (3, relation, tail) for relation in (1, 4) for tail in range(ENTITIES)
    ]  # short and long rows, short and long runs
    triples = np.unique(np.concatenate([draw.integers(0, [ENTITIES, RELATIONS, ENTITIES], (300, 3)), hub]), axis=0)
    return Dkg.from_triples(*triples.T, ENTITIES, RELATIONS)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def batch(dtype: torch.dtype = torch.float64, seed: int = 1) -> tuple[EntityWeights, Tensor]:
    draw = np.random.default_rng(seed)
    rows = [{int(e): float(draw.random()) for e in draw.choice(ENTITIES, n, replace=False)} for n in (0, 1, 7, 60)]
    r = torch.from_numpy(draw.dirichlet(np.ones(2 * RELATIONS), 4)).to(dtype)
    return EntityWeights.from_rows(rows, dtype=dtype), r


def dense(x: EntityWeights) -> Tensor:
    full = torch.zeros(x.batch, ENTITIES, dtype=x.weight.dtype)
    return full.index_put((x.row, x.entity), x.weight)


def dense_follow(dkg: Dkg, x: Tensor, r: Tensor) -> Tensor:
    left, rel, right = (torch.from_numpy(matrix.toarray()).to(x.dtype) for matrix in sparse_maps(dkg))
    return ((x @ left.T) * (r @ rel.T)) @ right


def test_two_hops_and_their_gradients_equal_the_dense_product(dkg: Dkg, backend: Any) -> None:
    x, r = batch()
    goal = torch.rand(4, ENTITIES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sides = []
    for sparse in (True, False):
        w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
        if sparse:
            first = follow(dkg, x.with_weight(w), q, backend=backend)
            y = dense(follow(dkg, first, q.flip(0), backend=backend))
        else:
            y = dense_follow(dkg, dense_follow(dkg, dense(x.with_weight(w)), q), q.flip(0))
        (y * goal).sum().backward()
        sides.append((y.detach(), w.grad, q.grad))
    for ours, theirs in zip(*sides, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_gradients_pass_gradcheck(dkg: Dkg, backend: Any) -> None:
    x, r = batch()
    few = EntityWeights(x.ptr[:4], x.entity[: int(x.ptr[3])], x.weight[: int(x.ptr[3])])

    def hop(weight: Tensor, relations: Tensor) -> Tensor:
        return follow(dkg, few.with_weight(weight), relations, backend=backend).weight

    assert torch.autograd.gradcheck(hop, (few.weight.clone().requires_grad_(), r[:3].clone().requires_grad_()))


def test_rows_come_out_sorted_unique_and_in_the_type_that_went_in(dkg: Dkg, backend: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        y = follow(dkg, *batch(dtype), backend=backend)
        assert y.weight.dtype == dtype and y.entity.dtype == torch.int64
        keys = y.row * ENTITIES + y.entity
        assert bool((keys.diff() > 0).all()) and int(y.ptr[-1]) == len(y.entity)
    x, r = batch(torch.float32)
    assert follow(dkg, x, r.half(), backend=backend).weight.dtype == torch.float32


def test_a_relation_below_epsilon_is_skipped_and_gets_no_gradient(dkg: Dkg, backend: Any) -> None:
    x, r = batch()
    epsilon = 0.08
    q = r.clone().requires_grad_()
    y = follow(dkg, x, q, epsilon=epsilon, backend=backend)
    y.weight.sum().backward()
    masked = torch.where(r >= epsilon, r, torch.zeros(()).double())
    torch.testing.assert_close(dense(y).detach(), dense_follow(dkg, dense(x), masked))
    assert q.grad is not None
    assert not bool(q.grad[r < epsilon].any()) and bool(q.grad[3][r[3] >= epsilon].all())
    assert bool((y.weight > 0).all())


def test_weight_zero_is_followed_without_epsilon_so_that_it_can_be_learnt(dkg: Dkg, backend: Any) -> None:
    x, _ = batch()
    r = torch.zeros(4, 2 * RELATIONS, dtype=torch.float64, requires_grad=True)
    follow(dkg, x, r, backend=backend).weight.sum().backward()
    assert r.grad is not None and bool(r.grad[3].all())


@pytest.mark.parametrize("epsilon", [0.0, 0.08])
@pytest.mark.parametrize("budget", [0, 1, 23, 200, 10_000])
def test_budget_follows_heaviest_sources_first_and_counts_the_rest(
    dkg: Dkg, backend: Any, budget: int, epsilon: float
) -> None:
    x, r = batch()
    w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
    y = follow(dkg, x.with_weight(w), q, epsilon=epsilon, edge_budget=budget, backend=backend)
    y.weight.sum().backward()
    expected = torch.zeros(4, ENTITIES, dtype=torch.float64)
    to_w, to_r, cut = torch.zeros_like(w), torch.zeros_like(q), [0, 0, 0, 0]
    for b in range(4):
        places = range(int(x.ptr[b]), int(x.ptr[b + 1]))
        left = budget
        for i in sorted(places, key=lambda i: (-float(x.weight[i]), int(x.entity[i]))):
            if left == 0:
                cut[b] += int(np.diff(dkg.ptr)[int(x.entity[i])])  # once the budget is spent, rows count as a whole
                continue
            for edge in range(*dkg.ptr[int(x.entity[i]) :][:2]):
                rel = int(dkg.rel[edge])
                if float(r[b, rel]) < epsilon:
                    continue
                if left == 0:
                    cut[b] += 1
                    continue
                left -= 1
                expected[b, dkg.tail[edge]] += x.weight[i] * r[b, rel]
                to_w[i] += r[b, rel]
                to_r[b, rel] += x.weight[i]
    torch.testing.assert_close(dense(y).detach(), expected)
    torch.testing.assert_close(w.grad, to_w)
    torch.testing.assert_close(q.grad, to_r)
    assert y.truncated is not None and y.truncated.tolist() == cut


def test_truncation_adds_up_over_hops(dkg: Dkg, backend: Any) -> None:
    x, r = batch()
    first = follow(dkg, x, r, edge_budget=20, backend=backend)
    again = follow(dkg, first, r, edge_budget=20, backend=backend)
    alone = follow(dkg, EntityWeights(first.ptr, first.entity, first.weight), r, edge_budget=20, backend=backend)
    assert again.truncated is not None and alone.truncated is not None and first.truncated is not None
    assert torch.equal(again.truncated, first.truncated + alone.truncated)


def test_result_bits_do_not_depend_on_threads_or_company(
    dkg: Dkg, threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontier_numba, "EDGES_PER_THREAD", 1)
    x, r = batch(torch.float32)
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
        y = follow(dkg, follow(dkg, x.with_weight(w), q), q)
        (y.weight**2).sum().backward()
        results.append((y.ptr, y.entity, y.weight.detach(), w.grad, q.grad))
    for other in results[1:]:
        assert all(torch.equal(mine, his) for mine, his in zip(results[0], other, strict=True))  # type: ignore[arg-type]
    last = EntityWeights(x.ptr[3:] - x.ptr[3], x.entity[x.ptr[3] :], x.weight[x.ptr[3] :])
    alone = follow(dkg, follow(dkg, last, r[3:]), r[3:])
    assert torch.equal(alone.weight, results[0][2][results[0][0][3] :])


def test_large_output_is_made_in_pieces(dkg: Dkg, monkeypatch: pytest.MonkeyPatch) -> None:
    x, r = batch()
    whole = follow(dkg, x, r)
    monkeypatch.setattr(frontier_numba, "RANGE_ENTITIES", 5)
    pieces = follow(dkg, x, r)
    assert torch.equal(whole.weight, pieces.weight) and torch.equal(whole.entity, pieces.entity)


def test_the_same_workspace_serves_backward_twice_and_other_batches(dkg: Dkg, backend: Any) -> None:
    for seed in range(1, 6):
        x, r = batch(seed=seed)
        q = r.clone().requires_grad_()
        y = follow(dkg, x, q, backend=backend)
        first = torch.autograd.grad(y.weight.sum(), q, retain_graph=True)[0]
        assert torch.equal(first, torch.autograd.grad(y.weight.sum(), q)[0])
        torch.testing.assert_close(dense(y).detach(), dense_follow(dkg, dense(x), r))


def test_trace_lists_the_heaviest_edges(dkg: Dkg, backend: Any) -> None:
    x, r = batch(torch.float32)
    for epsilon, k in ((0.0, 1), (0.0, 10), (0.08, 10), (0.0, 1000)):
        for b, (edges, weights) in enumerate(trace(dkg, x, r, k, epsilon=epsilon, backend=backend)):
            expected = []
            for i in range(int(x.ptr[b]), int(x.ptr[b + 1])):
                for edge in range(*dkg.ptr[int(x.entity[i]) :][:2]):
                    weight = float(x.weight[i] * r[b, int(dkg.rel[edge])])
                    if float(r[b, int(dkg.rel[edge])]) >= epsilon:
                        expected.append((-weight, edge))
            expected = sorted(expected)[:k]
            assert edges.tolist() == [edge for _, edge in expected]
            assert weights.tolist() == [-weight for weight, _ in expected]


def test_trace_breaks_ties_by_edge_and_leaves_out_what_weighs_nothing(dkg: Dkg, backend: Any) -> None:
    x = EntityWeights.one_hot([list(range(ENTITIES))])
    r = torch.zeros(1, 2 * RELATIONS)
    assert len(trace(dkg, x, r, 5, backend=backend)[0][0]) == 0
    r[0, 3] = 0.5
    edges = np.flatnonzero(dkg.rel == 3)[:5]
    assert trace(dkg, x, r, 5, backend=backend)[0][0].tolist() == edges.tolist()


def test_trace_sees_the_edges_that_follow_followed(dkg: Dkg, backend: Any) -> None:
    x, r = batch()
    for budget in (0, 7, 50):
        y = follow(dkg, x, r, edge_budget=budget, backend=backend)
        for b, (edges, _) in enumerate(trace(dkg, x, r, 10_000, edge_budget=budget, backend=backend)):
            assert len(edges) == min(budget, int(np.diff(dkg.ptr)[x.entity[x.ptr[b] : x.ptr[b + 1]].numpy()].sum()))
            assert sorted(set(dkg.tail[edges].tolist())) == y.entity[y.ptr[b] : y.ptr[b + 1]].tolist()


def test_an_empty_batch_and_an_empty_frontier_give_nothing(dkg: Dkg, backend: Any) -> None:
    none = follow(dkg, EntityWeights.one_hot([]), torch.zeros(0, 2 * RELATIONS), backend=backend)
    assert none.batch == 0
    r = torch.rand(2, 2 * RELATIONS, requires_grad=True)
    empty = follow(dkg, EntityWeights.one_hot([[], []]), r, backend=backend)
    assert empty.ptr.tolist() == [0, 0, 0]
    again = follow(dkg, empty, r, backend=backend)
    again.sum().sum().backward()
    assert r.grad is not None and not bool(r.grad.any())


def test_relation_weights_of_another_graph_are_refused(dkg: Dkg, backend: Any) -> None:
    x, r = batch()
    with pytest.raises(GraphMismatch, match=r"\[batch, 10\].*another graph"):
        follow(dkg, x, r[:, :-1], backend=backend)
    with pytest.raises(GraphMismatch, match="4 entity sets and 3 rows"):
        follow(dkg, x, r[:3], backend=backend)
    for entity in (ENTITIES, -1):
        with pytest.raises(GraphMismatch, match=f"entity {entity} is not in this DKG"):
            follow(dkg, EntityWeights.one_hot([[entity]]), r[:1], backend=backend)


def test_an_unknown_backend_is_refused(dkg: Dkg) -> None:
    with pytest.raises(ConfigError, match="'tensorflow'"):
        follow(dkg, *batch(), backend="tensorflow")  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
@pytest.mark.parametrize("budget", [None, 23])
@pytest.mark.parametrize("epsilon", [0.0, 0.08])
def test_cuda_gives_the_same_results(dkg: Dkg, budget: int | None, epsilon: float) -> None:
    options: dict[str, Any] = {"epsilon": epsilon, "edge_budget": budget}
    sides = []
    for device in ("cpu", "cuda"):
        x, r = batch(torch.float32)
        w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
        there = x.with_weight(w).to(device)
        y = follow(dkg, follow(dkg, there, q.to(device), **options), q.to(device), **options)
        (y.weight**2).sum().backward()
        best = trace(dkg, there, q.to(device), 5, **options)
        assert y.truncated is not None
        sides.append([y.to("cpu"), w.grad, q.grad, [edges.tolist() for edges, _ in best]])
    (mine, *gradients, traced), (his, *others, also) = sides
    assert torch.equal(mine.entity, his.entity) and torch.equal(mine.truncated, his.truncated) and traced == also
    torch.testing.assert_close([mine.weight.detach(), *gradients], [his.weight.detach(), *others], rtol=1e-4, atol=1e-5)
