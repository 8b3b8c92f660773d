"""The statements that a graph was built from, out of the graph itself: what an update without the old dump starts from.

Triples give themselves back.  A label, alias, description or type gives back its usual statement (the predicate that
most statements of its role have, `@lang` or no datatype); what differs from that is in the table `amends`, which
`record` fills in a build: statements that no table holds, and those that a table would imply but no file has.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.attach import shut_out
from kgqa_core.kg.formats.base import ENTITY, LITERAL, PLAIN, STATEMENTS, StatementBatch, empty
from kgqa_core.kg.ingest.entail import RULE
from kgqa_core.kg.sql import number, quoted
from kgqa_core.kg.store import KgStore

READING_OPTIONS = frozenset(
    {"format", "delimiter", "columns", "table", "property_graph", "sparql", "neo4j", "max_reject_share"}
)
"""Options of how files are read, not what the statements mean."""

INFERENCE = frozenset({"infer_values", "infer_types"})
"""Options that a graph records where they are not the default."""

ROWS = 200_000
"""Statements in one batch."""

_NAMES = ("label", "alias", "description")
_TYPES = ("type", "subtype")


def meaning_options(options: KgOptions) -> dict[str, Any]:
    """The options that decide what a statement becomes, as a graph's meta records them."""
    defaults = KgOptions()
    same = {name for name in (*INFERENCE, "literal", "names") if getattr(options, name) == getattr(defaults, name)}
    return {name: value for name, value in options.decisive().items() if name not in READING_OPTIONS | same}


@dataclass(frozen=True, slots=True)
class Stated:
    """How many statements of a graph have each role, by predicate, and how many texts each datatype but languages."""

    roles: Counter[tuple[str, str]] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Stated:
        """As a graph's meta has them."""
        roles = {(role, key): n for role, counts in meta["roles"].items() for key, n in counts.items()}
        return cls(Counter(roles), Counter(meta["texts"]))

    def __add__(self, other: Stated) -> Stated:
        return Stated(self.roles + other.roles, self.texts + other.texts)

    def __sub__(self, other: Stated) -> Stated:
        return Stated(self.roles - other.roles, self.texts - other.texts)

    def usual(self) -> dict[str, str]:
        """The predicate that most statements of each role have, and as `text` the datatype of most texts."""
        usual = {"text": min(self.texts, key=lambda text: (-self.texts[text], text), default="")}
        for role, key in sorted(self.roles, key=lambda pair: (-self.roles[pair], pair[1])):
            usual.setdefault(role, key)
        return usual

    def of_role(self, role: str) -> int:
        """Statements of a role."""
        return sum(n for (name, _), n in self.roles.items() if name == role)

    def as_json(self) -> dict[str, Any]:
        """For a graph's meta."""
        roles: dict[str, dict[str, int]] = {}
        for (role, key), n in sorted(self.roles.items()):
            roles.setdefault(role, {})[key] = n
        return {"roles": roles, "texts": dict(sorted(self.texts.items()))}


def record(connection: duckdb.DuckDBPyConnection, options: KgOptions, others: Stated | None = None) -> dict[str, Any]:
    """Fills kg.amends from the tables of a build that is all but done; returns what `meta` must keep.

    others: statements that the graph has beside those of the build.
    Returned: `options`; `stated`, as of `Stated`; `usual`, the default predicate of each role, and the datatype of
    names without language; `next_ids`, the first ids that were never given.
    """
    run = connection.execute
    run(
        "CREATE TABLE amended(subject VARCHAR, predicate VARCHAR, object VARCHAR, datatype VARCHAR, detail VARCHAR, "
        "stated BOOLEAN)"
    )
    predicates = run(
        "SELECT role, predicate, key, n FROM (SELECT role, predicate, count(*) AS n FROM statements "
        "WHERE role IS NOT NULL GROUP BY ALL) JOIN terms ON tid = predicate ORDER BY n DESC, key"
    ).fetchall()
    texts = run(
        "SELECT datatype, count(*) FROM texts JOIN terms ON tid = object JOIN tags USING (tag) "
        "WHERE datatype NOT LIKE '@%' GROUP BY datatype"
    ).fetchall()
    stated = Stated(Counter({(role, key): n for role, _, key, n in predicates}), Counter(dict(texts)))
    stated = stated if others is None else stated + others
    usual = stated.usual()
    of_key = {(role, key): tid for role, tid, key, _ in predicates}
    tids = {role: of_key.get((role, key), NOBODY) for role, key in usual.items() if role != "text"}
    for role in (*_NAMES, *(() if options.types_as_triples else _TYPES)):
        if role in _NAMES and role in tids:
            _amend_names(connection, role, tids[role], usual)
        elif role in tids:
            _amend_types(connection, role, tids[role], usual[role])
    run(
        """
        INSERT INTO amended
        SELECT s.key, p.key, o.key, datatype, detail, true FROM bridge_terms b
        ANTI JOIN facts f ON f.subject = b.subject AND f.predicate = b.predicate AND f.object = b.object
        JOIN terms s ON s.tid = b.subject JOIN terms p ON p.tid = b.predicate JOIN terms o ON o.tid = b.object
        JOIN tags ON tags.tag = o.tag"""
    )
    if run("SELECT 1 FROM duckdb_tables() WHERE table_name = 'entailed'").fetchone():
        run(
            """
            INSERT INTO amended
            SELECT s.key, p.key, o.key, datatype, CASE WHEN e.stated THEN tags.detail ELSE reason END, e.stated
            FROM (SELECT subject, predicate, object, bool_or(stated) AS stated, min(reason) AS reason FROM entailed
                  GROUP BY ALL HAVING count(DISTINCT stated) = 1) e
            JOIN terms s ON s.tid = e.subject JOIN terms p ON p.tid = e.predicate JOIN terms o ON o.tid = e.object
            JOIN tags ON tags.tag = o.tag"""
        )
    run("INSERT INTO kg.amends SELECT DISTINCT * FROM amended ORDER BY ALL; DROP TABLE amended")
    following = {}
    for table in ("entities", "relations"):
        following[table] = number(connection, f"SELECT max(id) + 1 FROM kg.{table}")
    return {"options": meaning_options(options), "stated": stated.as_json(), "usual": usual, "next_ids": following}


NOBODY = -1
"""In the place of a predicate that no statement of the build has."""


def _amend_names(connection: duckdb.DuckDBPyConnection, role: str, predicate: int, usual: dict[str, str]) -> None:
    """Names of one role whose statements are not one to one with the rows of their table.

    Only entities where the numbers of both differ are looked at closely.  A label that lost is an alias, too, so
    aliases of entities with doubtful labels are doubtful.
    """
    run = connection.execute
    table, column = ("kg.aliases", "alias") if role == "alias" else ("kg.labels", role)
    plain = "t.predicate = $1 AND detail IS NULL AND (datatype = $2 OR datatype LIKE '@_%') AND i.id IS NOT NULL"
    texts = "texts t JOIN terms o ON o.tid = t.object JOIN tags USING (tag) LEFT JOIN ids i ON i.tid = t.subject"
    run(
        f"""
        CREATE TABLE doubtful_{role} AS
        SELECT id FROM (SELECT i.id, count(*) AS stated, count(*) FILTER ({plain}) AS plain FROM {texts}
                        WHERE role = $3 AND i.id IS NOT NULL GROUP BY i.id)
        FULL JOIN (SELECT id, count({column}) AS stored FROM {table} GROUP BY id HAVING stored > 0) USING (id)
        WHERE stated IS DISTINCT FROM stored OR plain IS DISTINCT FROM stated""",
        [predicate, usual["text"], role],
    )
    if role == "alias" and "label" in usual:
        run("INSERT INTO doubtful_alias SELECT id FROM doubtful_label ANTI JOIN doubtful_alias USING (id)")
    run(
        f"""
        CREATE TABLE stated_texts AS
        SELECT i.id, CASE WHEN datatype LIKE '@%' THEN datatype[2:] ELSE '' END AS lang, o.key AS text, datatype,
               detail, t.subject, t.predicate, coalesce({plain}, false) AS plain
        FROM {texts} WHERE role = $3 AND (i.id IS NULL OR i.id IN (FROM doubtful_{role}))""",
        [predicate, usual["text"], role],
    )
    run(
        f"CREATE TABLE stored_texts AS SELECT id, lang, {column} AS text FROM {table} "
        f"SEMI JOIN doubtful_{role} USING (id) WHERE {column} IS NOT NULL"
    )
    run(
        """
        INSERT INTO amended
        SELECT s.key, p.key, m.text, m.datatype, m.detail, true FROM (
          FROM stated_texts WHERE NOT plain
          UNION ALL FROM (FROM stated_texts WHERE plain) ANTI JOIN stored_texts USING (id, lang, text)) m
        JOIN terms s ON s.tid = m.subject JOIN terms p ON p.tid = m.predicate"""
    )
    run(
        f"""
        INSERT INTO amended
        SELECT e.key, $1, m.text, {_plain("m.lang", usual)}, NULL, false
        FROM (FROM stored_texts ANTI JOIN (FROM stated_texts WHERE plain) USING (id, lang, text)) m
        JOIN kg.entities e USING (id)""",
        [usual[role]],
    )
    run("DROP TABLE stated_texts; DROP TABLE stored_texts")


def _amend_types(connection: duckdb.DuckDBPyConnection, role: str, predicate: int, key: str) -> None:
    """Type statements by another predicate than the usual one, and rows that only such statements made."""
    run = connection.execute
    ends = "subject, object"
    other = f"SELECT {ends} FROM statements WHERE role = '{role}' AND predicate <> $1"
    usual = f"SELECT {ends} FROM statements WHERE role = '{role}' AND predicate = $1"
    named = "JOIN terms s ON s.tid = m.subject JOIN terms p ON p.tid = m.predicate JOIN terms o ON o.tid = m.object"
    run(
        f"INSERT INTO amended SELECT s.key, p.key, o.key, NULL, NULL, true FROM "
        f"(SELECT {ends}, predicate FROM statements WHERE role = '{role}' AND predicate <> $1) m {named}",
        [predicate],
    )
    run(
        f"INSERT INTO amended SELECT s.key, $2, o.key, NULL, NULL, false FROM ({other} EXCEPT {usual}) m "
        "JOIN terms s ON s.tid = m.subject JOIN terms o ON o.tid = m.object",
        [predicate, key],
    )


def statements(graph: Path, *, memory_limit: str = "2GB", work: Path | None = None) -> Iterator[StatementBatch]:
    """The distinct statements of the graph in a file, in batches, and the counts of those that it left out.

    Qualifiers are not among them.  fraction: of the triples read.  What exceeds the memory limit is spilled to `work`.
    """
    with KgStore.open(graph) as store:
        meta = store.meta
    with tempfile.TemporaryDirectory(dir=work, prefix="restate-") as spill:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "threads": 2,
            "temp_directory": spill,
        }
        with duckdb.connect(":memory:", config=config) as connection:
            connection.execute(f"ATTACH {quoted(str(graph))} AS kg (READ_ONLY); USE kg")
            shut_out(connection)
            yield from statements_of(connection, meta)


def statements_of(connection: duckdb.DuckDBPyConnection, meta: Mapping[str, Any]) -> Iterator[StatementBatch]:
    """`statements` of the graph whose tables are those of the connection's database, with the `meta` of the graph."""
    filtered = connection.execute(
        "SELECT rule, statements FROM filtered WHERE NOT starts_with(rule, 'qualifier') AND NOT starts_with(rule, $1)",
        [RULE],
    )
    yield StatementBatch(empty({name: STATEMENTS[name] for name in PLAIN}), filtered=dict(filtered.fetchall()))
    triples = facts_of("triples")
    if "derived" in meta["counts"]:
        triples = (
            f"SELECT * FROM ({triples}) f WHERE NOT EXISTS (FROM amends a WHERE NOT a.stated AND a.subject = f.subject "
            "AND a.predicate = f.predicate AND a.object = f.object AND a.datatype IS NOT DISTINCT FROM f.datatype)"
        )
    parts = [triples, *other_statements(meta)]
    total = max(1, meta["counts"]["triples"])
    done = 0
    for sql in parts:
        for batch in connection.execute(sql).to_arrow_reader(ROWS):
            frame = pl.from_arrow(batch)
            if not isinstance(frame, pl.DataFrame) or not frame.height:
                continue
            done += frame.height
            kind = pl.when(pl.col("kind") == "literal").then(LITERAL).otherwise(ENTITY).cast(pl.Int8)
            yield StatementBatch(statements=frame.with_columns(kind=kind), fraction=min(1.0, done / total))


def facts_of(triples: str) -> str:
    """The statements of a table of triples, as SQL."""
    return (
        "SELECT h.key AS subject, r.key AS predicate, t.key AS object, t.kind, t.datatype, t.detail, x.rank "
        f"FROM {triples} x JOIN entities h ON h.id = x.head JOIN relations r ON r.id = x.relation "
        "JOIN entities t ON t.id = x.tail"
    )


def other_statements(meta: Mapping[str, Any]) -> list[str]:
    """The statements of a graph that are no triples, as SQL; the columns are those of `facts_of`."""
    usual: dict[str, str] = meta["usual"]
    parts = [
        f"SELECT *, 0::TINYINT AS rank FROM ({named(role, f'({rows_of(role, usual)})', usual)}) m "
        "WHERE NOT EXISTS (FROM amends a WHERE NOT a.stated AND a.subject = m.subject "
        "AND a.predicate = m.predicate AND a.object = m.object AND a.datatype IS NOT DISTINCT FROM m.datatype)"
        for role in implied_roles(meta)
    ]
    return [*parts, amends_of("stated")]


def amends_of(which: str) -> str:
    """Statements of `amends`, as SQL, with the columns of `facts_of`.  which: a condition."""
    return (
        "SELECT subject, predicate, object, CASE WHEN datatype IS NULL THEN 'entity' ELSE 'literal' END AS kind, "
        f"datatype, detail, 0::TINYINT AS rank FROM amends WHERE {which}"
    )


def implied_roles(meta: Mapping[str, Any]) -> list[str]:
    """Roles whose tables imply statements."""
    roles = (*_NAMES, *(() if meta["options"]["types_as_triples"] else _TYPES))
    return [role for role in roles if role in meta["usual"]]


def rows_of(role: str, usual: dict[str, str]) -> str:
    """The rows that imply statements of a role, as SQL: (head, text, datatype) of a name, (head, tail) of a type."""
    if role in _NAMES:
        table = "aliases" if role == "alias" else "labels"
        columns = f"id AS head, {role} AS text, {_plain('lang', usual)} AS datatype"
        return f"SELECT {columns} FROM {table} WHERE text IS NOT NULL"
    first, second = ("entity", "type") if role == "type" else ("type", "super")
    return f"SELECT {first} AS head, {second} AS tail FROM {role}s"


def named(role: str, rows: str, usual: dict[str, str]) -> str:
    """The statements of a role that a table with columns as of `rows_of` implies, as SQL."""
    start = f"SELECT a.key AS subject, {quoted(usual[role])} AS predicate"
    if role in _NAMES:
        return (
            f"{start}, n.text AS object, 'literal' AS kind, n.datatype, NULL::VARCHAR AS detail "
            f"FROM {rows} n JOIN entities a ON a.id = n.head"
        )
    return (
        f"{start}, b.key AS object, 'entity' AS kind, NULL::VARCHAR AS datatype, NULL::VARCHAR AS detail "
        f"FROM {rows} n JOIN entities a ON a.id = n.head JOIN entities b ON b.id = n.tail"
    )


def _plain(lang: str, usual: dict[str, str]) -> str:
    return f"CASE WHEN {lang} = '' THEN {quoted(usual['text'])} ELSE '@' || {lang} END"
