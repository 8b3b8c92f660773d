"""The monitor of work that is started from a shell."""

from __future__ import annotations

import logging

import pytest

from kgqa_core.monitor import Log


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "kgqa")
    return caplog


def test_notes_and_the_metrics_asked_for_are_lines(lines: pytest.LogCaptureFixture) -> None:
    listener = Log("dev_")
    listener.metric("loss", 0.5, 3)
    listener.metric("dev_loss", 0.25, 4)
    listener.progress(1, 2, "questions")
    listener.note("100 % done")
    assert lines.messages == ["step 4: dev_loss 0.2500", "100 % done"]


def test_progress_is_a_line_once_in_a_while(lines: pytest.LogCaptureFixture) -> None:
    often, seldom = Log(every=0), Log(every=3600)
    for listener in (often, seldom):
        listener.progress(1, 4, "questions")
        listener.progress(2, None, "rows")
    assert lines.messages == ["questions: 1 of 4", "rows: 2", "questions: 1 of 4"]
