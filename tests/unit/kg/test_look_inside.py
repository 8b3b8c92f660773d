"""Looking into a graph: statistics, search, paths, export, SQL, each against counts made by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import polars as pl
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import FormTimeout, InputError, OutputError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.rdf_quads import REIFIES
from kgqa_core.kg.look.dump import dump
from kgqa_core.kg.look.paths import shortest_paths
from kgqa_core.kg.look.query import limited_query, query
from kgqa_core.kg.look.search import resolve_one, search
from kgqa_core.kg.look.stats import statistics
from kgqa_core.kg.store import SCHEMA, KgStore
from kgqa_core.workspace import Workspace

from .conftest import GRAPH

Make = Callable[..., tuple[KgStore, dict[str, Any]]]

TOWNS = """\
<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "São Paulo"@en .
<http://x/a> <http://www.w3.org/2004/02/skos/core#altLabel> "Sampa"@pt .
<http://x/b> <http://www.w3.org/2000/01/rdf-schema#label> "São Paulo de Olivença"@en .
<http://x/c> <http://www.w3.org/2000/01/rdf-schema#label> "Paulo"@en .
<http://x/d> <http://www.w3.org/2000/01/rdf-schema#label> "Brazil"@en .
<http://x/a> <http://x/in> <http://x/d> .
<http://x/b> <http://x/in> <http://x/d> .
<http://x/c> <http://x/in> <http://x/e> .
<http://x/c> <http://x/near> <http://x/d> .
<http://x/a> <http://x/founded> "1554"^^<http://www.w3.org/2001/XMLSchema#gYear> .
<http://x/e> <http://x/founded> "1554"^^<http://www.w3.org/2001/XMLSchema#gYear> .
broken
"""


@pytest.fixture
def towns(make: Make) -> KgStore:
    return make(TOWNS)[0]


def test_statistics_count_what_is_there(towns: KgStore) -> None:
    found = statistics(towns)
    assert found["counts"]["triples"] == 6
    assert [(row["key"], row["triples"], row["heads"], row["tails"]) for row in found["relations"]] == [
        ("http://x/in", 3, 3, 2),
        ("http://x/founded", 2, 2, 1),
        ("http://x/near", 1, 1, 1),
    ]
    assert found["labels"]["labelled"] == 4 and found["labels"]["share"] == 0.8
    assert found["labels"]["by_language"] == [{"language": "en", "entities": 4, "share": 0.8}]
    assert found["degrees"]["largest"] == 3 and found["degrees"]["hubs"][0] == {"entity": "Brazil", "degree": 3}
    assert {row["from"]: row["entities"] for row in found["degrees"]["bins"]} == {1: 1, 2: 4}
    (literals,) = found["literals"]
    assert literals["literals"] == 1 and literals["times"] == 1
    (reject,) = found["rejects"]
    assert reject["lines"] == 1 and "line 12" in reject["example"]


def test_search_ranks_exact_names_before_parts_and_finds_misspellings(towns: KgStore) -> None:
    assert [row["key"] for row in search(towns, "sao paulo")] == ["http://x/a", "http://x/b"]
    assert [row["key"] for row in search(towns, "Paulo")] == ["http://x/c", "http://x/a", "http://x/b"]
    (alias,) = search(towns, "sampa")
    assert (alias["name"], alias["matched"]) == ("São Paulo", "Sampa")
    assert [row["how"] for row in search(towns, "Brasil")] == ["nearly"]
    assert search(towns, "Atlantis") == [] and search(towns, "  ") == []
    assert len(search(towns, "paulo", limit=1)) == 1


def test_one_entity_is_resolved_or_the_nearest_is_named(towns: KgStore) -> None:
    assert towns.entity_keys([resolve_one(towns, "Brazil")]) == {resolve_one(towns, "Brazil"): "http://x/d"}
    with pytest.raises(InputError, match="'Brazl'.*did you mean 'Brazil'"):
        resolve_one(towns, "Brazl")


def test_paths_are_shortest_and_count_their_chains(towns: KgStore) -> None:
    a, b, e = (resolve_one(towns, f"http://x/{name}") for name in "abe")
    found = shortest_paths(towns, a, b)
    assert (found.length, found.cut) == (2, False)
    (path,) = found.paths
    assert path["keys"] == ["http://x/in", "<inv>-http://x/in"] and path["count"] == 1
    assert path["example"] == ["São Paulo", "Brazil", "São Paulo de Olivença"]
    # a and e share the year 1554, but literals are not walked through
    far = shortest_paths(towns, a, e)
    assert far.length == 3
    assert [path["keys"] for path in far.paths] == [["http://x/in", "<inv>-http://x/near", "http://x/in"]]
    assert shortest_paths(towns, a, e, max_hops=2).paths == []
    assert shortest_paths(towns, a, a).length == 0
    year = towns.resolve(["1554"])["1554"][0]
    assert shortest_paths(towns, a, year).paths[0]["keys"] == ["http://x/founded"]


def test_paths_go_over_a_type_only_where_nothing_else_joins_the_two(make: Make) -> None:
    a_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = [f"<http://x/{name}> {a_type} <http://x/Town> .\n" for name in "abcd"]
    lines += [f"<http://x/{one}> <http://x/road> <http://x/{other}> .\n" for one, other in ("ab", "bc", "cm")]
    store = make("".join(lines))[0]
    a, c, d, town = (resolve_one(store, f"http://x/{name}") for name in ("a", "c", "d", "Town"))
    assert shortest_paths(store, a, c).paths[0]["keys"] == ["http://x/road"] * 2
    assert shortest_paths(store, a, c, max_hops=1).paths == []
    assert [len(one["keys"]) for one in shortest_paths(store, a, d).paths] == [2], "two towns"
    direct = shortest_paths(store, a, town)
    assert (direct.length, direct.paths[0]["example_keys"]) == (1, ["http://x/a", "http://x/Town"])


def test_paths_equal_a_search_by_hand_on_a_grid(make: Make) -> None:
    size = 4
    lines = [
        f"<http://x/{i}-{j}> <http://x/{name}> <http://x/{i + di}-{j + dj}> ."
        for i in range(size)
        for j in range(size)
        for name, di, dj in (("down", 1, 0), ("right", 0, 1))
        if i + di < size and j + dj < size
    ]
    store, _ = make("\n".join(lines))
    ends = [store.resolve([f"http://x/{i}-{i}"])[f"http://x/{i}-{i}"][0] for i in (0, 2)]
    found = shortest_paths(store, *ends)
    assert found.length == 4
    assert len(found.paths) == math.comb(4, 2) and all(path["count"] == 1 for path in found.paths)


STATEMENTS = """SELECT h.key, r.key, t.key, t.kind::VARCHAR, t.datatype FROM triples x
    JOIN entities h ON h.id = x.head JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail"""
NAMES = """SELECT e.key, n.* EXCLUDE (id) FROM {} n JOIN entities e USING (id)"""
TYPES = "SELECT e.key, t.key FROM types x JOIN entities e ON e.id = x.entity JOIN entities t ON t.id = x.type"
QUALIFIERS = """SELECT h.key, r.key, t.key, p.key, v.key, v.datatype, p.key = 'graph' FROM qualifiers q
    JOIN triples x ON x.id = q.triple JOIN entities h ON h.id = x.head JOIN relations r ON r.id = x.relation
    JOIN entities t ON t.id = x.tail JOIN relations p ON p.id = q.relation JOIN entities v ON v.id = q.value"""
XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = {
    "integer": "-007", "decimal": "1.50", "double": "-1.5E-300", "boolean": "true", "date": "2020-02-29",
    "dateTime": "2020-02-29T23:59:59.5+14:00", "gYear": "-0044", "duration": "P1Y2DT3H", "anyURI": "a b",
    "float": "INF", "string": '\t"\\\' \r\n\u00e9\u202e\U0001f600 =1+1 \\u0041 ', "hexBinary": "",
}  # fmt: skip


def rich() -> str:
    """N-Quads with every kind of literal, languages, named graphs, annotations, a blank node and odd characters."""
    escaped = {key: text.replace("\\", "\\\\").replace('"', '\\"') for key, text in VALUES.items()}
    lines = [
        f'<http://x/Ölpe%20%2F> <http://x/v> "{text}"^^<{XSD}{key}> <http://x/g{len(key) % 3}> .'
        for key, text in ((key, t.replace("\n", "\\n").replace("\r", "\\r")) for key, t in escaped.items())
    ]
    lines += [
        '<http://x/Paris> <http://x/v> "x"@zh-hans-cn .',
        '<http://x/Paris> <http://x/v> "1"^^<http://x/type> .',
        "<http://x/Paris> <http://x/knows> _:b1 <http://x/g1> .",
        "_:b1 <http://x/knows> <mailto:a@b> .",
        "<http://x/Paris> <http://x/in> <http://x/France> <http://x/g1> .",
        "<http://x/Paris> <http://x/in> <http://x/France> <http://x/g2> .",
        f"_:r <{REIFIES}> <<( <http://x/Paris> <http://x/in> <http://x/France> )>> .",
        f'_:r <http://x/since> "0987"^^<{XSD}gYear> .',
        "_:r <http://x/by> <http://x/Hugh> .",
    ]
    return GRAPH + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def quads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KgStore]:
    folder = tmp_path_factory.mktemp("quads")
    (folder / "graph.nq").write_text(rich(), encoding="utf-8")
    (folder / "out").mkdir()
    assert build(Workspace(folder / "out"), options=KgOptions(files=(str(folder / "graph.nq"),)))["rejects"] == 0
    with KgStore.open(folder / "out") as store:
        yield store


@pytest.mark.parametrize("form", ["nt", "nq", "ttl", "jsonld", "tsv", "csv", "parquet"])
def test_a_graph_that_is_exported_and_built_again_says_the_same(
    quads: KgStore, make: Make, tmp_path: Path, form: str
) -> None:
    def rows(store: KgStore, sql: str) -> list[tuple[str, ...]]:
        found = store.connection.execute(sql).fetchall()
        plain = [tuple(re.sub(r"^_:.*", "_:b", str(value), flags=re.DOTALL) for value in row) for row in found]
        return sorted(plain)

    store = quads
    dump(store, tmp_path / f"again.{form}")
    if form == "parquet":
        for table in SCHEMA:
            frame = pl.read_parquet(tmp_path / f"again.{form}" / f"{table}.parquet")
            assert frame.equals(store.connection.execute(f"FROM {table}").pl()), table
        return
    again, again_counts = make((tmp_path / f"again.{form}").read_bytes(), name=f"again.{form}")
    if form in ("tsv", "csv"):  # literals are keys, which are not empty and have no blanks around them
        before, after = ({tuple(unquote(part).strip() for part in row[:3]) for row in rows(side, STATEMENTS)}
                         for side in (store, again))  # fmt: skip
        assert (again_counts["rejects"], {row for row in before if row[2]}) == (1, after)
        return
    assert again_counts["rejects"] == 0
    for sql in (STATEMENTS, TYPES, *(NAMES.format(table) for table in ("labels", "aliases"))):
        assert rows(again, sql) == rows(store, sql), sql
    kept = {"nt": [], "nq": ["True", "False"], "ttl": ["False"], "jsonld": ["True"]}[form]
    assert rows(again, QUALIFIERS) == [row for row in rows(store, QUALIFIERS) if row[-1] in kept]


def test_keys_that_are_no_iris_are_exported_under_a_base(make: Make, tmp_path: Path) -> None:
    store, _ = make("New York\tis in\tUSA\nNew York\tmotto\t100%\n", name="g.tsv")
    dump(store, tmp_path / "g.nt", base="http://base/")
    assert "<http://base/New%20York> <http://base/is%20in> <http://base/USA> ." in (tmp_path / "g.nt").read_text()
    assert "<http://base/100%25>" in (tmp_path / "g.nt").read_text()


def test_tsv_and_parquet_hold_every_triple(towns: KgStore, tmp_path: Path) -> None:
    assert dump(towns, tmp_path / "g.tsv")["triples"] == 6
    rows = [line.split("\t") for line in (tmp_path / "g.tsv").read_text().splitlines()]
    assert len(rows) == 6 and ["http://x/c", "http://x/near", "http://x/d"] in rows
    dump(towns, tmp_path / "g.parquet")
    assert pl.read_parquet(tmp_path / "g.parquet" / "triples.parquet").height == 6


def test_an_export_overwrites_nothing_and_names_its_formats(towns: KgStore, tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        dump(towns, tmp_path / "g.nt")
    with pytest.raises(InputError, match=r"'.xml' is unknown.*nt .*tsv .*parquet"):
        dump(towns, tmp_path / "g.xml")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["g.nt"]


def test_sql_reads_the_graph_and_nothing_else(towns: KgStore, tmp_path: Path) -> None:
    found = query(towns.path, "SELECT count(*) AS n FROM triples")
    assert found == {"columns": ["n"], "rows": [[6]], "more": False}
    assert query(towns.path, "SELECT id FROM triples ORDER BY id", limit=2) == {
        "columns": ["id"],
        "rows": [[0], [1]],
        "more": True,
    }
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    frame = pl.DataFrame({"leak": [1]})
    for statement in (
        f"SELECT * FROM '{secret}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'other.duckdb'}'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSERT INTO rejects VALUES ('', 1, '', '')",
        "DROP TABLE triples",
        "SELECT * FROM frame",
        "INSTALL httpfs",
    ):
        with pytest.raises(InputError, match="only this graph can be read"):
            query(towns.path, statement)
    assert frame.height == 1 and not (tmp_path / "out.csv").exists() and not (tmp_path / "other.duckdb").exists()
    with duckdb.connect(str(towns.path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM triples").fetchone() == (6,)


def test_sql_of_others_than_the_owner_has_limits_of_rows_time_memory_and_output(towns: KgStore) -> None:
    path = towns.path
    found = limited_query(
        path, "SELECT id, 1 / 0, DATE '2020-01-01', repeat('é', 3000), 2::HUGEINT ** 70 FROM triples", limit=2
    )
    assert found["rows"][0][:3] == [0, "inf", "2020-01-01"] and len(found["rows"]) == 2 and found["more"]
    assert found["rows"][0][3] == "é" * 2000 + "…" and isinstance(found["rows"][0][4], float)
    with pytest.raises(FormTimeout, match="took longer than 0.5 s"):
        limited_query(path, "SELECT count(*) FROM range(100000000000) a, range(100000) b", limit=1, seconds=0.5)
    for statement, message in (
        ("SELECT repeat('x', 3000000000)", "memory"),
        ("SELECT i, repeat('y', 2000) FROM range(5000) t(i)", "more than 4 MB"),
        ("COPY triples TO 'out.csv'", "only this graph can be read"),
        ("SELECT '" + "x" * 20_000 + "'", "give at most 20,000"),
    ):
        with pytest.raises(InputError, match=message):
            limited_query(path, statement, limit=10_000)


def test_a_rebuilt_export_has_the_same_reading_account(make: Make, tmp_path: Path) -> None:
    store, _ = make(TOWNS)
    dump(store, tmp_path / "towns.nt")
    (tmp_path / "out").mkdir()
    counts = build(Workspace(tmp_path / "out"), options=KgOptions(files=(str(tmp_path / "towns.nt"),)))
    assert counts["statements"] == counts["triples"] + counts["labels"] + counts["aliases"]
