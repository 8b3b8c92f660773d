"""What an update changed, listed as `kg.update.diff` does, from what `kg.update.patch_apply` changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from kgqa_core.kg.update import diff
from kgqa_core.store.artifacts import VOLATILE, write_json

LISTS = f"{VOLATILE}/diff"
"""Where an updated graph's folder lists what changed: entities, relations and triples, and a summary."""


def write_changes(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[str], folder: Path, scratch: Path
) -> dict[str, dict[str, int]]:
    """Writes the lists of `diff.compare` to `folder`, by way of `scratch`, and returns their summary.

    tables: those that were changed row by row.
    """
    with connection.cursor() as cursor:
        run = cursor.execute
        run("ATTACH ':memory:' AS lists; USE lists")
        run("CREATE TABLE come_entity AS SELECT id::BIGINT AS id FROM change.ids WHERE fresh")
        run("CREATE TABLE come_relation AS SELECT id::BIGINT AS id FROM change.relation_ids WHERE fresh")
        run("CREATE TABLE gone_entity AS SELECT id::BIGINT AS id FROM change.lost")
        run("CREATE TABLE gone_relation AS SELECT id::BIGINT AS id FROM change.lost_relations")
        ends = "head, relation, tail"
        sources = {f"{side}_{table}": f"FROM change.{name}_{table}"
                   for side, name in (("old", "less"), ("new", "more")) for table in tables}  # fmt: skip
        sources |= {
            "old_triples": f"SELECT {ends}, rank FROM change.gone UNION ALL SELECT {ends}, rank FROM change.ranked",
            "new_triples": f"SELECT {ends}, rank FROM change.came UNION ALL SELECT {ends}, new_rank FROM change.ranked",
            "new_relations": "SELECT id FROM change.retyped",
        }
        for side in ("old", "new"):
            sources[f"{side}_entities"] = "SELECT NULL::BIGINT AS id, NULL::BIGINT AS views WHERE false"
            nothing = ", ".join(f"NULL::BIGINT AS {column}" for column in ("head", "over", "tail"))
            sources[f"{side}_qualifiers"] = f"SELECT {nothing} WHERE false"
        for name, sql in sources.items():
            side, table = name.split("_", 1)
            run(f"CREATE TABLE only_{name} AS {_by_number(table, sql) if side == 'old' else sql}")
        diff.summarise(cursor)
        identity = ", ".join(diff.IDENTITY)
        run(
            f"""
            CREATE TABLE terms AS
            SELECT CASE WHEN g.id IS NULL THEN e.id::BIGINT ELSE -1 - g.id END AS id, {identity} FROM part.entities e
            LEFT JOIN gone_entity g ON g.id = e.id
            UNION ALL SELECT i.id, {identity} FROM kg.entities e JOIN change.ids i ON i.mini = e.id WHERE fresh"""
        )
        diff.name_relations(cursor)
        summary = diff.counted(cursor)
        folder.mkdir(parents=True, exist_ok=True)
        diff.write_lists(cursor, scratch, folder)
        write_json(folder / "summary.json", summary)
    return summary


def _by_number(table: str, sql: str) -> str:
    """Rows of the old graph, in which terms that went have the number -1 - id, as in `diff`."""
    if table in ("entities", "qualifiers"):  # there are none
        return sql
    columns = diff.ENTITY_COLUMNS.get(table, ()), diff.RELATION_COLUMNS.get(table, ())
    replaced = [
        f"CASE WHEN {column} IN (FROM gone_{name}) THEN -1 - {column}::BIGINT ELSE {column}::BIGINT END AS {column}"
        for name, some in zip(("entity", "relation"), columns, strict=True)
        for column in some
    ]
    return f"SELECT * REPLACE ({', '.join(replaced)}) FROM ({sql})" if replaced else sql
