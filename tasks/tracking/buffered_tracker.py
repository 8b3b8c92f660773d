"""Tracking that fails no run: what cannot be sent is written down and sent when the tracker is back.

Events that the store did not take lie in `runs/<id>/untracked.jsonl`, one JSON object a line, in their order.  They
are sent before the next stage, at the end of the run, or by the next run of the home.  Sending is safe to repeat: a
killed sender leaves the file as it was, and the store knows each event by its moment, an opened run by that and by the
id of our run.  An event that the store refuses although it can be reached moves to `refused.jsonl`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from kgqa_core.store.artifacts import Home
from tasks.tracking.journal import Journal
from tasks.tracking.mlflow_store import MlflowStore, tracking_uri, without_credentials
from tasks.tracking.tracker import PENDING, Event, ModelAliases, RunStart, make_handle, now, read_handle

log = logging.getLogger("kgqa.tracking")
PATIENCE = 20.0
"""A try that took a second is not repeated for so many seconds."""


class BufferedTracker:
    """A `Tracker` that never raises: it hands each event to a store, or writes it down while the store is away.

    connect: opens the store, may raise, as all calls of the store but `alive` may.  folder: of the run.  where: the
    store's address, for messages.
    """

    def __init__(self, connect: Callable[[], MlflowStore], folder: Path, where: str) -> None:
        self.journal = Journal(folder)
        self._connect, self._where = connect, without_credentials(where)
        self._store: MlflowStore | None = None
        self._ids: dict[str, str] = {}
        self._away = self._warned = False
        self._next = 0.0
        self._opened = 0
        self._lock = threading.RLock()
        self._try_to_connect()

    @property
    def experiment(self) -> str | None:
        """Id of the store's experiment, once it could be reached."""
        return self._store.experiment if self._store is not None else None

    @property
    def store(self) -> MlflowStore | None:
        """The store when it can be used now, else None."""
        return None if self._away else self._store

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str:
        """Open a run; its id, or a handle that stands for it until it can be opened."""
        with self._lock:
            self._opened = max(now(), self._opened + 1)  # no two runs of a tracker are opened at one moment
            handle = make_handle(self.journal.path.parent.name, self._opened)
            self._send_or_keep(RunStart(handle, name, tags, parent))
            return self._ids.get(handle, handle)

    def record(self, *events: Event) -> None:
        """Remember events, in their order."""
        with self._lock:
            for event in events:
                if not event.is_empty():
                    self._send_or_keep(event)

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
            left = len(self.journal.events())
        if left:
            log.warning(
                "MLflow at %s is still away: %d calls of this run stay in %s; the next run of this home sends them",
                self._where, left, self.journal.path,
            )  # fmt: skip
        return left

    def adopt(self, folder: Path) -> tuple[dict[str, str], int]:
        """Send what waits of another run, whose lock the caller holds: handles → ids, and how many events are left."""
        with self._lock:
            journal, self.journal = self.journal, Journal(folder)
            try:
                handles = {event.run for event in self.journal.events() if isinstance(event, RunStart)}
                self._replay()
                left = len(self.journal.events())
            finally:
                self.journal = journal
            return {handle: known for handle, known in self._ids.items() if handle in handles}, left

    def _send_or_keep(self, event: Event) -> None:
        try:
            fault = None if self._away else self._attempt(event)
            if fault is not None:
                self._lose(fault)
            if self._away:
                self.journal.add(event)
        except OSError as fault:  # a full or read-only home is reported by the stage that meets it
            log.debug("an event could not be written down: %s", fault)

    def _attempt(self, event: Event, again: bool = False) -> Exception | None:
        """None when the event is done with: taken, or refused by a store that can be reached.

        again: it may have been taken already.
        """
        try:
            self._apply(event, again)
            return None
        except Exception as first:
            if not self._alive():
                return first
        try:
            self._apply(event, True)
        except Exception as second:
            if not self._alive():
                return second
            self.journal.refuse(event, _first_line(second))
            kind = event.__struct_config__.tag
            log.warning("MLflow refuses a call of this run (%s): %s", kind, _first_line(second))
        return None

    def _apply(self, event: Event, again: bool) -> None:
        assert self._store is not None
        if isinstance(event, ModelAliases):
            self._store.write(event)
            return
        assert event.run is not None
        if isinstance(event, RunStart):
            there = self._store.find(event.run) if again else None
            nested = msgspec.structs.replace(event, parent=self._parent(event.parent))
            self._ids[event.run] = there or self._store.start(nested)
        else:
            self._store.write(msgspec.structs.replace(event, run=self._resolve(event.run)))

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
            opened = self._store.find(run) if self._store is not None else None
            if opened is None:
                raise LookupError(f"{run} was never opened")
            self._ids[run] = opened
        return self._ids[run]

    def _alive(self) -> bool:
        return self._store is not None and self._store.alive()

    def _lose(self, fault: Exception) -> None:
        self._away = True
        if not self._warned:
            self._warned = True
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
        events = self.journal.events()
        for index, event in enumerate(events):
            fault = self._attempt(event, again=True)
            if fault is not None:
                self._lose(fault)
                self.journal.keep(events[index:])
                return False
        self.journal.keep([])
        self._away = self._warned = False
        if events:
            log.info("MLflow at %s is back: %d calls that waited were sent", self._where, len(events))
        return True


def open_tracker(home: Home, folder: Path) -> BufferedTracker:
    """MLflow behind a tracker that never raises, for the run with this folder."""
    return BufferedTracker(lambda: MlflowStore(home), folder, tracking_uri(home))


def _first_line(fault: Exception) -> str:
    text = without_credentials(str(fault)).strip()
    return text.splitlines()[0][:200] if text else type(fault).__name__
