"""Helpers of code that speaks SQL to DuckDB: literals, single values, memory sizes, Arrow tables in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from kgqa_core.errors import KgInputError


def quoted(text: str | Path) -> str:
    """A text as an SQL literal.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + str(text).replace("'", "''") + "'"


def number(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] = ()) -> int:
    """The integer that a query gives; 0 for NULL or no row."""
    row = connection.execute(sql, list(parameters)).fetchone()
    return int(row[0] or 0) if row else 0


@contextmanager
def registered(connection: duckdb.DuckDBPyConnection, **tables: pl.DataFrame | pa.Table) -> Iterator[None]:
    """Statements can read the tables by these names as long as the context lasts."""
    for name, table in tables.items():
        connection.register(name, table.to_arrow() if isinstance(table, pl.DataFrame) else table)
    try:
        yield
    finally:
        for name in tables:
            connection.unregister(name)


def execute_with(connection: duckdb.DuckDBPyConnection, statement: str, batch: pl.DataFrame | pa.Table) -> None:
    """Runs a statement that reads `batch`."""
    with registered(connection, batch=batch):
        connection.execute(statement)


def drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drops what goes by this name, a table or a view."""
    view = number(connection, "SELECT count(*) FROM duckdb_views() WHERE view_name = ? AND NOT internal", [name])
    connection.execute(f"DROP {'VIEW' if view else 'TABLE'} {name}")


_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def memory_bytes(text: str) -> int:
    """Bytes of a size such as `4GB` or `512MiB`.  Raises KgInputError."""
    match = re.fullmatch(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS or float(match[1]) <= 0:
        raise KgInputError(f"kg.memory_limit is {text!r}; give a size such as 4GB or 512MB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def in_pieces(table: pa.Table) -> pa.Table:
    """The table in batches as large as a row group of DuckDB, which then takes them on several threads, in order."""
    return pa.Table.from_batches(table.to_batches(max_chunksize=122_880), table.schema)
