"""Changes the copy of a graph where the part made anew (`kg`) differs from the part as it was (`part`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import READ, SUMMED, graph_meta
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.ingest import interpret
from kgqa_core.kg.ingest.restate import Stated
from kgqa_core.kg.sql import execute_with, in_pieces, number
from kgqa_core.kg.store import SCHEMA, write_meta
from kgqa_core.kg.update import diff, patch_kernels
from kgqa_core.kg.update.patch_lists import LISTS, write_changes
from kgqa_core.kg.update.patch_region import OWN
from kgqa_core.workspace import Workspace

Array = NDArray[Any]

CHUNK = 8 * 122_880
"""Triples that are merged at once: whole row groups of DuckDB."""

ROWS = (*OWN, "relation_labels", "amends")
"""Tables that are changed row by row."""


def apply(
    workspace: Workspace,
    connection: duckdb.DuckDBPyConnection,
    meta: Mapping[str, Any],
    record: Mapping[str, Any],
    counts: Mapping[str, int],
    options: KgOptions,
    scratch: Path,
) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Brings `new`, a copy of `old`, up to date; its meta with `reading`, counts of READ, and the summary of changes.

    record: what `restate.record` returned for the part.  counts: of the build of the part.  Lists of what changed are
    written to LISTS beside the graph, by way of the folder `scratch`.
    """
    _number(connection, meta["next_ids"])
    _compare_facts(connection)
    triples = number(
        connection,
        "SELECT count(*) FROM (SELECT id FROM change.gone UNION ALL SELECT head FROM change.came "
        "UNION ALL SELECT id FROM change.ranked)",
    )
    if triples:  # dropped before anything else is written, so that its room in the file can be used again
        connection.execute(f"DROP TABLE new.triples; CHECKPOINT new; CREATE TABLE new.triples({SCHEMA['triples']})")
    with ThreadPoolExecutor(1) as other, connection.cursor() as writer:
        merging = other.submit(_merge_triples, writer) if triples else None
        for table in ROWS:
            _change_rows(connection, table)
        _change_entities(connection)
        if merging is not None:
            merging.result()
    _change_relations(connection)
    deeper = _close_types(connection, meta)
    for table in ("filtered", "rejects"):
        connection.execute(f"DELETE FROM new.{table}; INSERT INTO new.{table} FROM kg.{table}")
    workspace.monitor.progress(80, 100, "% · changing the graph")
    stated = Stated.of(record["stated"])
    total = _counts(connection, meta["counts"], stated, counts, options) | deeper
    following = {
        table: max(first, number(connection, f"SELECT max(id) + 1 FROM new.{table}"))
        for table, first in meta["next_ids"].items()
    }
    about = {name: record[name] for name in ("options", "stated", "usual")}
    new = about | graph_meta(options, total) | {"next_ids": following}
    connection.execute("DELETE FROM new.meta")
    write_meta(connection, "new", new)
    return new | {"reading": {name: total[name] for name in READ if name in total}}, write_changes(
        connection, ROWS, workspace.out / LISTS, scratch
    )


def _number(connection: duckdb.DuckDBPyConnection, first: Mapping[str, int]) -> None:
    """change.ids and change.relation_ids(mini, id, fresh): the ids that the terms of the part have in the graph."""
    identity = "m.kind = k.kind AND m.key = k.key AND m.datatype IS NOT DISTINCT FROM k.datatype " \
               "AND m.detail IS NOT DISTINCT FROM k.detail"  # fmt: skip
    for name, table, known, equal in (
        ("ids", "entities", "part.entities", identity),
        ("relation_ids", "relations", "part.relations", "m.key = k.key"),
    ):
        connection.execute(
            f"""
            CREATE TABLE change.{name} AS
            SELECT mini, coalesce(id, {first[table]} + row_number() OVER (PARTITION BY id IS NULL ORDER BY mini) - 1
                   )::INTEGER AS id, id IS NULL AS fresh
            FROM (SELECT m.id AS mini, k.id FROM kg.{table} m LEFT JOIN {known} k ON {equal})"""
        )


def _compare_facts(connection: duckdb.DuckDBPyConnection) -> None:
    """change.gone(id, …), change.came, change.ranked(id, …, rank, new_rank), change.degrees(id, d)."""
    run = connection.execute
    ends = "head, relation, tail"
    run(
        """
        CREATE TABLE change.now AS SELECT h.id AS head, r.id AS relation, t.id AS tail, rank FROM kg.triples x
        JOIN change.ids h ON h.mini = x.head JOIN change.relation_ids r ON r.mini = x.relation
        JOIN change.ids t ON t.mini = x.tail"""
    )
    run(f"CREATE TABLE change.gone AS FROM change.facts ANTI JOIN change.now USING ({ends}) ORDER BY id")
    run(f"CREATE TABLE change.came AS FROM change.now ANTI JOIN change.facts USING ({ends}) ORDER BY {ends}")
    run(
        f"CREATE TABLE change.ranked AS SELECT f.*, n.rank AS new_rank FROM change.facts f JOIN change.now n "
        f"USING ({ends}) WHERE f.rank <> n.rank ORDER BY f.id"
    )
    run(
        """
        CREATE TABLE change.degrees AS SELECT id, sum(d)::BIGINT AS d FROM (
          SELECT head AS id, -1 AS d FROM change.gone UNION ALL SELECT tail, -1 FROM change.gone
          UNION ALL SELECT head, 1 FROM change.came UNION ALL SELECT tail, 1 FROM change.came) GROUP BY id"""
    )


def _change_rows(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Changes the rows of a table that differ; they are change.less_T and change.more_T."""
    run = connection.execute
    columns = [column.split()[0] for column in SCHEMA[table].split(", ")]
    chosen, joins = [], []
    for column in columns:
        ids = "ids" if column in diff.ENTITY_COLUMNS.get(table, ()) else "relation_ids"
        if ids == "ids" or column in diff.RELATION_COLUMNS.get(table, ()):
            chosen.append(f'i_{column}.id AS "{column}"')
            joins.append(f'JOIN change.{ids} i_{column} ON i_{column}.mini = m."{column}"')
        else:
            chosen.append(f'm."{column}"')
    run(f"CREATE TABLE change.now_{table} AS SELECT {', '.join(chosen)} FROM kg.{table} m {' '.join(joins)}")
    run(f"CREATE TABLE change.less_{table} AS FROM part.{table} EXCEPT FROM change.now_{table}")
    run(f"CREATE TABLE change.more_{table} AS FROM change.now_{table} EXCEPT FROM part.{table} ORDER BY ALL")
    if number(connection, f"SELECT count(*) FROM change.less_{table}"):
        equal = " AND ".join(f'l."{column}" IS NOT DISTINCT FROM o."{column}"' for column in columns)
        run(f"DELETE FROM new.{table} o USING change.less_{table} l WHERE {equal}")
    run(f"INSERT INTO new.{table} FROM change.more_{table}")


def _merge_triples(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills new.triples anew, as ids number the triples in their order."""
    gone, *_ = _columns(connection, "SELECT id FROM change.gone ORDER BY id")
    *ends, came_ranks = _columns(connection, "FROM change.came ORDER BY head, relation, tail")
    came = np.ascontiguousarray(np.stack(ends).astype(np.int32))
    ranked, new_ranks = _columns(connection, "SELECT id, new_rank FROM change.ranked ORDER BY id")
    state = np.zeros(3, dtype=np.int64)

    def merged() -> Iterator[pa.Table]:
        at = 0
        with connection.cursor() as reader:
            for first, rows, ranks, last in _pieces(reader):
                out = np.empty((3, rows.shape[1] + came.shape[1]), dtype=np.int32)
                out_ranks = np.empty(out.shape[1], dtype=np.int8)
                n = patch_kernels.merge(
                    first, rows, ranks, gone, came, came_ranks, ranked, new_ranks, last, state, out, out_ranks
                )
                head, relation, tail = (column[:n] for column in out)
                numbers = np.arange(at, at + n, dtype=np.int64)
                yield pa.table({"id": numbers, "h": head, "r": relation, "t": tail, "k": out_ranks[:n]})
                at += n

    for table in read_ahead(merged, depth=1):
        execute_with(connection, "INSERT INTO new.triples SELECT * FROM batch", in_pieces(table))


def _pieces(reader: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, Array, Array, bool]]:
    """The old triples by id: id of the first, rows [3, n], ranks, and whether these are the last."""
    order = "" if number(reader, "SELECT count(*) FROM old.triples WHERE id <> rowid") == 0 else " ORDER BY id"
    batches = reader.execute(f"SELECT head, relation, tail, rank FROM old.triples{order}").to_arrow_reader(CHUNK)
    before: tuple[int, Array, Array] | None = None
    first = 0
    for batch in batches:
        if before is not None:
            yield (*before, False)
        *ends, ranks = (column.to_numpy() for column in batch.columns)
        before = first, np.stack(ends), ranks
        first += batch.num_rows
    if before is not None:
        yield (*before, True)


def _columns(connection: duckdb.DuckDBPyConnection, query: str) -> list[Array]:
    return [column.to_numpy() for column in connection.execute(query).to_arrow_table().columns]


def _change_entities(connection: duckdb.DuckDBPyConnection) -> None:
    """Degrees, entities that came, and those that nothing states any more: change.lost(id, kind)."""
    run = connection.execute
    run(
        """
        INSERT INTO new.entities SELECT i.id, e.* EXCLUDE (id) FROM kg.entities e JOIN change.ids i ON i.mini = e.id
        WHERE fresh ORDER BY i.id"""
    )
    run(
        """
        UPDATE new.entities SET popularity = popularity + d FROM (FROM change.degrees ANTI JOIN (
          SELECT id FROM change.ids WHERE fresh) USING (id)) c WHERE c.id = entities.id AND d <> 0"""
    )
    run(
        """
        CREATE TABLE change.lost AS
        WITH left_over AS (SELECT id, kind, key, popularity + coalesce(d, 0) AS degree FROM part.entities
                           LEFT JOIN change.degrees USING (id) ANTI JOIN change.ids USING (id))
        SELECT id, kind, key FROM left_over WHERE degree = 0"""
    )
    # Of the few that no triple has, those that nothing else states either.
    for sql in (
        "SELECT entity AS id FROM new.types UNION ALL SELECT type FROM new.types",
        "SELECT type AS id FROM new.subtypes UNION ALL SELECT super FROM new.subtypes",
        "SELECT id FROM (SELECT id FROM new.labels UNION ALL SELECT id FROM new.aliases) "
        "WHERE id NOT IN (SELECT id FROM change.entities)",
        "SELECT l.id FROM new.amends a JOIN change.lost l ON l.key = a.subject AND l.kind = 'entity' "
        "SEMI JOIN change.name_predicates p ON p.key = a.predicate "
        "WHERE stated AND a.datatype IS NOT NULL AND l.id NOT IN (SELECT id FROM change.entities)",
    ):
        run(f"DELETE FROM change.lost WHERE id IN (SELECT id FROM ({sql}) SEMI JOIN change.lost USING (id))")
    run("DELETE FROM new.entities WHERE id IN (SELECT id FROM change.lost)")


def _change_relations(connection: duckdb.DuckDBPyConnection) -> None:
    """Relations that came and went (change.lost_relations(id)), and datatypes of others (change.retyped(id))."""
    run = connection.execute
    run(
        """
        CREATE TABLE change.relation_counts AS
        SELECT id, sum(n)::BIGINT AS n, sum(gone)::BIGINT AS gone, sum(came)::BIGINT AS came FROM (
          SELECT id, n, 0 AS gone, 0 AS came FROM change.counted
          UNION ALL SELECT relation, 0, 1, 0 FROM change.gone UNION ALL SELECT relation, 0, 0, 1 FROM change.came)
        GROUP BY id"""
    )
    run("CREATE TABLE change.lost_relations AS SELECT id FROM change.relation_counts WHERE n - gone + came = 0")
    kind = "coalesce(datatype, 'entity')"
    run(
        f"""
        CREATE TABLE change.datatypes AS
        WITH touched AS (SELECT c.id, o.key, o.datatype AS before, n > gone AS stays, gone > 0 AS loses
                         FROM change.relation_counts c LEFT JOIN part.relations o USING (id)
                         WHERE gone + came > 0 AND n - gone + came > 0),
             mixed AS (SELECT id FROM touched WHERE stays AND loses AND before = 'mixed'),
             met AS (SELECT id, before AS datatype FROM touched WHERE stays AND id NOT IN (FROM mixed)
                     UNION SELECT relation, {kind} FROM change.came JOIN change.ids i ON i.id = tail
                     JOIN kg.entities e ON e.id = i.mini WHERE relation NOT IN (FROM mixed)
                     UNION SELECT relation, {kind} FROM new.triples t SEMI JOIN mixed m ON m.id = t.relation
                     JOIN new.entities e ON e.id = t.tail)
        SELECT id, CASE WHEN count(*) > 1 THEN 'mixed' ELSE min(datatype) END AS datatype FROM met GROUP BY id"""
    )
    run(
        """
        CREATE TABLE change.retyped AS SELECT id, d.datatype FROM change.datatypes d JOIN part.relations o USING (id)
        WHERE d.datatype IS DISTINCT FROM o.datatype"""
    )
    run("UPDATE new.relations SET datatype = c.datatype FROM change.retyped c WHERE c.id = relations.id")
    run("DELETE FROM new.relations WHERE id IN (FROM change.lost_relations)")
    run(
        """
        INSERT INTO new.relations SELECT i.id, r.key, d.datatype FROM kg.relations r
        JOIN change.relation_ids i ON i.mini = r.id JOIN change.datatypes d ON d.id = i.id WHERE fresh ORDER BY i.id"""
    )


def _close_types(connection: duckdb.DuckDBPyConnection, meta: Mapping[str, Any]) -> dict[str, int]:
    """Makes new.supertypes anew where it may differ; `types_deeper`, where there are any."""
    changed = number(
        connection,
        """
        SELECT count(*) FROM (
          SELECT type FROM change.less_subtypes UNION ALL SELECT type FROM change.more_subtypes UNION ALL
          (SELECT type FROM change.less_types ANTI JOIN new.types USING (type)) UNION ALL
          (SELECT type FROM change.more_types ANTI JOIN old.types USING (type)))""",
    )
    deeper = meta["counts"].get("types_deeper", 0)
    if changed:
        connection.execute("DELETE FROM new.supertypes")
        deeper = interpret.close_types(connection, database="new")
    return {"types_deeper": deeper} if deeper else {}


def _counts(
    connection: duckdb.DuckDBPyConnection,
    before: Mapping[str, int],
    stated: Stated,
    part: Mapping[str, int],
    options: KgOptions,
) -> dict[str, int]:
    """What a build of the whole graph counts."""
    counts = dict(before)
    for name, kind in (("entities", "entity"), ("literals", "literal")):
        came = "SELECT count(*) FROM change.ids i JOIN kg.entities e ON e.id = i.mini WHERE fresh AND kind = $1"
        lost = "SELECT count(*) FROM change.lost WHERE kind = $1"
        counts[name] += number(connection, came, [kind]) - number(connection, lost, [kind])
    for name, sql in {
        "relations": "SELECT count(*) FROM new.relations",
        "triples": "SELECT count(*) FROM new.triples",
        "types": "SELECT count(DISTINCT type) FROM new.types",
        "supertypes": "SELECT count(*) FROM new.supertypes",
        "bridges": "SELECT count(*) FROM new.bridges",
    }.items():
        counts[name] = number(connection, sql)
    for name, role in (("labels", "label"), ("aliases", "alias"), ("descriptions", "description")):
        counts[name] = stated.of_role(role)
    counts["type_statements"] = 0 if options.types_as_triples else sum(map(stated.of_role, ("type", "subtype")))
    for name in ("filtered", "rejects", "duplicates", "ignored", "unread", interpret.RANKS_DROPPED):
        if name in part:
            counts[name] = part[name]
    counts["statements"] = sum(counts[name] for name in SUMMED)
    return counts
