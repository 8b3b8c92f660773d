"""Jobs on graph folders, each in a process of its own that starts quickly and may be killed at any moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
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
    context.set_forkserver_preload(["flows.cli.graph_folders", "tests.support.jobs"])
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
