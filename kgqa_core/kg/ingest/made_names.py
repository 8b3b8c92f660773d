"""Names for what a graph does not name: blank nodes by what they hold ("9 Elm Court, Leeds"), classes by their keys."""

from __future__ import annotations

import re

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.kg.names import BLANK_NODE, END_SQL, NAME_SQL, bare_key, language_order
from kgqa_core.kg.sql import number
from kgqa_core.kg.store import BLANK_NODES_NAMED

MAX_PARTS, MAX_LENGTH = 6, 120
"""Values in a name, and its characters."""

ADDRESS = ("name|title", "street|line", "number", "city|town|locality", "region|state|county", "post|zip", "country")
"""Words in relations, in the order in which an address is written; what has none of them comes first."""


def name_blank_nodes(connection: duckdb.DuckDBPyConnection, options: KgOptions) -> dict[str, int]:
    """Labels the blank nodes of `kg` that have no label with their values, and counts them.

    Values are literals and entities with a name, without types, in the order of an address, then of the relations.  A
    node with a single entity gets none, as it would be that one's.
    """
    run = connection.execute
    run(
        f"""
        CREATE TEMP TABLE unnamed AS
        SELECT id FROM kg.entities
        WHERE kind = 'entity' AND regexp_matches(key, '{BLANK_NODE}') AND id NOT IN (SELECT id FROM kg.labels)"""
    )
    if not number(connection, "SELECT count(*) FROM unnamed"):
        run("DROP TABLE unnamed")
        return {}
    languages = language_order(options.languages)
    place = " ".join(
        f"WHEN regexp_matches(lower({NAME_SQL.format(key='r.key')}), '{words}') THEN {number}"
        for number, words in enumerate(ADDRESS, start=1)
    )
    run(
        f"""
        INSERT INTO kg.labels
        WITH parts AS (
          SELECT u.id, CASE {place} ELSE 0 END AS place, r.key AS relation, e.key AS value, e.kind,
                 CASE WHEN e.kind = 'literal' THEN e.key
                      ELSE coalesce(l.label, {NAME_SQL.format(key="e.key")}) END AS part
          FROM unnamed u JOIN kg.triples t ON t.head = u.id JOIN kg.relations r ON r.id = t.relation
          JOIN kg.entities e ON e.id = t.tail
          LEFT JOIN (SELECT id, arg_min(label, (coalesce(list_position($1, lang), 1000), lang)) AS label
                     FROM kg.labels WHERE label IS NOT NULL AND id IN (
                       SELECT tail FROM kg.triples WHERE head IN (FROM unnamed)) GROUP BY id) l ON l.id = e.id
          WHERE e.id NOT IN (FROM unnamed) AND NOT list_contains($2, r.key)),
        ordered AS (SELECT id, part, kind, row_number() OVER (PARTITION BY id ORDER BY place, relation, value) AS n
                    FROM parts)
        SELECT id, '', left(string_agg(part, ', ' ORDER BY n), {MAX_LENGTH}), NULL FROM ordered
        WHERE n <= {MAX_PARTS} GROUP BY id HAVING count(*) > 1 OR max(kind) = 'literal' ORDER BY id""",
        [languages, [bare_key(key) for key in options.type_predicates]],
    )
    named = number(connection, "SELECT count(*) FROM unnamed WHERE id IN (SELECT id FROM kg.labels)")
    run("DROP TABLE unnamed")
    return {BLANK_NODES_NAMED: named} if named else {}


def name_classes(connection: duckdb.DuckDBPyConnection, options: KgOptions) -> None:
    """Labels classes of `kg` whose labels are all in other languages than the wanted ones with the words of their keys.

    `HamTopping` is "Ham Topping", alias "HamTopping".  Keys that do not begin with a letter make no name.
    """
    wanted = "|".join(
        re.escape(language) for language in (*language_order(options.languages), "") if "*" not in language
    )
    run = connection.execute
    run(
        f"""
        CREATE TEMP TABLE called AS
        SELECT id, {END_SQL.format(key="key")} AS alias, {NAME_SQL.format(key="key")} AS label FROM kg.entities
        WHERE id IN (SELECT type FROM kg.subtypes UNION SELECT super FROM kg.subtypes UNION SELECT type FROM kg.types)
          AND id IN (SELECT id FROM kg.labels WHERE label IS NOT NULL)
          AND id NOT IN (SELECT id FROM kg.labels
                         WHERE label IS NOT NULL AND (regexp_full_match(lang, '({wanted})(-.*)?') OR lang = ''))
          AND regexp_matches(alias, '^\\p{{L}}{{2}}')"""
    )
    run("INSERT INTO kg.labels SELECT id, '', label, NULL FROM called ORDER BY id")
    run("INSERT INTO kg.aliases SELECT id, '', alias FROM called WHERE alias <> label ORDER BY id; DROP TABLE called")
