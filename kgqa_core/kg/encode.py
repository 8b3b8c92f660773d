"""Staged statements → the tables of the store, by joins and sorts in DuckDB, which spill when memory is short."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import ENTITY, LITERAL, TEXT, Batch
from kgqa_core.kg.literals import NUMBER_SQL, PRECISION_SQL, TIME_SQL

ROLES = ("label", "alias", "description", "type", "subtype")


def create_raw(connection: duckdb.DuckDBPyConnection) -> None:
    """The staging table of statements, as `base.STATEMENTS`."""
    connection.execute(
        "CREATE TABLE raw(subject VARCHAR, predicate VARCHAR, object VARCHAR, kind TINYINT, datatype VARCHAR)"
    )
    connection.execute("CREATE TABLE raw_rejects(source VARCHAR, line BIGINT, reason VARCHAR, text VARCHAR)")


def append(connection: duckdb.DuckDBPyConnection, source: str, batch: Batch) -> None:
    """Stages the statements and rejects of a batch."""
    for table, frame in (("raw", batch.statements), ("raw_rejects", batch.rejects)):
        if not frame.height:
            continue
        connection.register("batch", frame.to_arrow())
        if table == "raw":
            connection.execute("INSERT INTO raw SELECT subject, predicate, object, kind, datatype FROM batch")
        else:
            connection.execute("INSERT INTO raw_rejects SELECT $1, line, reason, text FROM batch", [source])
        connection.unregister("batch")


def encode(connection: duckdb.DuckDBPyConnection, options: KgOptions) -> dict[str, int]:
    """Fills the tables of the attached database `kg` from the staged statements, and counts."""
    _roles(connection, options)
    keep = "true" if options.types_as_triples else "false"
    run = connection.execute
    # One row per distinct statement, with its role; a name has text, a type has entities at both ends.
    run(
        f"""
        CREATE TABLE statements AS
        SELECT subject, predicate, object, kind, datatype, role, best, count(*) AS n FROM (
          SELECT subject, predicate, object, datatype,
                 CASE WHEN kind = {TEXT} AND (role IS NULL OR role IN ('type', 'subtype')) THEN {ENTITY}
                      ELSE kind END AS kind,
                 CASE WHEN role IN ('label', 'alias', 'description') AND kind <> {ENTITY} THEN role
                      WHEN role IN ('type', 'subtype') AND kind <> {LITERAL} THEN role END AS role,
                 best
          FROM raw LEFT JOIN roles USING (predicate))
        GROUP BY ALL"""
    )
    run("DROP TABLE raw")
    run(f"CREATE VIEW facts AS SELECT * FROM statements WHERE role IS NULL OR ({keep} AND role IN ('type', 'subtype'))")
    run("CREATE VIEW texts AS SELECT * FROM statements WHERE role IN ('label', 'alias', 'description')")
    run("CREATE TABLE relation_keys AS SELECT DISTINCT predicate AS key FROM facts")
    run(
        f"""
        CREATE TABLE terms AS
        SELECT row_number() OVER (ORDER BY kind, key, datatype) - 1 AS id, key, kind, datatype FROM (
          SELECT subject AS key, {ENTITY} AS kind, NULL::VARCHAR AS datatype FROM statements
          WHERE role IS NULL OR role IN ('type', 'subtype')
          UNION SELECT object, {ENTITY}, NULL FROM statements
          WHERE kind = {ENTITY} AND (role IS NULL OR role IN ('type', 'subtype'))
          UNION SELECT subject, {ENTITY}, NULL FROM texts WHERE subject NOT IN (SELECT key FROM relation_keys)
          UNION SELECT object, {LITERAL}, datatype FROM facts WHERE kind = {LITERAL})"""
    )
    run(f"CREATE VIEW nodes AS SELECT id, key FROM terms WHERE kind = {ENTITY}")
    _relations(connection)
    run(
        f"""
        INSERT INTO kg.triples
        SELECT row_number() OVER (ORDER BY head, relation, tail) - 1 AS id, head, relation, tail, 0 FROM (
          SELECT h.id AS head, r.id AS relation, t.id AS tail
          FROM facts f JOIN nodes h ON h.key = f.subject JOIN kg.relations r ON r.key = f.predicate
          JOIN terms t ON t.kind = {ENTITY} AND t.key = f.object WHERE f.kind = {ENTITY}
          UNION ALL
          SELECT h.id, r.id, t.id
          FROM facts f JOIN nodes h ON h.key = f.subject JOIN kg.relations r ON r.key = f.predicate
          JOIN terms t ON t.kind = {LITERAL} AND t.key = f.object AND t.datatype = f.datatype WHERE f.kind = {LITERAL})
        ORDER BY id"""
    )
    run(
        f"""
        INSERT INTO kg.entities
        SELECT t.id, key, CASE kind WHEN {ENTITY} THEN 'entity' ELSE 'literal' END, datatype, {NUMBER_SQL}, NULL,
               {TIME_SQL} AS time, CASE WHEN time IS NOT NULL THEN {PRECISION_SQL} END,
               CASE WHEN time IS NOT NULL THEN 'gregorian' END, coalesce(d.degree, 0), NULL
        FROM terms t LEFT JOIN (
          SELECT id, count(*) AS degree FROM (SELECT head AS id FROM kg.triples UNION ALL SELECT tail FROM kg.triples)
          GROUP BY id) d ON d.id = t.id
        ORDER BY t.id"""
    )
    _texts(connection)
    for table, role in (("types", "type"), ("subtypes", "subtype")):
        run(
            f"""
            INSERT INTO kg.{table} SELECT DISTINCT a.id, b.id FROM statements s
            JOIN nodes a ON a.key = s.subject JOIN nodes b ON b.key = s.object WHERE s.role = '{role}' ORDER BY 1, 2"""
        )
    run("INSERT INTO kg.rejects SELECT * FROM raw_rejects ORDER BY source, line, reason, text")
    return _counts(connection, keep)


def _roles(connection: duckdb.DuckDBPyConnection, options: KgOptions) -> None:
    """The table of predicates that are not plain relations; best: 0 is the first configured of its role."""
    connection.execute("CREATE TABLE roles(predicate VARCHAR, role VARCHAR, best INTEGER)")
    configured: Iterable[tuple[str, ...]] = (
        options.label_predicates,
        options.alias_predicates,
        options.description_predicates,
        options.type_predicates,
        options.subtype_predicates,
    )
    seen: set[str] = set()
    for role, predicates in zip(ROLES, configured, strict=True):
        for best, predicate in enumerate(predicates):
            key = predicate[1:-1] if predicate.startswith("<") and predicate.endswith(">") else predicate
            if key not in seen:
                connection.execute("INSERT INTO roles VALUES (?, ?, ?)", [key, role, best])
                seen.add(key)


def _relations(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"""
        INSERT INTO kg.relations
        SELECT row_number() OVER (ORDER BY predicate) - 1 AS id, predicate,
               CASE WHEN max(kind) = {ENTITY} THEN 'entity'
                    WHEN min(kind) = {LITERAL} AND min(datatype) = max(datatype) THEN min(datatype)
                    ELSE 'mixed' END
        FROM facts GROUP BY predicate ORDER BY id"""
    )


def _texts(connection: duckdb.DuckDBPyConnection) -> None:
    """Labels, aliases and descriptions of entities, and labels of relations.

    Of several labels in one language the one of the best predicate stays, then the first in order; the others are
    aliases.  Of several descriptions in one language likewise, and the others are dropped.
    """
    run = connection.execute
    run(
        """
        CREATE TABLE named AS
        SELECT subject AS key, role, object AS text,
               CASE WHEN datatype LIKE '@%' THEN datatype[2:] ELSE '' END AS lang,
               row_number() OVER (PARTITION BY subject, role, lang ORDER BY best, object, datatype) AS place
        FROM texts"""
    )
    run(
        """
        INSERT INTO kg.labels
        SELECT n.id, lang, any_value(text) FILTER (role = 'label'), any_value(text) FILTER (role = 'description')
        FROM named JOIN nodes n USING (key) WHERE place = 1 AND role IN ('label', 'description')
        GROUP BY n.id, lang ORDER BY n.id, lang"""
    )
    run(
        """
        INSERT INTO kg.aliases
        SELECT DISTINCT n.id, lang, text FROM named JOIN nodes n USING (key)
        LEFT JOIN kg.labels l USING (id, lang)
        WHERE (role = 'alias' OR (role = 'label' AND place > 1)) AND text IS DISTINCT FROM l.label
        ORDER BY n.id, lang, text"""
    )
    run(
        """
        INSERT INTO kg.relation_labels
        SELECT r.id, lang, text FROM named JOIN kg.relations r USING (key) WHERE role = 'label' AND place = 1
        ORDER BY r.id, lang"""
    )


def _counts(connection: duckdb.DuckDBPyConnection, keep: str) -> dict[str, int]:
    row = connection.execute(
        f"""
        SELECT count(*) FILTER (role = 'label'), count(*) FILTER (role = 'alias'),
               count(*) FILTER (role = 'description'), count(*) FILTER (NOT {keep} AND role IN ('type', 'subtype')),
               coalesce(sum(n - 1), 0)::BIGINT FROM statements"""
    ).fetchone()
    names = ("labels", "aliases", "descriptions", "type_statements", "duplicates")
    counts = dict(zip(names, map(int, row or (0,) * 5), strict=True))
    for name, sql in {
        "entities": f"SELECT count(*) FROM terms WHERE kind = {ENTITY}",
        "literals": f"SELECT count(*) FROM terms WHERE kind = {LITERAL}",
        "relations": "SELECT count(*) FROM kg.relations",
        "triples": "SELECT count(*) FROM kg.triples",
        "types": "SELECT count(DISTINCT type) FROM kg.types",
    }.items():
        found = connection.execute(sql).fetchone()
        counts[name] = int(found[0]) if found else 0
    return counts
