"""How long work tells what it is doing, without knowing who listens.

A library function takes a `Monitor`; the tasks hand it one that feeds the terminal, Prefect and MLflow.
"""

from __future__ import annotations

import logging
from typing import Protocol

log = logging.getLogger("kgqa")


class Monitor(Protocol):
    """Listener of one stage's progress."""

    def progress(self, done: float, total: float | None, what: str) -> None:
        """`done` of `total` units of `what` are finished; total None when unknown."""
        ...

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """One measured value, at a training step where there is one."""
        ...

    def note(self, message: str) -> None:
        """One line for the log."""
        ...


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
