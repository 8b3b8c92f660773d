"""Sparse follow = SQL join = dense product, on random graphs."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.dkg import frontier_numba
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow, trace
from kgqa_core.dkg.last_hop import last_hop
from tests.support.examples import examples
from tests.support.reified import sparse_maps

ENTITIES, RELATIONS = 8, 3

triples_of = st.sets(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)), max_size=40
)
weight = st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0, 2.0])  # sums of these are exact in any order
rows_of = st.lists(st.dictionaries(st.integers(0, ENTITIES - 1), weight, max_size=ENTITIES), min_size=1, max_size=4)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Dkg, EntityWeights, torch.Tensor, list[tuple[int, int, int]]]:
    triples = sorted(draw(triples_of))
    first_literal = draw(st.integers(0, ENTITIES))
    triples = [triple for triple in triples if triple[0] < first_literal]
    columns = np.array(triples, dtype=np.int64).reshape(-1, 3).T
    dkg = Dkg.from_triples(
        *columns, ENTITIES, RELATIONS, literals=[(first_literal, ENTITIES)], literal_inverses=draw(st.booleans())
    )
    rows = draw(rows_of)
    relations = [draw(st.lists(weight, min_size=2 * RELATIONS, max_size=2 * RELATIONS)) for _ in rows]
    return dkg, EntityWeights.from_rows(rows), torch.tensor(relations), triples


def by_join(dkg: Dkg, x: EntityWeights, r: torch.Tensor, triples: list[tuple[int, int, int]], epsilon: float) -> Any:
    stored = [(h, q, t) for h, q, t in triples]
    stored += [(t, q + RELATIONS, h) for h, q, t in triples if dkg.find_edge([t], [q + RELATIONS], [h])[0] >= 0]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE edges(source INT, relation INT, target INT)")
        connection.execute("CREATE TABLE x(question INT, entity INT, weight DOUBLE)")
        connection.execute("CREATE TABLE r(question INT, relation INT, weight DOUBLE)")
        frontier = list(zip(x.row.tolist(), x.entity.tolist(), x.weight.tolist(), strict=True))
        weights = [(b, q, float(r[b, q])) for b in range(len(r)) for q in range(2 * RELATIONS)]
        for table, rows in (("edges", stored), ("x", frontier), ("r", weights)):
            if rows:
                connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
        return connection.execute(
            "SELECT x.question, target, sum(x.weight * r.weight) FROM x JOIN edges ON source = entity "
            "JOIN r ON r.question = x.question AND r.relation = edges.relation WHERE abs(r.weight) >= ? "
            "GROUP BY ALL ORDER BY ALL",
            [epsilon],
        ).fetchall()


@examples(60)
@given(problems(), st.sampled_from([0.0, 0.2, 0.6]))
def test_follow_equals_sql_join_on_random_graphs(problem: Any, epsilon: float) -> None:
    dkg, x, r, triples = problem
    expected = by_join(dkg, x, r, triples, epsilon)
    for backend, dense in (("torch", True), ("numba", True), ("numba", False)):
        with patch.object(frontier_numba, "DENSE_ENTITIES", ENTITIES if dense else 0):
            y = follow(dkg, x, r, epsilon=epsilon, backend=backend)  # type: ignore[arg-type]
        assert list(zip(y.row.tolist(), y.entity.tolist(), y.weight.tolist(), strict=True)) == expected


@examples(60)
@given(problems())
def test_follow_equals_dense_product_with_gradients_on_random_graphs(problem: Any) -> None:
    dkg, x, r, _ = problem
    left, rel, right = (torch.from_numpy(matrix.toarray()) for matrix in sparse_maps(dkg))
    goal = torch.arange(ENTITIES, dtype=torch.float32)
    sides = []
    for backend in ("torch", "numba", "dense"):
        w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
        full = torch.zeros(x.batch, ENTITIES)
        if backend == "dense":
            z = ((full.index_put((x.row, x.entity), w) @ left.T) * (q @ rel.T)) @ right
        else:
            y = follow(dkg, x.with_weight(w), q, backend=backend)  # type: ignore[arg-type]
            z = full.index_put((y.row, y.entity), y.weight)
        (z * goal).sum().backward()
        sides.append((z.detach(), w.grad, q.grad))
    for side in sides[:2]:
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(side, sides[2], strict=True))  # type: ignore[arg-type]


@examples(60)
@given(problems(), st.one_of(st.none(), st.integers(0, 12)), st.sampled_from([0.0, 0.2]), st.integers(1, 6))
def test_kernel_equals_reference_with_budget_on_random_graphs(
    problem: Any, budget: Any, epsilon: float, k: int
) -> None:
    dkg, x, r, _ = problem
    one, two = (follow(dkg, x, r, epsilon=epsilon, edge_budget=budget, backend=b) for b in ("torch", "numba"))  # type: ignore[arg-type]
    assert torch.equal(one.ptr, two.ptr) and torch.equal(one.entity, two.entity) and torch.equal(one.weight, two.weight)
    assert one.truncated is not None and two.truncated is not None and torch.equal(one.truncated, two.truncated)
    best = [trace(dkg, x, r, k, epsilon=epsilon, edge_budget=budget, backend=b) for b in ("torch", "numba")]  # type: ignore[arg-type]
    for mine, theirs in zip(*best, strict=True):
        assert mine[0].tolist() == theirs[0].tolist() and mine[1].tolist() == theirs[1].tolist()


@examples(60)
@given(problems())
def test_edges_and_triples_round_trip_on_random_graphs(problem: Any) -> None:
    dkg, _, _, triples = problem
    edges = np.arange(dkg.edges_stored)
    found = np.stack(dkg.edges(dkg.triple_of(edges))) if len(edges) else np.empty((3, 0), dtype=np.int64)
    source, rel, tail = dkg.source_of(edges), dkg.rel.astype(np.int64), dkg.tail
    forward = dkg.direction_of(edges) > 0
    assert [tuple(row) for row in found.T.tolist()] == [
        (s, q, t) if ahead else (t, q - RELATIONS, s)
        for s, q, t, ahead in zip(source.tolist(), rel.tolist(), tail.tolist(), forward.tolist(), strict=True)
    ]
    assert [tuple(row) for row in np.stack(dkg.edges(np.arange(len(triples)))).T.tolist()] == triples
    assert dkg.find_edge(source, rel, tail).tolist() == edges.tolist()


@examples(60)
@given(problems(), st.sampled_from([0.0, 0.2]), st.booleans(), st.data())
def test_lazy_last_hop_equals_expansion_on_random_graphs(
    problem: Any, epsilon: float, exclude: bool, data: st.DataObject
) -> None:
    dkg, x, r, _ = problem
    some = st.lists(st.lists(st.integers(0, ENTITIES - 1), max_size=4), min_size=x.batch, max_size=x.batch)
    answers = EntityWeights.one_hot(data.draw(some))
    topics = EntityWeights.one_hot(data.draw(some)) if exclude else None
    sides = []
    for backend in ("auto", "torch"):
        w, q = x.weight.clone().requires_grad_(), r.clone().requires_grad_()
        found = last_hop(
            dkg, x.with_weight(w), q, answers, exclude=topics, epsilon=epsilon,
            backend=backend,  # type: ignore[arg-type]
        )  # fmt: skip
        (found.mass.sum() * 2 + (found.total * torch.arange(1, x.batch + 1)).sum()).backward()
        sides.append((found.mass.detach(), found.total.detach(), w.grad, q.grad))
    for mine, theirs in zip(*sides, strict=True):
        assert torch.equal(mine, theirs)
