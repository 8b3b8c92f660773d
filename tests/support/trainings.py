"""Trainings in tests: one that is run on the small world, one that is stopped at a step, and the files of a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgqa_core.config import Options


class Listener:
    """Remembers training steps, metrics and notes, and raises at a step when asked to: the test's SIGKILL."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.steps: list[float] = []
        self.metrics: list[tuple[str, int | None]] = []
        self.notes: list[str] = []

    def progress(self, done: float, total: float | None, what: str) -> None:
        if what != "training steps":
            return
        self.steps.append(done)
        if self.stop_at is not None and done >= self.stop_at:
            raise KeyboardInterrupt

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self.metrics.append((name, step))

    def note(self, message: str) -> None:
        self.notes.append(message)


def runner(train: Callable[..., dict[str, Any]], usual: Options) -> Callable[..., dict[str, Any]]:
    """`run(world, out)`: a retriever's training on the small world; `usual` options and seed 7 where none are given."""

    def run(world: Any, out: Path, options: Options = usual, **more: Any) -> dict[str, Any]:
        out.mkdir(parents=True)
        given = {"dkg": world.dkg_folder, "questions": world.questions_folder, "options": options, "seed": 7} | more
        return train(out, **given)

    return run


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
