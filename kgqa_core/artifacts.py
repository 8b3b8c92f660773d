"""Artifacts: folders that are either whole or absent, named by what made them and digested by what they hold.

The store is the truth about finished work.  An artifact lives at `home/artifacts/<kind>/<key>`; the key says what
went in (inputs, options, code), the digest what came out.  `compute` is the only way in: it takes the key's lock,
lets a function fill an empty folder, writes `manifest.json` and renames the folder into place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
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

MANIFEST = "manifest.json"
VOLATILE = "volatile"
"""Sub-folder of an artifact that is kept but not digested: timings, logs, pages."""
SCHEMA_VERSION = 1
CHUNK = 1 << 20


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


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files with their relative names."""
    if path.is_file():
        return hash_file(path)
    lines = [f"{file.relative_to(path)} {hash_file(file)}" for file in sorted(path.rglob("*")) if file.is_file()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def content_digest(folder: Path) -> str:
    """SHA-256 of a folder's canonical content: rows and values, not the bytes of containers.

    Parquet counts as its rows in order, JSON as sorted keys, a DuckDB file as its tables exported in order, anything
    else as its bytes.  The manifest and `volatile/` do not count.
    """
    lines = []
    for file in _content_files(folder):
        name = file.relative_to(folder).as_posix()
        if file.suffix == ".parquet":
            value = _hash_parquet(file)
        elif file.suffix == ".json":
            value = hashlib.sha256(canonical_json(json.loads(file.read_text(encoding="utf-8"))).encode()).hexdigest()
        elif file.suffix == ".duckdb":
            value = _hash_duckdb(file)
        else:
            value = hash_file(file)
        lines.append(f"{name} {value}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Home:
    """A folder that holds every artifact, run and store of one user or project.

    Layout: `artifacts/<kind>/<key>` finished work · `tmp/` folders being filled · `work/` what a killed stage
    resumes from · `locks/` · `runs/<id>` what each run did · `mlflow/` and `prefect/` their stores.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()

    @classmethod
    def current(cls) -> Home:
        """The home that `KGQA_HOME` names, else `.kgqa` in the working folder."""
        return cls(Path(os.environ.get("KGQA_HOME") or ".kgqa"))

    def prepare(self) -> Home:
        """Make the folders.  Raises StorageError when the home cannot be written."""
        with storage_faults(self.root):
            if self.root.exists() and not self.root.is_dir():
                raise StorageError(f"the home {self.root} is not a folder; choose another with --home")
            for name in ("artifacts", "tmp", "work", "locks", "runs", "mlflow", "prefect"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root / "tmp") as probe:
                probe.write(b"kgqa")
        return self

    def folder(self, kind: str, key: str) -> Path:
        """Where the artifact of this kind and key lives, whether or not it is there."""
        return self.root / "artifacts" / kind / key[:20]

    def find(self, kind: str, key: str) -> ArtifactRef | None:
        """The verified artifact of this key, or None when it is missing or damaged."""
        folder = self.folder(kind, key)
        if not folder.exists():
            return None
        try:
            return verify(folder)
        except ArtifactError:
            return None

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
        killed one blocks nobody, since the kernel releases its lock.
        Raises StorageError when the disk is full or read-only; whatever `fill` raises leaves nothing published.
        """
        with storage_faults(self.root), self.locked(f"{kind}-{key[:20]}", f"computing the same {kind}", monitor):
            found = self.find(kind, key)
            if found is not None:
                return found, False
            target = self.folder(kind, key)
            if target.exists():
                monitor.note(f"the {kind} artifact {target.name} is damaged; it is built again")
                shutil.rmtree(target)
            out = self.root / "tmp" / f"{kind}-{key[:20]}"
            work = self.root / "work" / f"{kind}-{key[:20]}"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            work.mkdir(parents=True, exist_ok=True)
            try:
                counts = fill(out, work)
                manifest = _write_manifest(out, kind, key, counts, record)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.rename(out, target)
                _sync_folder(target.parent)
            except BaseException:
                shutil.rmtree(out, ignore_errors=True)
                raise
            shutil.rmtree(work, ignore_errors=True)
            _VERIFIED[str(target)] = _stamp(target)
            return ArtifactRef(kind=kind, path=str(target), digest=manifest["digest"]), True

    @contextlib.contextmanager
    def locked(self, name: str, doing: str, monitor: Monitor = QUIET) -> Iterator[None]:
        """Hold the lock of this name; whoever has to wait is told what the holder is `doing`."""
        path = self.root / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                handle.seek(0)
                owner = handle.read().strip() or "another process"
                monitor.note(f"waiting for {owner}, which is {doing}")
                fcntl.flock(handle, fcntl.LOCK_EX)
            handle.truncate(0)
            handle.write(f"process {os.getpid()}")
            handle.flush()
            yield


def publish_folder(
    kind: str, target: Path, fill: Callable[[Path, Path], Mapping[str, Any]], record: Mapping[str, Any] | None = None
) -> ArtifactRef:
    """Fill a folder beside `target` and put it in its place when complete; an earlier artifact is replaced last.

    Raises StorageError when `target` holds something that is not an artifact of this kind.
    """
    target = target.expanduser().resolve()
    occupied = target.exists() and (not target.is_dir() or any(target.iterdir()))
    if occupied and (not (target / MANIFEST).is_file() or read_manifest(target)["kind"] != kind):
        raise StorageError(f"{target} exists and is not a {kind} folder; choose another place")
    with storage_faults(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
            out, work, old = (Path(scratch) / name for name in ("out", "work", "old"))
            out.mkdir()
            work.mkdir()
            manifest = _write_manifest(out, kind, "", fill(out, work), record or {})
            if target.exists():
                os.rename(target, old)
            os.rename(out, target)
            _sync_folder(target.parent)
    return ArtifactRef(kind=kind, path=str(target), digest=manifest["digest"])


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an artifact.  Raises ArtifactError when it is missing or not readable."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"{folder} is not an artifact: {fault}; run the pipeline again to rebuild it") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA_VERSION:
        raise ArtifactError(f"{folder} was written by another version of kgqa; run the pipeline again to rebuild it")
    return manifest


_VERIFIED: dict[str, str] = {}
"""Artifacts that this process has verified, with the stamp of their files at that time."""


def verify(folder: Path) -> ArtifactRef:
    """The artifact in `folder`, after its files' bytes were checked against the manifest.

    Raises ArtifactError that names the first file that is missing or differs.
    """
    manifest = read_manifest(folder)
    ref = ArtifactRef(kind=manifest["kind"], path=str(folder), digest=manifest["digest"])
    if _VERIFIED.get(str(folder)) == _stamp(folder):
        return ref
    for name, expected in manifest["files"].items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != expected["bytes"] or hash_file(file) != expected["sha256"]:
            raise ArtifactError(f"{file} is missing or damaged; run the pipeline again to rebuild it")
    _VERIFIED[str(folder)] = _stamp(folder)
    return ref


@contextlib.contextmanager
def storage_faults(root: Path) -> Iterator[None]:
    """Turn errors of a full or read-only disk into a StorageError that says what to do."""
    try:
        yield
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(
                f"no space left for the home {root}; free some, or choose another place with --home. "
                "Finished stages are kept."
            ) from fault
        if fault.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR):
            raise StorageError(
                f"the home {root} cannot be written ({fault.strerror}); choose another with --home"
            ) from fault
        raise
    except Exception as fault:
        if "No space left on device" in str(fault):
            raise StorageError(
                f"no space left for the home {root}; free some, or choose another place with --home. "
                "Finished stages are kept."
            ) from fault
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
    os.replace(temporary, path)


def _write_manifest(
    out: Path, kind: str, key: str, counts: Mapping[str, Any], record: Mapping[str, Any]
) -> dict[str, Any]:
    files = {
        file.relative_to(out).as_posix(): {"bytes": file.stat().st_size, "sha256": hash_file(file)}
        for file in _content_files(out)
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


def _content_files(folder: Path) -> list[Path]:
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != MANIFEST and VOLATILE not in file.relative_to(folder).parts
    ]


def _stamp(folder: Path) -> str:
    facts = []
    for file in _content_files(folder):
        state = file.stat()
        facts.append(f"{file.name} {state.st_size} {state.st_mtime_ns} {state.st_ino}")
    return "|".join(facts)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _hash_parquet(path: Path) -> str:
    import polars

    frame = polars.read_parquet(path)
    digest = hashlib.sha256(str(frame.schema).encode())
    for part in frame.iter_slices(50_000):
        digest.update(part.write_ndjson().encode())
    return digest.hexdigest()


def _hash_duckdb(path: Path) -> str:
    import duckdb

    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch, duckdb.connect(str(path), read_only=True) as base:
        names = [row[0] for row in base.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
        for name in names:
            export = Path(scratch) / "table.csv"
            base.execute(f"COPY (SELECT * FROM \"{name}\" ORDER BY ALL) TO '{export}' (FORMAT csv, HEADER true)")
            digest.update(f"{name} {hash_file(export)}\n".encode())
    return digest.hexdigest()
