"""What a run does in the background of its stages."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from kgqa_core.store.artifacts import Home
from tasks.engine.run import _CURRENT, Run
from tasks.tracking.tracker import NoTracker


def test_background_work_is_done_in_order_and_when_the_run_has_ended(tmp_path: Path) -> None:
    done: list[tuple[int, str]] = []

    def note(number: int) -> None:
        time.sleep(0.05 * (3 - number))
        done.append((number, threading.current_thread().name))

    run = Run(id="r", home=Home(tmp_path), tracker=NoTracker())
    run.in_background(note, 0)  # at once: the run is not under way
    token = _CURRENT.set(run)
    try:
        with run.closing:
            for number in (1, 2):
                run.in_background(note, number)
    finally:
        _CURRENT.reset(token)
    assert [number for number, _ in done] == [0, 1, 2]
    assert [name.startswith("kgqa-background") for _, name in done] == [False, True, True]
