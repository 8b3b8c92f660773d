"""The command `kgqa`: its own code comes before modules of the same names that others have installed."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

APP = Path(__file__).with_name("app")
"""Where a wheel has `flows` and `tasks`; a checkout has them beside this package."""


def main() -> None:
    """Entry point: runs the command line."""
    if APP.is_dir():
        sys.path.insert(0, str(APP))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(APP), os.environ.get("PYTHONPATH")]))
    importlib.import_module("flows.cli.start").main()
