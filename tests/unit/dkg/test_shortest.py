"""Shortest relation paths between two entities, against the search in SQL and by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import DkgOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.dkg.shortest import relation_paths
from kgqa_core.kg.look.paths import shortest_paths
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace
from tests.support.graphs import file_of, random_graph

HUB, SPOKES = 0, 3000


@pytest.mark.parametrize(
    ("seed", "step"), [(0, 4), *(pytest.param(seed, 1, marks=pytest.mark.slow) for seed in (0, 1, 2))]
)
def test_paths_equal_those_of_the_search_in_sql_on_random_graphs(seed: int, step: int, tmp_path: Path) -> None:
    graph = random_graph(seed, edges=40)
    (tmp_path / "kg").mkdir()
    file_of(graph, tmp_path / "kg" / "kg.duckdb")
    (tmp_path / "dkg").mkdir()
    export(Workspace(tmp_path / "dkg"), kg=tmp_path / "kg", options=DkgOptions())
    dkg = Dkg.open(tmp_path / "dkg")
    found = set()
    with KgStore.open(tmp_path / "kg") as store:
        ends = sorted({node for head, _, tail in graph.triples for node in (head, tail)})
        for start in [node for node in ends if node in graph.entities][::step]:
            for end in ends:
                own = relation_paths(dkg, start, end, max_hops=3, limit=1000)
                other = shortest_paths(store, start, end, max_hops=3, limit=1000)
                keys = [tuple(dkg.relation_keys[number] for number in path.relations) for path in own.paths]
                assert (own.hops or 0) == other.length and own.complete and own.total == len(keys)
                assert dict(zip(keys, (path.count for path in own.paths), strict=True)) == {
                    tuple(path["keys"]): path["count"] for path in other.paths
                }, (start, end)
                counts = [path.count for path in own.paths]
                assert counts == sorted(counts, reverse=True)
                for path in own.paths:
                    assert (path.example[0], path.example[-1]) == (start, end)
                    for here, number, there in zip(path.example, path.relations, path.example[1:], strict=False):
                        forward = dkg.find_edge(here, number, there) >= 0
                        assert (
                            forward or dkg.find_edge(there, (number + dkg.relations) % (2 * dkg.relations), here) >= 0
                        )
                found.add(own.hops)
    assert {0, 1, 2, 3} <= found


def star() -> Dkg:
    """A hub with many spokes, a far entity behind spoke 7, and a literal that every spoke shares."""
    far, literal = SPOKES + 1, SPOKES + 2
    triples = [(HUB, 0, spoke) for spoke in range(1, SPOKES + 1)]
    triples += [(spoke, 2, literal) for spoke in range(1, SPOKES + 1)] + [(7, 1, far)]
    return Dkg.from_triples(*zip(*triples, strict=True), SPOKES + 3, 3, literals=[(literal, SPOKES + 3)])


def test_a_hub_is_not_read_where_the_other_end_is_small() -> None:
    dkg, far = star(), SPOKES + 1
    found = relation_paths(dkg, HUB, far, max_hops=3, limit=5, budget=50)
    assert found.hops == 2 and found.complete and [path.relations for path in found.paths] == [(0, 1)]
    assert found.paths[0].example == (HUB, 7, far) and found.paths[0].count == 1


def test_a_search_that_could_not_read_everything_says_so() -> None:
    dkg = Dkg.from_triples([0] * 100 + [101] * 100, [0] * 200, [*range(1, 101)] * 2, 102, 1)
    whole = relation_paths(dkg, 0, 101, max_hops=3, limit=5)
    assert whole.hops == 2 and whole.complete and whole.paths[0].count == 100
    part = relation_paths(dkg, 0, 101, max_hops=3, limit=5, budget=10)
    assert not part.complete


def test_literals_are_reached_and_never_walked_through() -> None:
    dkg = star()
    assert relation_paths(dkg, 1, SPOKES + 2, max_hops=1, limit=5).paths[0].relations == (2,)
    assert relation_paths(dkg, SPOKES + 2, 1, max_hops=1, limit=5).paths[0].relations == (5,)
    assert relation_paths(dkg, 1, 2, max_hops=3, limit=5).paths[0].relations == (3, 0), "by the hub, not by the literal"


def test_the_limit_cuts_the_list_and_not_the_total() -> None:
    dkg = Dkg.from_triples([0, 0, 1], [0, 1, 2], [1, 1, 0], 2, 3)
    found = relation_paths(dkg, 0, 1, max_hops=1, limit=2)
    assert found.total == 3 and [path.relations for path in found.paths] == [(0,), (1,)]
    assert relation_paths(dkg, 0, 0, max_hops=1, limit=2).hops == 0
