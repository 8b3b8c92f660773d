"""The part of a graph on which a change depends, as a graph of its own.

It has the facts that came or went, as far as the graph has them (with those of the same subject and relation, where
ranks decide which of them count), and all names, types, bridges and amends of the subjects that are touched: those
of which such a statement came or went, relations that may appear, go, or be entities too, and entities that may appear
or go while a bridge of theirs, which makes no entity, stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import duckdb
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.ingest.interpret import ROLES, configured_predicates
from kgqa_core.kg.ingest.restate import Stated
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.sql import execute_with, number

OWN = {"labels": "id", "aliases": "id", "types": "entity", "subtypes": "type", "bridges": "entity"}
"""Tables whose rows belong to the entity in a column."""


def text_predicates(options: KgOptions) -> list[str]:
    """Predicates of names, whose objects of no type are literals."""
    names = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
    return sorted({bare_key(name) for name in names})


class Region:
    """The databases `part`, with the tables of the part, and `change`, of `old`; see `of`.

    change.touched(key): the subjects that are made anew.  change.entities(id), change.relations(id): their ids.
    change.facts: the triples of the part.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, roles: Mapping[tuple[str, bool], str]) -> None:
        self.connection = connection
        self._roles = roles
        self._ranked = False

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, changes: pl.DataFrame, options: KgOptions) -> Region:
        """The part of the graph that is attached as `old`.

        changes: subject, predicate, object, literal, datatype, detail, rank, went.
        """
        roles = {
            (key, role in ROLES[:3]): role
            for role, keys in reversed(configured_predicates(options).items())
            for key in keys
        }
        region = cls(connection, roles)
        run = connection.execute
        run("ATTACH ':memory:' AS part; ATTACH ':memory:' AS change")
        execute_with(connection, "CREATE TABLE change.statements AS SELECT * FROM batch", changes)
        bridges = [bare_key(key) for key in options.bridges]
        special = [key for key, _ in roles] + bridges
        run("CREATE TABLE change.special AS SELECT DISTINCT unnest($1::VARCHAR[]) AS key", [special])
        run(
            "CREATE TABLE change.bridges AS SELECT unnest($1::VARCHAR[]) AS key",
            [bridges],
        )
        names = text_predicates(options)
        run("CREATE TABLE change.name_predicates AS SELECT unnest($1::VARCHAR[]) AS key", [names])
        region._look_up()
        region._find_facts(options)
        region._touch()
        region._copy()
        return region

    # -- what is there ---------------------------------------------------------------------------------------------

    def _look_up(self) -> None:
        """change.known: entities of the graph whose key is in a statement; change.counted: relations and triples."""
        run = self.connection.execute
        run(
            """
            CREATE TABLE change.known AS SELECT * FROM old.entities SEMI JOIN (
              SELECT subject AS key FROM change.statements UNION SELECT predicate FROM change.statements
              UNION SELECT object FROM change.statements) USING (key)"""
        )
        run(
            """
            CREATE TABLE change.counted AS SELECT id, key, coalesce(n, 0) AS n FROM old.relations
            LEFT JOIN (SELECT relation AS id, count(*) AS n FROM old.triples GROUP BY relation) USING (id)"""
        )

    def _find_facts(self, options: KgOptions) -> None:
        run = self.connection.execute
        run(
            """
            CREATE TABLE change.ends AS SELECT DISTINCT h.id AS head, r.id AS relation, t.id AS tail
            FROM change.statements s JOIN change.known h ON h.key = s.subject AND h.kind = 'entity'
            JOIN change.counted r ON r.key = s.predicate
            JOIN change.known t ON t.key = s.object AND (t.kind = 'literal') = s.literal
              AND t.datatype IS NOT DISTINCT FROM s.datatype AND t.detail IS NOT DISTINCT FROM s.detail"""
        )
        run("CREATE TABLE change.facts AS FROM old.triples SEMI JOIN change.ends USING (head, relation, tail)")
        run("CREATE TABLE change.nodes AS SELECT subject AS key FROM change.statements "
            "UNION SELECT object FROM change.statements WHERE NOT literal")  # fmt: skip
        self._ranked = (
            options.ranks != "all"
            and number(
                self.connection,
                "SELECT count(*) FROM (SELECT rank FROM old.triples UNION ALL SELECT rank FROM change.statements) "
                "WHERE rank <> 0",
            )
            > 0
        )
        if self._ranked:
            run(
                """
                INSERT INTO change.facts FROM old.triples SEMI JOIN (
                  SELECT h.id AS head, r.id AS relation FROM change.statements s
                  JOIN change.known h ON h.key = s.subject AND h.kind = 'entity'
                  JOIN change.counted r ON r.key = s.predicate) USING (head, relation)
                ANTI JOIN change.facts USING (id)"""
            )
            run(
                """
                INSERT INTO change.nodes SELECT key FROM old.entities SEMI JOIN (
                  SELECT head AS id FROM change.facts UNION SELECT tail FROM change.facts) USING (id)
                WHERE kind = 'entity' AND key NOT IN (FROM change.nodes)"""
            )

    def _touch(self) -> None:
        """change.touched and its ids; further facts of these subjects that are types or bridges."""
        run = self.connection.execute
        run(
            """
            CREATE TABLE change.touched AS
            WITH bare AS (SELECT key FROM change.counted JOIN (SELECT relation AS id, count(*) AS here
                          FROM change.facts GROUP BY ALL) USING (id) WHERE n <= here
                          UNION SELECT predicate FROM change.statements s
                          ANTI JOIN change.counted c ON c.key = s.predicate),
                 relation AS (SELECT key FROM change.counted UNION SELECT predicate FROM change.statements),
                 bridged AS (SELECT subject AS key FROM old.amends a SEMI JOIN change.bridges b ON b.key = a.predicate)
            SELECT subject AS key FROM change.statements s SEMI JOIN change.special p ON p.key = s.predicate
            UNION FROM bare UNION (FROM change.nodes SEMI JOIN relation USING (key))
            UNION (FROM change.nodes SEMI JOIN bridged USING (key))"""
        )
        if self._ranked:
            run(
                "INSERT INTO change.known FROM old.entities WHERE kind = 'entity' AND key IN "
                "(SELECT key FROM change.touched) AND id NOT IN (SELECT id FROM change.known)"
            )
        run("CREATE TABLE change.entities AS SELECT id FROM change.known SEMI JOIN change.touched USING (key) "
            "WHERE kind = 'entity'")  # fmt: skip
        run("CREATE TABLE change.relations AS SELECT id FROM change.counted SEMI JOIN change.touched USING (key)")
        run("CREATE TABLE change.special_relations AS "
            "SELECT id FROM change.counted SEMI JOIN change.special USING (key)")  # fmt: skip
        if number(self.connection, "SELECT count(*) FROM change.special_relations"):
            run(
                """
                INSERT INTO change.facts FROM old.triples t SEMI JOIN change.entities e ON e.id = t.head
                SEMI JOIN change.special_relations r ON r.id = t.relation ANTI JOIN change.facts f ON f.id = t.id"""
            )

    def _copy(self) -> None:
        """The tables of the part."""
        run = self.connection.execute
        for table, column in OWN.items():
            source = f"old.{table} o SEMI JOIN change.entities e ON e.id = o.{column}"
            run(f"CREATE TABLE part.{table} AS SELECT o.* FROM {source}")
        run("CREATE TABLE part.triples AS FROM change.facts ORDER BY id")
        run("CREATE TABLE part.relation_labels AS FROM old.relation_labels SEMI JOIN change.relations USING (id)")
        run("CREATE TABLE part.amends AS FROM old.amends a SEMI JOIN change.touched t ON t.key = a.subject")
        run("CREATE TABLE part.relations AS FROM old.relations")
        run("CREATE TABLE part.filtered AS FROM old.filtered")
        run("CREATE TABLE part.qualifiers AS FROM old.qualifiers")
        run("CREATE TABLE part.entities AS FROM change.known")
        run(
            """
            CREATE TABLE change.wanted AS SELECT DISTINCT id FROM (
              SELECT head AS id FROM part.triples UNION ALL SELECT tail FROM part.triples
              UNION ALL SELECT type FROM part.types UNION ALL SELECT super FROM part.subtypes)
            ANTI JOIN part.entities USING (id)"""
        )
        if number(self.connection, "SELECT count(*) FROM change.wanted"):
            run("INSERT INTO part.entities FROM old.entities SEMI JOIN change.wanted USING (id)")

    # -- what the part cannot see ----------------------------------------------------------------------------------

    def stated(self, connection: duckdb.DuckDBPyConnection) -> Stated:
        """The statements of roles among those staged that bear no name, which are the part's."""
        rows = connection.execute(
            """
            SELECT p.key, o.tag > 0, datatype, count(*) FROM raw r ANTI JOIN statement_names USING (n)
            JOIN terms p ON p.tid = r.predicate JOIN terms o ON o.tid = r.object JOIN tags ON tags.tag = o.tag
            GROUP BY ALL"""
        ).fetchall()
        roles: Counter[tuple[str, str]] = Counter()
        texts: Counter[str] = Counter()
        for key, literal, datatype, n in rows:
            role = self._roles.get((key, literal))
            if role is not None:
                roles[role, key] += n
            if role in ROLES[:3] and not datatype.startswith("@"):
                texts[datatype] += n
        return Stated(roles, texts)

    def add_relations(self, connection: duckdb.DuckDBPyConnection) -> None:
        """`relation_terms` also has terms that are relations by facts outside the part."""
        connection.execute(
            """
            INSERT INTO relation_terms SELECT tid, key FROM terms SEMI JOIN (
              SELECT key FROM change.counted LEFT JOIN (SELECT relation AS id, count(*) AS here FROM change.facts
              GROUP BY ALL) USING (id) WHERE n > coalesce(here, 0)) USING (key)
            ANTI JOIN relation_terms USING (tid) WHERE tag = 0"""
        )

    def add_entities(self, connection: duckdb.DuckDBPyConnection) -> None:
        """`ids` also has touched terms that are entities by facts or types outside the part."""
        connection.execute(
            """
            INSERT INTO ids
            WITH here AS (SELECT id, count(*) AS n FROM (SELECT head AS id FROM change.facts
                          UNION ALL SELECT tail FROM change.facts) GROUP BY id),
                 typed AS (SELECT type AS id FROM old.types ANTI JOIN change.entities e ON e.id = entity
                           UNION SELECT super FROM old.subtypes s ANTI JOIN change.entities e ON e.id = s.type),
                 elsewhere AS (SELECT k.key FROM change.known k SEMI JOIN change.entities USING (id)
                               LEFT JOIN here USING (id) LEFT JOIN typed USING (id)
                               WHERE k.popularity > coalesce(here.n, 0) OR typed.id IS NOT NULL)
            SELECT tid, ((SELECT coalesce(max(id) + 1, 0) FROM ids) + row_number() OVER (ORDER BY tid) - 1)::INTEGER
            FROM terms SEMI JOIN elsewhere USING (key) ANTI JOIN ids USING (tid) WHERE tag = 0"""
        )
