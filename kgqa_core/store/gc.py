"""Housekeeping: what a home no longer needs, and how it goes without disturbing anybody.

Kept is what a champion, one of the last finished runs, one of the last builds (`kgqa ltgen build`), a run under way or
a live process needs, with everything that it was made of; the mention dictionaries of graphs that stay; and what was
made since the oldest of the last finished runs, since a rerun of a broken run takes it up.
Whoever is given an artifact notes it while `gc.lock` is shared; here that lock is held alone while the notes are
read and what goes is renamed.  So a run that starts at the same moment either is seen, or makes the artifact anew.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kgqa_core.errors import ArtifactError
from kgqa_core.store.artifacts import PARTS
from kgqa_core.store.files import storage_faults
from kgqa_core.store.inventory import (
    GONE,
    OWNER,
    Disk,
    RunFolder,
    StoredArtifact,
    entries,
    newest_change,
    runs,
    runs_of_champions,
    stored,
)
from kgqa_core.store.locks import InUse, free, gate, idle, in_use, shared
from kgqa_core.store.scratch import delete_path

DAY = 86400.0
RECORDS = {"run.json", "untracked.jsonl", "refused.jsonl", OWNER}
"""What stays of an old run: what it was, and what the tracker has not received yet."""

COMPANIONS = frozenset({"mentions"})
"""Kinds that questions to come need, though no finished run may name them: they stay with what they were made of."""

RECORDED = ("champions", "prefect", "unpushed")
"""Folders of a home with small records, each of which is written beside its place and renamed (`files.write_json`)."""


@dataclass(frozen=True)
class Removal:
    """Something that goes.  what: its sort.  lock: a lock that must be free when it goes."""

    what: str
    name: str
    path: Path
    bytes: int
    why: str
    lock: Path | None = None


@dataclass
class RemovalPlan:
    """What goes and what stays.  kept: artifacts by reason.  notes: what else there is to say."""

    items: list[Removal] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Disk space that it frees."""
        return sum(item.bytes for item in self.items)


def plan(root: Path, *, keep: int = 5, older: float = 0.0, cache: bool = False) -> RemovalPlan:
    """What housekeeping would remove from the home at `root`.

    keep: finished runs whose artifacts stay, and as many builds.  older: days; what is younger stays in any case.
    cache: also what language models answered, which is paid again.
    Raises ArtifactError when a champion's record cannot be read, or its run does not say what it made.
    """
    result, disk, now = RemovalPlan(), Disk(), time.time()
    everyone = in_use(root / "locks")
    every_run = runs(root)
    needed, oldest = _kept_runs(root, every_run, everyone, keep)
    every_artifact = stored(root)
    reasons = _reasons(every_artifact, every_run, needed, everyone, oldest, now - older * DAY, now - DAY)
    for artifact in every_artifact:
        if (reason := reasons.get(artifact.id)) is not None:
            result.kept[reason] = result.kept.get(reason, 0) + 1
            continue
        why = "no kept run needs it" if artifact.whole else "damaged"
        result.items.append(Removal("artifact", artifact.id, artifact.path, disk.size(artifact.path)[0], why))
    for run in every_run:
        if run.id not in needed and run.started < min(oldest, now - older * DAY):
            result.items += _run_items(run, disk)
    going = {item.path for item in result.items}
    left = _leftovers(root, disk, now - max(1.0, older) * DAY)
    result.items += [item for item in left if item.path not in going]
    if cache and (root / "cache").is_dir():
        if everyone.owners or everyone.everything:
            result.notes.append("the cache stays, since the home is in use")
        else:
            size = disk.size(root / "cache")[0]
            result.items.append(Removal("cache", "cache", root / "cache", size, "asked for; it is paid again"))
    if not any(run.done for run in every_run):
        result.notes.append("no run has finished yet, so all artifacts are kept for the next try")
    for owner in everyone.owners:
        result.notes.append(f"in use by {owner} since {owner.when}")
    return result


def sweep(root: Path, *, keep: int = 5, older: float = 0.0, cache: bool = False) -> RemovalPlan:
    """Remove what `plan` says at this moment; what is removed is renamed first, so that nobody sees half of it.

    Raises ArtifactError when another housekeeping is under way.
    """
    locks = root / "locks"
    with storage_faults(root), free(locks / "housekeeping.lock") as alone:
        if not alone:
            raise ArtifactError(f"another `kgqa gc` is tidying {root}; wait for it")
        with shared(gate(locks), alone=True):
            result = plan(root, keep=keep, older=older, cache=cache)
            moved = [(item, moved_to) for item in result.items if (moved_to := _move_out(root, item)) is not None]
        result.items = [item for item, _ in moved]
        for _, moved_to in moved:
            delete_path(moved_to)
    return result


def _kept_runs(root: Path, every: list[RunFolder], everyone: InUse, keep: int) -> tuple[dict[str, str], float]:
    """Runs that stay with the reason, and the start of the oldest of the last finished ones."""
    needed: dict[str, str] = {}
    tables = {run.id for run in every if run.done}  # a run of several question sets counts once, and keeps its sets
    last = [run for run in every if run.done and run.table not in tables][-keep:] if keep else []
    last += [run for run in every if run.done and run.table in {finished.id for finished in last}]
    built = [run for run in every if run.status == "made"][-keep:] if keep else []
    oldest = min((run.started for run in last), default=float("-inf"))
    try:
        named = runs_of_champions(root)
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"a champion's record cannot be read ({fault}); nothing is removed") from None
    _check_champions(root, every, named)
    for run in every:
        if f"runs/{run.id}" in everyone.names or not idle(run.path / OWNER):
            needed[run.id] = "a run under way"
        elif run in last:
            needed[run.id] = "the last finished runs"
        elif run in built:
            needed[run.id] = "the last builds"
        elif any(run.id in names for names in named.values()):
            needed[run.id] = "a champion"
        elif run.started >= oldest:
            needed[run.id] = "a run to be taken up"
    for name in everyone.names:
        if name.startswith("runs/"):
            needed.setdefault(name.removeprefix("runs/"), "a run under way")
    return needed, oldest


def _check_champions(root: Path, every: list[RunFolder], named: dict[str, list[str]]) -> None:
    """Raises ArtifactError when it is unknown which artifacts a champion needs."""
    recorded = {run.id for run in every if run.uses}
    for system, (champion, *_) in ((system, names) for system, names in named.items() if names):
        if champion not in recorded:
            raise ArtifactError(
                f"{root / 'runs' / champion / 'run.json'} does not say what the champion of {system} is made of, so "
                f"nothing is removed; put it back, or delete {root / 'champions' / f'{system}.json'}"
            )


def _reasons(
    every: list[StoredArtifact],
    every_run: list[RunFolder],
    needed: dict[str, str],
    everyone: InUse,
    oldest: float,
    young: float,
    yesterday: float,
) -> dict[str, str]:
    """Why each artifact that stays does so, by its id."""
    reasons: dict[str, str] = {}
    roots = {use: needed[run.id] for run in every_run if run.id in needed for use in run.uses}
    by_digest: dict[str, list[StoredArtifact]] = {}
    for artifact in every:
        by_digest.setdefault(artifact.digest, []).append(artifact)
    busy = bool(everyone.owners)
    waiting: list[tuple[StoredArtifact, str]] = []
    for artifact in every:
        part = artifact.kind.endswith(PARTS)
        if everyone.everything or artifact.id in everyone.names:
            waiting.append((artifact, "a live process"))
        elif artifact.id in roots:
            waiting.append((artifact, roots[artifact.id]))
        elif needed.get(artifact.maker) == "a run under way" or (busy and artifact.written > yesterday):
            waiting.append((artifact, "a run under way"))
        elif artifact.written > yesterday if part else artifact.whole and artifact.written >= oldest:
            waiting.append((artifact, "a run to be taken up"))
        elif artifact.written > young:
            waiting.append((artifact, "young"))
    while waiting:
        artifact, reason = waiting.pop()
        if artifact.id in reasons:
            continue
        reasons[artifact.id] = reason
        for digest in artifact.inputs:
            waiting += [(source, reason) for source in by_digest.get(digest, []) if source.whole]
    for artifact in _companions(every, {artifact.digest for artifact in every if artifact.id in reasons}):
        reasons.setdefault(artifact.id, "its graph stays")
    return reasons


def _companions(every: list[StoredArtifact], there: set[str]) -> Iterator[StoredArtifact]:
    """The newest artifact of each companion kind that was made of what stays.  there: digests of that."""
    newest: dict[tuple[str, frozenset[str]], StoredArtifact] = {}
    for artifact in every:
        if artifact.kind in COMPANIONS and artifact.whole and artifact.inputs and artifact.inputs <= there:
            key = artifact.kind, artifact.inputs
            newest[key] = max(newest.get(key, artifact), artifact, key=lambda item: (item.written, item.id))
    yield from newest.values()


def _run_items(run: RunFolder, disk: Disk) -> Iterator[Removal]:
    """What goes of an old run: everything but its record, and all of one that left no record."""
    if not any((run.path / name).exists() for name in RECORDS - {OWNER}):
        yield Removal("run", run.id, run.path, disk.size(run.path)[0], "killed, and later ones have finished")
        return
    for path in entries(run.path):
        if path.name not in RECORDS:
            yield Removal("run", f"{run.id}/{path.name}", path, disk.size(path)[0], "an old run; its run.json stays")


def _leftovers(root: Path, disk: Disk, yesterday: float) -> Iterator[Removal]:
    """What killed processes left: temporary folders, work that nobody took up, locks that nobody holds."""
    locks = root / "locks"

    for path in entries(root / "tmp"):
        lock = locks / f"{path.name.removesuffix('.damaged')}.lock"
        if (lock.exists() or newest_change(path) < yesterday) and idle(lock):
            yield Removal("temporary", path.name, path, disk.size(path)[0], "its process is gone", lock)
    for path in entries(root / "work"):
        lock = locks / f"{path.name}.lock"
        kind, _, key = path.name.rpartition("-")
        finished = (root / "artifacts" / kind / key).is_dir()
        if (finished or newest_change(path) < yesterday) and idle(lock):
            why = "its artifact is finished" if finished else "nobody took it up for a day"
            yield Removal("work", path.name, path, disk.size(path)[0], why, lock)
    for folder in (root / "tmp", root / "work", root, *entries(root / "artifacts"), *entries(root / "runs")):
        for path in folder.glob(f"{GONE}*"):
            yield Removal("temporary", path.name, path, disk.size(path)[0], "a broken-off removal")
    for folder in (root, *(root / name for name in RECORDED), *entries(root / "runs")):
        for path in folder.glob(".*.tmp"):
            if newest_change(path) < yesterday:
                yield Removal("temporary", path.name, path, disk.size(path)[0], "a broken-off write")
    for path in sorted(locks.glob("*.lock")):
        if path not in (gate(locks), locks / "housekeeping.lock") and path.stat().st_mtime < yesterday and idle(path):
            yield Removal("lock", path.name, path, disk.size(path)[0], "nobody holds it", path)
    for path in entries(locks / "uses"):
        if idle(path):
            yield Removal("lock", f"uses/{path.name}", path, disk.size(path)[0], "its process is gone", path)


def _move_out(root: Path, item: Removal) -> Path | None:
    """Renames something out of everybody's sight and says where it is now; None when it is held after all."""
    if item.path.name.startswith(GONE):
        return item.path
    name = f"{GONE}{secrets.token_hex(4)}-{item.path.name}"
    with contextlib.ExitStack() as stack:
        if item.lock is not None:
            stale = item.what == "lock"
            if not stack.enter_context(free(item.lock, remove=not stale)):
                return None
        for target in (root / "tmp" / name, item.path.with_name(name)):  # the second where tmp is another file system
            try:
                os.rename(item.path, target)
                return target
            except FileNotFoundError:
                if not item.path.exists():
                    return None
            except OSError:
                continue
    return None
