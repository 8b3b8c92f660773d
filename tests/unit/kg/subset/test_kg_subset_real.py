"""Subsets of real samples: around every entity they are the graph of the whole file; and random graphs as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from kgqa_core.config import KgOptions, SubsetOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.subset.subset import subset_of_dump
from kgqa_core.workspace import Workspace
from tests.support.subset_oracle import Statement, neighbourhood
from tests.unit.kg.subset.test_kg_subset import by_id, claim, entity, graphs, json_dump, subset

WDTK = "wdtk/wdtk-datamodel/src/test/resources/JsonDeserializer"
MOCK = "wdtk/wdtk-dumpfiles/src/test/resources"
API = "wdtk/wdtk-wikibaseapi/src/test/resources"

TRIPLES = """
    SELECT h.key, r.key, t.key, t.datatype, t.unit, x.rank FROM triples x JOIN entities h ON h.id = x.head
    JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail"""
QUALIFIERS = """
    SELECT h.key, r.key, t.key, p.key, v.key FROM qualifiers q JOIN triples x ON x.id = q.triple
    JOIN entities h ON h.id = x.head JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail
    JOIN relations p ON p.id = q.relation JOIN entities v ON v.id = q.value"""
NAMES = """
    SELECT e.key, l.lang, l.label, l.description FROM labels l JOIN entities e USING (id)
    UNION ALL SELECT e.key, a.lang, a.alias, 'alias' FROM aliases a JOIN entities e USING (id)"""


def tables(folder: Path, file: Path) -> tuple[dict[str, set[tuple[Any, ...]]], list[str]]:
    """Triples, qualifiers and names of the graph of a file, and the subjects of its triples."""
    folder.mkdir()
    build(Workspace(folder), options=KgOptions(files=(str(file),), max_reject_share=0.5))
    with KgStore.open(folder) as store:
        found = {
            name: set(store.connection.execute(sql).fetchall())
            for name, sql in (("triples", TRIPLES), ("qualifiers", QUALIFIERS), ("names", NAMES))
        }
    return found, sorted({row[0] for row in found["triples"]})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("wikidata-filter/entities", marks=pytest.mark.slow),
        "wikidata-filter/Q22.json", f"{WDTK}/item.json", f"{WDTK}/property.json",
        f"{WDTK}/lexeme.json", f"{WDTK}/mediainfo.json", f"{MOCK}/mock-dump-for-testing.json",
        f"{API}/wbgetentities-Q6-Q42-P31.json", f"{API}/wbgetentities-Q1.json",
    ],
)  # fmt: skip
def test_the_subset_around_every_subject_of_a_sample_is_its_graph(shared_data: Path, tmp_path: Path, name: str) -> None:
    file = shared_data / "wikidata_samples" / name
    whole, subjects = tables(tmp_path / "whole", file)
    options = SubsetOptions(hops=1, max_degree=0, max_reject_share=0.5)
    result = subset_of_dump([str(file)], subjects, options, PassFolder(tmp_path / "work"))
    assert result.not_found == []
    result.write(tmp_path / "part.json")
    part, _ = tables(tmp_path / "part", tmp_path / "part.json")
    ends = {key for row in whole["triples"] for key in (row[0], row[2])}
    for found in (whole, part):  # names of properties that no statement has are left out
        found["names"] = {row for row in found["names"] if row[0] in ends}
    assert whole["triples"] and part == whole


@settings(max_examples=30, deadline=None)
@given(graph=graphs)
def test_random_graphs_as_json_give_what_the_oracle_finds(
    tmp_path_factory: pytest.TempPathFactory, graph: list[Statement]
) -> None:
    folder = tmp_path_factory.mktemp("json")
    keys = [f"Q{number}" for number in range(1, 10)]
    lines = [entity(key, *(claim(r, o) for s, r, o in graph if s == key)) for key in keys]
    dump = json_dump(folder / "dump.json", *lines, *map(entity, ("P1", "P2", "P31")))
    seed = graph[0][0]
    expected = neighbourhood(graph, [seed], hops=2, max_degree=2, both=True)
    if not expected.statements:
        return
    _, out = subset(folder, [dump], [seed], hops=2, max_degree=2)
    found = by_id(out)
    statements = {
        (key, relation, one["mainsnak"]["datavalue"]["value"]) if isinstance(one["mainsnak"]["datavalue"]["value"], str)
        else (key, relation, one["mainsnak"]["datavalue"]["value"]["id"])
        for key, line in found.items() for relation, claims in line["claims"].items() for one in claims
    }  # fmt: skip
    assert statements == expected.statements
    assert found.keys() == expected.entities | expected.types | expected.relations
