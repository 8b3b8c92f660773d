"""Artifacts: folders that are either whole or absent, named by what made them and digested by what they hold.

The store is the truth about finished work.  An artifact lives at `home/artifacts/<kind>/<key>`; the key says what
went in (inputs, options, code), the digest what came out.  `compute` is the only way in: it takes the key's lock,
lets a function fill an empty folder, writes `manifest.json` and renames the folder into place.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from kgqa_core.errors import ArtifactError, StorageError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.digest import (
    MANIFEST,
    VOLATILE,
    canonical_json,
    content_digest,
    content_files,
    hash_file,
    hash_path,
)
from kgqa_core.store.files import storage_faults, write_json, write_text
from kgqa_core.store.home import (
    FOLDERS,
    check_new,
    check_version,
    forget_unpushed,
    note_unpushed,
    stamp,
    unpushed,
    up_to_date,
    version_of,
)
from kgqa_core.store.locks import ProcessUses, forget_dead, held
from kgqa_core.store.remote import DigestMismatch, RemoteStore, StoreFault, safe_name
from kgqa_core.store.verified import State, by_content, is_verified, remember, states

log = logging.getLogger("kgqa")

__all__ = [
    "MANIFEST", "VOLATILE", "ArtifactRef", "Home", "canonical_json", "content_digest", "hash_file", "hash_path",
    "read_manifest", "storage_faults", "sync_folder", "verify", "write_json", "write_manifest",
    "write_text",
]  # fmt: skip
SCHEMA_VERSION = 1
PARTS = "-part"
"""End of the kinds that are pieces of another artifact: of no use once that is there, and in no object store."""


class ArtifactRef(BaseModel):
    """A pointer to a published artifact; the only thing that tasks hand to each other."""

    model_config = ConfigDict(frozen=True)

    kind: str
    path: str
    digest: str

    @property
    def folder(self) -> Path:
        """The artifact's folder."""
        return Path(self.path)


class Home:
    """A folder that holds every artifact, run and store of one user or project.

    Layout: `home.json` its version · `artifacts/<kind>/<key>` finished work · `tmp/` folders being filled · `work/`
    what a killed stage resumes from · `locks/` · `unpushed/` what the object store still lacks · `cache/` what all
    runs share · `runs/<id>` what each run did · `mlflow/` and `prefect/` their stores.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        self._uses = ProcessUses(self.root / "locks")
        self._damaged_in_store: set[str] = set()

    def __reduce__(self) -> tuple[type[Home], tuple[Path]]:
        return Home, (self.root,)

    @classmethod
    def current(cls) -> Home:
        """The home that `KGQA_HOME` names, else `.kgqa` in the working folder."""
        return cls(Path(os.environ.get("KGQA_HOME") or ".kgqa"))

    @property
    def cache(self) -> Path:
        """Folder of what all runs of this home share: responses of language models, vectors."""
        return self.root / "cache"

    def prepare(self) -> Home:
        """Make the folders.

        Raises StorageError when the home cannot be written or is of a newer version, OutputError when its folder is the
        user's own.
        """
        RemoteStore.current()  # options that cannot be read are reported before anything is computed
        with storage_faults(self.root):
            if self.root.exists() and not self.root.is_dir():
                raise StorageError(f"the home {self.root} is not a folder; choose another with --home")
            check_new(self.root)
            up_to_date(self.root)
            for name in FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root / "tmp") as probe:
                probe.write(b"kgqa")
            stamp(self.root)
        forget_dead(self.root / "locks")
        return self

    def look(self) -> Home:
        """Check the home without writing into it: for commands that read.  Raises StorageError for a newer version."""
        if self.root.exists() and not self.root.is_dir():
            raise StorageError(f"the home {self.root} is not a folder; choose another with --home")
        check_version(self.root)
        return self

    @property
    def exists(self) -> bool:
        """Whether there is a home in the folder.  Raises StorageError when its record cannot be read."""
        return version_of(self.root) is not None

    @property
    def writable(self) -> bool:
        """Whether files can be made in the home; so it is where there is none yet."""
        return not self.root.exists() or os.access(self.root, os.W_OK | os.X_OK)

    def folder(self, kind: str, key: str) -> Path:
        """Where the artifact of this kind and key lives, whether or not it is there."""
        return self.root / "artifacts" / kind / key[:20]

    def use(self, name: str) -> None:
        """Say that this process needs something of the home (`runs/<id>`, `<kind>/<key>`): `kgqa gc` leaves it.

        It counts as long as this object lives, or until `let_go`.
        """
        self._uses.add(name)

    def use_folder(self, folder: Path) -> None:
        """Say that this process needs the artifact in or around a folder, where it is one of this home."""
        with contextlib.suppress(ValueError):
            inside = folder.resolve().relative_to(self.root / "artifacts").parts
            if len(inside) >= 2:
                self.use(f"{inside[0]}/{inside[1]}")

    def let_go(self) -> None:
        """Nothing of the home is needed any more."""
        self._uses.close()

    def find(self, kind: str, key: str, monitor: Monitor = QUIET) -> ArtifactRef | None:
        """The verified artifact of this key, or None when it is missing or damaged.

        What the home lacks is fetched from the object store, where there is one.
        """
        self.use(f"{kind}/{key[:20]}")
        cached = self._have(kind, key)
        store = RemoteStore.current()
        if cached is not None or store is None or store.resting or kind.endswith(PARTS):
            return cached
        with storage_faults(self.root), self.locked(f"fetch-{kind}-{key[:20]}", f"fetching the same {kind}", monitor):
            return self._have(kind, key) or self._fetch(store, kind, key, monitor)

    def compute(
        self,
        kind: str,
        key: str,
        fill: Callable[[Path, Path], Mapping[str, Any]],
        record: Mapping[str, Any],
        monitor: Monitor = QUIET,
    ) -> tuple[ArtifactRef, bool]:
        """The artifact of this key and whether this call made it: found, or filled and published.

        `fill(out, work)` writes into the empty folder `out` and may keep what a later try resumes from in `work`;
        it returns counts for the manifest.  Two callers at once compute once: the second waits for the first, and a
        killed one blocks nobody, since the kernel releases its lock.  What was made is sent to the object store,
        where there is one; that this fails undoes nothing, the next run catches up.
        Raises StorageError when the disk is full or read-only; whatever `fill` raises leaves nothing published.
        """
        name = f"{kind}-{key[:20]}"
        run = str(record.get("run_id", ""))
        with storage_faults(self.root), self.locked(name, f"computing the same {kind}", monitor, run):
            cached = self.find(kind, key, monitor)
            if cached is not None:
                return cached, False
            target = self.folder(kind, key)
            if target.exists():
                monitor.note(f"the {kind} artifact {target.name} is damaged; it is built again")
                shutil.rmtree(target)
            out = self.root / "tmp" / name
            work = self.root / "work" / name
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            work.mkdir(parents=True, exist_ok=True)
            try:
                counts = fill(out, work)
                write_manifest(out, kind, key, counts, record)
                if RemoteStore.current() is not None and not kind.endswith(PARTS):
                    note_unpushed(self.root, kind, key)
                ref = self._put_in_place(out, target)
            except BaseException:
                shutil.rmtree(out, ignore_errors=True)
                raise
            shutil.rmtree(work, ignore_errors=True)
        if not kind.endswith(PARTS):
            self._push(kind, key, monitor)
        return ref, True

    def catch_up(self, monitor: Monitor = QUIET) -> int:
        """Send what the object store still lacks of this home; how many artifacts were sent.

        A store that is out of reach is reported once and is no error.
        """
        store, sent = RemoteStore.current(), 0
        if store is None:
            return 0
        for entry in unpushed(self.root):
            if store.resting:
                break
            if not entry.conflict:
                sent += self._push(entry.kind, entry.key, monitor)
        return sent

    @contextlib.contextmanager
    def locked(self, name: str, doing: str, monitor: Monitor = QUIET, run: str = "") -> Iterator[None]:
        """Hold the lock of this name; whoever has to wait is shown who holds it and what the holder is `doing`."""
        with held(self.root / "locks" / f"{name}.lock", doing, monitor.note, run):
            yield

    def _have(self, kind: str, key: str) -> ArtifactRef | None:
        folder = self.folder(kind, key)
        if not folder.exists():
            return None
        try:
            return verify(folder)
        except ArtifactError:
            return None

    def _put_in_place(self, out: Path, target: Path) -> ArtifactRef:
        """Publishes a complete folder; one that came from the store meanwhile stays, and a damaged one goes."""
        manifest = read_manifest(out)
        there_now = states(out, manifest["files"])
        remember(out, there_now)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(out, target)
        except FileNotFoundError:  # somebody removed the kind's empty folder
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(out, target)
        except OSError as fault:
            if fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            there = self._have(manifest["kind"], manifest["key"])
            if there is not None:
                if there.digest != manifest["digest"]:
                    log.error(
                        "the %s artifact %s was made twice with different digests (%s, %s): something that is not "
                        "in its key decides; the first is kept",
                        *(manifest["kind"], target.name, there.digest[:16], manifest["digest"][:16]),
                    )
                shutil.rmtree(out, ignore_errors=True)
                return there
            aside = out.with_name(f"{out.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(target, aside)
            os.rename(out, target)
            shutil.rmtree(aside, ignore_errors=True)
        sync_folder(target.parent)
        _VERIFIED[str(target)] = there_now
        return ArtifactRef(kind=manifest["kind"], path=str(target), digest=manifest["digest"])

    def _fetch(self, store: RemoteStore, kind: str, key: str, monitor: Monitor) -> ArtifactRef | None:
        out = self.root / "tmp" / f"fetch-{kind}-{key[:20]}"
        shutil.rmtree(out, ignore_errors=True)
        try:
            if not store.fetch(kind, key, out, monitor):
                return None
            verify(out)
            ref = self._put_in_place(out, self.folder(kind, key))
        except StoreFault as fault:
            log.warning("%s; the work goes on without it", fault)
            return None
        except StorageError:
            raise
        except ArtifactError as fault:
            log.warning("%s; the artifact is made here", fault)
            self._damaged_in_store.add(f"{kind}/{key}")
            return None
        finally:
            shutil.rmtree(out, ignore_errors=True)
            _VERIFIED.pop(str(out), None)
        log.info("the %s artifact %s came from the store %s", kind, key[:20], store.name)
        return ref

    def _push(self, kind: str, key: str, monitor: Monitor) -> bool:
        """Sends an artifact that is noted as unpushed; says whether the store has it now."""
        store, folder = RemoteStore.current(), self.folder(kind, key)
        if store is None or store.resting:
            return False
        if not folder.exists():
            forget_unpushed(self.root, kind, key)
            return False
        again = f"{kind}/{key}" in self._damaged_in_store
        try:
            if self._have(kind, key) is None:
                raise ArtifactError(f"the {kind} artifact {folder.name} is damaged and is not sent to {store.name}")
            store.push(folder, monitor, again=again)
        except StoreFault as fault:
            log.warning("%s; finished work stays in %s and is sent by the next run", fault, self.root)
            return False
        except DigestMismatch as fault:
            log.error("%s", fault)
            note_unpushed(self.root, kind, key, conflict=str(fault))
            return False
        except (ArtifactError, OSError) as fault:
            log.warning("%s", fault)
            return False
        self._damaged_in_store.discard(f"{kind}/{key}")
        forget_unpushed(self.root, kind, key)
        return True


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an artifact.  Raises ArtifactError when it is missing, not readable or of another shape."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"{folder} is not an artifact: {fault}; run the pipeline again to rebuild it") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA_VERSION:
        raise ArtifactError(f"{folder} was written by another version of kgqa; run the pipeline again to rebuild it")
    if not _well_formed(manifest):
        raise ArtifactError(f"the manifest of {folder} is damaged; run the pipeline again to rebuild it")
    return manifest


def _well_formed(manifest: dict[str, Any]) -> bool:
    """Whether a manifest has what is read of every artifact."""
    files = manifest.get("files")
    named = all(isinstance(manifest.get(name), str) for name in ("kind", "key", "digest"))
    well_formed = all(isinstance(manifest.get(name, {}), dict) for name in ("counts", "made_of"))
    if not (named and well_formed and isinstance(files, dict)):
        return False
    return all(
        isinstance(facts, dict) and isinstance(facts.get("bytes"), int) and isinstance(facts.get("sha256"), str)
        for facts in files.values()
    )


_VERIFIED: dict[str, dict[str, State]] = {}
"""Artifacts that this process has verified, with the states of their files at that time."""


def verify(folder: Path, *, content: bool = False) -> ArtifactRef:
    """The artifact in `folder`, after its files were checked against the manifest.

    Files that have not changed since their bytes were checked are not read again (`kgqa_core.store.verified`), unless
    `content` wants it.  Raises ArtifactError that names the first file that is missing or differs.
    """
    manifest = read_manifest(folder)
    ref = ArtifactRef(kind=manifest["kind"], path=str(folder), digest=manifest["digest"])
    for name, expected in manifest["files"].items():
        file = folder / safe_name(name)
        if not file.is_file() or file.stat().st_size != expected["bytes"]:
            raise _damaged(file)
    before = states(folder, manifest["files"])
    if not content and (_VERIFIED.get(str(folder)) == before or (not by_content() and is_verified(folder, before))):
        return ref
    for name, expected in manifest["files"].items():
        if hash_file(folder / name) != expected["sha256"]:
            raise _damaged(folder / name)
    _VERIFIED[str(folder)] = before
    if folder.parent.parent.name == "artifacts":
        remember(folder, before)
    return ref


def _damaged(file: Path) -> ArtifactError:
    return ArtifactError(f"{file} is missing or damaged; run the pipeline again to rebuild it")


def write_manifest(
    out: Path, kind: str, key: str, counts: Mapping[str, Any], record: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the manifest of a complete folder, which ends it, and return it."""
    files = {
        file.relative_to(out).as_posix(): {"bytes": file.stat().st_size, "sha256": hash_file(file)}
        for file in content_files(out)
    }
    manifest = {
        "schema": SCHEMA_VERSION,
        "kind": kind,
        "key": key,
        "digest": content_digest(out),
        "files": files,
        "counts": dict(counts),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **record,
    }
    path = out / MANIFEST
    with path.open("w", encoding="utf-8") as stream:
        json.dump(manifest, stream, sort_keys=True, indent=1, ensure_ascii=False, default=str)
        stream.flush()
        os.fsync(stream.fileno())
    return manifest


def sync_folder(folder: Path) -> None:
    """Make a rename within a folder last through a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
