"""Qualifiers: which statement each belongs to, which stay, the distinct sets of each triple, and triples made of them.

A qualifier of a statement that was left out goes with it.  Every one that does not stay is counted in `filtered` under
a rule that starts with `qualifier`; these rules are no part of the sum over statements.
"""

from __future__ import annotations

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.kg.filters import NOT_LISTED
from kgqa_core.kg.ingest.staging import Staged
from kgqa_core.kg.sql import number

NOT_REQUESTED = "qualifiers: not wanted"
ORPHAN = "qualifier without statement"
STATEMENT_DROPPED = "qualifier of a statement left out"
NO_TRIPLE = "qualifier of a name or type"
BY_RULE = "qualifier, "
"""Rules of qualifiers; `qualifier, ` is followed by the rule of statements that it broke."""

CHUNK = 4_000_000
"""Statements whose qualifiers are brought together at once."""


def select(
    connection: duckdb.DuckDBPyConnection,
    options: KgOptions,
    staged: Staged,
    source: str,
    triple: str,
    chunk: int = CHUNK,
) -> dict[str, int]:
    """Makes `kept_qualifiers` and `derived_relations`, fills `derived`, and counts.

    kept_qualifiers(subject, predicate, object, statement, relation, value): statement numbers the distinct sets of
    qualifiers of one triple from 0, in the order of their terms.  derived_relations(tid, key, predicate, relation):
    relations `P39/P580`, with tids after the terms unless the key is a term already.  A name that several statements
    bear gives its qualifiers to each.  source: the statements that stay, with `n` and `role`, as SQL.  triple: what a
    row of it must meet to be a triple.
    """
    run = connection.execute
    run(
        "CREATE TABLE kept_qualifiers(subject INTEGER, predicate INTEGER, object INTEGER, statement INTEGER, "
        "relation INTEGER, value INTEGER)"
    )
    run("CREATE TABLE derived_relations(tid INTEGER, key VARCHAR, predicate INTEGER, relation INTEGER)")
    counts = {"qualifiers": 0, "qualifier_triples": 0}
    if not staged.qualified:
        return counts
    if options.qualifiers == "none":
        run("INSERT INTO filtered SELECT ?, count(*) FROM raw_qualifiers", [NOT_REQUESTED])
        return counts
    _link(connection, staged, source, triple)
    run(
        """
        INSERT INTO filtered SELECT reason, count(*) FROM (
          SELECT CASE l.rule WHEN -1 THEN $1 WHEN -2 THEN CASE WHEN l.n IN (SELECT n FROM raw) THEN $2 ELSE $3 END
                 ELSE $4 || r.rule END AS reason
          FROM linked_qualifiers l LEFT JOIN rule_names r ON r.code = l.rule WHERE l.rule <> 0) GROUP BY reason""",
        [NO_TRIPLE, STATEMENT_DROPPED, ORPHAN, BY_RULE],
    )
    run("CREATE TABLE sets(subject INTEGER, predicate INTEGER, object INTEGER, members BIGINT[])")
    row = run("SELECT min(n), max(n) FROM linked_qualifiers WHERE rule = 0").fetchone()
    if row and row[0] is not None:
        for first in range(row[0], row[1] + 1, chunk):
            run(
                """
                INSERT INTO sets SELECT any_value(subject), any_value(predicate), any_value(object),
                       list(DISTINCT relation * 4294967296 + value ORDER BY relation * 4294967296 + value)
                FROM linked_qualifiers WHERE rule = 0 AND n >= $1 AND n < $2 GROUP BY n""",
                [first, first + chunk],
            )
    run("DROP TABLE linked_qualifiers")
    run(
        """
        INSERT INTO kept_qualifiers
        SELECT subject, predicate, object, statement, member // 4294967296, member % 4294967296 FROM (
          SELECT subject, predicate, object, unnest(members) AS member,
                 row_number() OVER (PARTITION BY subject, predicate, object ORDER BY members) - 1 AS statement
          FROM (SELECT DISTINCT subject, predicate, object, members FROM sets))"""
    )
    run("DROP TABLE sets")
    counts["qualifiers"] = number(connection, "SELECT count(*) FROM kept_qualifiers")
    if options.qualifiers == "triples":
        counts["qualifier_triples"] = _derive(connection)
    return counts


def finish(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills kg.qualifiers, and kg.relation_labels of derived relations: `position held / start time`.

    A derived relation is named in every language that names both of its parts; where none does, without language by
    the keys.
    """
    run = connection.execute
    run(
        """
        INSERT INTO kg.qualifiers
        SELECT t.id, q.statement, r.id, v.id FROM kept_qualifiers q
        JOIN ids s ON s.tid = q.subject JOIN relation_ids p ON p.tid = q.predicate JOIN ids o ON o.tid = q.object
        JOIN kg.triples t ON t.head = s.id AND t.relation = p.id AND t.tail = o.id
        JOIN relation_ids r ON r.tid = q.relation JOIN ids v ON v.tid = q.value ORDER BY ALL"""
    )
    run(
        """
        INSERT INTO kg.relation_labels
        WITH parts AS (SELECT d.id, p.id AS predicate, q.id AS relation FROM derived_relations
                       JOIN relation_ids d USING (tid) JOIN relation_ids p ON p.tid = derived_relations.predicate
                       JOIN relation_ids q ON q.tid = derived_relations.relation
                       WHERE d.id NOT IN (SELECT id FROM kg.relation_labels)),
             both_named AS (SELECT parts.id, a.lang, a.label || ' / ' || b.label AS label FROM parts
                            JOIN kg.relation_labels a ON a.id = parts.predicate
                            JOIN kg.relation_labels b ON b.id = parts.relation AND b.lang = a.lang)
        FROM both_named UNION ALL
        SELECT parts.id, '', a.key || ' / ' || b.key FROM parts
        JOIN kg.relations a ON a.id = parts.predicate JOIN kg.relations b ON b.id = parts.relation
        WHERE parts.id NOT IN (SELECT id FROM both_named) ORDER BY ALL"""
    )


def _link(connection: duckdb.DuckDBPyConnection, staged: Staged, source: str, triple: str) -> None:
    """linked_qualifiers: each one with the triple of its statement.

    rule: 0 stays, others as `rule_names`, -1 of a statement that is no triple, -2 of one that is not there (any more).
    """
    where = "raw_qualifiers"
    if staged.named:
        where = (
            "(SELECT n, predicate, object FROM raw_qualifiers WHERE n IS NOT NULL UNION ALL "
            "SELECT m.n, q.predicate, q.object FROM raw_qualifiers q "
            "LEFT JOIN (SELECT DISTINCT n, name FROM statement_names) m USING (name) WHERE q.n IS NULL)"
        )
    connection.execute(
        f"""
        CREATE TABLE linked_qualifiers AS
        SELECT q.n, s.subject, s.predicate, s.object, q.predicate::BIGINT AS relation, q.object::BIGINT AS value,
               CASE WHEN s.n IS NULL THEN -2 WHEN NOT s.is_triple THEN -1
                    ELSE coalesce(b.rule, v.rule, 0) END AS rule
        FROM {where} q LEFT JOIN (SELECT *, {triple} AS is_triple FROM {source}) s ON s.n = q.n
        LEFT JOIN (SELECT predicate, p.rule FROM predicate_rules p JOIN rule_names n ON n.code = p.rule
                   WHERE n.rule <> '{NOT_LISTED}') b ON b.predicate = q.predicate
        LEFT JOIN (SELECT tid, rule FROM terms JOIN value_rules USING (tag)) v ON v.tid = q.object"""
    )


def _derive(connection: duckdb.DuckDBPyConnection) -> int:
    """Fills `derived` with (subject, `predicate/qualifier`, value) where it is not stated already; how many."""
    run = connection.execute
    run(
        """
        INSERT INTO derived_relations
        WITH pairs AS (SELECT DISTINCT p.key || '/' || r.key AS key, q.predicate, q.relation
                       FROM (SELECT DISTINCT predicate, relation FROM kept_qualifiers) q
                       JOIN terms p ON p.tid = q.predicate JOIN terms r ON r.tid = q.relation),
             fresh AS (SELECT key, row_number() OVER (ORDER BY key) - 1 + (SELECT count(*) FROM terms) AS tid FROM (
                       SELECT DISTINCT key FROM pairs ANTI JOIN (SELECT key FROM terms WHERE tag = 0) USING (key)))
        SELECT coalesce(t.tid, fresh.tid), key, predicate, relation FROM pairs
        LEFT JOIN (SELECT tid, key FROM terms WHERE tag = 0) t USING (key) LEFT JOIN fresh USING (key) ORDER BY key"""
    )
    run(
        """
        INSERT INTO derived SELECT DISTINCT q.subject, d.tid AS predicate, q.value AS object
        FROM kept_qualifiers q JOIN derived_relations d ON d.predicate = q.predicate AND d.relation = q.relation
        ANTI JOIN facts f ON f.subject = q.subject AND f.predicate = d.tid AND f.object = q.value"""
    )
    return number(connection, "SELECT count(*) FROM derived")
