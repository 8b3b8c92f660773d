"""Tracking that fails no run: what cannot be sent is written down and sent when the tracker is back.

Calls that the tracker did not take lie in `runs/<id>/untracked.jsonl`, one JSON object a line, in their order.  They
are sent before the next stage, at the end of the run, or by the next run of the home.  Sending is safe to repeat: a
killed sender leaves the file as it was, and the store knows each call by its moment, an opened run by that and by the
id of our run.  A call that the store refuses although it can be reached moves to `refused.jsonl`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kgqa_core.store.artifacts import Home
from tasks.tracking.journal import Journal, Row
from tasks.tracking.mlflow_store import (
    PENDING,
    DataSet,
    MlflowStore,
    make_handle,
    read_handle,
    tracking_uri,
    without_credentials,
)

log = logging.getLogger("kgqa.tracking")
PATIENCE = 20.0
"""A try that took a second is not repeated for so many seconds."""


class Store(Protocol):
    """Where calls end up; `MlflowStore`, or a stand-in of a test."""

    experiment: str

    def alive(self) -> bool:
        """Whether the store can be reached now."""
        ...

    def find(self, handle: str) -> str | None:
        """Id of the run that was opened with this handle, if any."""
        ...


class BufferedTracker:
    """A `Tracker` that never raises: it hands each call to a store, or writes it down while the store is away.

    connect: opens the store, may raise.  folder: of the run.  where: the store's address, for messages.
    """

    def __init__(self, connect: Callable[[], Any], folder: Path, where: str) -> None:
        self.journal = Journal(folder)
        self._connect, self._where = connect, without_credentials(where)
        self._store: Any = None
        self._ids: dict[str, str] = {}
        self._away = self._said = False
        self._next = 0.0
        self._opened = 0
        self._lock = threading.RLock()
        self._try_to_connect()

    @property
    def experiment(self) -> str | None:
        """Id of the store's experiment, once it could be reached."""
        return self._store.experiment if self._store is not None else None

    @property
    def store(self) -> Any:
        """The store when it can be used now, else None."""
        return None if self._away else self._store

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str:
        """Open a run; its id, or a handle that stands for it until it can be opened."""
        with self._lock:
            self._opened = max(_now(), self._opened + 1)  # no two runs of a tracker are opened at one moment
            handle = make_handle(self.journal.path.parent.name, self._opened)
            self._do({"call": "start", "run": handle, "name": name, "tags": dict(tags), "parent": parent})
            return self._ids.get(handle, handle)

    def log(
        self,
        run: str | None,
        *,
        params: Mapping[str, Any] | None = None,
        metrics: Sequence[tuple[str, float, int]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Parameters, measured values as (name, value, step), and tags of a run, in one request."""
        text = {key: str(value) for key, value in (params or {}).items()}
        if text or metrics or tags:
            self._say(run, "log", params=text, metrics=[list(row) for row in metrics], tags=dict(tags or {}), at=_now())

    def file(self, run: str | None, path: Path, folder: str | None = None) -> None:
        """A file, or the files of a folder, to keep with a run."""
        self._say(run, "file", path=str(path), folder=folder)

    def datasets(self, run: str | None, read: Sequence[DataSet]) -> None:
        """Data sets that the run read."""
        rows = [
            [
                one.name,
                one.digest,
                {name: n for name, n in one.counts.items() if isinstance(n, int | float)},
                one.context,
            ]
            for one in read
        ]
        if rows:
            self._say(run, "datasets", read=rows)

    def model(self, run: str | None, reference: Mapping[str, Any]) -> None:
        """Log the system of a run as a model that loads (`tasks.tracking.model_reference`)."""
        self._say(run, "model", reference=dict(reference))

    def register(self, run: str | None, model: str, folder: str, tags: Mapping[str, str], description: str) -> None:
        """Make the files that a run keeps under `folder` a version of a registered model; without one, its model."""
        self._say(run, "register", model=model, folder=folder, tags=dict(tags), description=description)

    def aliases(self, model: str, truth: Path) -> None:
        """Let the aliases of a registered model follow the file that says which run bears which."""
        with self._lock:
            self._do({"call": "aliases", "model": model, "truth": str(truth)})

    def end(self, run: str | None, *, failed: bool = False) -> None:
        """Close a run."""
        self._say(run, "end", status="FAILED" if failed else "FINISHED", at=_now())

    def known(self, run: str | None) -> str | None:
        """The store's id of a run, or None while it is not there."""
        if run is None or not run.startswith(PENDING):
            return run
        return self._ids.get(run)

    def retry(self) -> None:
        """Send what waits, should the store be back; a try costs a small share of the time at most."""
        with self._lock:
            if self._away and time.monotonic() >= self._next:
                self._send()

    def close(self) -> int:
        """The last try to send; how many calls are left, which the log says."""
        with self._lock:
            if self._away:
                self._send()
            left = len(self.journal.rows())
        if left:
            log.warning(
                "MLflow at %s is still away: %d calls of this run stay in %s; the next run of this home sends them",
                self._where, left, self.journal.path,
            )  # fmt: skip
        return left

    def adopt(self, folder: Path) -> tuple[dict[str, str], int]:
        """Send what waits of another run, whose lock the caller holds: handles → ids, and how many calls are left."""
        with self._lock:
            own, self.journal = self.journal, Journal(folder)
            try:
                handles = {row["run"] for row in self.journal.rows() if row["call"] == "start"}
                self._replay()
                left = len(self.journal.rows())
            finally:
                self.journal = own
            return {handle: self._ids[handle] for handle in handles & set(self._ids)}, left

    def _say(self, run: str | None, call: str, **arguments: Any) -> None:
        if run is not None:
            with self._lock:
                self._do({"call": call, "run": run, **arguments})

    def _do(self, row: Row) -> None:
        try:
            if not self._away:
                fault = self._attempt(row)
                if fault is None:
                    return
                self._lose(fault)
            self.journal.add(row)
        except OSError as fault:  # a full or read-only home is said by the stage that meets it
            log.debug("a call could not be written down: %s", fault)

    def _attempt(self, row: Row, again: bool = False) -> Exception | None:
        """None when the row is done with: taken, or refused by a store that can be reached.  again: it may be there."""
        try:
            self._apply(row, again)
            return None
        except Exception as first:
            if not self._alive():
                return first
        try:
            self._apply(row, True)
        except Exception as second:
            if not self._alive():
                return second
            self.journal.refuse(row, _first_line(second))
            log.warning("MLflow refuses a call of this run (%s): %s", row["call"], _first_line(second))
        return None

    def _apply(self, row: Row, again: bool) -> None:
        arguments = {name: value for name, value in row.items() if name not in ("call", "run")}
        if row["call"] == "start":
            handle = row["run"]
            arguments["parent"] = self._parent(row["parent"])
            there = self._store.find(handle) if again else None
            self._ids[handle] = there or self._store.start(handle, **arguments)
        elif "run" in row:
            getattr(self._store, row["call"])(self._resolve(row["run"]), **arguments)
        else:
            getattr(self._store, row["call"])(**arguments)

    def _parent(self, parent: str | None) -> str | None:
        """Id of the run that another is nested under; one of another run of ours may not be sent yet: none then."""
        try:
            return self._resolve(parent) if parent else None
        except LookupError:
            if parent and read_handle(parent)[0] != self.journal.path.parent.name:
                return None
            raise

    def _resolve(self, run: str) -> str:
        if not run.startswith(PENDING):
            return run
        if run not in self._ids:
            found = self._store.find(run)
            if found is None:
                raise LookupError(f"{run} was never opened")
            self._ids[run] = found
        return self._ids[run]

    def _alive(self) -> bool:
        try:
            return bool(self._store.alive())
        except Exception:
            return False

    def _lose(self, fault: Exception) -> None:
        self._away = True
        if not self._said:
            self._said = True
            log.warning(
                "MLflow at %s is away (%s); the run goes on, and what it would store waits in %s",
                self._where, _first_line(fault), self.journal.path,
            )  # fmt: skip

    def _try_to_connect(self) -> bool:
        try:
            self._store = self._connect()
            self._away = False
        except Exception as fault:
            self._lose(fault)
        return not self._away

    def _send(self) -> bool:
        """Whether nothing waits any more."""
        began = time.monotonic()
        try:
            if self._store is None:
                if not self._try_to_connect():
                    return False
            elif not self._alive():
                return False
            return self._replay()
        except OSError as fault:
            log.debug("waiting calls could not be sent: %s", fault)
            return False
        finally:
            self._next = time.monotonic() + PATIENCE * (time.monotonic() - began)

    def _replay(self) -> bool:
        rows = self.journal.rows()
        for place, row in enumerate(rows):
            fault = self._attempt(row, again=True)
            if fault is not None:
                self._lose(fault)
                self.journal.keep(rows[place:])
                return False
        self.journal.keep([])
        self._away = self._said = False
        if rows:
            log.info("MLflow at %s is back: %d calls that waited were sent", self._where, len(rows))
        return True


def open_tracker(home: Home, folder: Path) -> BufferedTracker:
    """MLflow behind a tracker that never raises, for the run with this folder."""
    return BufferedTracker(lambda: MlflowStore(home), folder, tracking_uri(home))


def _now() -> int:
    return int(time.time() * 1000)


def _first_line(fault: Exception) -> str:
    text = without_credentials(str(fault)).strip()
    return text.splitlines()[0][:200] if text else type(fault).__name__
