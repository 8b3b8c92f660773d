"""Small things that every piece of SQL here needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb


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


def drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drops what goes by this name, a table or a view."""
    view = number(connection, "SELECT count(*) FROM duckdb_views() WHERE view_name = ? AND NOT internal", [name])
    connection.execute(f"DROP {'VIEW' if view else 'TABLE'} {name}")
