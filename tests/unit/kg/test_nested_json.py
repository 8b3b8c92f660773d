"""JSON of objects, as APIs and exports give it: kinds, names, references, values, and what is no graph."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import nested_json
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.kg.mapping.choose import guess_of
from kgqa_core.kg.mapping.model import write_mapping
from kgqa_core.kg.store import KgStore
from tests.support.property_graph import built, triples

Triples = set[tuple[str, ...]]

SHOP = {
    "customers": [
        {"id": 1, "name": "Ana Berg", "vip": True, "joined": "2019-03-01",
         "address": {"street": "9 Elm Court", "city": "Leeds"}},
        {"id": 2, "name": "Bo Dahl", "vip": False, "joined": None,
         "address": {"street": "3 High Street", "city": "York"}},
    ],
    "products": [
        {"sku": "P-1", "name": "Desk Lamp", "price": {"amount": 39.5, "currency": "EUR"}, "tags": ["home", "light"]},
        {"sku": "P-2", "name": "Oak Chair", "price": {"amount": 120, "currency": "EUR"}, "tags": ["home"]},
    ],
    "orders": [
        {"id": 501, "customer_id": 1, "placed_at": "2024-02-01T10:30:00Z",
         "items": [{"product": "P-1", "quantity": 2}, {"product": "P-2", "quantity": 1}]},
        {"id": 502, "customer_id": 2, "placed_at": "2024-02-03T09:00:00Z",
         "items": [{"product": "P-2", "quantity": 3}]},
    ],
}  # fmt: skip
ANA, BO = {"id": 7, "name": "Ana Berg"}, {"id": 8, "name": "Bo Dahl"}


def graph(
    tmp_path: Path, document: Any, name: str = "shop.json", **options: Any
) -> tuple[Triples, set[tuple[str, str]]]:
    """The triples of a document by name, and the types of things; nothing of it may be rejected."""
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
    counts, _ = built(tmp_path / "g", [path], **options)
    assert counts["rejects"] == 0
    return triples(tmp_path / "g"), types(tmp_path / "g")


def types(folder: Path) -> set[tuple[str, str]]:
    """The types of things by name; blank nodes by what they hold."""
    with KgStore.open(folder) as store:
        rows = store.connection.execute(
            "SELECT coalesce(min(l.label), min(e.key)), min(t.key) FROM types y JOIN entities e ON e.id = y.entity "
            "JOIN entities t ON t.id = y.type LEFT JOIN labels l ON l.id = e.id GROUP BY y.entity, y.type"
        ).fetchall()
    return set(rows)


def labels(folder: Path) -> dict[str, str]:
    """The labels by key."""
    with KgStore.open(folder) as store:
        rows = store.connection.execute("SELECT e.key, l.label FROM labels l JOIN entities e USING (id)").fetchall()
    return dict(rows)


def test_lists_of_objects_are_kinds_whose_members_are_values_and_references(tmp_path):
    found, kinds = graph(tmp_path, SHOP)
    assert {
        ("Ana Berg", "joined", "2019-03-01"), ("Ana Berg", "vip", "true"), ("order 501", "customer", "Ana Berg"),
        ("order 502", "placed at", "2024-02-03T09:00:00Z"), ("Desk Lamp", "tags", "home"),
        ("Desk Lamp", "tags", "light"),
    } <= found  # fmt: skip
    assert {("Ana Berg", "customer"), ("Oak Chair", "product"), ("order 501", "order")} <= kinds
    with KgStore.open(tmp_path / "g") as store:
        datatypes = dict(
            store.connection.execute("SELECT key, datatype FROM entities WHERE kind = 'literal'").fetchall()
        )
    ends = {
        key: datatypes[key].rpartition("#")[2] for key in ("2019-03-01", "true", "39.5", "2024-02-03T09:00:00Z", "3")
    }
    assert [*ends.values()] == ["date", "boolean", "decimal", "dateTime", "integer"]


def test_objects_without_id_and_name_are_blank_nodes_as_those_of_json_ld(tmp_path):
    _, kinds = graph(tmp_path, SHOP)
    assert {("9 Elm Court, Leeds", "address"), ("39.5, EUR", "price"), ("Desk Lamp, 2", "order item")} <= kinds
    mine = {label for key, label in labels(tmp_path / "g").items() if key.startswith("_:") and "Elm" in label}
    terms = {"@vocab": "http://x.org/"}
    graph(tmp_path, {"@context": terms, "@graph": [{"@id": "http://x.org/1", **SHOP["customers"][0]}]}, "shop.jsonld")
    theirs = {label for key, label in labels(tmp_path / "g").items() if key.startswith("_:")}
    assert mine == theirs == {"9 Elm Court, Leeds"}


def test_objects_with_an_id_or_a_name_are_one_with_their_equals(tmp_path):
    posts = [
        {"id": 1, "title": "Hello", "author": ANA, "city": {"name": "Oslo"}, "comments": [{"id": 91, "user": BO}]},
        {"id": 2, "title": "Again", "author": BO, "city": {"name": "Oslo", "country": "Norway"}, "comments": []},
        {"id": 3, "title": "Third", "author": {"id": 7, "email": "ana@x.org"}, "city": {"name": "Rome"}},
    ]
    found, kinds = graph(tmp_path, posts, "posts.json")
    assert found == {
        ("Hello", "author", "Ana Berg"), ("Again", "author", "Bo Dahl"), ("Third", "author", "Ana Berg"),
        ("Ana Berg", "email", "ana@x.org"), ("Hello", "comments", "comment 91"), ("comment 91", "user", "Bo Dahl"),
        ("Hello", "city", "Oslo"), ("Again", "city", "Oslo"), ("Third", "city", "Rome"), ("Oslo", "country", "Norway"),
    }  # fmt: skip
    keys = [key for key, label in labels(tmp_path / "g").items() if label == "Bo Dahl"]
    assert len(keys) == 1 and {("Bo Dahl", "author"), ("Bo Dahl", "user"), ("Hello", "post")} <= kinds
    assert ("Ana Berg", "user") not in kinds


def test_ids_that_are_those_of_a_list_only_do_not_merge_its_objects(tmp_path):
    quiz = [
        {"id": 1, "topic": "France", "choices": [{"id": 1, "text": "Paris"}, {"id": 2, "text": "Rome"}]},
        {"id": 2, "topic": "Norway", "choices": [{"id": 1, "text": "Oslo"}, {"id": 2, "text": "Bergen"}]},
    ]
    found, kinds = graph(tmp_path, quiz, "questions.json")
    assert {text for _, relation, text in found if relation == "text"} == {"Paris", "Rome", "Oslo", "Bergen"}
    assert len([each for each in kinds if each[1] == "choice"]) == 4
    dishes = [{"name": name, "dishes": [{"name": "Soup", "price": price}]} for name, price in (("Mill", 4), ("Hen", 5))]
    found, _ = graph(tmp_path, dishes, "restaurants.json")
    assert found == {
        ("Mill", "dishes", "Soup"),
        ("Hen", "dishes", "Soup"),
        ("Soup", "price", "4"),
        ("Soup", "price", "5"),
    }


@pytest.mark.parametrize(
    ("document", "triple", "kind"),
    [
        ({"count": 1, "next": None, "results": [{"_id": "f1", "title": "Harbour", "year": 2001}]},
         ("Harbour", "year", "2001"), "film"),
        ({"status": "ok", "data": {"films": [{"key": "f1", "name": "Harbour", "year": 2001}]}},
         ("Harbour", "year", "2001"), "film"),
        ({"id": 1, "name": "Harbour", "director": {"name": "Mia Long"}}, ("Harbour", "director", "Mia Long"), "film"),
        ({"f1": {"name": "Harbour", "year": 2001}, "f2": {"name": "Glass", "year": 2009}},
         ("Glass", "year", "2009"), "film"),
        ({"actors": {"ana": {"age": 31}, "bo": {"age": 40}}}, ("ana", "age", "31"), "actor"),
        ([{"id": 1, "name": "Ana", "children": [{"id": 2, "name": "Bo", "children": []}]}],
         ("Ana", "children", "Bo"), "film"),
        ({"data": [{"type": "people", "id": "9", "attributes": {"name": "Dan"}, "relationships": {
            "friend": {"data": {"type": "people", "id": "10"}}}},
            {"type": "people", "id": "10", "attributes": {"name": "Eve"}}]}, ("Dan", "friend", "Eve"), "person"),
        ([{"_id": {"$oid": "64f0"}, "name": "Mill", "opened": {"$date": "2012-05-01T00:00:00Z"}}],
         ("Mill", "opened", "2012-05-01T00:00:00Z"), "film"),
        ([{"id": 1, "title": "Crash", "labels": [{"id": 1, "name": "bug"}], "links": {"self": "x"}}],
         ("Crash", "labels", "bug"), "film"),
        ({"links": {"next": "x"}, "items": [{"id": 1, "name": "Ana", "manager": 2}, {"id": 2, "name": "Bo"}]},
         ("Ana", "manager", "Bo"), "film"),
        ({"name": "Acme", "departments": [{"name": "Sales", "staff": [{"name": "Ana"}, {"name": "Bo"}]}]},
         ("Sales", "staff", "Bo"), "film"),
        ("\n".join(json.dumps({"id": n, "name": name, "tags": ["a", "b"]}) for n, name in enumerate(("Mill", "Hen"))),
         ("Hen", "tags", "b"), "film"),
    ],
)  # fmt: skip
def test_documents_of_apis_and_exports_are_read(tmp_path, document, triple, kind):
    found, kinds = graph(tmp_path, document, "films.json")
    assert triple in found
    assert kind in {each for _, each in kinds}


def test_lists_of_ids_are_references(tmp_path):
    document = {
        "films": [{"id": 1, "title": "Harbour", "actor_ids": [11, 12]}, {"id": 2, "title": "Glass", "actor_ids": [12]}],
        "actors": [{"id": 11, "name": "Al Pine"}, {"id": 12, "name": "Zoe Park"}, {"id": 13, "name": "Uma Dean"}],
    }
    found, _ = graph(tmp_path, document)
    assert found == {("Harbour", "actor", "Al Pine"), ("Harbour", "actor", "Zoe Park"), ("Glass", "actor", "Zoe Park")}


def test_members_of_several_forms_lose_nothing(tmp_path):
    document = [
        {"id": 1, "name": "Ana", "home": "Oslo", "pet": {"id": 5, "name": "Rex"}},
        {"id": 2, "name": "Bo", "home": {"street": "Elm", "no": 3}, "pet": 5},
        {"id": 3, "name": "Cy", "home": {"street": None}, "pet": {}, "car": {"wheels": []}},
        {},
    ]
    found, _ = graph(tmp_path, document, "people.json")
    assert {("Ana", "home text", "Oslo"), ("Ana", "pet", "Rex"), ("Bo", "pet", "Rex")} <= found


def test_items_are_those_of_their_owner(tmp_path):
    menu = {"id": 1, "name": "Top", "items": [{"id": 2, "name": "File", "items": [{"id": 3, "name": "Open"}]}]}
    assert graph(tmp_path, menu, "menu.json")[1] == {("Top", "menu"), ("File", "menu item"), ("Open", "menu item")}
    cart = {"id": 1, "name": "Top", "items": [{"item": {"id": 2, "name": "Lamp"}, "count": 3}]}
    assert {("Top", "cart"), ("Lamp", "item")} <= graph(tmp_path, cart, "cart.json")[1]
    port = [{"id": 1, "name": "Gatwick", "ports": [{"name": "North"}]}]
    assert graph(tmp_path, port, "airports.json")[1] == {("Gatwick", "airport"), ("North", "port")}


def test_the_same_file_gives_the_same_graph_packed_or_not_and_by_its_mapping(tmp_path):
    path, packed, archive = tmp_path / "shop.json", tmp_path / "shop.json.gz", tmp_path / "all.zip"
    path.write_text(json.dumps(SHOP))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with zipfile.ZipFile(archive, "w") as out:
        out.write(path, "shop.json")
    first = built(tmp_path / "a", [path])[1]
    assert first == built(tmp_path / "a", [path])[1] == built(tmp_path / "b", [path], format="json")[1]
    named = [triples(tmp_path / "b")]
    for each in (packed, archive):
        built(tmp_path / "c", [each])
        named.append(triples(tmp_path / "c"))
    assert [len(each) for each in named] == [len(named[0])] * 3
    sources = find_sources([str(path)], KgOptions())
    (tmp_path / "map.yaml").write_text(write_mapping(*guess_of(sources, KgOptions(), sources)))
    assert built(tmp_path / "d", [path], map=str(tmp_path / "map.yaml"))[1] == first


def test_documents_of_one_build_share_their_things(tmp_path):
    (tmp_path / "users.json").write_text(json.dumps([ANA, BO]))
    posts = [{"id": 1, "title": "Hello", "user_id": 7}, {"id": 2, "title": "Again", "user": BO}]
    (tmp_path / "posts.json").write_text(json.dumps(posts))
    built(tmp_path / "g", [tmp_path / "users.json", tmp_path / "posts.json"])
    assert triples(tmp_path / "g") == {("Hello", "user", "Ana Berg"), ("Again", "user", "Bo Dahl")}
    assert len(labels(tmp_path / "g")) == 4


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1, 2, 3]", "holds a list of numbers, which is no graph; we read objects"),
        ("[[1], [2]]", "holds a list of numbers"),
        ("42", "holds a single number"),
        ('"Ana"', "holds a single text"),
        ("[]", "holds nothing"),
        ("{}", "holds an object with the members"),
        ('{"Q1": ["Q2"]}', "holds a list of texts"),
        ('{"vertices": [], "link": []}', r"members 'vertices', 'link',.*did you mean 'links'\?"),
        ('{"error": "not found"}', "an object with the members 'error'"),
        ('[{"id": 1},', "is no JSON: .*cut off"),
        ('{"id": 1, "name": "Ana"}\n{"id": 2, "name"\n', "is no JSON in line 2"),
        ('{"id": 1, "name": "Ana"}\n[1]\n', "line 2 is JSON and no object"),
        ('{"id": 1, "name": "Ana"}\n{"id": 1, "name": "\xff"}\n', "line 2: byte 0xff .* is not UTF-8"),
        ('{"a": ' * 3000 + "1" + "}" * 3000, "nested too deeply"),
        ('{"id": 1, "b": ' + '{"id": 2, "b": ' * 100 + "1" + "}" * 101, "nested too deeply"),
        (json.dumps([{f"m{n}": n for n in range(1100)}]), "more than 1,000 members"),
        (
            json.dumps([{"id": 1, **{chr(97 + n % 26) * (n // 26 + 1): {"id": 1} for n in range(300)}}]),
            "kinds of objects",
        ),
    ],
)
def test_what_is_no_graph_is_refused_with_what_was_found(tmp_path, text, fault):
    path = tmp_path / "shop.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(KgInputError, match=fault):
        built(tmp_path / "g", [path])


def test_large_documents_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(nested_json, "ROWS", 3)
    people = [
        {"id": n, "name": f"P {n}", "city": {"name": f"C {n % 4}"}} | ({"late": n} if n > 7 else {}) for n in range(11)
    ]
    found, _ = graph(tmp_path, people, "people.json")
    assert {(f"P {n}", "city", f"C {n % 4}") for n in range(11)} | {("P 9", "late", "9")} <= found


def test_other_json_is_left_to_its_readers(tmp_path):
    for name, text in {
        "g.json": '{"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}',
        "g.jsonld": '{"@context": {"@vocab": "http://x/"}, "@id": "http://x/a", "knows": {"@id": "http://x/b"}}',
        "w.json": '{"id": "Q1", "type": "item", "labels": {"en": {"language": "en", "value": "a"}}, "claims": {}}',
        "n.json": '{"type": "node", "id": "0", "labels": ["P"], "properties": {"name": "Ada"}}',
    }.items():
        (tmp_path / name).write_text(text)
        assert [part.label for part in find_sources([str(tmp_path / name)], KgOptions())] == [name]
