"""Artifacts: folders that are either whole or absent, named by what made them and digested by what they hold.

The store is the truth about finished work.  An artifact lives at `home/artifacts/<kind>/<key>`; the key says what
went in (inputs, options, code), the digest what came out.  `compute` is the only way in: it takes the key's lock,
lets a function fill an empty folder, writes `manifest.json` and renames the folder into place.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
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

    Parquet counts as its rows in order, JSON as sorted keys, a DuckDB file as the rows of its tables in the order of
    their columns, anything else as its bytes.  The manifest and `volatile/` do not count.
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
        _clear_remains(target)
        with (
            tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch,
            (Path(scratch) / "lock").open("w") as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            out, work, old = (Path(scratch) / name for name in ("out", "work", "old"))
            out.mkdir()
            work.mkdir()
            manifest = _write_manifest(out, kind, "", fill(out, work), record or {})
            if not (target.exists() and _exchange(out, target)):
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


def _clear_remains(target: Path) -> None:
    """Deletes what killed processes left beside `target`; the lock tells them from those that are still at work."""
    for scratch in target.parent.glob(f".{glob.escape(target.name)}.*/lock"):
        with contextlib.suppress(OSError), scratch.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not target.exists() and (scratch.parent / "old" / MANIFEST).is_file():
                os.rename(scratch.parent / "old", target)
            shutil.rmtree(scratch.parent, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Swaps two folders in one step, so that a kill leaves both whole; False where the system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, both_ways = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(swap(here, os.fsencode(first), here, os.fsencode(second), both_ways) == 0)


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


_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_PLAIN = {*_INTEGERS, "DOUBLE", "VARCHAR"}
"""Types of DuckDB that are digested as they are; a time counts as its microseconds, anything else as its text."""

_DIGEST_MEMORY = "1GB"


def _hash_duckdb(path: Path) -> str:
    """Digest of the tables' rows in the order of all columns, whatever order they are stored in.

    A table whose first column is an integer that rises from row to row is stored in this order: it is read through.
    Others are sorted.  Each column has a digest of its own, so that the pieces in which rows come do not matter.
    """
    import duckdb

    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        # An instance of its own, so that other readers of the file in this process may have other settings.
        config: dict[str, Any] = {"memory_limit": _DIGEST_MEMORY, "temp_directory": scratch, "threads": 2}
        with duckdb.connect(":memory:", config=config) as base:
            base.execute(f"ATTACH {_quoted(path)} AS content (READ_ONLY)")
            tables = base.execute(
                "SELECT table_name, list(column_name ORDER BY column_index), list(data_type ORDER BY column_index) "
                "FROM duckdb_columns() WHERE database_name = 'content' AND NOT internal AND table_name IN "
                "(SELECT table_name FROM duckdb_tables() WHERE database_name = 'content') GROUP BY 1 ORDER BY 1"
            ).fetchall()
            for table, names, types in tables:
                columns = [_digested(name, kind) for name, kind in zip(names, types, strict=True)]
                source = f'content."{table}"'
                rises = types[0] in _INTEGERS and _rises(base, source, names[0])
                order = "" if rises else " ORDER BY ALL"
                found = _hash_rows(base, f"SELECT {', '.join(columns)} FROM (FROM {source}{order})", len(columns))
                digest.update(canonical_json([table, names, types, found]).encode())
    return digest.hexdigest()


def _digested(name: str, kind: str) -> str:
    """A column as it is digested."""
    return f'"{name}"' if kind in _PLAIN else f'epoch_us("{name}")' if kind == "TIMESTAMP" else f'"{name}"::VARCHAR'


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _rises(connection: Any, source: str, column: str) -> bool:
    """Does an integer column rise from each stored row to the next?"""
    last: int | None = None
    for batch in connection.execute(f'SELECT "{column}" FROM {source}').to_arrow_reader(200_000):
        if batch.column(0).null_count:
            return False
        values = batch.column(0).to_numpy()
        if len(values) and ((last is not None and values[0] <= last) or (values[1:] <= values[:-1]).any()):
            return False
        last = int(values[-1]) if len(values) else last
    return True


def _hash_rows(connection: Any, query: str, width: int) -> list[Any]:
    """How many rows a query has, and for every column digests of its values, lengths and empty places."""
    import numpy as np
    import pyarrow as pa

    digests = [[hashlib.sha256() for _ in range(3)] for _ in range(width)]
    rows = 0
    for batch in connection.execute(query).to_arrow_reader(200_000):
        for (values, lengths, empty), column in zip(digests, batch.columns, strict=True):
            text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            if column.null_count:
                missing = column.is_null().to_numpy(zero_copy_only=False)
                empty.update((np.flatnonzero(missing) + rows).tobytes())
                column = column.fill_null("" if text else 0)
            if text:
                column = column.cast(pa.large_string())
                offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset :][: len(column) + 1]
                lengths.update(np.diff(offsets).tobytes())
                if column.buffers()[2] is not None:
                    values.update(memoryview(column.buffers()[2])[offsets[0] : offsets[-1]])
            else:
                values.update(np.ascontiguousarray(column.to_numpy()).tobytes())
        rows += batch.num_rows
    return [rows, *([part.hexdigest() for part in column] for column in digests)]
