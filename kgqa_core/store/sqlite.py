"""SQLite files that several processes open at once."""

from __future__ import annotations

import sqlite3
import time

BUSY_SECONDS = 120.0
"""How long a process waits for another one that is writing."""
_PAUSE = 0.01


def write_ahead(connection: sqlite3.Connection, seconds: float = BUSY_SECONDS) -> None:
    """Puts a database into write-ahead mode, waiting while another process does the same.

    SQLite's own timeout does not cover this change: of two processes that make it at once, one gets "database is
    locked" immediately.  Raises sqlite3.OperationalError after `seconds`, and at once for any other fault.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as fault:
            if not is_busy(fault) or time.monotonic() >= end:
                raise
        time.sleep(_PAUSE)


def is_busy(fault: sqlite3.Error) -> bool:
    """Whether another process holds the file."""
    return (fault.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
