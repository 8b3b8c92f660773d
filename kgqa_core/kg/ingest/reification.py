"""Statements about statements, put together after staging: `rdf:Statement`, and annotations of RDF 1.2 and RDF-star.

What reifies a triple that is stated becomes one more statement of it, with its own statements as qualifiers, and is no
entity.  A triple is stated only where it stands for itself: what is said of a triple that nobody states is left out and
counted, if RDF 1.2 says it, and stays as it is, if `rdf:Statement` does.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb

from kgqa_core.kg.formats.rdf_quads import REIFIES, TRIPLE
from kgqa_core.kg.ingest.staging import Staged
from kgqa_core.kg.sql import number
from kgqa_core.kg.vocabulary import RDF, RDF_TYPE
from kgqa_core.monitor import QUIET, Monitor

ANNOTATIONS = "annotations, which became qualifiers"
PARTS = "parts of statements about statements"
NOT_STATED = "annotations of a triple that is not stated"
QUALIFIED = "qualifier of an annotation"
"""Rules."""

VOCABULARY = (RDF + "subject", RDF + "predicate", RDF + "object", REIFIES, RDF_TYPE, RDF + "Statement")


def assemble(connection: duckdb.DuckDBPyConnection, staged: Staged, monitor: Monitor = QUIET) -> Staged:
    """Moves statements about statements from `raw` to `raw_qualifiers`; what is staged now.

    The order of the input plays no part; `statements` stays the number read.
    """
    run = connection.execute
    rows = run("SELECT key, tid FROM terms WHERE tag = 0 AND key IN (SELECT unnest($1))", [list(VOCABULARY)]).fetchall()
    tids = dict(rows)
    subject, predicate, thing, reifies, kind, statement = (tids.get(key, -1) for key in VOCABULARY)
    classic = min(subject, predicate, thing) >= 0
    if not classic and reifies < 0:
        return staged
    if staged.distinct:
        run("CREATE TABLE numbered AS FROM raw")
        run("DROP VIEW raw")
        run("DROP TABLE raw_distinct")
        run("ALTER TABLE numbered RENAME TO raw")
    run(
        f"""
        CREATE TEMP TABLE reified AS
        WITH terms_of AS (
          SELECT r.n, r.subject AS node,
                 regexp_extract(t.key, '^([^ ]*) ([^ ]*) ([^ ]*) (.*)$', ['s', 'p', 'd', 'o'], 's') AS x
          FROM raw r JOIN terms t ON t.tid = r.object JOIN tags g ON g.tag = t.tag
          WHERE r.predicate = {reifies} AND g.datatype = '{TRIPLE}')
        SELECT n, node, s.tid AS subject, p.tid AS predicate, o.tid AS object FROM terms_of
        JOIN terms s ON s.key = x.s AND s.tag = 0 JOIN terms p ON p.key = x.p AND p.tag = 0
        JOIN terms o ON o.key = x.o JOIN tags g ON g.tag = o.tag AND g.detail IS NULL AND coalesce(g.datatype, '') = x.d
        UNION SELECT * FROM (
          SELECT min(n) AS n, subject AS node, min(object) FILTER (predicate = {subject}) AS s,
                 min(object) FILTER (predicate = {predicate}) AS p, min(object) FILTER (predicate = {thing}) AS o
          FROM raw WHERE predicate IN ({subject}, {predicate}, {thing})
          GROUP BY subject HAVING count(DISTINCT (predicate, object)) = 3) WHERE s + p + o >= 0"""
    )
    run(
        """
        CREATE TEMP TABLE owners AS
        SELECT * FROM reified
        SEMI JOIN (SELECT subject, predicate, object FROM raw) USING (subject, predicate, object)"""
    )
    parts = (
        f"predicate IN ({subject}, {predicate}, {thing}, {reifies}) OR (predicate = {kind} AND object = {statement})"
    )
    run(
        f"""
        CREATE TEMP TABLE moved AS
        SELECT r.*, CASE WHEN {parts} THEN '{PARTS}' ELSE '{ANNOTATIONS}' END AS rule
        FROM raw r WHERE subject IN (SELECT node FROM owners) AND n NOT IN (SELECT n FROM owners)
        UNION ALL SELECT *, '{NOT_STATED}' FROM raw WHERE subject NOT IN (SELECT node FROM owners) AND subject IN (
          SELECT r.subject FROM raw r JOIN terms t ON t.tid = r.subject WHERE r.predicate = {reifies}
          AND starts_with(t.key, '_:'))
        UNION ALL SELECT r.*, '{NOT_STATED}' FROM raw r JOIN terms t ON t.tid = r.subject
        WHERE subject NOT IN (SELECT node FROM owners) AND predicate = {reifies} AND NOT starts_with(t.key, '_:')"""
    )
    run("DELETE FROM raw WHERE n IN (SELECT n FROM moved)")
    run(
        "UPDATE raw SET subject = o.subject, predicate = o.predicate, object = o.object FROM owners o WHERE raw.n = o.n"
    )
    run("INSERT INTO filtered SELECT ?, count(*) FROM raw_qualifiers WHERE n IN (SELECT n FROM moved)", [QUALIFIED])
    run("DELETE FROM raw_qualifiers WHERE n IN (SELECT n FROM moved)")
    run("INSERT INTO filtered SELECT rule, count(*) FROM moved GROUP BY rule ORDER BY rule")
    run(
        f"""
        INSERT INTO raw_qualifiers SELECT o.n, NULL, m.predicate, m.object FROM moved m
        JOIN owners o ON o.node = m.subject WHERE m.rule = '{ANNOTATIONS}'"""
    )
    annotations = number(connection, f"SELECT count(*) FROM moved WHERE rule = '{ANNOTATIONS}'")
    lost = number(connection, f"SELECT count(*) FROM moved WHERE rule = '{NOT_STATED}'")
    for table in ("moved", "owners", "reified"):
        run(f"DROP TABLE {table}")
    if annotations:
        monitor.note(f"{annotations:,} statements about statements are qualifiers")
    if lost:
        monitor.note(f"{lost:,} statements about triples that nobody states are left out; state these triples too")
    return replace(staged, qualified=staged.qualified or annotations > 0, distinct=False)
