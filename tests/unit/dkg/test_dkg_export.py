"""The stage `dkg` reads a graph from DuckDB and writes arrays that open again."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from kgqa_core.config import DkgOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.errors import ArtifactError, KgInputError, StorageError
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta

TRIPLES = [(0, 0, 1), (0, 1, 2), (1, 0, 0), (1, 1, 2)]


def make_graph(folder: Path, triples: list[tuple[int, int, int]], kinds: list[str] | None = None) -> Path:
    folder.mkdir()
    kinds = kinds or ["entity", "entity", "literal"]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder / 'kg.duckdb'}' AS kg")
        create_tables(connection, "kg")
        for number, kind in enumerate(kinds):
            connection.execute("INSERT INTO kg.entities(id, key, kind) VALUES (?, ?, ?)", [number, f"e{number}", kind])
        for number, key in enumerate(("http://example.org/capital_of", "population")):
            connection.execute("INSERT INTO kg.relations(id, key) VALUES (?, ?)", [number, key])
        for number, triple in reversed(list(enumerate(triples))):
            connection.execute(
                "INSERT INTO kg.triples(id, head, relation, tail) VALUES (?, ?, ?, ?)", [number, *triple]
            )
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return folder


@pytest.mark.parametrize("literal_inverses", [False, True])
def test_export_writes_what_from_triples_builds(tmp_path: Path, literal_inverses: bool) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES)
    out = tmp_path / "dkg"
    out.mkdir()
    counts = export(out, kg=kg, options=DkgOptions(literal_inverses=literal_inverses))
    dkg = Dkg.open(out)
    keys = ["http://example.org/capital_of", "population"]
    same = Dkg.from_triples(
        *zip(*TRIPLES, strict=True), 3, 2, relation_keys=keys, first_literal=2, literal_inverses=literal_inverses
    )
    assert dkg.digest == same.digest and dkg.first_literal == 2
    assert dkg.relation_names == ["capital of", "population", "<inv>-capital of", "<inv>-population"]
    assert counts["edges"] == dkg.edges_stored == (8 if literal_inverses else 6)
    assert counts["triples"] == 4 and counts["largest_degree"] == int(np.diff(dkg.ptr).max())
    assert sorted(path.name for path in out.iterdir()) == ["meta.json", "ptr.npy", "rel.npy", "tail.npy"]


def test_export_is_the_same_to_the_byte(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        export(tmp_path / name, kg=kg)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_graph_without_triples_is_refused(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", [])
    with pytest.raises(KgInputError, match="no triples"):
        export(tmp_path, kg=kg)


def test_literals_before_entities_are_refused(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES, ["literal", "entity", "entity"])
    with pytest.raises(KgInputError, match="not dense with literals last"):
        export(tmp_path, kg=kg)


def test_a_missing_graph_and_a_missing_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError):
        export(tmp_path, kg=tmp_path / "nothing")
    kg = make_graph(tmp_path / "kg", TRIPLES)
    with pytest.raises(StorageError, match="cannot be written"):
        export(tmp_path / "absent", kg=kg)
