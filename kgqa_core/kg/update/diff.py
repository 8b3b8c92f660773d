"""What differs between two graphs, by keys: ids may be whatever they are.

Everything is computed in DuckDB on both files, read only, within a memory limit.  A term of both graphs goes by its id
in the new one; a term of the old graph alone by `-1 - id`.  So graphs whose ids agree (one is an update of the other)
need no join of keys beyond the comparison of rows with the same id.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from kgqa_core.errors import ArtifactError
from kgqa_core.kg.attach import shut_out
from kgqa_core.kg.sql import number, quoted
from kgqa_core.kg.store import FILE, SCHEMA, KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.artifacts import write_json
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.workspace import Workspace

IDENTITY = ("kind", "key", "datatype", "detail")
"""Columns of `entities` that identify its rows."""

ENTITY_COLUMNS = {
    "entities": ("id",),
    "labels": ("id",),
    "aliases": ("id",),
    "triples": ("head", "tail"),
    "qualifiers": ("head", "tail", "value"),
    "types": ("entity", "type"),
    "subtypes": ("type", "super"),
    "supertypes": ("type", "super"),
    "bridges": ("entity",),
}
RELATION_COLUMNS = {
    "relations": ("id",),
    "relation_labels": ("id",),
    "triples": ("relation",),
    "qualifiers": ("over", "relation"),
}
"""Columns that hold ids, by table; a qualifier has `head`, `over`, `tail` of its triple in place of the triple's id."""

COMPARED = tuple(table for table in SCHEMA if table not in ("filtered", "rejects", "meta"))
"""Tables that make up the graph; the others record how it was read."""

ABOUT = {"triples": "head", "qualifiers": "head", "labels": "id", "aliases": "id", "types": "entity",
         "subtypes": "type", "bridges": "entity"}  # fmt: skip
"""Tables whose rows change the entity in a column: a fact about it, a name, a type."""


LISTS = ("entities.parquet", "relations.parquet", "triples.parquet", "summary.json")
"""Files that `compare` writes."""


def compare(
    workspace: Workspace, old: Path, new: Path, *, memory_limit: str = "2GB", threads: int = 2
) -> dict[str, dict[str, int]]:
    """Entities, literals, relations and triples that were added, removed and changed from `old` to `new`.

    An entity of both is changed when a triple that it is the head of, a qualifier of one, a name, a type or a bridge
    differs; a relation when a label or its datatype does; a triple when its rank or a qualifier does.  In
    `workspace.out` entities.parquet, relations.parquet and triples.parquet list them, sorted by change and key, and
    summary.json holds the counts.  Raises ArtifactError for a path without graph.
    """
    with _both(old, new, memory_limit, threads, workspace.work) as (connection, scratch):
        _differ(connection, workspace.monitor)
        summarise(connection)
        _name_entities(connection)
        name_relations(connection)
        summary = counted(connection)
        workspace.out.mkdir(parents=True, exist_ok=True)
        write_lists(connection, scratch, workspace.out)
        write_json(workspace.out / "summary.json", summary)
    return summary


def differences(a: Path, b: Path) -> dict[str, tuple[int, int]]:
    """Rows that only `a` and only `b` has, by table; tables without such rows are left out."""
    results = {}
    with _both(a, b, "2GB", 2, None) as (connection, _):
        _differ(connection, QUIET)
        for table in COMPARED:
            counts = tuple(_count(connection, f"FROM only_{side}_{table}") for side in ("old", "new"))
            if any(counts):
                results[table] = (counts[0], counts[1])
    return results


@contextmanager
def _both(
    old: Path, new: Path, memory_limit: str, threads: int, work: Path | None
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A connection with both graphs attached, read only, as `old` and `new`, and the one folder it may write into."""
    for graph in (old, new):
        KgStore.open(graph).close()
    with scratch_folder(work, "kgqa-diff") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "threads": threads,
            "temp_directory": str(folder / "spill"),
        }
        with duckdb.connect(":memory:", config=config) as connection:
            for name, graph in (("old", old), ("new", new)):
                path = graph / FILE if graph.is_dir() else graph
                connection.execute(f"ATTACH {quoted(path)} AS {name} (READ_ONLY)")
            shut_out(connection, folder)
            try:
                yield connection, folder
            except duckdb.OutOfMemoryException as fault:
                raise ArtifactError(
                    f"{memory_limit} of memory does not suffice to compare {old} and {new} "
                    f"({str(fault).splitlines()[0]}); raise kg.memory_limit"
                ) from None


def _differ(connection: duckdb.DuckDBPyConnection, monitor: Monitor) -> None:
    """Tables `only_old_T` and `only_new_T` of every compared table, and `moved_entity`, `moved_relation`."""
    _match(connection, "entity", "entities", IDENTITY)
    _match(connection, "relation", "relations", ("key",))
    for done, table in enumerate(COMPARED):
        monitor.progress(done, len(COMPARED), f"comparing {table}")
        old_sql, columns = _rows(table, "old", "moved_entity", "moved_relation")
        new_sql, _ = _rows(table, "new", None, None)
        for side, this, other in (("old", old_sql, new_sql), ("new", new_sql, old_sql)):
            equal = " AND ".join(f'm."{c}" IS NOT DISTINCT FROM o."{c}"' for c in columns)
            connection.execute(
                f"CREATE TABLE only_{side}_{table} AS SELECT * FROM ({this}) m "
                f"WHERE NOT EXISTS (SELECT 1 FROM ({other}) o WHERE {equal})"
            )
    monitor.progress(len(COMPARED), len(COMPARED), "comparing")


def _match(connection: duckdb.DuckDBPyConnection, name: str, table: str, identity: tuple[str, ...]) -> None:
    """`moved_NAME(id, uid)`: ids of `old` that go by another number; `gone_`, `come_NAME`: ids of one graph only."""
    equal = " AND ".join(f"o.{column} IS NOT DISTINCT FROM n.{column}" for column in identity)
    run = connection.execute
    for side, this, other in (("old", "o", "n"), ("new", "n", "o")):
        against = "new" if side == "old" else "old"
        run(
            f"CREATE TABLE rest_{side} AS SELECT {this}.id FROM {side}.{table} {this} "
            f"LEFT JOIN {against}.{table} {other} ON o.id = n.id WHERE ({equal}) IS NOT TRUE OR {other}.id IS NULL"
        )
    run(
        f"CREATE TABLE moved_{name} AS SELECT o.id::BIGINT AS id, n.id::BIGINT AS uid FROM "
        f"(SELECT * FROM old.{table} SEMI JOIN rest_old USING (id)) o JOIN "
        f"(SELECT * FROM new.{table} SEMI JOIN rest_new USING (id)) n ON {equal}"
    )
    run(f"CREATE TABLE gone_{name} AS SELECT id::BIGINT AS id FROM rest_old ANTI JOIN moved_{name} USING (id)")
    run(
        f"CREATE TABLE come_{name} AS SELECT id::BIGINT AS id FROM rest_new "
        f"WHERE id NOT IN (SELECT uid FROM moved_{name})"
    )
    run(f"INSERT INTO moved_{name} SELECT id, -1 - id FROM gone_{name}")
    run("DROP TABLE rest_old; DROP TABLE rest_new")


def _rows(table: str, catalog: str, entity_map: str | None, relation_map: str | None) -> tuple[str, tuple[str, ...]]:
    """SQL of a table's rows with numbers that both graphs share in place of ids, and its columns."""
    columns = [column.split()[0] for column in SCHEMA[table].split(", ")]
    source = f"SELECT * FROM {catalog}.{table}"
    if table == "qualifiers":
        columns = ["head", "over", "tail", "statement", "relation", "value"]
        source = (
            "SELECT head, t.relation AS over, tail, statement, q.relation, value "
            f"FROM {catalog}.qualifiers q JOIN {catalog}.triples t ON t.id = q.triple"
        )
    if table == "triples":
        columns.remove("id")
    if table == "entities":
        columns = [column for column in columns if column not in IDENTITY]
    if table == "relations":
        columns.remove("key")
    chosen, joins = [], []
    for column in columns:
        entity = column in ENTITY_COLUMNS.get(table, ())
        mapping = entity_map if entity else relation_map
        if not entity and column not in RELATION_COLUMNS.get(table, ()):
            chosen.append(f't."{column}"')
        elif mapping is None:
            chosen.append(f't."{column}"::BIGINT AS "{column}"')
        else:
            chosen.append(f'coalesce(m_{column}.uid, t."{column}"::BIGINT) AS "{column}"')
            joins.append(f'LEFT JOIN {mapping} m_{column} ON m_{column}.id = t."{column}"')
    return f"SELECT {', '.join(chosen)} FROM ({source}) t {' '.join(joins)}", tuple(columns)


def summarise(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes `entity_changes(change, id)`, `relation_changes`, `triple_changes`.

    Needs only_old_T and only_new_T, `come_entity(id)`, `gone_entity`, `come_relation`, `gone_relation`.
    """
    run = connection.execute
    touched = " UNION ".join(
        f"SELECT {column} AS id FROM only_{side}_{table}" for table, column in ABOUT.items() for side in ("old", "new")
    )
    views = (
        "SELECT n.id FROM only_old_entities o JOIN only_new_entities n USING (id) "
        "WHERE o.views IS DISTINCT FROM n.views"
    )
    run(
        f"""
        CREATE TABLE entity_changes AS
        SELECT 'added' AS change, id FROM come_entity UNION ALL SELECT 'removed', -1 - id FROM gone_entity UNION ALL
        SELECT 'changed', id FROM ({touched} UNION {views}) WHERE id >= 0 AND id NOT IN (SELECT id FROM come_entity)"""
    )
    labelled = "SELECT id FROM only_old_relation_labels UNION SELECT id FROM only_new_relation_labels"
    run(
        f"""
        CREATE TABLE relation_changes AS
        SELECT 'added' AS change, id FROM come_relation UNION ALL SELECT 'removed', -1 - id FROM gone_relation UNION ALL
        SELECT 'changed', id FROM ({labelled} UNION SELECT id FROM only_new_relations)
        WHERE id >= 0 AND id NOT IN (SELECT id FROM come_relation)"""
    )
    ends = "head, relation, tail"
    qualified = "SELECT head, over AS relation, tail FROM only_{}_qualifiers"
    run(
        f"""
        CREATE TABLE triple_changes AS
        WITH come AS (SELECT {ends} FROM only_new_triples ANTI JOIN only_old_triples USING ({ends})),
             gone AS (SELECT {ends} FROM only_old_triples ANTI JOIN only_new_triples USING ({ends})),
             ranked AS (SELECT {ends} FROM only_old_triples JOIN only_new_triples USING ({ends})
                        UNION {qualified.format("old")} UNION {qualified.format("new")})
        SELECT 'added' AS change, * FROM come UNION ALL SELECT 'removed', * FROM gone UNION ALL
        SELECT 'changed', * FROM ranked ANTI JOIN come USING ({ends}) ANTI JOIN gone USING ({ends})"""
    )


def _name_entities(connection: duckdb.DuckDBPyConnection) -> None:
    """terms(id, kind, key, datatype, detail) of all that is in a list."""
    connection.execute(
        """
        CREATE VIEW terms AS SELECT id::BIGINT AS id, kind, key, datatype, detail FROM new.entities UNION ALL
        SELECT -1 - id::BIGINT, kind, key, datatype, detail FROM old.entities SEMI JOIN gone_entity USING (id)"""
    )


def name_relations(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes `relation_terms(id, key)` of all that is in a list."""
    connection.execute(
        """
        CREATE VIEW relation_terms AS SELECT id::BIGINT AS id, key FROM new.relations UNION ALL
        SELECT -1 - id::BIGINT, key FROM old.relations SEMI JOIN gone_relation USING (id)"""
    )


def counted(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, int]]:
    """How much was added, removed and changed, of what `summarise` made; needs `terms`."""
    summary = {name: {"added": 0, "removed": 0, "changed": 0} for name in ("entities", "relations", "triples")}
    summary["literals"] = {"added": 0, "removed": 0}
    for name, sql in {
        "entities": "entity_changes JOIN terms USING (id) WHERE kind = 'entity'",
        "literals": "entity_changes JOIN terms USING (id) WHERE kind = 'literal' AND change <> 'changed'",
        "relations": "relation_changes",
        "triples": "triple_changes",
    }.items():
        summary[name] |= dict(connection.execute(f"SELECT change, count(*) FROM {sql} GROUP BY change").fetchall())
    return summary


def write_lists(connection: duckdb.DuckDBPyConnection, scratch: Path, out: Path) -> None:
    """Writes the lists to `out`, by way of `scratch`; needs `terms` and `relation_terms`."""
    order = "ORDER BY ALL) TO {} (FORMAT parquet, COMPRESSION zstd)"
    for name, sql in {
        "entities": "SELECT change, kind, key, datatype, detail FROM entity_changes JOIN terms USING (id)",
        "relations": "SELECT change, key FROM relation_changes JOIN relation_terms USING (id)",
        "triples": "SELECT change, h.key AS head, r.key AS relation, t.key AS tail, t.datatype, t.detail "
        "FROM triple_changes x JOIN terms h ON h.id = head JOIN terms t ON t.id = tail "
        "JOIN relation_terms r ON r.id = relation",
    }.items():
        file = scratch / f"{name}.parquet"
        connection.execute(f"COPY ({sql} {order.format(quoted(file))}")
        shutil.move(file, out / file.name)


def _count(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    return number(connection, f"SELECT count(*) {sql}")
