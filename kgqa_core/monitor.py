"""How long work reports its progress, without knowing who listens.

A library function takes a `Monitor`; the tasks hand it one that feeds the terminal, Prefect and MLflow.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Protocol

log = logging.getLogger("kgqa")


class Monitor(Protocol):
    """Listener of one stage's progress."""

    def progress(self, done: float, total: float | None, what: str) -> None:
        """`done` of `total` units of `what` are finished; total None when unknown."""

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """One measured value, at a training step where there is one."""

    def note(self, message: str) -> None:
        """One line for the log."""


class Quiet:
    """A monitor that logs notes and drops the rest."""

    def progress(self, done: float, total: float | None, what: str) -> None:
        """Ignored."""

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """Ignored."""

    def note(self, message: str) -> None:
        """Goes to the log."""
        log.info(message)


QUIET = Quiet()


class NoteRecorder:
    """Passes everything on to a monitor, and holds the notes."""

    def __init__(self, monitor: Monitor) -> None:
        self.progress, self.metric, self._note = monitor.progress, monitor.metric, monitor.note
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Held, and passed on."""
        self.notes.append(message)
        self._note(message)


class Log:
    """A monitor that logs, for work that is started from a shell.

    metrics: what the names of the logged ones begin with.  every: seconds between lines of progress.
    """

    def __init__(self, metrics: str = "", every: float = math.inf) -> None:
        self.metrics, self.every = metrics, every
        self._last = -math.inf

    def progress(self, done: float, total: float | None, what: str) -> None:
        """One line at most in `every` seconds; none where that is infinite."""
        now = time.monotonic()
        if self.every < math.inf and now - self._last >= self.every:
            self._last = now
            log.info("%s: %g of %g" if total else "%s: %g", what, done, *([total] if total else []))

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """One line."""
        if name.startswith(self.metrics):
            log.info("step %s: %s %.4f", step, name, value)

    def note(self, message: str) -> None:
        """One line."""
        log.info("%s", message)
