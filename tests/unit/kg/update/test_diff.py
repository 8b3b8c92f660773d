"""Two graphs are compared by keys, whatever their ids are."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import FILE
from kgqa_core.kg.update.diff import compare, differences
from kgqa_core.workspace import Workspace

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
GRAPH = [
    "<http://x/b> <http://x/near> <http://x/c> .",
    "<http://x/c> <http://x/near> <http://x/d> .",
    '<http://x/d> <http://x/size> "3" .',
    f'<http://x/b> {LABEL} "B"@en .',
    f'<http://x/near> {LABEL} "near"@en .',
    f"<http://x/d> {TYPE} <http://x/Town> .",
]


def graph(folder: Path, lines: list[str]) -> Path:
    folder.mkdir()
    source = folder.with_suffix(".nt")
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    build(Workspace(folder), options=KgOptions(files=(str(source),), format="ntriples"))
    return folder


def changed(old: Path, new: Path, out: Path) -> dict[str, set[tuple[str, str]]]:
    """(change, key) by table."""
    compare(Workspace(out), old, new)
    frames = {name: pl.read_parquet(out / f"{name}.parquet") for name in ("entities", "relations")}
    return {name: set(frame.select("change", "key").rows()) for name, frame in frames.items()}


def test_a_graph_is_the_same_as_itself_and_as_one_with_other_ids(tmp_path: Path) -> None:
    one, two = graph(tmp_path / "one", GRAPH), graph(tmp_path / "two", GRAPH)
    with duckdb.connect(str(two / FILE)) as connection:
        for table, columns in {
            "entities": ("id",), "labels": ("id",), "triples": ("head", "tail"), "types": ("entity", "type"),
        }.items():  # fmt: skip
            for column in columns:
                connection.execute(f"UPDATE {table} SET {column} = 100 - {column}")
        connection.execute("UPDATE relations SET id = id + 7; UPDATE relation_labels SET id = id + 7")
        connection.execute("UPDATE triples SET relation = relation + 7")
    assert differences(one, one) == differences(one, two) == {}
    assert compare(Workspace(tmp_path / "diff"), one, two)["entities"] == {"added": 0, "removed": 0, "changed": 0}


@pytest.mark.parametrize(
    ("line", "tables"),
    [
        pytest.param(f'<http://x/c> {LABEL} "C"@en .', {"labels"}, id="label"),
        pytest.param(f'<http://x/b> {LABEL} "Bee"@en .', {"aliases", "amends"}, id="second label"),
        pytest.param(f'<http://x/size> {LABEL} "size"@en .', {"relation_labels", "amends"}, id="relation label"),
        pytest.param("<http://x/d> <http://x/near> <http://x/b> .", {"triples", "entities"}, id="triple"),
    ],
)
def test_a_difference_is_listed_in_its_tables(tmp_path: Path, line: str, tables: set[str]) -> None:
    one, two = graph(tmp_path / "one", GRAPH), graph(tmp_path / "two", [*GRAPH, line])
    assert set(differences(one, two)) == set(differences(two, one)) == tables


def test_a_value_that_is_derived_from_a_key_is_compared_too(tmp_path: Path) -> None:
    one, two = graph(tmp_path / "one", GRAPH), graph(tmp_path / "two", GRAPH)
    with duckdb.connect(str(two / FILE)) as connection:
        connection.execute("UPDATE entities SET number = 4 WHERE key = '3'")
    assert differences(one, two) == {"entities": (1, 1)}


def test_changes_are_counted_and_listed_by_key(tmp_path: Path) -> None:
    new = [
        *GRAPH[1:4],
        f'<http://x/near> {LABEL} "close to"@en .',
        f"<http://x/d> {TYPE} <http://x/City> .",
        "<http://x/a> <http://x/far> <http://x/c> .",
    ]
    old = graph(tmp_path / "old", GRAPH)
    summary = compare(Workspace(tmp_path / "diff"), old, graph(tmp_path / "new", new))
    assert summary == {
        "entities": {"added": 2, "removed": 1, "changed": 2},
        "literals": {"added": 0, "removed": 0},
        "relations": {"added": 1, "removed": 0, "changed": 1},
        "triples": {"added": 2, "removed": 2, "changed": 0},
    }
    assert json.loads((tmp_path / "diff" / "summary.json").read_text()) == summary
    listed = changed(old, tmp_path / "new", tmp_path / "again")
    assert listed == {
        "entities": {
            ("added", "http://x/a"), ("added", "http://x/City"), ("removed", "http://x/Town"),
            ("changed", "http://x/b"), ("changed", "http://x/d"),
        },
        "relations": {("added", "http://x/far"), ("changed", "http://x/near")},
    }  # fmt: skip
    triples = pl.read_parquet(tmp_path / "diff" / "triples.parquet").select("change", "head", "tail").rows()
    assert triples == [
        ("added", "http://x/a", "http://x/c"),
        ("added", "http://x/d", "http://x/City"),
        ("removed", "http://x/b", "http://x/c"),
        ("removed", "http://x/d", "http://x/Town"),
    ]


def test_a_literal_that_only_its_datatype_tells_apart_is_another_one(tmp_path: Path) -> None:
    typed = '<http://x/d> <http://x/size> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    old, new = graph(tmp_path / "old", GRAPH), graph(tmp_path / "new", [*GRAPH[:2], typed, *GRAPH[3:]])
    summary = compare(Workspace(tmp_path / "diff"), old, new)
    assert summary["literals"] == {"added": 1, "removed": 1}
    assert summary["entities"]["changed"] == 1 and summary["relations"]["changed"] == 1


def test_a_change_of_rank_is_a_changed_triple(tmp_path: Path) -> None:
    old, new = graph(tmp_path / "old", GRAPH), graph(tmp_path / "new", GRAPH)
    with duckdb.connect(str(new / FILE)) as connection:
        connection.execute("UPDATE triples SET rank = 1 WHERE id = 0")
    assert compare(Workspace(tmp_path / "diff"), old, new)["triples"] == {"added": 0, "removed": 0, "changed": 1}


def test_page_views_change_an_entity_and_popularity_does_not(tmp_path: Path) -> None:
    old, new = graph(tmp_path / "old", GRAPH), graph(tmp_path / "new", GRAPH)
    with duckdb.connect(str(new / FILE)) as connection:
        connection.execute("UPDATE entities SET views = 5 WHERE key = 'http://x/c'")
        connection.execute("UPDATE entities SET popularity = 9 WHERE key = 'http://x/b'")
    assert changed(old, new, tmp_path / "diff")["entities"] == {("changed", "http://x/c")}


def test_a_path_without_graph_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no graph at .*absent"):
        compare(Workspace(tmp_path / "diff"), graph(tmp_path / "one", GRAPH), tmp_path / "absent")
