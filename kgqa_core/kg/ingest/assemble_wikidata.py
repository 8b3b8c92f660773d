"""Statement nodes of a full Wikidata dump in RDF, put together after staging.

RDF spreads a statement over `wd:Q42 p:P569 wds:X`, `wds:X ps:P569 "…"`, `wds:X psv:P569 wdv:Y`, `wds:X pq:P585 "…"`,
`wds:X wikibase:rank …` and the value node's own triples, in any order.  Here they are joined, as integers.  `psv:` and
`pqv:` give a quantity its unit, a time its precision and calendar; a truthy copy (`wdt:`) takes the detail and the rank
of the statement that it repeats, so that it counts as its duplicate.  `wikibase:propertyType` makes external ids of
strings.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb

from kgqa_core.kg.formats.wikidata.rdf_terms import (
    AMOUNT,
    CALENDAR,
    DECLARATIONS,
    FULL_QUALIFIER,
    FULL_VALUE,
    PRECISION,
    PROPERTY_TYPE,
    RANK,
    STATEMENT_NODE,
    STATEMENT_NODES,
    TIME,
    UNIT,
    VALUE_NODE,
    VALUE_NODES,
    WIKIBASE,
)
from kgqa_core.kg.ingest.staging import Staged
from kgqa_core.kg.sql import drop
from kgqa_core.kg.vocabulary import STRING

ORPHANS = "statement nodes without entity or value"
"""Rule of links to statement nodes without a value, and of values of nodes that no entity has."""

UNIT_ONE = "Q199"
"""The unit of a bare number in RDF."""

CALENDARS = {"Q1985727": "gregorian", "Q1985786": "julian"}

TYPES = {
    WIKIBASE + name: WIKIBASE + name
    for name in ("ExternalId", "CommonsMedia", "LocalMedia", "GeoShape", "TabularData", "MusicalNotation")
}
"""Datatype of a property → datatype of its values that RDF has as plain strings."""


def assemble(connection: duckdb.DuckDBPyConnection, staged: Staged) -> Staged:
    """Rewrites `raw`, `raw_qualifiers`, `terms` and `tags` of the staged tables; what was read but is no statement of
    its own is counted in `filtered`, by rule.

    The order of the input plays no part.  Returns what is staged now; `statements` stays the number read.
    """
    run = connection.execute
    run("CREATE TEMP TABLE spans(name VARCHAR, first INTEGER, last INTEGER)")
    for name, prefix in (("node", STATEMENT_NODE), ("value", VALUE_NODE)):
        run(
            "INSERT INTO spans SELECT $1, coalesce(min(tid), -1), coalesce(max(tid), -2) FROM terms "
            "WHERE tag = 0 AND starts_with(key, $2)",
            [name, prefix],
        )
    spans = {name: (first, last) for name, first, last in run("SELECT * FROM spans").fetchall()}
    run("DROP TABLE spans")
    node = "BETWEEN {} AND {}".format(*spans["node"])
    value = "BETWEEN {} AND {}".format(*spans["value"])
    if not _is_wikidata(connection, node):
        return staged
    _details(connection, value)
    _tags(connection)
    _statements(connection, node)
    _qualifiers(connection, node)
    _rest(connection, node, value)
    _literals(connection)
    _finish(connection)
    row = run(
        "SELECT (SELECT coalesce(bool_or(rank <> 0), false) FROM raw), (SELECT count(*) > 0 FROM raw_qualifiers)"
    ).fetchone()
    ranked, qualified = row or (False, False)
    return replace(staged, ranked=staged.ranked or bool(ranked), qualified=bool(qualified))


def _tid(key: str) -> str:
    """SQL for the tid of an entity key; -1 where it does not occur."""
    return f"coalesce((SELECT tid FROM terms WHERE tag = 0 AND key = '{key}'), -1)"


def _is_wikidata(connection: duckdb.DuckDBPyConnection, node: str) -> bool:
    row = connection.execute(
        f"SELECT EXISTS (FROM raw WHERE object {node} OR subject {node} OR predicate = {_tid(PROPERTY_TYPE)})"
    ).fetchone()
    return bool(row and row[0])


def _details(connection: duckdb.DuckDBPyConnection, value: str) -> None:
    """w_values(value, lexical, datatype, detail): the simple value of a value node, and what its literal lacks."""
    calendars = " ".join(f"WHEN '{key}' THEN ' {name}'" for key, name in CALENDARS.items())
    connection.execute(
        f"""
        CREATE TEMP TABLE w_values AS
        WITH parts AS (
          SELECT r.subject AS value,
                 min(r.object) FILTER (r.predicate IN ({_tid(TIME)}, {_tid(AMOUNT)})) AS lexical,
                 min(o.key) FILTER (r.predicate = {_tid(PRECISION)}) AS precision,
                 min(o.key) FILTER (r.predicate = {_tid(CALENDAR)}) AS calendar,
                 min(o.key) FILTER (r.predicate = {_tid(UNIT)}) AS unit
          FROM raw r JOIN terms o ON o.tid = r.object WHERE r.subject {value} GROUP BY r.subject)
        SELECT value, lexical, datatype, CASE WHEN precision IS NOT NULL
                 THEN precision || CASE calendar {calendars} ELSE '' END ELSE nullif(unit, '{UNIT_ONE}') END AS detail
        FROM parts JOIN terms t ON t.tid = lexical JOIN tags USING (tag)"""
    )


def _tags(connection: duckdb.DuckDBPyConnection) -> None:
    """w_tags: the tags that there will be; w_detailed(value, lexical, tag): value nodes; w_types(predicate, tag)."""
    run = connection.execute
    types = ", ".join(f"('{key}', '{datatype}')" for key, datatype in TYPES.items())
    run(
        f"""
        CREATE TEMP TABLE w_types AS
        SELECT r.subject AS predicate, min(v.datatype) AS datatype FROM raw r JOIN terms o ON o.tid = r.object
        JOIN (VALUES {types}) v(key, datatype) ON v.key = o.key
        WHERE r.predicate = {_tid(PROPERTY_TYPE)} GROUP BY r.subject"""
    )
    run(
        """
        CREATE TEMP TABLE w_tags AS
        SELECT row_number() OVER (ORDER BY datatype, detail NULLS FIRST)::INTEGER AS tag, datatype, detail FROM (
          SELECT datatype, detail FROM tags WHERE tag > 0
          UNION SELECT datatype, detail FROM w_values WHERE datatype IS NOT NULL
          UNION SELECT datatype, NULL FROM w_types)"""
    )
    run(
        """
        CREATE TEMP TABLE w_detailed AS SELECT value, lexical, tag FROM w_values v
        JOIN w_tags t ON t.datatype = v.datatype AND t.detail IS NOT DISTINCT FROM v.detail"""
    )
    run("CREATE TEMP TABLE w_old_tags AS SELECT o.tag AS old, t.tag FROM tags o JOIN w_tags t ON "
        "t.datatype = o.datatype AND t.detail IS NOT DISTINCT FROM o.detail WHERE o.tag > 0")  # fmt: skip


def _full(prefix: str) -> str:
    """SQL for rows (node, predicate, lexical, tag) of full values, the predicate as that of the simple value."""
    return f"""
        (SELECT r.subject AS node, p.tid AS predicate, d.lexical, min(d.tag) AS tag FROM raw r
         JOIN terms f ON f.tid = r.predicate AND starts_with(f.key, '{prefix}')
         JOIN terms p ON p.tag = 0 AND p.key = substr(f.key, {len(prefix) + 1})
         JOIN w_detailed d ON d.value = r.object GROUP BY ALL)"""


def _statements(connection: duckdb.DuckDBPyConnection, node: str) -> None:
    """w_statements(n, node, subject, predicate, object, rank, tag): tag is the object's new one, or null."""
    run = connection.execute
    run(
        f"""
        CREATE TEMP TABLE w_links AS SELECT object AS node, min(subject) AS subject, min(predicate) AS predicate
        FROM raw WHERE object {node} AND NOT subject {node} GROUP BY object"""
    )
    run(
        f"""
        CREATE TEMP TABLE w_ranks AS
        SELECT subject AS node, CASE WHEN bool_or(object = {_tid(WIKIBASE + "DeprecatedRank")}) THEN -1
                                     WHEN bool_or(object = {_tid(WIKIBASE + "PreferredRank")}) THEN 1 END AS rank
        FROM raw WHERE subject {node} AND predicate = {_tid(RANK)} GROUP BY subject"""
    )
    run(
        f"""
        CREATE TEMP TABLE w_no_value AS
        SELECT tid FROM terms JOIN tags USING (tag) WHERE datatype = '{WIKIBASE}novalue'"""
    )
    # A node may have no value of its property as its value and, of the same property, as a qualifier's.
    run(
        f"""
        CREATE TEMP TABLE w_statements AS
        SELECT r.n, r.subject AS node, l.subject, r.predicate, r.object, coalesce(k.rank, 0)::TINYINT AS rank, f.tag
        FROM raw r JOIN w_links l ON l.node = r.subject AND l.predicate = r.predicate
        LEFT JOIN w_ranks k ON k.node = r.subject
        LEFT JOIN {_full(FULL_VALUE)} f
               ON f.node = r.subject AND f.predicate = r.predicate AND f.lexical = r.object
        WHERE r.subject {node}
        QUALIFY NOT (r.object IN (SELECT tid FROM w_no_value)
                     AND bool_or(r.object NOT IN (SELECT tid FROM w_no_value)) OVER (PARTITION BY r.subject))"""
    )


def _qualifiers(connection: duckdb.DuckDBPyConnection, node: str) -> None:
    """w_qualifiers(n, name, predicate, object, tag): all qualifiers; w_consumed(n): rows of raw that became some."""
    run = connection.execute
    run(
        f"""
        CREATE TEMP TABLE w_consumed AS SELECT n FROM raw
        WHERE subject {node} AND object IN (SELECT tid FROM w_no_value)
          AND n NOT IN (SELECT n FROM w_statements) AND subject IN (SELECT node FROM w_statements)"""
    )
    run(
        f"""
        CREATE TEMP TABLE w_qualifiers AS
        WITH named AS (
          SELECT t.tid AS node, q.predicate, q.object FROM raw_qualifiers q
          JOIN terms t ON t.tag = 0 AND t.key = q.name AND t.tid {node}
          UNION SELECT subject, predicate, object FROM raw SEMI JOIN w_consumed USING (n)),
        full_values AS (SELECT node, predicate, lexical AS object, tag FROM (
          SELECT r.subject AS node, p.tid AS predicate, d.lexical, d.tag FROM raw r
          JOIN terms f ON f.tid = r.predicate AND starts_with(f.key, '{FULL_QUALIFIER}')
          JOIN terms p ON p.tag = 0 AND p.key = substr(f.key, {len(FULL_QUALIFIER) + 1})
          JOIN w_detailed d ON d.value = r.object)),
        detailed AS (SELECT named.*, f.tag FROM named LEFT JOIN full_values f USING (node, predicate, object)),
        owners AS (SELECT node, min(n) AS n FROM w_statements GROUP BY node)
        SELECT o.n, CASE WHEN o.n IS NULL THEN k.key END AS name, d.predicate, d.object, d.tag
        FROM detailed d LEFT JOIN owners o USING (node) JOIN terms k ON k.tid = d.node
        UNION ALL SELECT q.n, q.name, q.predicate, q.object, NULL FROM raw_qualifiers q
        WHERE q.n IS NOT NULL OR q.name NOT IN (SELECT key FROM terms WHERE tid {node})"""
    )


def _rest(connection: duckdb.DuckDBPyConnection, node: str, value: str) -> None:
    """w_raw(n, subject, predicate, object, rank, tag): every statement there will be; and counts what is none."""
    run = connection.execute
    run(
        f"""
        CREATE TEMP TABLE w_raw AS
        WITH twins AS (SELECT subject, predicate, object, max(rank) AS rank, min(tag) AS tag FROM (
                         SELECT *, max(rank) OVER (PARTITION BY subject, predicate, object) AS best FROM w_statements)
                       WHERE rank = best AND rank >= 0 GROUP BY ALL)
        SELECT r.n, r.subject, r.predicate, r.object, coalesce(t.rank, r.rank)::TINYINT AS rank, t.tag
        FROM raw r LEFT JOIN twins t USING (subject, predicate, object)
        WHERE NOT r.subject {node} AND NOT r.object {node} AND NOT r.subject {value}
          AND r.predicate <> {_tid(PROPERTY_TYPE)}
        UNION ALL SELECT n, subject, predicate, object, rank, tag FROM w_statements"""
    )
    run(
        f"""
        INSERT INTO filtered
        SELECT CASE WHEN subject {value} THEN '{VALUE_NODES}'
                    WHEN NOT subject {node} AND NOT object {node} THEN '{DECLARATIONS}'
                    WHEN NOT subject {node} AND object NOT IN (SELECT node FROM w_statements) THEN '{ORPHANS}'
                    WHEN subject {node} AND subject NOT IN (SELECT node FROM w_links) THEN '{ORPHANS}'
                    ELSE '{STATEMENT_NODES}' END AS rule, count(*)
        FROM raw ANTI JOIN w_raw USING (n) GROUP BY rule ORDER BY rule"""
    )
    for table in ("w_raw", "w_qualifiers"):
        run(
            f"""
            UPDATE {table} SET tag = y.tag FROM (
              SELECT w.predicate, w.object, g.tag FROM (SELECT DISTINCT predicate, object FROM {table}) w
              JOIN w_types t USING (predicate) JOIN terms o ON o.tid = w.object JOIN tags s ON s.tag = o.tag
              JOIN w_tags g ON g.datatype = t.datatype AND g.detail IS NULL
              WHERE s.datatype = '{STRING}' AND s.detail IS NULL) y
            WHERE {table}.predicate = y.predicate AND {table}.object = y.object"""
        )


def _literals(connection: duckdb.DuckDBPyConnection) -> None:
    """w_terms(tid, key, tag): all literals in their order; w_moved(object, tag, tid): what a literal becomes.

    A null tag stands for the literal's own.
    """
    run = connection.execute
    run(
        """
        CREATE TEMP TABLE w_wanted AS
        SELECT object, tag FROM w_raw WHERE tag IS NOT NULL UNION SELECT object, tag FROM w_qualifiers
        WHERE tag IS NOT NULL"""
    )
    run(
        """
        CREATE TEMP TABLE w_terms AS
        SELECT ((SELECT count(*) FROM terms WHERE tag = 0) + row_number() OVER (ORDER BY key, tag) - 1)::INTEGER AS tid,
               key, tag FROM (
          SELECT t.key, o.tag FROM terms t JOIN w_old_tags o ON o.old = t.tag
          UNION SELECT t.key, w.tag FROM w_wanted w JOIN terms t ON t.tid = w.object)"""
    )
    run(
        """
        CREATE TEMP TABLE w_moved AS
        SELECT t.tid AS object, NULL::INTEGER AS tag, n.tid FROM terms t JOIN w_old_tags o ON o.old = t.tag
        JOIN w_terms n ON n.key = t.key AND n.tag = o.tag
        UNION ALL SELECT w.object, w.tag, n.tid FROM w_wanted w JOIN terms t ON t.tid = w.object
        JOIN w_terms n ON n.key = t.key AND n.tag = w.tag"""
    )


def _finish(connection: duckdb.DuckDBPyConnection) -> None:
    """Puts the new tables in the places of the staged ones."""
    run = connection.execute
    new = {
        "raw": "SELECT r.n, r.subject, r.predicate, coalesce(m.tid, r.object) AS object, r.rank FROM w_raw r "
        "LEFT JOIN w_moved m ON m.object = r.object AND m.tag IS NOT DISTINCT FROM r.tag",
        "raw_qualifiers": "SELECT q.n, q.name, q.predicate, coalesce(m.tid, q.object) AS object FROM w_qualifiers q "
        "LEFT JOIN w_moved m ON m.object = q.object AND m.tag IS NOT DISTINCT FROM q.tag",
        "terms": "SELECT tid, key, tag FROM terms WHERE tag = 0 UNION ALL SELECT tid, key, tag FROM w_terms",
        "tags": "SELECT 0 AS tag, NULL::VARCHAR AS datatype, NULL::VARCHAR AS detail UNION ALL "
        "SELECT tag, datatype, detail FROM w_tags",
    }
    for name, sql in new.items():
        run(f"CREATE TABLE w_new_{name} AS {sql}")
    for name in new:
        drop(connection, name)
        run(f"ALTER TABLE w_new_{name} RENAME TO {name}")
    for (name,) in run(
        "SELECT table_name FROM duckdb_tables() WHERE temporary AND starts_with(table_name, 'w_')"
    ).fetchall():
        run(f"DROP TABLE {name}")
