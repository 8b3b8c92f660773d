"""Ctrl-C, SIGTERM and SIGHUP: a command ends in order, or without it within seconds, and says what is complete.

The first signal raises `Stopped` in the main thread, so that whatever is under way closes.  Python runs signal handlers
only between two steps of the main thread, and a native call (a DuckDB query, a step of a training) may be long.  So a
thread reads the signals from the wake-up descriptor; after `GRACE_SECONDS`, or at a second signal, it ends the children
of the process and then the process.  A home holds whole artifacts only, at every moment, so nothing is lost by that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from types import FrameType

GRACE_SECONDS = 4.0
"""Time to close in order, from the first signal on."""
REPORT_SECONDS = 0.3
"""Time for the last message, which a full pipe could hold up."""
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


class Stopped(KeyboardInterrupt):
    """The user or the system wants this command to end."""


class _Signals:
    """Signals of this process: the first one, how many there were, whether `Stopped` was raised and reported."""

    first: int | None = None
    count = 0
    raised = False
    reported = False


_signals = _Signals()


def watch() -> None:
    """Handle the signals from now on.  Call it in the main thread; what is ignored (nohup) stays ignored."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    handled = 0
    for number in NAMES:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)
            handled += 1
    if handled:
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reader,), name="kgqa-signals", daemon=True).start()


def received() -> bool:
    """Whether there was a signal."""
    return _signals.first is not None


def raised() -> bool:
    """Whether a signal reached this module's handler; a command may have one of its own, as `kgqa ui`."""
    return _signals.raised


def report() -> int:
    """Say once what stopped the command and what is complete; the exit code, 128 and the number of the signal.

    It imports nothing: a signal amid an import leaves packages in part, and importing them again may fail.
    """
    number = _signals.first or signal.SIGINT
    if not _signals.reported:
        _signals.reported = True
        text = f"stopped by {NAMES[signal.Signals(number)]}: {_state()}"
        err = getattr(sys.modules.get("flows.cli._output"), "err", None)
        with contextlib.suppress(OSError):  # the terminal may be gone
            if err is None:
                sys.stderr.write(f"{text}\n")
            else:
                err.print(text, highlight=False, soft_wrap=True)
    return 128 + number


def _raise(number: int, frame: FrameType | None) -> None:
    if _signals.first is None:
        _signals.first = number
    _signals.raised = True
    raise Stopped(NAMES[signal.Signals(number)])


def _watch(reader: int) -> None:
    """Ends the process when the grace is over, or at the second signal."""
    while _signals.count == 0:
        _read(reader)
    deadline = time.monotonic() + GRACE_SECONDS
    threading.Thread(target=_await_second, args=(reader,), name="kgqa-second-signal", daemon=True).start()
    while _signals.count < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    last = threading.Thread(target=report, daemon=True)
    last.start()
    end_children()
    last.join(REPORT_SECONDS)
    os._exit(128 + (_signals.first or signal.SIGTERM))


def _await_second(reader: int) -> None:
    while _signals.count < 2:
        _read(reader)


def _read(reader: int) -> None:
    """Counts the signals that are in the pipe; waits for one."""
    for number in os.read(reader, 64):
        if number in NAMES:
            _signals.first = _signals.first or number
            _signals.count += 1


def end_children() -> None:
    """End all processes that this one has started, and theirs."""
    import psutil

    with contextlib.suppress(psutil.Error):
        children = psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(children, timeout=REPORT_SECONDS)


def _state() -> str:
    """What of the command is complete, in words."""
    latest = getattr(sys.modules.get("tasks.engine.run"), "latest_run", None)  # a signal may come amid its import
    run = latest() if latest is not None else None
    if run is None:
        return "nothing incomplete was published; start the same command again"
    stages = list(run.stages)
    complete = [stage.name for stage in stages if stage.artifact is not None]
    open_stages = [stage.name for stage in stages if stage.artifact is None]
    text = f"run {run.id} has {len(complete)} complete stages"
    text += f" ({', '.join(complete)})" if complete else ""
    text += f", {open_stages[-1]} was under way" if open_stages else ""
    return f"{text}; the same command goes on from there"
