"""What the staged statements mean: roles, ranks, filters, qualifiers; then types, bridges and page views of the graph.

All terms are integers here (`tid`).  `select` runs between staging and encoding, `finish` after it; both are sorts and
joins in DuckDB, which spill when memory is short.  What comes out depends on the statements only, not on their order.
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.kg import bridges, filters
from kgqa_core.kg.ingest import popularity, qualifiers
from kgqa_core.kg.ingest.staging import Staged
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.sql import number
from kgqa_core.kg.vocabulary import HIDDEN_ALIAS
from kgqa_core.monitor import QUIET, Monitor

NAMES, TYPES = ("label", "alias", "description"), ("type", "subtype")
ROLES = NAMES + TYPES

RANKS_DROPPED = "ranks_dropped"
"""Count of preferred names and types, whose rank is not kept, as it is in triples; only where there are any."""

CLOSURE_CHUNK = 5_000
"""Types whose supertypes are found at once."""

CLOSURE_LEVELS = 100
"""Levels of supertypes that are stored above a type, so that a type has at most so many rows."""


def select(
    connection: duckdb.DuckDBPyConnection,
    options: KgOptions,
    staged: Staged,
    monitor: Monitor = QUIET,
    relations: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """Makes `statements`, the distinct statements that stay, of the staged `raw`, `terms` and `tags`; and counts.

    statements(subject, predicate, object, role, best, rank, stated): role is one of ROLES or null, best its index in
    the options, rank the best that was stated; stated is false for a triple derived from a qualifier.  Further:
    `facts` (statements that become triples), `texts` (names), `relation_terms(tid, key)` (every relation, derived ones
    with a tid after the terms), `kept_qualifiers(subject, predicate, object, statement, relation, value)`.
    Statements read = stated rows of facts + `duplicates` + `labels` + `aliases` + `descriptions` +
    `type_statements` + `filtered` + rejects.  relations: keys that the graph has beside those of its statements.
    Raises KgInputError when no relation of the keep-list is in the graph, or the file of page views is not there.
    """
    run = connection.execute
    popularity.views_source(options)
    _roles(connection, options)
    literals = number(connection, "SELECT count(*) FROM terms WHERE tag = 0")  # all terms from there on are literals
    source = _judge(connection, options, staged, literals, monitor, relations)
    if source == "raw" and staged.distinct:
        source_table, rank, read = "raw_distinct", "0::TINYINT", "sum(copies) FROM raw_distinct"
    else:
        source_table, rank, read = (
            "distinct_statements",
            "rank" if staged.ranked else "0::TINYINT",
            f"count(*) FROM {source}",
        )
        best_rank = ", max(rank) AS rank" if staged.ranked else ""
        run(
            f"CREATE TABLE {source_table} AS SELECT subject, predicate, object{best_rank} FROM {source} "
            "GROUP BY subject, predicate, object"
        )
    run("CREATE TABLE derived(subject INTEGER, predicate INTEGER, object INTEGER)")
    role, best = _role_sql(connection, literals)
    run(
        f"""
        CREATE VIEW statements AS
        SELECT subject, predicate, object, {role} AS role, {best} AS best, {rank} AS rank, true AS stated
        FROM {source_table}
        UNION ALL SELECT subject, predicate, object, NULL, NULL, 0::TINYINT, false FROM derived"""
    )
    duplicates = number(connection, f"SELECT (SELECT {read}) - (SELECT count(*) FROM statements)")
    texts, types = _sql(NAMES), _sql(TYPES)
    triple = "role IS NULL" + (f" OR role IN {types}" if options.types_as_triples else "")
    run(f"CREATE VIEW facts AS SELECT * FROM statements WHERE {triple}")
    run(f"CREATE VIEW texts AS SELECT * FROM statements WHERE role IN {texts}")
    counted = qualifiers.select(connection, options, staged, f"(SELECT *, {role} AS role FROM {source})", triple)
    run(
        """
        CREATE TABLE relation_terms AS
        SELECT tid, key FROM terms WHERE tid IN (SELECT predicate FROM facts UNION SELECT relation FROM kept_qualifiers)
        UNION SELECT tid, key FROM derived_relations ORDER BY tid"""
    )
    bridges.select(connection, options, literals)
    row = run(
        f"""
        SELECT count(*) FILTER (role = 'label'), count(*) FILTER (role = 'alias'),
               count(*) FILTER (role = 'description'),
               count(*) FILTER (role IN {types} AND NOT {options.types_as_triples}),
               (SELECT coalesce(sum(statements), 0)::BIGINT FROM filtered WHERE NOT starts_with(rule, 'qualifier')),
               count(*) FILTER (rank > 0 AND NOT ({triple}))
        FROM statements"""
    ).fetchone()
    names = ("labels", "aliases", "descriptions", "type_statements", "filtered", RANKS_DROPPED)
    counts = dict(zip(names, map(int, row or (0,) * len(names)), strict=True)) | {"duplicates": duplicates} | counted
    if not counts[RANKS_DROPPED]:
        del counts[RANKS_DROPPED]
    return counts


def finish(connection: duckdb.DuckDBPyConnection, options: KgOptions, monitor: Monitor = QUIET) -> dict[str, int]:
    """Fills types, subtypes, supertypes, qualifiers, bridges, filtered and page views of `kg`, and counts.

    Needs the tables that `select` made, `ids(tid, id)`, `relation_ids(tid, id)`, and the other tables of `kg` filled.
    """
    run = connection.execute
    for table, role in (("types", "type"), ("subtypes", "subtype")):
        run(
            f"""
            INSERT INTO kg.{table} SELECT DISTINCT a.id, b.id FROM statements s
            JOIN ids a ON a.tid = s.subject JOIN ids b ON b.tid = s.object WHERE s.role = '{role}' ORDER BY 1, 2"""
        )
    deeper = close_types(connection)
    if deeper:
        monitor.note(
            f"{deeper:,} types have more than {CLOSURE_LEVELS} levels of supertypes above them; those further up are "
            "not stored (leave the predicate out of kg.subtype_predicates if it is no hierarchy of types)"
        )
    qualifiers.finish(connection)
    bridges.finish(connection)
    run(
        "INSERT INTO kg.filtered SELECT rule, sum(statements)::BIGINT FROM filtered "
        "GROUP BY rule HAVING sum(statements) > 0 ORDER BY rule"
    )
    counts = {"types_deeper": deeper} if deeper else {}
    for name, sql in {
        "types": "SELECT count(DISTINCT type) FROM kg.types",
        "supertypes": "SELECT count(*) FROM kg.supertypes",
        "bridges": "SELECT count(*) FROM kg.bridges",
    }.items():
        counts[name] = number(connection, sql)
    if options.page_views:
        counts |= popularity.add_views(connection, options, monitor)
    return counts


def close_types(
    connection: duckdb.DuckDBPyConnection,
    chunk: int = CLOSURE_CHUNK,
    levels: int = CLOSURE_LEVELS,
    database: str = "kg",
) -> int:
    """Fills `supertypes` of a database: every type up to `levels` above each type that an entity has, itself left out.

    Cycles do no harm.  Returns how many types have more levels above them.
    """
    run = connection.execute
    starts = [
        t
        for (t,) in run(
            f"SELECT DISTINCT type FROM {database}.types JOIN {database}.subtypes USING (type) ORDER BY 1"
        ).fetchall()
    ]
    deeper = 0
    for first in range(0, len(starts), chunk):
        last = starts[min(first + chunk, len(starts)) - 1]
        run(
            f"""
            CREATE OR REPLACE TEMP TABLE above AS SELECT DISTINCT type, super FROM {database}.subtypes
            WHERE type BETWEEN {starts[first]} AND {last} AND type IN (SELECT type FROM {database}.types)"""
        )
        run("CREATE OR REPLACE TEMP TABLE level AS FROM above")
        for level in range(levels):
            run(
                f"""
                CREATE OR REPLACE TEMP TABLE level AS
                SELECT DISTINCT l.type, s.super FROM level l JOIN {database}.subtypes s ON s.type = l.super
                ANTI JOIN above a ON a.type = l.type AND a.super = s.super WHERE s.super <> l.type"""
            )
            if not number(connection, "SELECT count(*) FROM level"):
                break
            if level + 1 == levels:
                deeper += number(connection, "SELECT count(DISTINCT type) FROM level")
            else:
                run("INSERT INTO above FROM level")
        run(f"INSERT INTO {database}.supertypes SELECT type, super FROM above WHERE type <> super ORDER BY type, super")
    run("DROP TABLE IF EXISTS above")
    run("DROP TABLE IF EXISTS level")
    return deeper


def _roles(connection: duckdb.DuckDBPyConnection, options: KgOptions) -> None:
    """The table `roles(predicate, role, best)` of predicates that are no plain relations; best: 0 comes first."""
    connection.execute("CREATE TABLE roles(predicate INTEGER, role VARCHAR, best INTEGER)")
    rows = [(key, role, best) for role, keys in configured_predicates(options).items() for key, best in keys.items()]
    if rows:
        connection.execute(
            f"INSERT INTO roles SELECT tid, role, best FROM terms JOIN (VALUES {', '.join(['(?, ?, ?)'] * len(rows))}) "
            "AS wanted(key, role, best) USING (key) WHERE tag = 0",
            [value for row in rows for value in row],
        )


def configured_predicates(options: KgOptions) -> dict[str, dict[str, int]]:
    """The predicates of each role, by key, and the index of each in the options; one in two roles has the first."""
    aliases = (*options.alias_predicates, *(() if options.literal else (HIDDEN_ALIAS,)))
    names = (options.label_predicates, aliases, options.description_predicates)
    results: dict[str, dict[str, int]] = {}
    seen: set[str] = set()
    for role, predicates in zip(ROLES, (*names, options.type_predicates, options.subtype_predicates), strict=True):
        results[role] = {}
        for best, predicate in enumerate(predicates):
            key = bare_key(predicate)
            if key not in seen:
                seen.add(key)
                results[role][key] = best
    return results


def _role_sql(connection: duckdb.DuckDBPyConnection, literals: int) -> tuple[str, str]:
    """The role of a statement, and its index among the predicates of that role, as expressions of its columns."""
    rows = connection.execute("SELECT predicate, role, best FROM roles ORDER BY predicate").fetchall()
    if not rows:
        return "NULL::VARCHAR", "NULL::INTEGER"
    fits = {role: f"object {'>=' if role in NAMES else '<'} {literals}" for role in ROLES}
    roles = " ".join(f"WHEN predicate = {tid} AND {fits[role]} THEN '{role}'" for tid, role, _ in rows)
    best_cases = " ".join(f"WHEN {tid} THEN {best}" for tid, _, best in rows)
    return f"CASE {roles} END", f"CASE predicate {best_cases} END"


def _judge(
    connection: duckdb.DuckDBPyConnection,
    options: KgOptions,
    staged: Staged,
    literals: int,
    monitor: Monitor,
    relations: frozenset[str],
) -> str:
    """The table of statements that stay: `raw` where no rule applies, else the view `unfiltered`; counts by rule."""
    run = connection.execute
    filtering = filters.prepare(connection, options, monitor, relations)
    ranking = staged.ranked and options.ranks != "all"
    if not filtering and not ranking:
        return "raw"
    codes = {rule: code for code, rule in run("SELECT code, rule FROM rule_names").fetchall()}
    by_rank, preferred = "0", ""
    if ranking:
        by_rank = f"CASE WHEN s.rank < 0 THEN {codes[filters.DEPRECATED]} ELSE 0 END"
        if options.ranks == "truthy":
            preferred = (
                "LEFT JOIN (SELECT DISTINCT subject, predicate, true AS has FROM raw WHERE rank > 0) p "
                "ON p.subject = s.subject AND p.predicate = s.predicate"
            )
            by_rank = (
                f"CASE WHEN s.rank < 0 THEN {codes[filters.DEPRECATED]} "
                f"WHEN p.has AND s.rank < 1 THEN {codes[filters.NOT_PREFERRED]} ELSE 0 END"
            )
    run(
        f"""
        CREATE TABLE judged AS
        SELECT s.n, s.subject, s.predicate, s.object, s.rank,
               coalesce(b.rule, CASE WHEN s.object >= {literals} AND r.role IN {_sql(NAMES)} THEN l.rule
                                     ELSE v.rule END, {by_rank})::UTINYINT AS rule
        FROM raw s LEFT JOIN roles r ON r.predicate = s.predicate
        LEFT JOIN predicate_rules b ON b.predicate = s.predicate
        LEFT JOIN (SELECT tid, rule FROM terms JOIN value_rules USING (tag)) v ON v.tid = s.object
        LEFT JOIN (SELECT tid, rule FROM terms JOIN name_rules USING (tag)) l ON l.tid = s.object
        {preferred}"""
    )
    run(
        "INSERT INTO filtered SELECT n.rule, count(*) FROM judged j JOIN rule_names n ON n.code = j.rule "
        "WHERE j.rule > 0 GROUP BY n.rule"
    )
    run("CREATE VIEW unfiltered AS SELECT n, subject, predicate, object, rank FROM judged WHERE rule = 0")
    return "unfiltered"


def _sql(names: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{name}'" for name in names) + ")"
