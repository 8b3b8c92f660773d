"""An overlay is the graph that is left: as one that was built without what is hidden, and the base is not touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.dkg.export import export
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.attach import BASE_NOTE, base_of
from kgqa_core.kg.build import build
from kgqa_core.kg.ingest.restate import statements
from kgqa_core.kg.look.query import query
from kgqa_core.kg.overlay import Hidden, write_overlay
from kgqa_core.kg.store import FILE, KgStore
from kgqa_core.kg.update.diff import compare
from kgqa_core.store.artifacts import write_json
from kgqa_core.store.digest import content_digest, hash_file
from kgqa_core.workspace import Workspace

FACTS = [
    ("a", "knows", "b"), ("a", "knows", "c"), ("b", "knows", "c"), ("c", "likes", "a"), ("b", "likes", "d"),
    ("d", "knows", "a"), ("d", "likes", "e"), ("e", "knows", "e"),
]  # fmt: skip


def graph(folder: Path, facts: list[tuple[str, str, str]] = FACTS) -> Path:
    folder.mkdir()
    (folder / "facts.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts), encoding="utf-8")
    out = folder / "kg"
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(folder / "facts.tsv"),), format="delimited", delimiter="\t"))
    return out


def ids(store: KgStore, *keys: str) -> tuple[int, ...]:
    return tuple(store.resolve(keys)[key][0] for key in keys)


def facts(store: KgStore) -> list[tuple[str, str, str]]:
    rows = store.connection.execute(
        "SELECT h.key, r.key, e.key FROM triples t JOIN entities h ON h.id = t.head JOIN relations r "
        "ON r.id = t.relation JOIN entities e ON e.id = t.tail ORDER BY t.id"
    ).fetchall()
    return [(head, relation, tail) for head, relation, tail in rows]


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    base = graph(tmp_path / "base")
    with KgStore.open(base) as store:
        hidden = Hidden(entities=ids(store, "e"), triples=(0,))
    out = tmp_path / "overlay"
    out.mkdir()
    write_overlay(out, base=base, hidden=hidden)
    return out


def test_it_reads_as_the_graph_that_is_left(overlay: Path, tmp_path: Path) -> None:
    left = [fact for fact in FACTS if "e" not in (fact[0], fact[2]) and fact != ("a", "knows", "b")]
    rebuilt = graph(tmp_path / "rebuilt", left)
    with KgStore.open(overlay) as store, KgStore.open(rebuilt) as other:
        assert facts(store) == facts(other)
        numbers = store.connection.execute("SELECT id FROM triples ORDER BY id").fetchnumpy()["id"]
        assert np.array_equal(numbers, np.arange(len(left)))
        degrees = "SELECT key, popularity FROM entities ORDER BY key"
        assert store.connection.execute(degrees).fetchall() == other.connection.execute(degrees).fetchall()
        assert {name: store.counts()[name] for name in ("entities", "relations", "triples")} == {
            name: other.counts()[name] for name in ("entities", "relations", "triples")
        }
        assert store.resolve(["e"]) == {"e": []}
        assert store.triples([0]) == {0: other_ids(store, facts(store)[0])}


def other_ids(store: KgStore, fact: tuple[str, str, str]) -> tuple[int, int, int]:
    head, tail = ids(store, fact[0], fact[2])
    return head, store.relation_keys().index(fact[1]), tail


def test_the_base_is_not_touched_and_the_digest_is_of_what_is_hidden(tmp_path: Path) -> None:
    base = graph(tmp_path / "base")
    before = hash_file(base / "kg.duckdb")
    digests = set()
    for name, triples in (("one", (1, 0)), ("two", (0, 1, 1)), ("three", (2,))):
        out = tmp_path / name
        out.mkdir()
        write_overlay(out, base=base, hidden=Hidden(triples=triples))
        digests.add((content_digest(out), name == "three"))
    assert len(digests) == 2
    assert hash_file(base / "kg.duckdb") == before


def test_a_relation_goes_with_its_facts_and_leaves_a_hole(tmp_path: Path) -> None:
    base = graph(tmp_path / "base")
    out = tmp_path / "overlay"
    out.mkdir()
    write_overlay(out, base=base, hidden=Hidden(relations=(0,)))
    with KgStore.open(out) as store:
        assert {relation for _, relation, _ in facts(store)} == {"likes"}
        assert store.relation_keys() == ["<removed>-0", "likes"]


def test_it_is_exported_and_asked_like_a_graph(overlay: Path, tmp_path: Path) -> None:
    dkg = tmp_path / "dkg"
    dkg.mkdir()
    assert export(Workspace(dkg), kg=overlay)["triples"] == 5
    assert query(overlay, "SELECT count(*) FROM triples")["rows"] == [[5]]


def test_an_overlay_of_an_overlay_and_a_base_that_is_gone_are_refused(overlay: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="overlay already"):
        write_overlay(tmp_path, base=overlay, hidden=Hidden())
    shutil.move(tmp_path / "base", tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="is not at"):
        KgStore.open(overlay)


def spoil(file: Path, view: str, base: Path | None = None) -> None:
    """Puts a view in the place of a graph's table of the same name."""
    with duckdb.connect() as connection:
        if base is not None:
            connection.execute(f"ATTACH '{base}' AS kg_base (READ_ONLY)")
        connection.execute(f"ATTACH '{file}' AS kg_overlay; USE kg_overlay")
        name = view.split()[0]
        connection.execute(f"DROP {'VIEW' if base else 'TABLE'} {name}; CREATE VIEW {view}; CHECKPOINT kg_overlay")


def test_a_view_of_an_overlay_that_reads_another_file_is_refused(overlay: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    view = f"qualifiers AS SELECT content AS triple, filename AS statement FROM read_text('{secret}')"
    spoil(overlay / "kg.duckdb", view, tmp_path / "base" / "kg" / "kg.duckdb")
    with pytest.raises(ArtifactError, match="disabled by configuration") as caught:
        KgStore.open(overlay)
    assert "canary" not in str(caught.value)


def test_a_view_in_the_place_of_a_table_reads_no_file_for_a_comparison_or_an_update(tmp_path: Path) -> None:
    honest, hostile = graph(tmp_path / "honest"), graph(tmp_path / "hostile")
    (tmp_path / "secret.txt").write_text("canary")
    source = f"FROM read_text('{tmp_path / 'secret.txt'}')"
    spoil(hostile / "kg.duckdb", f"aliases AS SELECT 0 AS id, 'en' AS lang, content AS alias {source}")
    with pytest.raises(duckdb.PermissionException):
        compare(Workspace(tmp_path / "changes"), honest, hostile)
    spoil(hostile / "kg.duckdb", f"filtered AS SELECT content AS rule, 1 AS statements {source}")
    with pytest.raises(duckdb.PermissionException):
        list(statements(hostile / "kg.duckdb"))


def test_an_overlay_of_a_copied_home_is_over_the_base_in_the_copy(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    base = home / "artifacts" / "kg" / "a"
    base.parent.mkdir(parents=True)
    graph(tmp_path / "made").rename(base)
    (home / "tmp" / "overlay-b").mkdir(parents=True)
    write_overlay(home / "tmp" / "overlay-b", base=base, hidden=Hidden(triples=(0,)))
    assert base_of(home / "tmp" / "overlay-b" / FILE) == base / FILE
    (home / "artifacts" / "overlay").mkdir()
    (home / "tmp" / "overlay-b").rename(home / "artifacts" / "overlay" / "b")
    assert str(home) not in (home / "artifacts" / "overlay" / "b" / BASE_NOTE).read_text()
    shutil.copytree(home, copy)
    overlay = copy / "artifacts" / "overlay" / "b"
    for path in ("artifacts/kg/a/kg.duckdb", str(base / FILE)):  # as it is written, and as older versions wrote it
        write_json(overlay / BASE_NOTE, {"path": path})
        assert base_of(overlay / FILE) == copy / "artifacts" / "kg" / "a" / FILE
