"""Tests of SQLite files that several processes open at once."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from kgqa_core.errors import StorageError
from kgqa_core.nn.vectors import VectorStore
from kgqa_core.store.sqlite import write_ahead


def test_change_of_mode_waits_for_a_process_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other = sqlite3.connect(path, timeout=60, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("PRAGMA journal_mode = WAL")  # SQLite itself does not wait
    timer = threading.Timer(0.2, holder.execute, ["COMMIT"])
    timer.start()
    write_ahead(other)
    timer.join()
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()
    holder.close()


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    with sqlite3.connect(path, isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        other = sqlite3.connect(path, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write_ahead(other, 0.05)
        other.close()


def test_store_that_another_process_holds_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgqa_core.nn.vectors.BUSY_SECONDS", 0.05)
    monkeypatch.setattr("kgqa_core.nn.vectors.write_ahead", lambda connection: write_ahead(connection, 0.05))
    path = tmp_path / "v.sqlite"
    with sqlite3.connect(path, isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="held by another process"):
            VectorStore(path, "one", 8)
