"""`python tests/support/kills.py STAGE WHEN -- WORDS`: `kgqa` in a process that kills itself in a stage."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    from kgqa_core.store import artifacts
    from tasks.engine import progress

    stage, when = sys.argv[1:3]
    seen = {"reports": 0}
    report, write = progress.StageMonitor.progress, artifacts.write_manifest

    def watched_progress(self: Any, *words: Any) -> None:
        report(self, *words)
        if when == "midway" and self.title.split()[0] == stage.split("/")[0]:
            seen["reports"] += 1
            if seen["reports"] == 2:
                die()

    def watched_write(out: Path, kind: str, *words: Any) -> Any:
        manifest = write(out, kind, *words)
        if kind == stage.split("/")[0]:
            die()
        return manifest

    progress.StageMonitor.progress = watched_progress  # type: ignore[method-assign]
    artifacts.write_manifest = watched_write
    sys.argv = ["kgqa", *sys.argv[sys.argv.index("--") + 1 :]]
    from flows.cli.app import main as command

    command()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
