"""What a log says of a stage's progress."""

from __future__ import annotations

import logging

import pytest

from tasks.engine import progress
from tasks.engine.progress import StageMonitor


def test_the_rest_is_told_by_the_pace_of_its_own_phase(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: False)
    caplog.set_level(logging.INFO, "kgqa")
    with StageMonitor("parser", lambda rows: None) as monitor:
        for seconds, done, total in ((50, 600, 1000), (10, 650, 1000), (20, 700, 1000), (300, 1, 306), (40, 41, 306)):
            clock += seconds
            monitor.progress(done, total, "steps")
        clock += 20
        monitor.progress(5, None, "rows")
    assert [record.getMessage() for record in caplog.records] == [
        "parser: 600 of 1,000 steps",  # taken up again: nothing is known of the pace
        "parser: 700 of 1,000 steps, about 90 s left",
        "parser: 1 of 306 steps",
        "parser: 41 of 306 steps, about 265 s left",
        "parser: 5 rows",
    ]
