"""Digests: of a file's bytes, and of what a folder of tables says whatever container it is in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
VOLATILE = "volatile"
"""Sub-folder of an artifact that is kept but not digested: timings, logs, pages."""
CHUNK = 1 << 20


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files with their relative names."""
    if path.is_file():
        return hash_file(path)
    lines = [f"{file.relative_to(path)} {hash_file(file)}" for file in sorted(path.rglob("*")) if file.is_file()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def content_digest(folder: Path) -> str:
    """SHA-256 of a folder's canonical content: rows and values, not the bytes of containers.

    Parquet counts as its rows in order, JSON as sorted keys, a DuckDB file as the rows of its tables in the order of
    their columns, anything else as its bytes.  The manifest and `volatile/` do not count.
    """
    lines = []
    for file in content_files(folder):
        name = file.relative_to(folder).as_posix()
        if file.suffix == ".parquet":
            value = _hash_parquet(file)
        elif file.suffix == ".json":
            value = hashlib.sha256(canonical_json(json.loads(file.read_text(encoding="utf-8"))).encode()).hexdigest()
        elif file.suffix == ".duckdb":
            value = _hash_duckdb(file)
        else:
            value = hash_file(file)
        lines.append(f"{name} {value}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def content_files(folder: Path) -> list[Path]:
    """Files of a folder that count for its digest, in the order of their names."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != MANIFEST and VOLATILE not in file.relative_to(folder).parts
    ]


def _hash_parquet(path: Path) -> str:
    import polars

    frame = polars.read_parquet(path, glob=False)
    digest = hashlib.sha256(str(frame.schema).encode())
    for part in frame.iter_slices(50_000):
        digest.update(part.write_ndjson().encode())
    return digest.hexdigest()


_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_PLAIN = {*_INTEGERS, "DOUBLE", "VARCHAR"}
"""Types of DuckDB that are digested as they are; a time counts as its microseconds, anything else as its text."""

_DIGEST_MEMORY = "1GB"


def _hash_duckdb(path: Path) -> str:
    """Digest of the tables' rows in the order of all columns, whatever order they are stored in.

    A table whose first column is an integer that rises from row to row is stored in this order: it is read through.
    Others are sorted.  Each column has a digest of its own, so that the pieces in which rows come do not matter.
    """
    import duckdb

    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        # An instance of its own, so that other readers of the file in this process may have other settings.
        config: dict[str, Any] = {"memory_limit": _DIGEST_MEMORY, "temp_directory": scratch, "threads": 2}
        with duckdb.connect(":memory:", config=config) as base:
            base.execute(f"ATTACH {_quoted(path)} AS content (READ_ONLY)")
            tables = base.execute(
                "SELECT table_name, list(column_name ORDER BY column_index), list(data_type ORDER BY column_index) "
                "FROM duckdb_columns() WHERE database_name = 'content' AND NOT internal AND table_name IN "
                "(SELECT table_name FROM duckdb_tables() WHERE database_name = 'content') GROUP BY 1 ORDER BY 1"
            ).fetchall()
            with ThreadPoolExecutor(2) as pool:
                for part in pool.map(lambda table: _hash_table(base, *table), tables):
                    digest.update(canonical_json(part).encode())
    return digest.hexdigest()


def _hash_table(base: Any, table: str, names: list[str], types: list[str]) -> list[Any]:
    """What counts of a table: its name, columns, and the digests of its rows."""
    columns = [_digested(name, kind) for name, kind in zip(names, types, strict=True)]
    query = f'SELECT {", ".join(columns)} FROM (FROM content."{table}"{{}})'
    with base.cursor() as connection:
        digest = None
        if types[0] in _INTEGERS:
            digest = _hash_rows(connection, query.format(""), len(columns), rising=True)
        if digest is None:
            digest = _hash_rows(connection, query.format(" ORDER BY ALL"), len(columns))
    return [table, names, types, digest]


def _digested(name: str, kind: str) -> str:
    """A column as it is digested."""
    return f'"{name}"' if kind in _PLAIN else f'epoch_us("{name}")' if kind == "TIMESTAMP" else f'"{name}"::VARCHAR'


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _rises(last: int | None, column: Any) -> bool:
    """Does an integer column rise from each row to the next, and from `last`?"""
    if column.null_count:
        return False
    values = column.to_numpy()
    return not len(values) or not ((last is not None and values[0] <= last) or (values[1:] <= values[:-1]).any())


def _ahead(items: Iterator[Any]) -> Generator[Any, None, None]:
    """The same items, each of which is fetched while the one before is in use."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def _hash_rows(connection: Any, query: str, width: int, rising: bool = False) -> list[Any] | None:
    """How many rows a query has, and for every column digests of its values, lengths and empty places.

    rising: None where the first column, of integers, does not rise from row to row.
    """
    digests = [[hashlib.sha256() for _ in range(3)] for _ in range(width)]
    rows, last = 0, None
    with contextlib.closing(_ahead(connection.execute(query).to_arrow_reader(200_000))) as batches:
        for batch in batches:
            if rising and not _rises(last, batch.column(0)):
                return None
            last = batch.column(0)[-1].as_py() if rising and batch.num_rows else last
            for parts, column in zip(digests, batch.columns, strict=True):
                _update(parts, column, rows)
            rows += batch.num_rows
    return [rows, *([part.hexdigest() for part in column] for column in digests)]


def _update(digests: Sequence[Any], column: Any, first: int) -> None:
    """Takes a piece of a column into its digests: of values, lengths and empty places, counted from `first`."""
    import numpy as np
    import pyarrow as pa

    values, lengths, empty = digests
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        empty.update((np.flatnonzero(missing) + first).tobytes())
        column = column.fill_null("" if text else 0)
    if text:
        column = column.cast(pa.large_string())
        offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset :][: len(column) + 1]
        lengths.update(np.diff(offsets).tobytes())
        if column.buffers()[2] is not None:
            values.update(memoryview(column.buffers()[2])[offsets[0] : offsets[-1]])
    else:
        values.update(np.ascontiguousarray(column.to_numpy()).tobytes())
