"""The command `kgqa`: signals are handled before the imports of its commands, which take a part of a second."""

from __future__ import annotations

import atexit
import gc
import sys

from flows.cli import interrupt

COLLECTED_AFTER = (100_000, 50)
"""New objects from one look for unreachable cycles to the next, and looks until those that stayed are looked through
once more.  Imports make a million objects that all stay."""


def main() -> None:
    """Entry point: watch the signals, import the commands, run one."""
    gc.set_threshold(*COLLECTED_AFTER)
    atexit.register(gc.freeze)  # runs last; else Python looks through all objects once more, for one to two seconds
    try:
        interrupt.watch()
        from flows.cli.app import main as run

        run()
    except SystemExit:
        raise
    except BaseException:
        if not interrupt.received():
            raise
        sys.exit(interrupt.report())
