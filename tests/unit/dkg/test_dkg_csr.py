"""The arrays of the differentiable KG: layout, triple ids, opening, faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kgqa_core.dkg.csr import Dkg, build_arrays, relation_dtype
from kgqa_core.errors import ArtifactError, KgInputError

TRIPLES = [(0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 1), (2, 1, 0), (2, 1, 3)]  # a self loop, parallel edges, a literal 3


def small(literal_inverses: bool = False) -> Dkg:
    head, relation, tail = zip(*TRIPLES, strict=True)
    return Dkg.from_triples(
        head, relation, tail, 5, 2, relation_keys=["a", "b"], first_literal=3, literal_inverses=literal_inverses
    )


def save(dkg: Dkg, folder: Path) -> None:
    for name in ("ptr", "rel", "tail"):
        np.save(folder / f"{name}.npy", getattr(dkg, name))
    (folder / "meta.json").write_text(json.dumps(dkg.meta))


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
    assert [dkg.inverse(r) for r in range(4)] == [2, 3, 0, 1]


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
    save(dkg, tmp_path)
    opened = Dkg.open(tmp_path)
    for name in ("ptr", "rel", "tail"):
        assert np.array_equal(getattr(opened, name), getattr(dkg, name))
        assert isinstance(getattr(opened, name).base, np.memmap)
        assert not getattr(opened, name).flags.writeable
    assert opened.digest == dkg.digest and opened.relation_ids["<inv>-b"] == 3


def test_digest_depends_on_arrays_and_relation_keys() -> None:
    other = Dkg.from_triples(*zip(*TRIPLES, strict=True), 5, 2, relation_keys=["a", "c"], first_literal=3)
    assert other.digest != small().digest
    assert small(literal_inverses=True).digest != small().digest


def test_forward_pointer_agrees_on_a_larger_graph() -> None:
    draw = np.random.default_rng(3)
    triples = np.unique(draw.integers(0, [500, 7, 500], (4000, 3)), axis=0)
    dkg = Dkg.from_triples(*triples.T, 600, 7)
    assert np.array_equal(dkg.forward_ptr, np.searchsorted(triples[:, 0], np.arange(601)))
    assert np.array_equal(np.stack(dkg.edges(np.arange(len(triples)))).T, triples)


def test_relation_column_is_wide_enough() -> None:
    assert relation_dtype(32_767) == np.uint16 and relation_dtype(32_768) == np.uint32
    dkg = Dkg.from_triples([0], [40_000], [1], 2, 50_000)
    assert dkg.rel.dtype == np.uint32 and dkg.rel.tolist() == [40_000, 90_000]


def test_a_graph_without_triples_can_be_asked() -> None:
    dkg = Dkg.from_triples([], [], [], 3, 1)
    assert dkg.edges_stored == 0 and dkg.forward_ptr.tolist() == [0, 0, 0, 0]
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
        build_arrays(np.array([1, 0]), np.array([0, 0]), np.array([0, 0]), 2, 1)


@pytest.mark.parametrize("fault", ["missing", "short", "width", "json"])
def test_a_damaged_folder_is_refused(tmp_path: Path, fault: str) -> None:
    dkg = small()
    save(dkg, tmp_path)
    if fault == "missing":
        (tmp_path / "rel.npy").unlink()
    elif fault == "short":
        np.save(tmp_path / "tail.npy", dkg.tail[:-1])
    elif fault == "width":
        np.save(tmp_path / "rel.npy", dkg.rel.astype(np.uint32))
    else:
        (tmp_path / "meta.json").write_text("{")
    with pytest.raises(ArtifactError, match="build it again"):
        Dkg.open(tmp_path)


def test_ids_of_another_graph_are_refused() -> None:
    with pytest.raises(ArtifactError, match="triple 6 is not in this DKG"):
        small().edges([6])
    with pytest.raises(ArtifactError, match="edge -1"):
        small().triple_of([-1])
