"""What lies in a home: artifacts with what made them, runs with what they refer to, and how much disk each takes."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.store.dates import in_future, run_order, started
from kgqa_core.store.digest import MANIFEST

OWNER = "owner.lock"
"""File of a run's folder that its process keeps locked."""
GONE = ".gone-"
"""Start of the names of what is on its way out."""


class Disk:
    """Adds up disk space; a file with several names counts where it is met first."""

    def __init__(self) -> None:
        self._met: set[tuple[int, int]] = set()

    def size(self, path: Path) -> tuple[int, int]:
        """Bytes on disk and number of files of a file or folder; links are not followed, and what vanishes is 0."""
        total, files = 0, 0
        for state, is_folder in _states(path):
            if not is_folder:
                files += 1
                if state.st_nlink > 1:
                    name = (state.st_dev, state.st_ino)
                    if name in self._met:
                        continue
                    self._met.add(name)
            total += state.st_blocks * 512
        return total, files


@dataclass(frozen=True)
class Stored:
    """An artifact of the home.  inputs: digests of what it was made of.  maker: id of the run that made it.

    written: when it was made, in seconds since 1970; 0 for a date in the future.  whole: can its manifest be read?
    """

    kind: str
    name: str
    path: Path
    digest: str
    inputs: frozenset[str]
    maker: str
    written: float
    whole: bool

    @property
    def id(self) -> str:
        """Kind and short key, as runs and processes refer to it."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class RunFolder:
    """A run's folder.  status: `done`, `failed`, … or `killed` when it left no record.  uses: ids of artifacts.

    started: when it began, in seconds since 1970; 0 for a date in the future.
    """

    id: str
    path: Path
    status: str
    started: float
    seconds: float
    uses: frozenset[str]

    @property
    def done(self) -> bool:
        """Did it end well?"""
        return self.status == "done"


def stored(root: Path) -> list[Stored]:
    """Every artifact of a home, whole or damaged."""
    return [_read_artifact(kind.name, folder) for kind in entries(root / "artifacts") for folder in entries(kind)]


def runs(root: Path) -> list[RunFolder]:
    """Every run of a home, oldest first."""
    return sorted((_read_run(folder) for folder in entries(root / "runs")), key=lambda run: run_order(run.id))


def champions(root: Path) -> dict[str, list[str]]:
    """Runs that each champion record names: the champion, then the one before it.

    Raises ValueError for a record that cannot be read.
    """
    found = {}
    for path in sorted((root / "champions").glob("*.json")):
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise ValueError(f"{path} is no record")
        holders = [value, value.get("champion"), value.get("previous")]
        found[path.stem] = [str(one["run_id"]) for one in holders if isinstance(one, dict) and one.get("run_id")]
    return found


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, without hidden names, in the order of names; empty when it is missing."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def newest_change(path: Path) -> float:
    """When anything in a folder was written last."""
    return max((state.st_mtime for state, _ in _states(path)), default=0.0)


def _read_artifact(kind: str, folder: Path) -> Stored:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        made_of = manifest.get("made_of") or {}
        inputs = frozenset(_strings(made_of.get("inputs") or {}))
        digest, maker, whole = str(manifest["digest"]), str(manifest.get("run_id", "")), True
        written = datetime.datetime.fromisoformat(manifest["written"]).timestamp()
        written = 0.0 if in_future(written) else written
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        digest, maker, inputs, whole = "", "", frozenset[str](), False
        written = 0.0
    return Stored(kind, folder.name, folder, digest, inputs, maker, written, whole)


def _read_run(folder: Path) -> RunFolder:
    began = started(folder.name) or newest_change(folder)
    began = 0.0 if in_future(began) else began
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        stages = [stage for stage in record["stages"] if stage.get("artifact")]
        uses = frozenset(_artifact_id(folder.parent.parent, stage["artifact"]) for stage in stages)
        seconds = sum(float(stage.get("seconds") or 0.0) for stage in record["stages"])
        return RunFolder(folder.name, folder, str(record.get("status") or "running"), began, seconds, uses)
    except FileNotFoundError:
        return RunFolder(folder.name, folder, "killed", began, 0.0, frozenset())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return RunFolder(folder.name, folder, "damaged", began, 0.0, frozenset())


def _artifact_id(root: Path, ref: Mapping[str, Any]) -> str:
    """Id of the artifact that a record refers to: of the whole one, where the record names a folder within it."""
    path = Path(ref["path"])
    with contextlib.suppress(ValueError):
        inside = path.relative_to(root / "artifacts").parts
        if len(inside) >= 2:
            return f"{inside[0]}/{inside[1]}"
    return f"{ref['kind']}/{path.name}"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, str):
        yield value


def _states(path: Path) -> Iterator[tuple[os.stat_result, bool]]:
    with contextlib.suppress(OSError):
        state = path.lstat()
        is_folder = path.is_dir() and not path.is_symlink()
        yield state, is_folder
        if not is_folder:
            return
        waiting = [str(path)]
        while waiting:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
                for entry in found:
                    with contextlib.suppress(OSError):
                        inner = entry.is_dir(follow_symlinks=False)
                        yield entry.stat(follow_symlinks=False), inner
                        if inner:
                            waiting.append(entry.path)
