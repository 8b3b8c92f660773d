"""Which files of an artifact are those whose bytes were checked: by size, times and inode, without reading them.

A record beside the manifest says what the files were when their bytes last agreed with it.  As long as their size, both
times and inode are the same, they hold the same: the change time (`ctime`) cannot be set back, as a modification time
can.  A copied, restored or linked file has another one, and its bytes are read again.  What only the bytes show, a disk
that loses some, is found by `kgqa home --verify`, or by every command while `KGQA_VERIFY` is `content`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from kgqa_core.errors import ConfigError
from kgqa_core.store.digest import MANIFEST, VOLATILE
from kgqa_core.store.files import write_json

RECORD = f"{VOLATILE}/verified.json"
"""The record's place in an artifact.  It is of this file system alone, and in no object store."""
VARIABLE = "KGQA_VERIFY"
MARGIN_NS = 2_000_000_000
"""Nanoseconds that the record must be younger than the files: within a tick of a file system's clock (two seconds at
most) a change leaves no trace.  Younger files are read once more by the next process."""

State = tuple[int, int, int, int]
"""Size, modification time and change time in nanoseconds, inode."""


def by_content() -> bool:
    """Whether every check reads the bytes.  Raises ConfigError for a value of `KGQA_VERIFY` that means nothing."""
    value = os.environ.get(VARIABLE) or "state"
    if value not in ("state", "content"):
        raise ConfigError(f"{VARIABLE} is {value!r}; use 'state' (size, times and inode, the default) or 'content'")
    return value == "content"


def states(folder: Path, names: Iterable[str]) -> dict[str, State]:
    """The state of each named file of a folder.  Raises OSError where one is missing."""
    files = {}
    for name in names:
        state = os.stat(folder / name)
        files[name] = state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino
    return files


def remember(folder: Path, files: dict[str, State]) -> None:
    """Writes the record of files whose bytes agree with the manifest; where the folder is read-only, nothing."""
    with contextlib.suppress(OSError):
        (folder / VOLATILE).mkdir(exist_ok=True)
        write_json(folder / RECORD, {"manifest": _manifest(folder), "files": files})


def not_copied(folder: str, names: list[str]) -> set[str]:
    """What stays behind where an artifact is copied, as `shutil.copytree` wants it: the record of its place."""
    path, record = Path(folder), Path(RECORD).name
    if path.name == VOLATILE:
        return {record} & set(names)
    alone = VOLATILE in names and all(entry.name == record for entry in (path / VOLATILE).iterdir())
    return {VOLATILE} if alone else set()


def is_verified(folder: Path, files: dict[str, State]) -> bool:
    """Whether the record says that files in these states hold what the manifest says."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        written = os.stat(folder / RECORD).st_mtime_ns
        known = {name: tuple(state) for name, state in record["files"].items()}
        newest = max((max(state[1:3]) for state in files.values()), default=0)
        return record["manifest"] == _manifest(folder) and known == files and newest + MARGIN_NS <= written
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _manifest(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
