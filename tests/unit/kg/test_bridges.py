"""Ids of entities in other graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.bridges import canonical, read_map
from kgqa_core.kg.build import build
from kgqa_core.kg.filters import WIKIBASE
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace
from tests.support.staged import EN, LABEL, STRING, graph

EXTERNAL = WIKIBASE + "ExternalId"
STATEMENTS = [
    ("Q1", "P646", ("/m/01", EXTERNAL)), ("Q1", "P646", ("/g/11b", STRING), -1), ("Q2", "P646", ("/m/02", EXTERNAL)),
    ("Q3", "P646", ("/m/02", STRING)), ("Q4", "P646", ("novalue", WIKIBASE + "novalue")), ("Q5", "r", "Q1"),
    ("Q5", "sameAs", "m.05"), ("m.06", "r", "Q5"), ("Q5", LABEL, ("/m/01", EN)), ("Q6", "r", "Q2"),
    ("Q6", "r", "Q3"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/m/0abc", "m.0abc"), ("m.0abc", "m.0abc"), ("/g/11b_x", "g.11b_x"), ("Q42", "Q42"), ("/film/x", "/film/x"),
        ("http://rdf.freebase.com/ns/m.0abc", "m.0abc"), ("https://www.freebase.com/m/0abc", "m.0abc"),
        ("/m/0abc/more", "/m/0abc/more"), ("m.Knight", "m.Knight"),
    ],
)  # fmt: skip
def test_every_spelling_of_a_freebase_id_is_one_key(value, expected):
    assert canonical(value) == expected


@pytest.fixture(params=[{}, {"drop_datatypes": ("ExternalId",)}, {"informative_only": True}])
def bridged(tmp_path, request):
    options = KgOptions(bridges=("P646", "<sameAs>"), **request.param)
    counts = graph(tmp_path / "kg.duckdb", options, STATEMENTS)
    with KgStore.open(tmp_path / "kg.duckdb") as store:
        yield store, counts


def test_bridges_stay_where_their_statements_are_filtered(bridged):
    store, counts = bridged
    keys = store.entity_keys(range(99))
    rows = store.connection.execute("SELECT entity, relation, value FROM bridges").fetchall()
    found = {(keys[entity], relation, value) for entity, relation, value in rows}
    assert found >= {("Q1", "P646", "m.01"), ("Q2", "P646", "m.02"), ("Q3", "P646", "m.02")}
    assert not {value for _, _, value in found} & {"g.11b", "/g/11b", "novalue"}
    assert counts["bridges"] == len(found)


def test_a_foreign_id_is_understood_in_every_spelling(bridged):
    store, _ = bridged
    keys = store.entity_keys(range(99))
    for text in ("/m/01", "m.01", "http://rdf.freebase.com/ns/m.01"):
        # An id goes before a label.
        assert [keys[i] for i in store.resolve([text])[text]] == ["Q1"]


def test_a_freebase_key_is_found_in_the_other_spelling(bridged):
    store, _ = bridged
    assert store.resolve(["/m/06"])["/m/06"] == store.resolve(["m.06"])["m.06"] != []


def test_a_map_of_ids_is_json_or_tabs(tmp_path):
    (tmp_path / "a.json").write_text('{"/m/01": {"wikidata_id": "Q1"}, "/m/02": {"wikidata_id": null}, "/m/03": "Q3"}')
    (tmp_path / "b.tsv").write_text("/m/01\tQ1\n\n/m/02\t\n/m/03\tQ3\n")
    assert read_map(tmp_path / "a.json") == read_map(tmp_path / "b.tsv") == {"m.01": "Q1", "m.03": "Q3"}
    (tmp_path / "c.tsv").write_text("/m/01 Q1\n")
    with pytest.raises(InputError, match="without a tab"):
        read_map(tmp_path / "c.tsv")


@pytest.mark.slow
def test_wikidata_and_fb15k237_agree_on_freebase_ids(shared_data: Path, tmp_path: Path):
    samples = shared_data / "wikidata_samples"
    files = [
        samples / "wikidata-filter/entities",
        *sorted((samples / "entitybase/test_data/json/entities").glob("Q*.json")),
    ]
    out = tmp_path / "out"
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=tuple(map(str, files)), format="wikidata-json"))
    by_map = read_map(shared_data / "fb15k237/entity2wikidata.json")
    assert len(by_map) == 14_515
    with KgStore.open(out) as store:
        keys = store.entity_keys(range(store.counts()["entities"]))
        bridges = {
            value: keys[entity]
            for entity, value in store.connection.execute("SELECT entity, value FROM bridges").fetchall()
        }
        both = {value: (bridges[value], by_map[value]) for value in bridges if value in by_map}
        assert len(bridges) > 20 and len(both) > 5
        assert {value: pair for value, pair in both.items() if pair[0] != pair[1]} == {}
        for value, (key, _) in both.items():
            assert [keys[i] for i in store.resolve(["/" + value.replace(".", "/")]).popitem()[1]] == [key]
