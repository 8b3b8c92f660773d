"""What a home says about itself: its version, its runs, and what it still owes the object store.

Records are written with `{home}` for the home's folder (`portable`) and read with the folder where the home lies now
(`located`), so that a home can be copied and moved.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.errors import OutputError, StorageError
from kgqa_core.store.dates import run_order
from kgqa_core.store.files import write_json

FOLDERS = ("artifacts", "tmp", "work", "locks", "cache", "runs", "mlflow", "prefect")
OLDEST = ("artifacts", "tmp", "work", "locks", "runs")
"""Folders that every home has had, also before it had a version."""
SWEPT = ("tmp", "work", "runs")
"""Folders from which housekeeping deletes what no process needs."""
RECORD = "home.json"
SCHEMA_VERSION = 1
"""A higher one locks out the code that is in logged models of older versions."""
HOME = "{home}"
"""Stands for the home's folder at the start of a path in a record."""


@dataclass(frozen=True)
class Unpushed:
    """An artifact that the object store lacks; conflict: why it will never take it."""

    kind: str
    key: str
    since: float
    conflict: str = ""


def version_of(root: Path) -> int | None:
    """Version of a home's layout: 0 when it does not say but has a home's folders, None when there is no home yet.

    Raises StorageError when its record cannot be read.
    """
    path = root / RECORD
    try:
        version = json.loads(path.read_text(encoding="utf-8"))["schema"]
        if type(version) is not int or version < 0:
            raise ValueError(f"its schema is {version!r}")
        return version
    except FileNotFoundError:
        return 0 if all((root / name).is_dir() for name in OLDEST) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
        raise StorageError(
            f"{path} is damaged ({fault}), so the version of this home is unknown; delete the file if no newer kgqa "
            "used the home"
        ) from None


def check_version(root: Path) -> int | None:
    """Version of a home's layout, as of `version_of`.  Raises StorageError for a newer one."""
    version = version_of(root)
    if version is not None and version > SCHEMA_VERSION:
        raise StorageError(
            f"the home {root} was written by a newer kgqa (layout {version}, this one knows {SCHEMA_VERSION}); "
            "update kgqa, or choose another home with --home"
        )
    return version


def check_new(root: Path) -> None:
    """Raise OutputError where a new home would take a user's folders for its own, from which housekeeping deletes."""
    if version_of(root) is not None:
        return
    for name in SWEPT:
        with contextlib.suppress(OSError):
            if any((root / name).iterdir()):
                raise OutputError(
                    f"{root} is no home of kgqa and has a folder {name}, which a home would tidy; choose another "
                    "folder with --home"
                )


def up_to_date(root: Path) -> None:
    """Bring a home of an older version to this one.  Raises StorageError for a newer one."""
    version = check_version(root)
    if version is not None and version < SCHEMA_VERSION:  # 0 needs no change
        _write_record(root, {"migrated_from": version})


def stamp(root: Path) -> None:
    """Write a new home's version."""
    if not (root / RECORD).exists():
        _write_record(root, {})


def read_runs(root: Path) -> list[dict[str, Any]]:
    """Records of the runs of a home, oldest first as `run_order` has it; unreadable ones are left out."""
    return list(newest_runs(root))[::-1]


def newest_runs(root: Path) -> Iterator[dict[str, Any]]:
    """Records of the runs of a home, newest first, each read when it is wanted; unreadable ones are left out."""
    paths = sorted((root / "runs").glob("*/run.json"), key=lambda path: run_order(path.parent.name))
    for path in reversed(paths):
        if (record := read_run(root, path.parent.name)) is not None:
            yield record


def read_run(root: Path, run_id: str) -> dict[str, Any] | None:
    """Record of a run, its paths where the home lies now; None where there is none that can be read."""
    try:
        record = json.loads((root / "runs" / run_id / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or not record.get("run_id"):
        return None
    return {**located(record, root), "home": str(root)}


def portable(record: Any, root: Path) -> Any:
    """A record as it is written: `{home}` at the start of paths in the home."""

    def change(text: str) -> str:
        inside = text == str(root) or text.startswith(f"{root}/")
        return HOME + text.removeprefix(str(root)) if inside else text

    return _texts_changed(record, change)


def located(record: Any, root: Path) -> Any:
    """A record as it is used: absolute paths where the home lies now.

    Older records have absolute paths: those in the home that the record names, and of artifacts that are here
    under the same name, are paths in this home.
    """
    wrote = record.get("home") if isinstance(record, Mapping) else None

    def change(text: str) -> str:
        for start in (HOME, wrote) if isinstance(wrote, str) and wrote else (HOME,):
            if text == start or text.startswith(f"{start}/"):
                return f"{root}{text.removeprefix(start)}"
        if text.startswith("/") and not text.startswith(f"{root}/"):
            _, artifacts, inside = text.rpartition("/artifacts/")
            if artifacts and inside.count("/") and (here := root / "artifacts" / inside).is_dir():
                return str(here)
        return text

    return _texts_changed(record, change)


def _texts_changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _texts_changed(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_texts_changed(inner, change) for inner in value]
    return value


def note_unpushed(root: Path, kind: str, key: str, conflict: str = "") -> None:
    """Remember that the store lacks an artifact; written before the artifact is published, so that no kill loses it."""
    path = _note(root, kind, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"kind": kind, "key": key, "since": time.time(), "conflict": conflict})


def forget_unpushed(root: Path, kind: str, key: str) -> None:
    """The store has it."""
    _note(root, kind, key).unlink(missing_ok=True)


def unpushed(root: Path) -> list[Unpushed]:
    """What the store lacks, oldest first."""
    notes = []
    for path in (root / "unpushed").glob("*.json"):
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            notes.append(
                Unpushed(str(value["kind"]), str(value["key"]), float(value["since"]), str(value.get("conflict", "")))
            )
        except (OSError, ValueError, KeyError, TypeError):
            path.unlink(missing_ok=True)
    return sorted(notes, key=lambda entry: (entry.since, entry.kind, entry.key))


def _note(root: Path, kind: str, key: str) -> Path:
    return root / "unpushed" / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"


def _write_record(root: Path, extra: dict[str, int]) -> None:
    try:
        code = importlib.metadata.version("kgqa")
    except importlib.metadata.PackageNotFoundError:
        code = "unknown"
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_json(root / RECORD, {"schema": SCHEMA_VERSION, "created": created, "kgqa": code, **extra})
