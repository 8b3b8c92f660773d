"""Where secrets have been written: every file below a folder, whatever it is packed in.

Text of Parquet and DuckDB files is read column by column and SQLite row by row, since these pack it; gzip and Zstandard
are unpacked; anything else counts byte by byte.
"""

from __future__ import annotations

import base64
import gzip
import sqlite3
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import polars as pl
import zstandard


def forms(secret: str) -> list[bytes]:
    """A secret as it is, as URLs write it, and the parts of its Base64 that do not depend on what stands before."""
    plain = secret.encode()
    found = {plain, urllib.parse.quote(secret, safe="").encode(), urllib.parse.quote_plus(secret).encode()}
    for ahead in range(3):
        packed = base64.b64encode(b"\0" * ahead + plain).rstrip(b"=")
        inner = packed[-(-ahead * 8 // 6) : len(packed) - (1 if (ahead + len(plain)) % 3 else 0)]
        found |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return sorted(found)


def traces(folder: Path, secrets: Iterable[str]) -> list[str]:
    """Files below `folder`, and names of files, that hold a form of a secret: `path: secret`."""
    wanted = [(secret, form) for secret in secrets for form in forms(secret)]
    found = set()
    for path in sorted(folder.rglob("*")):
        parts = [str(path.relative_to(folder)).encode()]
        if path.is_file() and not path.is_symlink():
            parts = [*parts, *contents(path)]
        for part in parts:
            found |= {f"{path.relative_to(folder)}: {secret}" for secret, form in wanted if form in part}
    return sorted(found)


def contents(path: Path) -> Iterator[bytes]:
    """What a file holds, packed and unpacked."""
    data = path.read_bytes()
    yield data
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        yield zstandard.ZstdDecompressor().decompressobj().decompress(data)
    elif data[:4] == b"PAR1":
        for column in pl.read_parquet(path).iter_columns():
            yield "\n".join(map(str, column.to_list())).encode()
    elif data[:16] == b"SQLite format 3\0":
        with sqlite3.connect(path) as connection:
            connection.text_factory = bytes
            yield from _rows(connection, connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        connection.close()
    elif data[8:12] == b"DUCK":
        with duckdb.connect(str(path), read_only=True) as connection:
            yield from _rows(connection, connection.execute("SELECT table_name FROM duckdb_tables()"))


def _rows(connection: sqlite3.Connection | duckdb.DuckDBPyConnection, tables: object) -> Iterator[bytes]:
    for (name,) in list(tables.fetchall()):  # type: ignore[attr-defined]
        table = name.decode() if isinstance(name, bytes) else name
        if table.startswith("sqlite_"):
            continue
        for row in connection.execute(f'SELECT * FROM "{table}"').fetchall():
            yield b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
