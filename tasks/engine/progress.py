"""Progress of a stage, shown where somebody looks: a bar on a terminal, a line in a log, an artifact in Prefect."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kgqa_core.report.terminal import TerminalConsole

log = logging.getLogger("kgqa")
PREFECT_AFTER_SECONDS = 10.0
PREFECT_EVERY_SECONDS = 5.0
LOG_EVERY_SECONDS = 20.0
BATCH = 200


class StageMonitor:
    """A `Monitor` for one stage; metrics go to `sink` in batches, as (name, value, step).

    bar: draw one where a terminal looks on; what runs beside others draws none.
    """

    def __init__(self, title: str, sink: Callable[[list[tuple[str, float, int]]], None], *, bar: bool = True) -> None:
        self.title, self._shown = title, bar
        self._sink = sink
        self._waiting: list[tuple[str, float, int]] = []
        self._started = time.monotonic()
        self._last_log = self._started
        self._last_artifact = self._started
        self._counted: tuple[float | None, str] | None = None
        self._since = (self._started, 0.0)
        self._artifact: Any = None
        self._bar: Progress | None = None
        self._row: Any = None

    def __enter__(self) -> StageMonitor:
        self._started = self._last_log = self._last_artifact = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._artifact is not None and fault is None:
            self._prefect(100.0)

    def progress(self, done: float, total: float | None, what: str) -> None:
        """`done` of `total` units of `what` are finished."""
        now = time.monotonic()
        if self._counted != (total, what):
            self._counted, self._since = (total, what), (now, done)
        if self._shown and sys.stderr.isatty():
            self._draw(done, total, what)
        elif now - self._last_log >= LOG_EVERY_SECONDS:
            self._last_log = now
            seconds, first = self._since
            log.info("%s: %s", self.title, _sentence(done, total, what, now - seconds, first))
        if total and now - self._started > PREFECT_AFTER_SECONDS and now - self._last_artifact > PREFECT_EVERY_SECONDS:
            self._last_artifact = now
            self._prefect(min(99.9, 100.0 * done / total))

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """One measured value."""
        self._waiting.append((name, value, step or 0))
        if len(self._waiting) >= BATCH:
            self._flush()

    def note(self, message: str) -> None:
        """One line for the log."""
        log.info("%s: %s", self.title, message)

    def _flush(self) -> None:
        if self._waiting:
            rows, self._waiting = self._waiting, []
            self._sink(rows)

    def _draw(self, done: float, total: float | None, what: str) -> None:
        if self._bar is None:
            self._bar = Progress(
                TextColumn("  {task.description}", markup=False),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}", markup=False),
                TimeElapsedColumn(),
                TextColumn("left", markup=False),
                TimeRemainingColumn(),
                console=TerminalConsole(stderr=True),
                transient=True,
            )
            self._row = self._bar.add_task(self.title, total=total, unit=what)
            self._bar.start()
        self._bar.update(self._row, completed=done, total=total, unit=what)

    def _prefect(self, percent: float) -> None:
        if "prefect" not in sys.modules:  # a command that runs no flow
            return
        from prefect.artifacts import create_progress_artifact, update_progress_artifact
        from prefect.context import TaskRunContext

        if TaskRunContext.get() is None:
            return
        try:
            if self._artifact is None:
                self._artifact = create_progress_artifact(progress=percent, description=self.title)
            else:
                update_progress_artifact(self._artifact, progress=percent)
        except Exception as fault:  # a lost server must not stop the work that it watches
            log.debug("progress of %s was not stored: %s", self.title, fault)


def _sentence(done: float, total: float | None, what: str, seconds: float, first: float) -> str:
    """What is done, and how long the rest takes at the pace since `first` of it were done, so many seconds ago."""
    if not total:
        return f"{done:,.0f} {what}"
    left = f", about {seconds * (total - done) / (done - first):,.0f} s left" if done > first else ""
    return f"{done:,.0f} of {total:,.0f} {what}{left}"
