"""The stage `dkg` reads a graph from DuckDB and writes arrays that open again."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from kgqa_core.config import DkgOptions
from kgqa_core.dkg import export as export_module
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export, write
from kgqa_core.dkg.layout import DkgSchema
from kgqa_core.errors import ArtifactError, KgInputError, StorageError
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.monitor import Quiet
from kgqa_core.workspace import Workspace

TRIPLES = [(0, 0, 1), (0, 1, 2), (1, 0, 0), (1, 1, 2)]


def make_graph(folder: Path, triples: list[tuple[int, int, int]], kinds: list[str | None] | None = None) -> Path:
    folder.mkdir()
    kinds = kinds or ["entity", "entity", "literal"]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder / 'kg.duckdb'}' AS kg")
        create_tables(connection, "kg")
        for number, kind in enumerate(kinds):
            if kind is not None:
                row = [number, f"e{number}", kind]
                connection.execute("INSERT INTO kg.entities(id, key, kind) VALUES (?, ?, ?)", row)
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
    counts = export(Workspace(out), kg=kg, options=DkgOptions(literal_inverses=literal_inverses))
    dkg = Dkg.open(out)
    keys = ["http://example.org/capital_of", "population"]
    same = Dkg.from_triples(*zip(*TRIPLES, strict=True), 3, keys, literals=[(2, 3)], literal_inverses=literal_inverses)
    assert dkg.digest == same.digest and dkg.literals[0][0] == 2
    assert dkg.relation_names == ["capital of", "population", "<inv>-capital of", "<inv>-population"]
    assert counts["edges"] == dkg.edges_stored == (8 if literal_inverses else 6)
    assert counts["triples"] == 4 and counts["largest_degree"] == int(np.diff(dkg.ptr).max())
    assert sorted(path.name for path in out.iterdir()) == [
        "forward.npy", "meta.json", "ptr.npy", "rel.npy", "relations.json", "tail.npy"
    ]  # fmt: skip


def test_ids_that_an_update_removed_are_empty_rows(tmp_path: Path) -> None:
    triples = [(0, 0, 2), (3, 1, 0), (3, 1, 5)]
    kg = make_graph(tmp_path / "kg", triples, ["entity", None, "literal", "entity", None, "entity"])
    (tmp_path / "dkg").mkdir()
    export(Workspace(tmp_path / "dkg"), kg=kg)
    keys = ["http://example.org/capital_of", "population"]
    same = Dkg.from_triples(*zip(*triples, strict=True), 6, keys, literals=[(2, 3)])
    assert Dkg.open(tmp_path / "dkg").digest == same.digest


def test_export_is_the_same_to_the_byte(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        export(Workspace(tmp_path / name), kg=kg)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.parametrize("chunk", [1, 7, 64, 100_000])
def test_the_size_of_chunks_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    draw = np.random.default_rng(5)
    found = np.unique(draw.integers(0, [40, 2, 60], (500, 3)), axis=0)
    triples = [tuple(triple) for triple in found.tolist()]
    kg = make_graph(tmp_path / "kg", triples, ["entity"] * 45 + ["literal"] * 15)
    monkeypatch.setattr(export_module, "CHUNK", chunk)
    export(Workspace(tmp_path), kg=kg)
    keys = ["http://example.org/capital_of", "population"]
    same = Dkg.from_triples(*found.T, 60, keys, literals=[(45, 60)])
    dkg = Dkg.open(tmp_path)
    assert dkg.digest == same.digest
    for name in ("rows", "rel", "tail", "forward"):
        assert np.array_equal(getattr(dkg, name), getattr(same, name))


def test_rows_in_memory_are_written_as_by_the_export(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    counts = export(Workspace(tmp_path / "one"), kg=kg)
    dkg = Dkg.open(tmp_path / "one")
    schema = DkgSchema(dkg.relation_keys[:2], dkg.relation_names[:2], dkg.literals)
    again = write(tmp_path / "two", dkg.ptr, dkg.rel, dkg.tail, triples=4, schema=schema, saved={})
    assert again == counts
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_progress_runs_to_its_end(tmp_path: Path) -> None:
    seen: list[tuple[float, float | None]] = []

    class Listener(Quiet):
        def progress(self, done: float, total: float | None, what: str) -> None:
            seen.append((done, total))

    export(Workspace(tmp_path, monitor=Listener()), kg=make_graph(tmp_path / "kg", TRIPLES))
    assert seen == sorted(seen) and seen[-1] == (12, 12) and {total for _, total in seen} == {12}


def test_triples_that_are_numbered_out_of_order_are_refused(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", [TRIPLES[1], TRIPLES[0]])
    with pytest.raises(KgInputError, match=r"\(0, 0, 1\) is doubled or out of"):
        export(Workspace(tmp_path), kg=kg)


def test_a_graph_without_triples_is_refused(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", [])
    with pytest.raises(KgInputError, match="no triples"):
        export(Workspace(tmp_path), kg=kg)


def test_literals_may_lie_anywhere_as_after_an_update(tmp_path: Path) -> None:
    kinds = ["entity", "literal", "literal", "entity", "literal"]
    triples = [(0, 0, 1), (0, 1, 3), (3, 0, 2), (3, 1, 4)]
    kg = make_graph(tmp_path / "kg", triples, kinds)
    export(Workspace(tmp_path), kg=kg)
    dkg = Dkg.open(tmp_path)
    assert dkg.literals == [[1, 3], [4, 5]]
    assert dkg.is_literal(range(5)).tolist() == [kind == "literal" for kind in kinds]
    assert np.diff(dkg.ptr).tolist() == [2, 0, 0, 3, 0]


def test_a_missing_graph_and_a_missing_folder_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError):
        export(Workspace(tmp_path), kg=tmp_path / "nothing")
    kg = make_graph(tmp_path / "kg", TRIPLES)
    with pytest.raises(StorageError, match="cannot be written"):
        export(Workspace(tmp_path / "absent"), kg=kg)
