"""What lies in a home: artifacts with what made them, runs with what they refer to, and how much disk each takes."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.store.dates import in_future, run_order, started
from kgqa_core.store.digest import MANIFEST
from kgqa_core.store.home import RECORD, located, unpushed, version_of
from kgqa_core.store.locks import idle, in_use, read_owner
from kgqa_core.store.remote import RemoteStore

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
class StoredArtifact:
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

    started: when it began, in seconds since 1970; 0 for a date in the future.  table: the run of several question sets
    that it is a set of.
    """

    id: str
    path: Path
    status: str
    started: float
    seconds: float
    uses: frozenset[str]
    table: str | None = None

    @property
    def done(self) -> bool:
        """Did it end well?"""
        return self.status == "done"


def stored(root: Path) -> list[StoredArtifact]:
    """Every artifact of a home, whole or damaged."""
    return [_read_artifact(kind.name, folder) for kind in entries(root / "artifacts") for folder in entries(kind)]


def runs(root: Path) -> list[RunFolder]:
    """Every run of a home, oldest first."""
    return sorted((_read_run(folder) for folder in entries(root / "runs")), key=lambda run: run_order(run.id))


def runs_of_champions(root: Path) -> dict[str, list[str]]:
    """Runs that each champion record names: the champion, then the one before it.

    Raises ValueError for a record that cannot be read.
    """
    run_ids = {}
    for path in sorted((root / "champions").glob("*.json")):
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise ValueError(f"{path} is no record")
        holders = [value, value.get("champion"), value.get("previous")]
        run_ids[path.stem] = [str(row["run_id"]) for row in holders if isinstance(row, dict) and row.get("run_id")]
    return run_ids


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, without hidden names, in the order of names; empty when it is missing."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def newest_change(path: Path) -> float:
    """When anything in a folder was written last."""
    return max((state.st_mtime for state, _ in _states(path)), default=0.0)


def _read_artifact(kind: str, folder: Path) -> StoredArtifact:
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
    return StoredArtifact(kind, folder.name, folder, digest, inputs, maker, written, whole)


def _read_run(folder: Path) -> RunFolder:
    began = started(folder.name) or newest_change(folder)
    began = 0.0 if in_future(began) else began
    try:
        record = located(json.loads((folder / "run.json").read_text(encoding="utf-8")), folder.parent.parent)
        stages = [stage for stage in record["stages"] if stage.get("artifact")]
        uses = frozenset(_artifact_id(folder.parent.parent, stage["artifact"]) for stage in stages)
        seconds = sum(float(stage.get("seconds") or 0.0) for stage in record["stages"])
        status, table = str(record.get("status") or "running"), record.get("table")
        return RunFolder(folder.name, folder, status, began, seconds, uses, table)
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
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        inner = entry.is_dir(follow_symlinks=False)
                        yield entry.stat(follow_symlinks=False), inner
                        if inner:
                            waiting.append(entry.path)


PLACES = {
    "artifacts": "finished work",
    "cache": "answers of language models, paid for",
    "runs": "records and reports",
    "work": "what killed stages resume from",
    "tmp": "folders being filled",
    "mlflow": "the tracker's store",
    "prefect": "Prefect's store",
    "locks": "locks",
    "unpushed": "notes for the object store",
    "champions": "the best runs",
    "serve": "the server's address, and feedback",
}


def survey(root: Path) -> dict[str, Any]:
    """What the home at `root` holds, with bytes on disk; a file with several names counts once.

    Keys: `home`, `layout`, `kgqa`, `created`, `bytes`, `disk_free`, `places`, `kinds`, `runs`, `champions`, `store`,
    `in_use`, `locks`.  A run's `bytes` are those of its artifacts, which runs share; `own` is its folder alone.
    Raises StorageError when the home's record cannot be read.
    """
    disk = Disk()
    version = version_of(root)
    every = stored(root)
    sizes = {artifact.id: disk.size(artifact.path) for artifact in every}
    every_run = runs(root)
    run_sizes = {run.id: disk.size(run.path) for run in every_run}
    folders: dict[str, dict[str, Any]] = {}
    for path in entries(root):
        if path.is_dir():
            size, files = disk.size(path)
            if path.name == "runs":
                size, files = size + sum(a for a, _ in run_sizes.values()), sum(b for _, b in run_sizes.values())
            elif path.name == "artifacts":
                size, files = sum(a for a, _ in sizes.values()), sum(b for _, b in sizes.values())
            folders[path.name] = {"bytes": size, "files": files, "what": PLACES.get(path.name, "not kgqa's")}
    everyone = in_use(root / "locks")
    store = RemoteStore.current()
    owed = unpushed(root)
    return {
        "home": str(root),
        "layout": version,
        **_record(root),
        "bytes": sum(folder["bytes"] for folder in folders.values()),
        "disk_free": shutil.disk_usage(root).free,
        "places": folders,
        "kinds": _kinds(every, sizes),
        "runs": [_run(run, sizes, run_sizes[run.id][0], everyone.names) for run in every_run],
        "champions": _champions(root),
        "store": {
            "url": store.name if store else None,
            "unpushed": sum(not entry.conflict for entry in owed),
            "conflicts": [entry.conflict for entry in owed if entry.conflict],
        },
        "in_use": [{**vars(owner), "since": owner.when} for owner in everyone.owners],
        "locks": _locks(root / "locks"),
    }


def _record(root: Path) -> dict[str, Any]:
    try:
        value = json.loads((root / RECORD).read_text(encoding="utf-8"))
        return {"kgqa": value.get("kgqa"), "created": value.get("created")}
    except (OSError, ValueError, AttributeError):
        return {"kgqa": None, "created": None}


def _kinds(every: list[StoredArtifact], sizes: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {}
    for artifact in every:
        row = kinds.setdefault(artifact.kind, {"kind": artifact.kind, "artifacts": 0, "damaged": 0, "bytes": 0})
        row["artifacts"] += 1
        row["damaged"] += not artifact.whole
        row["bytes"] += sizes[artifact.id][0]
    return sorted(kinds.values(), key=lambda row: (-row["bytes"], row["kind"]))


def _run(run: RunFolder, sizes: dict[str, tuple[int, int]], size: int, used: frozenset[str]) -> dict[str, Any]:
    there = [sizes[name][0] for name in run.uses if name in sizes]
    status = "under way" if f"runs/{run.id}" in used else run.status
    return {
        "run_id": run.id,
        "status": status,
        "artifacts": len(there),
        "gone": len(run.uses) - len(there),
        "bytes": sum(there),
        "own": size,
        "seconds": round(run.seconds, 1),
    }


def _champions(root: Path) -> dict[str, list[str]]:
    try:
        return runs_of_champions(root)
    except (OSError, ValueError):
        return {"(damaged)": []}


def _locks(folder: Path) -> list[dict[str, str]]:
    """Locks that are held now, with their owners."""
    rows = []
    for path in sorted(folder.glob("*.lock")):
        if not idle(path):
            owner = read_owner(path)
            rows.append({"lock": path.stem, "owner": str(owner or "unknown"), "since": owner.when if owner else ""})
    return rows
