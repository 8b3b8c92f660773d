"""Vectors of texts that were encoded once, stored in one SQLite file that many processes share.

Vectors are in fixed point, int16 with `ONE` for 1, or for the encoder's span where they are no unit vectors.  Their dot
products are sums of whole numbers below 2^53, so double precision computes them exactly in whatever order, and equal
texts score exactly alike.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgqa_core.closing import Closing
from kgqa_core.errors import ArtifactError, StorageError
from kgqa_core.store.sqlite import BUSY_SECONDS, is_busy, write_ahead

FILE = "vectors.sqlite"
ONE = 32_767
"""What 1 is in fixed point."""

Vectors = NDArray[np.int16]

KEYS_AT_ONCE = 500
"""Keys in one statement."""
_ROWS = 4096
"""Vectors that are widened to double precision at once."""


class VectorStore(Closing):
    """Text → vector for one encoder; what `put` returned from survives a kill.

    path: the file, made where there is none; None keeps the vectors in memory.  encoder: digest of the encoder and of
    how it reads; vectors of another encoder in the same file are never seen.  width: numbers in a vector.
    Raises ArtifactError when the file is no store of vectors, StorageError when it cannot be made.
    """

    def __init__(self, path: Path | None, encoder: str, width: int) -> None:
        self.path, self.width = path, width
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path or ":memory:", timeout=BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as fault:
            raise StorageError(
                f"{path} cannot be opened ({fault}); free disk space or make its folder writable"
            ) from None
        try:
            write_ahead(self._connection)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_SCHEMA)
            self._connection.execute("INSERT OR IGNORE INTO encoders(digest) VALUES (?)", [encoder])
            [(self._encoder,)] = self._connection.execute("SELECT id FROM encoders WHERE digest = ?", [encoder])
        except sqlite3.Error as fault:
            self._connection.close()
            if is_busy(fault):
                raise StorageError(
                    f"{path} is held by another process ({fault}); start again when it has ended"
                ) from None
            raise self._unusable(fault) from None

    def close(self) -> None:
        """Lets the file go."""
        self._connection.close()

    def get(self, texts: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """The vectors of some distinct texts, int16 [n, width], and which of them are known, bool [n]."""
        vectors = np.zeros((len(texts), self.width), dtype=np.int16)
        known = np.zeros(len(texts), dtype=np.bool_)
        index_of = {text_key(text): index for index, text in enumerate(texts)}
        keys = list(index_of)
        try:
            for start in range(0, len(keys), KEYS_AT_ONCE):
                part = keys[start : start + KEYS_AT_ONCE]
                marks = ", ".join("?" * len(part))
                sql = f"SELECT text, vector FROM vectors WHERE encoder = ? AND text IN ({marks})"
                for key, vector in self._connection.execute(sql, [self._encoder, *part]):
                    if len(vector) == 2 * self.width:
                        vectors[index_of[key]] = np.frombuffer(vector, dtype="<i2")
                        known[index_of[key]] = True
        except sqlite3.Error as fault:
            raise self._unusable(fault) from None
        return vectors, known

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keeps the vectors of some texts, all of them or none; those that are there already stay."""
        rows = [
            (self._encoder, text_key(text), vector.astype("<i2").tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as fault:
            raise StorageError(f"{self.path} cannot be written ({fault}); free disk space and start again") from None
        except sqlite3.Error as fault:
            raise self._unusable(fault) from None

    def __len__(self) -> int:
        [(count,)] = self._connection.execute("SELECT count(*) FROM vectors WHERE encoder = ?", [self._encoder])
        return int(count)

    def _unusable(self, fault: Exception) -> ArtifactError:
        return ArtifactError(f"{self.path} is no store of vectors, or is damaged ({fault}); delete it to encode again")


def open_vectors(cache: Path | None, encoder: str, width: int) -> VectorStore:
    """The store in a home's cache folder; in memory without one."""
    return VectorStore(None if cache is None else Path(cache) / FILE, encoder, width)


def text_key(text: str) -> bytes:
    """First 16 bytes of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).digest()[:16]


def fixed_point(vectors: NDArray[np.floating]) -> Vectors:
    """Vectors of numbers in [-1, 1] in fixed point; what is beyond is cut.

    >>> fixed_point(np.array([[0.6, -0.8]]))
    array([[ 19660, -26214]], dtype=int16)
    """
    return np.rint(np.clip(vectors, -1, 1) * ONE).astype(np.int16)


def dots(rows: Vectors, columns: Vectors) -> NDArray[np.int64]:
    """Exact dot products [n, m] of vectors [n, width] and [m, width]; `ONE` ** 2 is a cosine of 1.

    >>> dots(np.array([[3, 4]], dtype=np.int16), np.array([[3, 4], [-4, 3]], dtype=np.int16))
    array([[25,  0]])
    """
    right = columns.astype(np.float64).T
    parts = [rows[start : start + _ROWS].astype(np.float64) @ right for start in range(0, len(rows), _ROWS)]
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros((0, len(columns)), dtype=np.int64)


_SCHEMA = """
    CREATE TABLE IF NOT EXISTS encoders(id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS vectors(
        encoder INTEGER NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, UNIQUE (encoder, text)
    );
"""
