"""Nodes without a name, and what texts call them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.nameless import cvt_names, find_nameless, is_cvt, is_nameless
from kgqa_core.kg.store import KgStore


@pytest.mark.parametrize(
    "key",
    [
        "m.0abc12", "/m/0abc12", "g.11b7xyz", "http://rdf.freebase.com/ns/m.0k3_x", "_:b0",
        "http://example.org/.well-known/genid/77", "http://www.wikidata.org/entity/statement/Q42-F078E5B3-F9A8-480E-B7AC-D97778CBBEF9",
        "f078e5b3-f9a8-480e-b7ac-d97778cbbef9",
    ],
)  # fmt: skip
def test_ids_made_for_nodes_without_name_are_nameless_unless_there_is_a_label(key: str) -> None:
    assert is_nameless(key)
    assert not is_nameless(key, has_label=True)


@pytest.mark.parametrize(
    "key", ["Q42", "Paris", "http://example.org/Paris", "m. Night", "urn:atlas:country:FR", "g", "m.Night Shyamalan"]
)
def test_keys_that_tell_something_are_names(key: str) -> None:
    assert not is_nameless(key)


def test_nameless_nodes_are_numbered_in_the_order_in_which_a_path_meets_them() -> None:
    assert cvt_names([4, 9, 2, 7, 9, 4], {9, 7, 1}) == {9: "CVT1", 7: "CVT2"}
    assert cvt_names([4, 2], {9}) == {}


def test_only_numbered_names_are_those_of_nameless_nodes() -> None:
    assert is_cvt("CVT1") and is_cvt("CVT20")
    assert not any(map(is_cvt, ["CVT", "CVT0", "CVT1 Tower", "a CVT1", "cvt1"]))


def test_nameless_nodes_of_a_graph_are_those_with_an_id_and_no_label(tmp_path: Path) -> None:
    source = tmp_path / "graph.nt"
    ns, label = "http://rdf.freebase.com/ns/", "<http://www.w3.org/2000/01/rdf-schema#label>"
    source.write_text(
        f'<{ns}m.0ada> {label} "Ada" .\n<{ns}m.0ada> <{ns}people.person.spouse> <{ns}m.0cvt1> .\n'
        f'<{ns}m.0cvt1> <{ns}spouse> <{ns}m.0bob> .\n<{ns}m.0bob> {label} "Bob" .\n'
        f'<{ns}m.0cvt1> <{ns}from> "m.0notanode" .\n<{ns}m.0cvt1> <{ns}place> <http://example.org/Oslo> .\n',
        encoding="utf-8",
    )
    (tmp_path / "kg").mkdir()
    (tmp_path / "work").mkdir()
    build(tmp_path / "kg", options=KgOptions(files=(str(source),)), work=tmp_path / "work")
    with KgStore.open(tmp_path / "kg") as store:
        everything = [row[0] for row in store.connection.execute("SELECT id FROM entities").fetchall()]
        keys = store.entity_keys(everything)
        assert sorted(keys[i] for i in find_nameless(store, everything)) == ["m.0cvt1"]
        assert find_nameless(store, []) == frozenset()
