"""Graph files written by ids, without a build: for what reads triples and kinds only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl

from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta


def write_ids(
    folder: Path,
    kinds: Sequence[str | None],
    relations: Sequence[bool],
    triples: Sequence[tuple[int, int, int]],
    *,
    in_order: bool = True,
) -> Path:
    """A graph folder: kinds by entity id (None is a hole), relations by id (False is a hole), triples sorted."""
    folder.mkdir()
    rows = [(i, f"e{i}", kind) for i, kind in enumerate(kinds) if kind is not None]
    tables = {
        "entities(id, key, kind)": pl.DataFrame(rows, ["id", "key", "kind"], orient="row"),
        "relations(id, key)": pl.DataFrame(
            [(i, f"http://x/r{i}") for i, there in enumerate(relations) if there], ["id", "key"], orient="row"
        ),
        "triples(id, head, relation, tail)": pl.DataFrame(
            [(i, *triple) for i, triple in enumerate(sorted(set(triples)))],
            ["id", "head", "relation", "tail"],
            orient="row",
        ),
    }
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder / 'kg.duckdb'}' AS kg")
        create_tables(connection, "kg")
        for table, frame in tables.items():
            if frame.height:
                connection.register("frame", frame.to_arrow())
                connection.execute(
                    f"INSERT INTO kg.{table} SELECT * FROM frame ORDER BY id {'' if in_order else 'DESC'}"
                )
                connection.unregister("frame")
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return folder
