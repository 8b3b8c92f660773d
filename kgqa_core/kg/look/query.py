"""SQL over a graph, for people: reads its tables, and neither writes nor reads anything else."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.errors import FormTimeout, InputError
from kgqa_core.kg.attach import attach
from kgqa_core.kg.store import SCHEMA, KgStore
from kgqa_core.spool import shorten

SECONDS, MEMORY, LONGEST = 10.0, 2 << 30, 20_000
"""Most time and bytes of address space of `limited_query`, and characters of its statement."""
MOST_TEXT, MOST_OUTPUT = 2000, 4 << 20
"""Characters of a value, and bytes of its output."""

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


def limited_query(path: Path, sql: str, *, limit: int, seconds: float = SECONDS) -> dict[str, Any]:
    """The same in a process of its own with limits of time and memory, for others than the graph's owner.

    Values are as JSON has them, others as text, and long texts are cut.  Raises InputError, also where a limit is
    reached, and FormTimeout.
    """
    if len(sql) > LONGEST:
        raise InputError(f"the statement has {len(sql):,} characters; give at most {LONGEST:,}")
    command = [sys.executable, "-P", "-m", __name__, str(path), str(limit), str(math.ceil(seconds))]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    text = sql.encode("utf-8", "replace")
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=seconds, env=given)
    except subprocess.TimeoutExpired:
        raise FormTimeout(
            f"{shorten(sql)!r} took longer than {seconds:g} s; ask for less, or add a condition"
        ) from None
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise InputError(
            f"{shorten(sql)!r} needs more than {MEMORY >> 30} GB of memory, or gives too much; "
            "ask for fewer rows or columns"
        ) from None
    if "fault" in result:
        raise InputError(result["fault"])
    return result


def _write_query(path: str, limit: str, seconds: str) -> None:
    """The process of `limited_query`: reads a statement, and writes its rows or its fault as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (2 * int(seconds), 2 * int(seconds)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
    try:
        result = query(Path(path), sys.stdin.read(), limit=int(limit))
        result["rows"] = [[_plain(value) for value in row] for row in result["rows"]]
    except InputError as fault:
        result = {"fault": str(fault)}
    text = json.dumps(result, ensure_ascii=False)
    if len(text) > MOST_OUTPUT:
        text = json.dumps({"fault": f"the rows have more than {MOST_OUTPUT >> 20} MB; ask for fewer rows or columns"})
    sys.stdout.write(text)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 1 << 53):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = str(value)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _check(statements: Sequence[duckdb.Statement], sql: str) -> None:
    if not statements:
        raise InputError("there is no statement to run; write for example: SELECT count(*) FROM triples")
    refused = [statement.type.name for statement in statements if statement.type.name in REFUSED]
    refused += [result[0] for result in _LOGS.finditer(sql)]
    if refused:
        raise InputError(f"{refused[0]} is refused, since only this graph can be read; write SELECT … or FROM …")


if __name__ == "__main__":
    _write_query(*sys.argv[1:4])
