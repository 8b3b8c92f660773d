"""SQL over a graph, for people: reads its tables, and neither writes nor reads anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.errors import InputError
from kgqa_core.kg.attach import attach
from kgqa_core.kg.store import SCHEMA, KgStore
from kgqa_core.spool import shorten

REFUSED = ("CALL", "EXTENSION", "LOAD", "PRAGMA", "SET", "VARIABLE_SET")
"""Kinds of statements that change how DuckDB works, and read no graph."""

_LOGS = re.compile(r"\b(en|dis)able_(logging|profil\w*)", re.IGNORECASE)
"""Functions that a query can call to log into files, at whose first refused line DuckDB ends the whole process."""


def query(path: Path, sql: str, *, limit: int = 1000) -> dict[str, Any]:
    """At most `limit` rows of a statement, `{columns, rows, more}`.

    The file is attached read-only, other files and the network are out of reach, nothing is spilled to disk, and
    settings are locked: a read-only connection alone would still read and write other files.  Raises InputError with
    DuckDB's message and the tables, and for text without a statement or with one of REFUSED.
    """
    with KgStore.open(path) as store:
        file = store.path
    with duckdb.connect(":memory:", config={"threads": 2, "temp_directory": ""}) as connection:
        attach(connection, file)
        connection.execute("USE kg")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET lock_configuration = true")
        try:
            _check(connection.extract_statements(sql), sql)
            cursor = connection.execute(sql)
            rows = cursor.fetchmany(limit + 1) if cursor.description else []
            columns = [column[0] for column in cursor.description or ()]
        except duckdb.OutOfMemoryException:
            raise InputError("this statement needs more memory than there is; ask for fewer rows or columns") from None
        except duckdb.Error as fault:
            message = f"{shorten(sql)!r}: {str(fault).strip().splitlines()[0]}"
            raise InputError(f"{message}. Tables are {', '.join(SCHEMA)}; only this graph can be read") from None
    return {"columns": columns, "rows": [list(row) for row in rows[:limit]], "more": len(rows) > limit}


def _check(statements: Sequence[duckdb.Statement], sql: str) -> None:
    if not statements:
        raise InputError("there is no statement to run; write for example: SELECT count(*) FROM triples")
    refused = [statement.type.name for statement in statements if statement.type.name in REFUSED]
    refused += [result[0] for result in _LOGS.finditer(sql)]
    if refused:
        raise InputError(f"{refused[0]} is refused, since only this graph can be read; write SELECT … or FROM …")
