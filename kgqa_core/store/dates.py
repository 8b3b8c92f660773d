"""Dates of records.  One in the future says nothing: the clock was wrong when it was written, or it is wrong now.

Such a record counts as the oldest, so that the next one that is dated well is the newest again.
"""

from __future__ import annotations

import datetime
import logging
import time

log = logging.getLogger("kgqa")

SLACK = 86400.0
"""Seconds by which clocks may differ."""

_named: set[str] = set()


def started(run_id: str) -> float | None:
    """When a run began, from its id, in seconds since 1970; None for an id of another form."""
    try:
        then = datetime.datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S")
    except ValueError:
        return None
    return then.replace(tzinfo=datetime.UTC).timestamp()


def in_future(when: float) -> bool:
    """Whether a date is later than any clock of today can have it."""
    return when > time.time() + SLACK


def run_order(run_id: str) -> tuple[bool, str]:
    """A key that sorts runs by time, the oldest first; a run dated in the future is put first, and logged once."""
    when = started(run_id)
    future = when is not None and in_future(when)
    if future and run_id not in _named:
        _named.add(run_id)
        log.warning(
            "run %s is dated in the future: the clock was wrong when it began, or is wrong now. It counts as the "
            "oldest run, not as the newest; its id still names it",
            run_id,
        )
    return not future, run_id
