"""Builds of small graphs whose tables were worked out by hand."""

from __future__ import annotations

import json
import random
import re
import sys

import duckdb
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import ArtifactError, KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats import source as source_module
from kgqa_core.kg.ingest import encode, sorted_words, staging
from kgqa_core.kg.ingest.intern import Interner
from kgqa_core.kg.store import SCHEMA, KgStore
from kgqa_core.workspace import Workspace
from tests.unit.kg.conftest import GRAPH

XSD = "http://www.w3.org/2001/XMLSchema#"


def tables(store):
    return {table: store.connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in SCHEMA}


def rows(store, sql):
    return store.connection.execute(sql).fetchall()


def test_every_table_of_a_small_graph_is_as_worked_out_by_hand(make):
    store, counts = make(GRAPH)
    assert counts == {
        "aliases": 1, "bridges": 0, "descriptions": 1, "duplicates": 1, "entities": 6, "filtered": 0, "ignored": 2,
        "labels": 4, "literals": 4, "qualifier_triples": 0, "qualifiers": 0, "rejects": 0, "relations": 7,
        "statements": 16, "supertypes": 1, "triples": 9, "type_statements": 0, "types": 1,
    }  # fmt: skip
    reading = json.loads((store.path.parent / "volatile" / "reading.json").read_text())
    assert {name: reading[name] for name in ("statements", "duplicates", "ignored")} == {
        "statements": 16, "duplicates": 1, "ignored": 2,
    }  # fmt: skip
    assert store.counts() == {name: count for name, count in counts.items() if name not in reading}
    x = "http://x/"
    assert rows(store, "SELECT id, key, kind, datatype, number, precision, popularity FROM entities ORDER BY id") == [
        (0, "_:b1", "entity", None, None, None, 1),
        (1, x + "City", "entity", None, None, None, 2),
        (2, x + "France", "entity", None, None, None, 5),
        (3, x + "New_Spain%21", "entity", None, None, None, 1),
        (4, x + "Paris", "entity", None, None, None, 4),
        (5, x + "Place", "entity", None, None, None, 1),
        (6, "-0250", "literal", XSD + "gYear", -250.0, 9, 1),
        (7, "2102650", "literal", XSD + "integer", 2102650.0, None, 1),
        (8, 'Liberté,\t"égalité"', "literal", "@fr", None, None, 1),
        (9, "none", "literal", XSD + "string", None, None, 1),
    ]
    assert store.relation_keys() == [
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#subClassOf",
        x + "borders", x + "capital_of%20it", x + "founded", x + "motto", x + "population",
    ]  # fmt: skip
    assert store.relation_names() == ["type", "sub class of", "borders", "capital", "founded", "motto", "population"]
    assert [d for (d,) in rows(store, "SELECT datatype FROM relations ORDER BY id")] == [
        "entity", "entity", "entity", "entity", XSD + "gYear", "mixed", XSD + "integer",
    ]  # fmt: skip
    assert list(store.triples(range(9)).values()) == [
        (0, 2, 2), (1, 1, 5), (2, 2, 3), (2, 3, 4), (2, 5, 8), (2, 5, 9), (4, 0, 1), (4, 4, 6), (4, 6, 7),
    ]  # fmt: skip
    assert rows(store, "FROM types") == [(4, 1)]
    assert rows(store, "FROM subtypes") == [(1, 5)]
    assert rows(store, "FROM labels") == [(4, "en", "Paris", "capital of France"), (4, "fr", "Paname", None)]
    assert rows(store, "FROM aliases") == [(4, "en", "City of Light"), (4, "fr", "Paris")]
    assert rows(store, "SELECT time::VARCHAR FROM entities WHERE time IS NOT NULL") == [("0251-01-01 (BC) 00:00:00",)]


def test_names_fall_back_over_languages_to_the_tail_of_the_key(make):
    store, _ = make(GRAPH + '<http://x/City> <http://www.w3.org/2000/01/rdf-schema#label> "Stadt"@de .\n')
    assert store.names(range(10)) == {
        0: "_:b1", 1: "Stadt", 2: "France", 3: "New Spain!", 4: "Paris", 5: "Place", 6: "-0250", 7: "2102650",
        8: 'Liberté,\t"égalité"', 9: "none",
    }  # fmt: skip
    assert store.names([4], ["fr"]) == {4: "Paname"}
    assert store.names([]) == {} and store.names([99]) == {}
    assert store.surface_forms([4, 3]) == {3: ["New Spain!"], 4: ["Paris", "Paname", "City of Light"]}
    assert store.entity_keys([4]) == {4: "http://x/Paris"}


@pytest.mark.parametrize("blank", ["", "  ", "\\t\\u00A0", "\\u200B\\u0007"])
def test_a_blank_label_names_nothing_so_that_the_key_stays(make, blank):
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    alias = "<http://www.w3.org/2004/02/skos/core#altLabel>"
    store, _ = make(
        f'<http://x/k> {label} "{blank}"@en .\n<http://x/k> {label} "Kay"@de .\n<http://x/k> {alias} "{blank}" .\n'
        f'<http://x/m> {label} "{blank}" .\n<http://x/r> {label} "{blank}" .\n'
        "<http://x/k> <http://x/r> <http://x/m> .\n"
    )
    ids = {key: i for i, key in store.entity_keys(range(10)).items()}
    assert store.surface_forms(ids.values()) == {ids["http://x/k"]: ["Kay"], ids["http://x/m"]: ["m"]}
    assert store.relation_names() == ["r"]


def test_resolve_prefers_key_over_label_over_alias_over_literal(make):
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    store, _ = make(
        GRAPH
        + f'<http://x/Texas> {label} "Paris"@en .\n<http://x/Texas> {label} "none"@en .\n'
        + "<http://x/Texas> <http://x/borders> <http://x/France> .\n"
    )
    keys = store.entity_keys(range(20))
    found = store.resolve(["http://x/Paris", "<http://x/Paris>", "Paris", "City of Light", "France", "2102650", "zz"])
    assert {text: [keys[i] for i in ids] for text, ids in found.items()} == {
        "http://x/Paris": ["http://x/Paris"],
        "<http://x/Paris>": ["http://x/Paris"],
        "Paris": ["http://x/Paris", "http://x/Texas"],
        "City of Light": ["http://x/Paris"],
        "France": ["http://x/France"],
        "2102650": ["2102650"],
        "zz": [],
    }
    assert [keys[i] for i in store.resolve(["none"])["none"]] == ["http://x/Texas"]
    assert store.suggest("Pariss") == "Paris"
    assert store.suggest("qqqqqq") is None


def test_types_leave_the_triples_when_asked(make):
    store, counts = make(GRAPH, types_as_triples=False)
    assert counts["triples"] == 7 and counts["type_statements"] == 2 and counts["relations"] == 5
    keys = store.entity_keys(range(20))
    assert [(keys[a], keys[b]) for a, b in rows(store, "FROM types")] == [("http://x/Paris", "http://x/City")]


def test_delimited_objects_are_entities_with_inverse_edges(make):
    store, counts = make("Up|year|MCMXCIX\nDown|year|MCMXCIX\nUp|label|UP!\nUp|also|U\nUp|starred|#1 Star\n", "g.txt",
                         label_predicates=("label",), alias_predicates=("also",))  # fmt: skip
    assert (counts["entities"], counts["literals"], counts["triples"], counts["labels"]) == (4, 0, 3, 1)
    assert store.names(range(4)) == {0: "#1 Star", 1: "Down", 2: "MCMXCIX", 3: "UP!"}
    assert store.resolve(["MCMXCIX", "U", "Up"]) == {"MCMXCIX": [2], "U": [3], "Up": [3]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.tsv", "a\tr\tb\n"),
        ("g.txt", "a|r|b\n"),
        ("g.tsv.gz", "a\tr\tb\n"),
        ("g", "\ufeffa\tr\tb\r\n"),
        ("g.tsv", "a\tr\tb"),
        ("g.tsv", " a \t r\t b \r\n\r\n"),
        ("g.tsv", "subject\tpredicate\tobject\na\tr\tb\n"),
    ],
)  # fmt: skip
def test_delimited_dialects_mean_the_same(make, name, text):
    store, counts = make(text, name)
    assert counts["triples"] == 1 and counts["rejects"] == 0
    assert store.entity_keys([0, 1]) == {0: "a", 1: "b"}
    assert store.relation_keys() == ["r"]


def test_comma_is_read_when_asked_with_quotes(make):
    store, _ = make('"a, b",r,"say ""hi"""\nc,r,d\n', "g.csv", delimiter=",")
    assert sorted(store.entity_keys(range(4)).values()) == ["a, b", "c", "d", 'say "hi"']


def test_literals_have_numbers_and_times(make):
    values = {
        ("12", "integer"): (12.0, None, None), ("1e3", "double"): (1000.0, None, None), ("INF", "double"): (None,) * 3,
        ("abc", "integer"): (None,) * 3, ("1_0", "integer"): (None,) * 3, (".5", "decimal"): (0.5, None, None),
        ("1e999", "double"): (None,) * 3, ("5", "string"): (None,) * 3,
        ("2021-07-01", "date"): (2021.5, "2021-07-01 00:00:00", 11), ("2021-02-30", "date"): (None,) * 3,
        ("1999", "gYear"): (1999.0, "1999-01-01 00:00:00", 9),
        ("1999-04", "gYearMonth"): (1999.25, "1999-04-01 00:00:00", 10),
        ("2020-07-01T02:00:00+02:00", "dateTime"): (2020.5, "2020-07-01 00:00:00", 14),
        ("2020-01-01T00:00:00.0Z", "dateTime"): (2020.0, "2020-01-01 00:00:00", 14),
    }  # fmt: skip
    text = "".join(f'<http://x/s> <http://x/p> "{v}"^^<{XSD}{d}> .\n' for v, d in values)
    store, counts = make(text)
    found = {
        (key, datatype.removeprefix(XSD)): (number, time, precision)
        for key, datatype, number, time, precision in rows(
            store, "SELECT key, datatype, number, time::VARCHAR, precision FROM entities WHERE kind = 'literal'"
        )
    }
    assert found == values and counts["literals"] == len(values)


def test_tables_do_not_depend_on_order_files_or_threads(make, tmp_path):
    lines = GRAPH.splitlines(keepends=True)
    first, _ = make(GRAPH)
    shuffled = lines[:]
    random.Random(3).shuffle(shuffled)
    second, _ = make("".join(shuffled), threads=1)
    (tmp_path / "one.nt").write_text("".join(lines[::2]))
    (tmp_path / "two.nt").write_text("".join(lines[1::2]))
    (tmp_path / "out").mkdir()
    build(Workspace(tmp_path / "out"), options=KgOptions(files=(str(tmp_path / "two.nt"), str(tmp_path / "one.nt"))))
    with KgStore.open(tmp_path / "out") as third:
        assert tables(first) == tables(second) == tables(third)


class Listener:
    """Keeps what a monitor is told."""

    def __init__(self):
        self.told = []

    def progress(self, done, total, what):
        self.told.append((done, total, what))

    def metric(self, name, value, step=None):
        pass

    def note(self, message):
        pass


def test_progress_tells_bytes_pace_and_time_left(tmp_path):
    (tmp_path / "g.nt").write_text(GRAPH)
    (tmp_path / "out").mkdir()
    listener = Listener()
    build(Workspace(tmp_path / "out", monitor=listener), options=KgOptions(files=(str(tmp_path / "g.nt"),)))
    done, total, what = listener.told[0]
    assert (done, total) == (80, 100)
    assert re.search(r"0\.0 of 0\.0 MB, g\.nt as ntriples, [\d,]+ statements/s, about \d+ s left", what)
    assert [told[0] for told in listener.told] == sorted(told[0] for told in listener.told)
    assert listener.told[-1][0] == 100


def test_rejects_are_counted_by_reason_beside_the_graph_not_in_it(make):
    bad = "<http://x/a> <http://x/b> <http://x/c>\n" * 2 + '<http://x/a> <http://x/b> "\\uD800" .\n'
    store, counts = make(GRAPH + bad, format="ntriples")
    expected = {"no final …": 2, "the escape … is not a character": 1}
    reading = json.loads((store.path.parent / "volatile" / "reading.json").read_text())
    assert counts["rejects_by_reason"] == reading["rejects_by_reason"] == expected
    assert "rejects_by_reason" not in store.counts() and store.counts()["rejects"] == 3


def test_a_memory_limit_that_is_no_size_is_named(tmp_path):
    (tmp_path / "g.nt").write_text(GRAPH)
    with pytest.raises(KgInputError, match="kg.memory_limit is 'lots'"):
        build(Workspace(tmp_path), options=KgOptions(files=(str(tmp_path / "g.nt"),), memory_limit="lots"))


def test_little_memory_gives_the_same_graph(make, monkeypatch):
    more = "".join(f'<http://x/{i % 97}> <http://x/r{i % 5}> "{i % 61}"@en .\n' for i in range(3000))
    whole, _ = make(GRAPH + more)
    monkeypatch.setattr(staging, "Interner", lambda budget: Interner(budget if budget == sys.maxsize else 30_000))
    monkeypatch.setattr(staging, "SORTED", 0)
    monkeypatch.setattr(source_module.Source.chunks, "__defaults__", (4000,))
    small, _ = make(GRAPH + more)
    assert tables(whole) == tables(small)


def test_a_second_build_in_the_same_work_folder_starts_clean(tmp_path):
    (tmp_path / "g.nt").write_text(GRAPH)
    work, out = tmp_path / "work", tmp_path / "out"
    (work / "kg-staging").mkdir(parents=True)
    (work / "kg-staging" / "staging.duckdb").write_bytes(b"left by a killed build")
    out.mkdir()
    (out / "kg.duckdb").write_bytes(b"half")
    assert build(Workspace(out, work), options=KgOptions(files=(str(tmp_path / "g.nt"),)))["triples"] == 9
    assert not (work / "kg-staging").exists()


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
def test_triples_that_do_not_fit_in_memory_or_in_words_are_sorted_on_disk_into_the_same_graph(make, monkeypatch, wide):
    lines = [f"<http://x/{i * 7919 % 211}> <http://x/r{i % 5}> <http://x/{i * 31 % 97}> ." for i in range(3000)]
    lines += [f'<http://x/{i % 50}> <http://x/says> "{i % 40}"@en .' for i in range(500)]
    text = "\n".join(lines) + "\n" + GRAPH
    one, counts = make(text)
    monkeypatch.setattr(sorted_words, "LEAST", 16)
    monkeypatch.setattr(encode, "IN_WORDS", 0)
    monkeypatch.setattr(encode, "LEAST_ENTITIES", 7)
    monkeypatch.setattr(encode, "ENTITY_BYTES", 10**12)
    if wide:
        monkeypatch.setattr(encode, "_word", lambda *_: 65)
        monkeypatch.setattr(encode, "_triples", None)
    other, other_counts = make(text)
    assert counts == other_counts and counts["triples"] > 1000
    for table in SCHEMA:
        rows = [store.connection.execute(f"SELECT * FROM {table}").fetchall() for store in (one, other)]
        assert rows[0] == rows[1], table


def test_open_refuses_what_is_no_graph(tmp_path):
    with pytest.raises(ArtifactError, match="no graph at"):
        KgStore.open(tmp_path / "nowhere")
    (tmp_path / "kg.duckdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(ArtifactError, match="is not a built graph"):
        KgStore.open(tmp_path)
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE t(x INT)")
    with pytest.raises(ArtifactError, match="not a graph"):
        KgStore.open(tmp_path / "other.duckdb")


def test_the_store_cannot_be_written_nor_read_other_files(make, tmp_path):
    store, _ = make(GRAPH)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    for sql in ("DELETE FROM triples", f"FROM read_csv('{tmp_path / 'secret.csv'}')"):
        with pytest.raises(duckdb.Error):
            store.connection.execute(sql)


def test_only_labels_is_no_graph(make):
    with pytest.raises(KgInputError, match="none of 1 statements is a triple"):
        make('<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "A" .\n')


def test_a_graph_is_read_by_several_at_once_with_other_settings(make):
    store, _ = make(GRAPH)
    with KgStore.open(store.path) as other, duckdb.connect(str(store.path), read_only=True) as third:
        assert other.names([4]) == store.names([4]) == {4: "Paris"}
        assert third.execute("SELECT count(*) FROM triples").fetchone() == (9,)
