"""A survey of a home: where it is, what it holds and how much of the disk each thing takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from kgqa_core.store.home import RECORD, unpushed, version_of
from kgqa_core.store.inventory import Disk, RunFolder, Stored, champions, entries, runs, stored
from kgqa_core.store.locks import idle, in_use, read_owner
from kgqa_core.store.remote import Store

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
    own = {run.id: disk.size(run.path) for run in every_run}
    places: dict[str, dict[str, Any]] = {}
    for path in entries(root):
        if path.is_dir():
            size, files = disk.size(path)
            if path.name == "runs":
                size, files = size + sum(a for a, _ in own.values()), sum(b for _, b in own.values())
            elif path.name == "artifacts":
                size, files = sum(a for a, _ in sizes.values()), sum(b for _, b in sizes.values())
            places[path.name] = {"bytes": size, "files": files, "what": PLACES.get(path.name, "not kgqa's")}
    everyone = in_use(root / "locks")
    store = Store.current()
    owed = unpushed(root)
    return {
        "home": str(root),
        "layout": version,
        **_record(root),
        "bytes": sum(place["bytes"] for place in places.values()),
        "disk_free": shutil.disk_usage(root).free,
        "places": places,
        "kinds": _kinds(every, sizes),
        "runs": [_run(run, sizes, own[run.id][0], everyone.names) for run in every_run],
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


def _kinds(every: list[Stored], sizes: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {}
    for artifact in every:
        row = kinds.setdefault(artifact.kind, {"kind": artifact.kind, "artifacts": 0, "damaged": 0, "bytes": 0})
        row["artifacts"] += 1
        row["damaged"] += not artifact.whole
        row["bytes"] += sizes[artifact.id][0]
    return sorted(kinds.values(), key=lambda row: (-row["bytes"], row["kind"]))


def _run(run: RunFolder, sizes: dict[str, tuple[int, int]], own: int, used: frozenset[str]) -> dict[str, Any]:
    there = [sizes[name][0] for name in run.uses if name in sizes]
    status = "under way" if f"runs/{run.id}" in used else run.status
    return {
        "run_id": run.id,
        "status": status,
        "artifacts": len(there),
        "gone": len(run.uses) - len(there),
        "bytes": sum(there),
        "own": own,
        "seconds": round(run.seconds, 1),
    }


def _champions(root: Path) -> dict[str, list[str]]:
    try:
        return champions(root)
    except (OSError, ValueError):
        return {"(damaged)": []}


def _locks(folder: Path) -> list[dict[str, str]]:
    """Locks that are held now, with their owners."""
    found = []
    for path in sorted(folder.glob("*.lock")):
        if not idle(path):
            owner = read_owner(path)
            found.append({"lock": path.stem, "owner": str(owner or "unknown"), "since": owner.when if owner else ""})
    return found
