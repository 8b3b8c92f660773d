"""The arrays of the differentiable KG: layout, triple ids, opening, faults."""

from __future__ import annotations

import multiprocessing
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from kgqa_core.dkg import build, layout
from kgqa_core.dkg.build import Builder, relation_dtype, row_dtype
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, follow
from kgqa_core.errors import ArtifactError, KgInputError

TRIPLES = [(0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 1), (2, 1, 0), (2, 1, 3)]  # a self loop, parallel edges, a literal 3


def small(literal_inverses: bool = False) -> Dkg:
    head, relation, tail = zip(*TRIPLES, strict=True)
    return Dkg.from_triples(head, relation, tail, 5, ["a", "b"], literals=[(3, 5)], literal_inverses=literal_inverses)


def test_rows_are_sorted_and_hold_both_directions() -> None:
    dkg = small()
    rows = {
        e: [(int(dkg.rel[i]), int(dkg.tail[i])) for i in range(dkg.ptr[e], dkg.ptr[e + 1])] for e in range(dkg.entities)
    }
    assert rows == {
        0: [(0, 1), (0, 2), (1, 1), (3, 2)],
        1: [(0, 1), (2, 0), (2, 1), (3, 0)],
        2: [(1, 0), (1, 3), (2, 0)],
        3: [],  # a literal: no edge leads out
        4: [],
    }
    assert dkg.relation_keys == ["a", "b", "<inv>-a", "<inv>-b"]


def test_edges_out_of_literals_are_stored_on_request() -> None:
    assert small().edges_stored == 2 * len(TRIPLES) - 1
    assert small(literal_inverses=True).edges_stored == 2 * len(TRIPLES)


@pytest.mark.parametrize("literal_inverses", [False, True])
def test_every_edge_knows_its_triple_and_direction(literal_inverses: bool) -> None:
    dkg = small(literal_inverses)
    edges = np.arange(dkg.edges_stored)
    triples, direction, source = dkg.triple_of(edges), dkg.direction_of(edges), dkg.source_of(edges)
    for edge in edges:
        head, relation, tail = TRIPLES[triples[edge]]
        if direction[edge] > 0:
            assert (source[edge], dkg.rel[edge], dkg.tail[edge]) == (head, relation, tail)
        else:
            assert (source[edge], dkg.rel[edge], dkg.tail[edge]) == (tail, relation + 2, head)
    columns = dkg.edges(np.arange(dkg.triples))
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == TRIPLES
    assert np.array_equal(dkg.triple_of(dkg.edge_of(np.arange(dkg.triples))), np.arange(dkg.triples))


def test_find_edge_tells_absent_edges() -> None:
    dkg = small()
    assert dkg.find_edge([0, 0, 3, 1], [0, 1, 2, 2], [2, 2, 0, 1]).tolist() == [1, -1, -1, 6]


def test_opened_arrays_are_memory_maps_of_what_was_saved(tmp_path: Path) -> None:
    dkg = small()
    dkg.save(tmp_path)
    opened = Dkg.open(tmp_path)
    for name in ("rows", "rel", "tail", "forward"):
        assert np.array_equal(getattr(opened, name), getattr(dkg, name))
        assert isinstance(getattr(opened, name).base, np.memmap)
        assert not getattr(opened, name).flags.writeable
    assert opened.digest == dkg.digest and opened.relation_ids["<inv>-b"] == 3


def test_digest_depends_on_arrays_and_relation_keys() -> None:
    other = Dkg.from_triples(*zip(*TRIPLES, strict=True), 5, ["a", "c"], literals=[(3, 5)])
    assert other.digest != small().digest
    assert small(literal_inverses=True).digest != small().digest


def test_edges_are_the_triples_of_a_larger_graph() -> None:
    draw = np.random.default_rng(3)
    triples = np.unique(draw.integers(0, [500, 7, 500], (4000, 3)), axis=0)
    dkg = Dkg.from_triples(*triples.T, 600, 7)
    assert np.array_equal(np.stack(dkg.edges(np.arange(len(triples)))).T, triples)


@pytest.mark.parametrize(("relations", "width"), [(32_767, np.uint16), (32_768, np.uint32)])
def test_relation_column_is_wide_enough(relations: int, width: type) -> None:
    assert relation_dtype(relations) == width
    last = relations - 1
    dkg = Dkg.from_triples([0, 0], [last, 0], [1, 2], 3, relations)
    assert dkg.rel.dtype == width and dkg.rel.tolist() == [0, last, last + relations, relations]
    r = torch.zeros(2, 2 * relations)
    r[0, last], r[1, last + relations] = 0.5, 0.25
    for backend in ("numba", "torch"):
        y = follow(dkg, EntityWeights.one_hot([[0], [1]]), r, epsilon=0.1, backend=backend)  # type: ignore[arg-type]
        assert y.to_rows() == [{1: 0.5}, {0: 0.25}]


def test_row_pointers_are_wide_where_edges_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert row_dtype(2**32 - 1) == np.uint32 and row_dtype(2**32) == np.int64
    narrow = small()
    for module in (build, layout):
        monkeypatch.setattr(module, "row_dtype", lambda edges: np.dtype(np.int64))
    wide = small()
    assert narrow.rows.dtype == np.uint32 and wide.rows.dtype == wide.forward.dtype == np.int64
    edges = np.arange(wide.edges_stored)
    assert wide.triple_of(edges).tolist() == narrow.triple_of(edges).tolist()
    x, r = EntityWeights.one_hot([[0, 2]]), torch.full((1, 4), 0.5)
    assert follow(wide, x, r).to_rows() == follow(narrow, x, r).to_rows()


def test_rows_end_with_the_last_entity_that_has_edges() -> None:
    dkg = small()
    assert len(dkg.rows) == 4 and dkg.ptr.tolist() == [0, 4, 8, 11, 11, 11]
    start, stop = dkg.row_bounds([2, 3, 4])
    assert (stop - start).tolist() == [3, 0, 0]
    for backend in ("numba", "torch"):
        y = follow(dkg, EntityWeights.one_hot([[3, 4], [4]]), torch.ones(2, 4), backend=backend)  # type: ignore[arg-type]
        assert y.ptr.tolist() == [0, 0, 0]


def test_literals_may_lie_in_several_ranges() -> None:
    dkg = Dkg.from_triples([0, 0, 3], [0, 0, 0], [1, 3, 4], 6, 1, literals=[(1, 2), (4, 6)])
    assert dkg.is_literal([0, 1, 2, 3, 4, 5]).tolist() == [False, True, False, False, True, True]
    assert np.diff(dkg.ptr).tolist() == [2, 0, 0, 2, 0, 0] and dkg.literals[0][0] == 1


@pytest.mark.slow
def test_a_processes_children_follow_too(tmp_path: Path) -> None:
    """Both ways to start a process: Prefect's runner spawns, data loaders fork."""
    dkg = Dkg.from_triples(*np.random.default_rng(0).integers(0, [90, 1, 90], (60, 3)).T[:, :1], 90, 1)
    dkg.save(tmp_path)
    here = _walk(tmp_path)
    for method in ("spawn", "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.map(_walk, [tmp_path, tmp_path]) == [here, here]


def _walk(folder: Path) -> list[dict[int, float]]:
    dkg = Dkg.open(folder)
    r = torch.full((90, 2), 0.5, requires_grad=True)
    y = follow(dkg, EntityWeights.one_hot([[entity] for entity in range(90)]), r)
    y.weight.sum().backward()
    return y.to_rows()


def test_a_graph_without_triples_can_be_queried() -> None:
    dkg = Dkg.from_triples([], [], [], 3, 1)
    assert dkg.edges_stored == 0
    assert dkg.find_edge([0], [0], [1]).tolist() == [-1]


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([(0, 0, 1), (0, 0, 1)], "doubled"),
        ([(0, 0, 9)], "tail ids run from 9"),
        ([(-1, 0, 1)], "head ids"),
        ([(0, 2, 1)], "relation ids"),
    ],
)
def test_impossible_triples_are_refused(triples: list[tuple[int, int, int]], message: str) -> None:
    with pytest.raises(KgInputError, match=message):
        Dkg.from_triples(*zip(*triples, strict=True), 3, 2)


def test_unsorted_triples_are_refused() -> None:
    with pytest.raises(KgInputError, match="order"):
        Builder(2, 1, [], False).count(np.array([1, 0]), np.array([0, 0]), np.array([0, 0]))
    builder = Builder(2, 1, [], False)
    builder.count(np.array([1]), np.array([0]), np.array([0]))
    with pytest.raises(KgInputError, match=r"\(1, 0, 0\) is doubled"):  # by the chunk before
        builder.count(np.array([1]), np.array([0]), np.array([0]))


@pytest.mark.parametrize("fault", ["missing", "short", "width", "json", "rows", "forward"])
def test_a_damaged_folder_is_refused(tmp_path: Path, fault: str) -> None:
    dkg = small()
    dkg.save(tmp_path)
    if fault == "missing":
        (tmp_path / "rel.npy").unlink()
    elif fault == "short":
        np.save(tmp_path / "tail.npy", dkg.tail[:-1])
    elif fault == "width":
        np.save(tmp_path / "rel.npy", dkg.rel.astype(np.uint32))
    elif fault == "json":
        (tmp_path / "meta.json").write_text("{")
    elif fault == "rows":
        np.save(tmp_path / "ptr.npy", dkg.rows[:-1])
    else:
        np.save(tmp_path / "forward.npy", dkg.forward[:-1])
    with pytest.raises(ArtifactError, match="build it again"):
        Dkg.open(tmp_path)


def test_damaged_relation_names_are_reported_when_they_are_read(tmp_path: Path) -> None:
    small().save(tmp_path)
    (tmp_path / "relations.json").write_text('{"keys": ["a"], "names": ["a"]}')
    dkg = Dkg.open(tmp_path)
    with pytest.raises(ArtifactError, match="names 1 relations, and the DKG has 2"):
        dkg.relation_ids  # noqa: B018


def test_ids_of_another_graph_are_refused() -> None:
    with pytest.raises(ArtifactError, match="triple 6 is not in this DKG"):
        small().edges([6])
    with pytest.raises(ArtifactError, match="edge -1"):
        small().triple_of([-1])
