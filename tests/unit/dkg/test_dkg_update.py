"""The DKG of an updated graph, merged into the old one, is that of a full export to the byte."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from kgqa_core.config import DkgOptions
from kgqa_core.dkg import update as module
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.dkg.update import update
from kgqa_core.errors import KgInputError
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.workspace import Workspace
from tests.support.examples import examples

KINDS = ["entity", "entity", "entity", "literal", "literal"]
TRIPLES = [(0, 0, 1), (0, 1, 3), (1, 0, 0), (1, 1, 3), (2, 0, 1), (2, 1, 4)]


def write_ids(
    folder: Path,
    kinds: Sequence[str | None],
    relations: Sequence[bool],
    triples: Sequence[tuple[int, int, int]],
    *,
    in_order: bool = True,
) -> Path:
    """A graph folder: kinds by entity id (None is a hole), relations by id (False is a hole), triples sorted."""
    folder.mkdir()
    rows = [(i, f"e{i}", kind) for i, kind in enumerate(kinds) if kind is not None]
    tables = {
        "entities(id, key, kind)": pl.DataFrame(rows, ["id", "key", "kind"], orient="row"),
        "relations(id, key)": pl.DataFrame(
            [(i, f"http://x/r{i}") for i, there in enumerate(relations) if there], ["id", "key"], orient="row"
        ),
        "triples(id, head, relation, tail)": pl.DataFrame(
            [(i, *triple) for i, triple in enumerate(sorted(set(triples)))],
            ["id", "head", "relation", "tail"],
            orient="row",
        ),
    }
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder / 'kg.duckdb'}' AS kg")
        create_tables(connection, "kg")
        for table, frame in tables.items():
            if frame.height:
                connection.register("frame", frame.to_arrow())
                connection.execute(
                    f"INSERT INTO kg.{table} SELECT * FROM frame ORDER BY id {'' if in_order else 'DESC'}"
                )
                connection.unregister("frame")
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return folder


def exported(folder: Path, kg: Path, **options: Any) -> Path:
    folder.mkdir()
    export(Workspace(folder), kg=kg, options=DkgOptions(**options))
    return folder


def updated(folder: Path, kg: Path, old: Path, **options: Any) -> dict[str, Any]:
    folder.mkdir()
    return update(Workspace(folder), kg=kg, old_dkg=old, options=DkgOptions(**options))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@st.composite
def graphs(draw):
    """Kinds, relations and triples of a graph and of what an update makes of it; ids keep their kinds or fall free."""
    size = draw(st.integers(2, 9))
    kinds = draw(st.lists(st.sampled_from(["entity", "literal"]), min_size=size, max_size=size))
    kinds[0] = "entity"
    relations = [True] * draw(st.integers(1, 3))
    old = draw(triples_of(kinds, relations))
    after = [kind if draw(st.integers(0, 4)) else None for kind in kinds]
    after[0] = "entity"
    after += draw(st.lists(st.sampled_from(["entity", "literal"]), max_size=3))
    while after[-1] is None:
        after.pop()
    there = [draw(st.integers(0, 4)) > 0 for _ in relations] + [True] * draw(st.integers(0, 2))
    while not there[-1] and len(there) > 1:
        there.pop()
    there[-1] = True
    unchanged = [triple for triple in old if fits(triple, after, there) and draw(st.integers(0, 4))]
    new = unchanged + draw(triples_of(after, there))
    return (kinds, relations, old), (after, there, new)


def fits(triple: tuple[int, int, int], kinds: list[str | None], relations: list[bool]) -> bool:
    head, relation, tail = triple
    inside = max(head, tail) < len(kinds) and relation < len(relations) and relations[relation]
    return inside and kinds[head] == "entity" and kinds[tail] is not None


def triples_of(kinds: list[str | None], relations: list[bool]):
    every = [
        (head, relation, tail)
        for head in range(len(kinds))
        for relation in range(len(relations))
        for tail in range(len(kinds))
    ]
    return st.lists(st.sampled_from([t for t in every if fits(t, kinds, relations)]), min_size=1, max_size=25)


@examples(25, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.booleans(), st.booleans(), st.booleans())
def test_a_merged_dkg_is_that_of_an_export_to_the_byte(both, literal_inverses, in_order, in_memory):
    options = {"literal_inverses": literal_inverses}
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", 3)
        patch.setattr(module, "ROOM", 2)
        patch.setattr(module, "IN_MEMORY", 100 if in_memory else 0)
        folder = Path(name)
        old, new = (write_ids(folder / f"kg{i}", *graph, in_order=in_order or i == 0) for i, graph in enumerate(both))
        before = exported(folder / "old", old, **options)
        counts = updated(folder / "new", new, before, **options)
        full = exported(folder / "full", new, **options)
        assert counts["made"] != "exported"
        assert files(folder / "new") == files(full)
        assert counts["triples_added"] == len(set(both[1][2]) - set(both[0][2]))
        assert counts["triples_removed"] == len(set(both[0][2]) - set(both[1][2]))


def test_without_a_change_the_files_are_those_of_the_old_dkg(tmp_path: Path) -> None:
    kg = write_ids(tmp_path / "kg", KINDS, [True, True], TRIPLES)
    old = exported(tmp_path / "old", kg)
    counts = updated(tmp_path / "new", kg, old)
    assert counts["made"] == "kept" and files(tmp_path / "new") == files(old)
    assert (tmp_path / "new" / "tail.npy").stat().st_ino == (old / "tail.npy").stat().st_ino
    full = exported(tmp_path / "full", kg)
    again = export(Workspace(full), kg=kg, options=DkgOptions())
    assert {name: counts[name] for name in again} == again


def test_a_new_entity_without_triples_is_room_in_the_arrays(tmp_path: Path) -> None:
    old = exported(tmp_path / "old", write_ids(tmp_path / "a", KINDS, [True, True], TRIPLES))
    kg = write_ids(tmp_path / "b", [*KINDS, "entity"], [True, True], TRIPLES)
    assert updated(tmp_path / "new", kg, old)["made"] == "merged"
    assert Dkg.open(tmp_path / "new").entities == 6
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))


def test_relations_that_no_longer_fit_16_bits_are_widened(tmp_path: Path) -> None:
    old = exported(tmp_path / "old", write_ids(tmp_path / "a", KINDS, [True, True], TRIPLES))
    kg = write_ids(tmp_path / "b", KINDS, [True] * 33_000, [*TRIPLES, (2, 32_999, 0)])
    assert updated(tmp_path / "new", kg, old)["made"] == "merged"
    assert Dkg.open(tmp_path / "new").rel.dtype == "uint32"
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda old: (old / "tail.npy").write_bytes(b"no array"), id="damaged"),
        pytest.param(lambda old: [path.unlink() for path in old.iterdir()], id="missing"),
    ],
)
def test_an_old_dkg_that_is_of_no_use_is_not_used(tmp_path: Path, spoil: Any) -> None:
    kg = write_ids(tmp_path / "kg", KINDS, [True, True], TRIPLES)
    old = exported(tmp_path / "old", kg)
    spoil(old)
    assert updated(tmp_path / "new", kg, old)["made"] == "exported"
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))


def test_arrays_made_with_another_option_are_not_used(tmp_path: Path) -> None:
    kg = write_ids(tmp_path / "kg", KINDS, [True, True], TRIPLES)
    old = exported(tmp_path / "old", kg, literal_inverses=True)
    assert updated(tmp_path / "new", kg, old)["made"] == "exported"
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))


def test_an_id_that_is_a_literal_in_one_graph_only_makes_a_full_export(tmp_path: Path) -> None:
    old = exported(tmp_path / "old", write_ids(tmp_path / "a", KINDS, [True, True], TRIPLES))
    kg = write_ids(tmp_path / "b", ["entity", "entity", "entity", "entity", "literal"], [True, True], TRIPLES)
    assert updated(tmp_path / "new", kg, old)["made"] == "exported"
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))


def test_another_graph_altogether_makes_a_full_export(tmp_path: Path) -> None:
    kinds = ["entity"] * 60
    old = exported(tmp_path / "old", write_ids(tmp_path / "a", kinds, [True], [(i, 0, i) for i in range(60)]))
    every = [(i, 0, j) for i in range(60) for j in range(60) if i != j]
    kg = write_ids(tmp_path / "b", kinds, [True], every)
    assert updated(tmp_path / "new", kg, old)["made"] == "exported"
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))


def test_a_graph_that_lost_every_triple_is_refused(tmp_path: Path) -> None:
    old = exported(tmp_path / "old", write_ids(tmp_path / "a", KINDS, [True, True], TRIPLES))
    kg = write_ids(tmp_path / "b", KINDS, [True, True], [])
    with pytest.raises(KgInputError, match="no triples"):
        updated(tmp_path / "new", kg, old)
