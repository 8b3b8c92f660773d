"""The command `kgqa`: signals are handled before the imports of its commands, which take a part of a second."""

from __future__ import annotations

import sys

from flows.cli import interrupt


def main() -> None:
    """Entry point: watch the signals, import the commands, run one."""
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
