"""Roads from N-Triples to the same tables: terms in canonical order, and distinct triples of their numbers in order.

Each road is a function of (file, folder to write to, memory limit) that returns arrays or a query, from which `summary`
takes a checksum after the clock has stopped.  Terms are numbered from 0: IRIs by key, then literals by (key, datatype).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.workspace import Workspace

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
Result = tuple[int, np.ndarray, np.ndarray, np.ndarray]
"""How many terms, and subject, predicate, object of the triples in order."""

Tables = Callable[[], Result]


def kgqa(file: Path, out: Path, memory: str) -> Tables:
    """Our reader and staging, into a DuckDB file."""
    import duckdb

    from kgqa_core.config import KgOptions
    from kgqa_core.kg.formats.ntriples import NTriples
    from kgqa_core.kg.formats.source import Source
    from kgqa_core.kg.ingest.staging import Staging

    options = KgOptions(files=(str(file),), memory_limit=memory)
    database = out / "graph.duckdb"
    config = {"temp_directory": str(out / "spill"), "threads": 2}
    with duckdb.connect(str(database), config=config) as connection, Staging(connection, out, options) as staging:
        for batch in NTriples().read(Source(file, file.name), options):
            staging.append("file", batch)
        staging.finish()
    return lambda: _stored(database, "FROM raw_distinct ORDER BY subject, predicate, object")


def kgqa_build(file: Path, out: Path, memory: str) -> Tables:
    """The whole build: also names, types, numbers, dates, degrees and what an update needs.  Its ids are denser."""
    from kgqa_core.config import KgOptions
    from kgqa_core.kg.build import build

    build(Workspace(out), options=KgOptions(files=(str(file),), memory_limit=memory))
    return lambda: (0, *(np.zeros(0, dtype=np.int32),) * 3)


def duckdb_sql(file: Path, out: Path, memory: str) -> Tables:
    """Plain SQL in DuckDB: lines cut by string functions, a dictionary by sorting, numbers by joins."""
    import duckdb

    database = out / "plain.duckdb"
    config = {"temp_directory": str(out / "spill"), "threads": 2, "memory_limit": memory}
    with duckdb.connect(str(database), config=config) as connection:
        run = connection.execute
        run("SET preserve_insertion_order = false")
        run(
            f"""
            CREATE TEMP TABLE parsed AS
            SELECT subject, predicate,
                   CASE WHEN o[1] = '"' THEN replace(replace(replace(regexp_extract(o, '^"(.*)"[^"]*$', 1),
                        '\\u00E9', 'é'), '\\"', '"'), '\\\\', '\\') ELSE o[2:-2] END AS object,
                   CASE WHEN o[1] <> '"' THEN NULL WHEN o[-1] = '"' THEN '{XSD_STRING}'
                        WHEN o[-1] = '>' THEN regexp_extract(o, '\\^\\^<([^>]*)>$', 1)
                        ELSE lower(regexp_extract(o, '@[A-Za-z0-9-]+$')) END AS datatype
            FROM (SELECT s[2:-2] AS subject, p[2:-2] AS predicate, line[length(s) + length(p) + 3:-3] AS o
                  FROM (SELECT line, split_part(line, ' ', 1) AS s, split_part(line, ' ', 2) AS p
                        FROM read_csv('{file}', columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '',
                                      escape = '', header = false, auto_detect = false)))"""
        )
        run(
            """
            CREATE TABLE terms AS
            SELECT (row_number() OVER (ORDER BY datatype IS NOT NULL, key, datatype) - 1)::INTEGER AS tid, key, datatype
            FROM (SELECT subject AS key, NULL AS datatype FROM parsed UNION SELECT predicate, NULL FROM parsed
                  UNION SELECT object, datatype FROM parsed)"""
        )
        run(
            """
            CREATE TABLE triples AS SELECT DISTINCT s.tid AS subject, p.tid AS predicate, o.tid AS object FROM parsed x
            JOIN terms s ON s.key = x.subject AND s.datatype IS NULL
            JOIN terms p ON p.key = x.predicate AND p.datatype IS NULL
            JOIN terms o ON o.key = x.object AND o.datatype IS NOT DISTINCT FROM x.datatype ORDER BY ALL"""
        )
    return lambda: _stored(database, "FROM triples ORDER BY subject, predicate, object")


def polars(file: Path, out: Path, memory: str) -> Tables:
    """polars: lines cut by regular expression, a dictionary by unique and sort, numbers by joins; in memory."""
    import polars as pl

    lines = pl.read_csv(file, has_header=False, new_columns=["line"], separator="\x01", quote_char=None)
    literal = r'"(?<l>.*)"(?:(?<g>@[A-Za-z0-9-]+)|\^\^<(?<d>[^>]*)>)?'
    parts = lines.select(
        pl.col("line").str.extract_groups(rf"^<(?<s>[^>]*)> <(?<p>[^>]*)> (?:<(?<o>[^>]*)>|{literal}) \.$")
    ).unnest("line")
    text = pl.col("l").str.replace_many(["\\u00E9", '\\"', "\\\\"], ["é", '"', "\\"])
    datatype = pl.coalesce(pl.col("g").str.to_lowercase(), "d", pl.lit(XSD_STRING))
    parsed = parts.select("s", "p", o=pl.coalesce("o", text), d=pl.when(pl.col("l").is_not_null()).then(datatype))
    plain = pl.lit("", dtype=pl.String)
    parsed = parsed.with_columns(pl.col("d").fill_null(plain))
    terms = (
        pl.concat(
            [
                parsed.select(key="s", d=plain),
                parsed.select(key="p", d=plain),
                parsed.select(key="o", d="d"),
            ]
        )
        .unique()
        .sort(pl.col("d") != "", "key", "d")
        .with_row_index("tid")
    )
    things = terms.filter(pl.col("d") == "").select("key", "tid")
    triples = (
        parsed.join(things.rename({"key": "s", "tid": "subject"}), on="s")
        .join(things.rename({"key": "p", "tid": "predicate"}), on="p")
        .join(terms.rename({"key": "o", "tid": "object"}), on=["o", "d"])
        .select("subject", "predicate", "object")
        .unique()
        .sort("subject", "predicate", "object")
    )
    count = terms.height
    return lambda: (count, *(triples[name].to_numpy() for name in ("subject", "predicate", "object")))


def rdflib(file: Path, out: Path, memory: str) -> Tables:
    """rdflib: parsed into a graph, numbered by dictionaries, sorted."""
    from rdflib import Graph, Literal

    graph = Graph()
    graph.parse(str(file), format="nt")

    def key(term: Any) -> tuple[str, str]:
        if isinstance(term, Literal):
            return str(term), f"@{term.language.lower()}" if term.language else str(term.datatype or XSD_STRING)
        return str(term), ""

    return _numbered([(key(s), key(p), key(o)) for s, p, o in graph])


def pyoxigraph(file: Path, out: Path, memory: str) -> Tables:
    """pyoxigraph: parsed, numbered by dictionaries, sorted."""
    import pyoxigraph as ox

    def key(term: Any) -> tuple[str, str]:
        if isinstance(term, ox.Literal):
            return term.value, f"@{term.language}" if term.language else term.datatype.value
        return term.value, ""

    return _numbered(
        [(key(t.subject), key(t.predicate), key(t.object)) for t in ox.parse(path=file, format=ox.RdfFormat.N_TRIPLES)]
    )


ROADS: dict[str, Callable[[Path, Path, str], Tables]] = {
    "kgqa": kgqa,
    "kgqa build": kgqa_build,
    "duckdb": duckdb_sql,
    "polars": polars,
    "pyoxigraph": pyoxigraph,
    "rdflib": rdflib,
}
SLICED = {"rdflib": 200_000, "pyoxigraph": 500_000}
"""Roads that read only the first lines of a file, since their time grows with its length anyhow, or faster."""

IN_MEMORY = {"polars": 4_000_000}
"""Roads without a memory limit, and the longest file that they are given."""


def summary(result: Result) -> tuple[int, int, str]:
    """Terms, triples, and a checksum of the triples in order."""
    import hashlib

    terms, *columns = result
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype=np.int32).tobytes())
    return terms, len(columns[0]), digest.hexdigest()[:16]


def _stored(database: Path, query: str) -> Result:
    import duckdb

    with duckdb.connect(str(database), read_only=True) as connection:
        count = connection.execute("SELECT count(*) FROM terms").fetchone()
        rows = connection.execute(f"SELECT subject, predicate, object {query}").fetchnumpy()
    return int(count[0]) if count else 0, rows["subject"], rows["predicate"], rows["object"]


def _numbered(triples: list[tuple[tuple[str, str], tuple[str, str], tuple[str, str]]]) -> Tables:
    places: dict[tuple[str, str], int] = {}
    encoded = np.array([[places.setdefault(term, len(places)) for term in row] for row in triples], dtype=np.int64)
    order = sorted(places, key=lambda term: (term[1] != "", term[0].encode(), term[1].encode()))
    numbers = np.empty(len(order), dtype=np.int64)
    for number, term in enumerate(order):
        numbers[places[term]] = number
    rows = np.unique(numbers[encoded], axis=0)
    return lambda: (len(order), rows[:, 0], rows[:, 1], rows[:, 2])
