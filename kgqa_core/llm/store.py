"""A SQLite file that several processes and threads write: one writing thread per process, many writes a commit.

All writes that wait are made in one transaction, those of one kind together, so that an event loop never waits for a
disk and a thousand writes a second cost a few dozen commits.  A write counts as done only when it is on disk.  One that
cannot be written, for what it holds, fails alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from kgqa_core.errors import StorageError
from kgqa_core.store.sqlite import BUSY_SECONDS, write_ahead

log = logging.getLogger("kgqa.llm")

T = TypeVar("T")
Write = Callable[[sqlite3.Connection], T]
Many = Callable[[sqlite3.Connection, Sequence[Any]], Sequence[Any]]
"""Writes several items in one go and gives one result for each; a `FailedWrite` is raised to whom that item belongs."""

IDLE_SECONDS = 0.05
"""After this long without work the writing thread ends; the next write starts another."""

GATHER_SECONDS = 0.003
"""How long a write waits for company where nobody blocks on it: one commit for many costs little."""

ROW_FAULTS = (
    OverflowError, ValueError, TypeError, AttributeError, sqlite3.InterfaceError, sqlite3.ProgrammingError,
    sqlite3.DataError, sqlite3.IntegrityError,
)  # fmt: skip
"""Faults of what is written, not of the file or the disk."""

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_open: weakref.WeakValueDictionary[str, CompletionStore] = weakref.WeakValueDictionary()
_opening = threading.Lock()


class CompletionStore:
    """One SQLite file in WAL mode, or a database in memory when path is None.

    schema: statements that make the tables where they are absent.  Use `open_store`, which gives all users of a file in
    this process the same store.  Raises StorageError when the file cannot be opened; a damaged one is moved aside.
    """

    def __init__(self, path: Path | None, schema: str) -> None:
        self.path = path
        self._read_only = path is not None and path.exists() and not os.access(path.parent, os.W_OK)
        self._mutex = threading.Condition(threading.Lock())
        self._queue: list[tuple[Many, Any, _Promise | None]] = []
        self._fault: Exception | None = None
        self._hurry = False
        self._running = False
        self._busy = threading.Lock()
        self._writer = self._connect(schema)
        if path is None:
            self._reader, self._reading = self._writer, self._busy
        else:
            self._reader, self._reading = self._connect(""), threading.Lock()
        weakref.finalize(self, _close, self._writer, self._reader)

    def _connect(self, schema: str) -> sqlite3.Connection:
        try:
            if self.path is not None and not self._read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            index = ":memory:" if self.path is None else str(self.path)
            if self.path is not None and self._read_only:  # without locks and journals, which are files too
                index = f"{self.path.resolve().as_uri()}?immutable=1"
            connection = sqlite3.connect(
                index, uri=self._read_only, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            if self._read_only:
                return connection
            write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            for statement in filter(str.strip, schema.split(";")):
                connection.execute(statement)
        except (sqlite3.Error, OSError) as fault:
            raise self._explain(fault) from fault
        return connection

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows of a query.  Sees what was written, by this process and by others."""
        try:
            with self._reading:
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as fault:
            raise self._explain(fault) from fault

    def submit(self, write: Write[T]) -> Future[T]:
        """Queues a function of the connection; the future is done when what it wrote is on disk.

        A function that raises anything but a fault of SQLite must not have written.
        """
        promise: Future[T] = Future()
        self._hurry = True
        self._add(_call, write, promise)
        return promise

    async def run(self, many: Many, item: Any) -> Any:
        """Queues an item for `many` and waits for its result without blocking the event loop."""
        promise = asyncio.get_running_loop().create_future()
        self._add(many, item, promise)
        return await promise

    def post(self, many: Many, item: Any) -> None:
        """Queues an item for `many` and returns at once; `flush` waits for it.  Raises what an earlier one met."""
        if self._fault is not None:
            raise self._fault
        self._add(many, item, None)

    def flush(self) -> None:
        """Waits until all that was queued is on disk.  Raises StorageError when the disk refused some of it."""
        self.submit(lambda connection: None).result()
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _add(self, many: Many, item: Any, promise: _Promise | None) -> None:
        with self._mutex:
            self._queue.append((many, item, promise))
            if not self._running:
                self._running = True
                threading.Thread(target=self._drain, name="kgqa-store").start()
            elif len(self._queue) == 1:
                self._mutex.notify()

    def _drain(self) -> None:
        while True:
            with self._mutex:
                if not self._queue:
                    self._mutex.wait(IDLE_SECONDS)
                if not self._queue:
                    self._running = False
                    return
                hurry = self._hurry
            if not hurry:
                time.sleep(GATHER_SECONDS)
            with self._mutex:
                batch, self._queue, self._hurry = self._queue, [], False
            results = self._commit(batch)
            for (_, _, promise), result in zip(batch, results, strict=True):
                if promise is None and isinstance(result, FailedWrite) and self._fault is None:
                    self._fault = result.fault
            _resolve_all([promise for _, _, promise in batch], results)

    def _commit(self, batch: Sequence[tuple[Many, Any, _Promise | None]]) -> list[Any]:
        """Results of the items, in their order; the fault for all of them when the disk refuses.

        Posted items are written first: who waits sees what was posted before, such as room that was given back.
        """
        indices: dict[Many, list[int]] = {}
        for index in sorted(range(len(batch)), key=lambda index: batch[index][2] is not None):
            indices.setdefault(batch[index][0], []).append(index)
        results: list[Any] = [None] * len(batch)
        with self._busy:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                for many, own in indices.items():
                    for index, result in zip(own, self._write(many, [batch[at][1] for at in own]), strict=True):
                        results[index] = result
                self._writer.execute("COMMIT")
            except Exception as fault:  # raised for all who wait; the thread goes on
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                known = self._explain(fault) if isinstance(fault, sqlite3.Error) else fault
                return [FailedWrite(known)] * len(batch)
        return results

    def _write(self, many: Many, items: Sequence[Any]) -> Sequence[Any]:
        """Results of the items of one kind; where one of them cannot be written each is written by itself."""
        self._writer.execute("SAVEPOINT kind")
        try:
            return many(self._writer, items)
        except ROW_FAULTS as fault:
            self._writer.execute("ROLLBACK TO kind")
            if len(items) > 1:
                return [result for item in items for result in self._write(many, [item])]
            where = self.path or "memory"
            return [FailedWrite(StorageError(f"a row cannot be written to {where} ({fault}); all others are written"))]
        finally:
            if self._writer.in_transaction:
                self._writer.execute("RELEASE kind")

    def _explain(self, fault: Exception) -> StorageError:
        code = getattr(fault, "sqlite_errorcode", None)
        if self.path is not None and code is not None and code & 0xFF in DAMAGED:
            aside = _move_aside(self.path)
            return StorageError(
                f"the file of paid answers {self.path} is damaged ({fault}); it is kept as {aside.name} in the same "
                "folder, where `sqlite3 FILE .recover` may save its rows; run the same command again to go on with an "
                "empty one"
            )
        return StorageError(
            f"the file of paid answers {self.path or 'in memory'} cannot be used ({fault}); free space, make it "
            "writable, or choose another --home"
        )


class FailedWrite:
    """A result that is raised where it is waited for."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault


def _call(connection: sqlite3.Connection, writes: Sequence[Write[Any]]) -> list[Any]:
    results: list[Any] = []
    for write in writes:
        try:
            results.append(write(connection))
        except sqlite3.Error:
            raise
        except Exception as fault:
            results.append(FailedWrite(fault))
    return results


_Promise = Future[Any] | asyncio.Future[Any]


def open_store(path: Path | None, schema: str) -> CompletionStore:
    """The store of a file: the same object for all who have it open in this process."""
    if path is None:
        return CompletionStore(None, schema)
    with _opening:
        name = str(path.resolve())
        store = _open.get(name)
        if store is None or not path.exists():
            store = _open[name] = CompletionStore(path, schema)
        return store


def _resolve_all(promises: Sequence[_Promise | None], results: Sequence[Any]) -> None:
    """Resolves promises; those of one event loop in one call."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for promise, result in zip(promises, results, strict=True):
        if promise is None:
            continue
        if isinstance(promise, asyncio.Future):
            loops.setdefault(promise.get_loop(), []).append((promise, result))
        elif isinstance(result, FailedWrite):
            promise.set_exception(result.fault)
        else:
            promise.set_result(result)
    for loop, pairs in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, pairs)
        except RuntimeError:
            log.debug("the event loop of %d writes is closed", len(pairs))


def _resolve(pairs: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for promise, result in pairs:
        if promise.done():
            continue
        if isinstance(result, FailedWrite):
            promise.set_exception(result.fault)
        else:
            promise.set_result(result)


def _move_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    log.error("%s is damaged and was moved to %s", path, aside.name)
    return aside


def _close(*connections: sqlite3.Connection) -> None:
    for connection in connections:
        connection.close()
