"""Jobs on graph folders, and `kgqa` itself, in a process that is killed with SIGKILL."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kgqa_core.errors import KgqaError

JOBS = ("build_folder", "update_folder", "export_folder")
"""Functions of `flows.cli.graph_folders`."""


def _work(name: str, words: tuple[Any, ...], options: dict[str, Any]) -> None:
    from flows.cli import graph_folders as graphs

    try:
        getattr(graphs, name)(*words, **options)
    except KgqaError as fault:
        print(f"{type(fault).__name__}: {fault}")
        os._exit(3)


def start(name: str, *words: Any, **options: Any) -> Any:
    """A process at work on one of JOBS; its imports are done before it starts."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["flows.cli.graph_folders", "tests.support.kills"])
    process = context.Process(target=_work, args=(name, words, options))
    process.start()
    return process


def finish(name: str, *words: Any, **options: Any) -> float:
    """Runs a job to its end; seconds."""
    process = start(name, *words, **options)
    started = time.monotonic()
    process.join(300)
    assert process.exitcode == 0, f"{name} ended with {process.exitcode}"
    return time.monotonic() - started


def kill_after(seconds: float, name: str, *words: Any, **options: Any) -> bool:
    """Runs a job and kills it with SIGKILL; False when it had finished by then."""
    process = start(name, *words, **options)
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), f"{name} ended with {process.exitcode}"
    return process.exitcode != 0


def beside(folder: Path) -> list[str]:
    """What else lies next to a folder: what a killed job leaves there."""
    return sorted(path.name for path in folder.parent.iterdir() if path.name.startswith(f".{folder.name}."))


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
