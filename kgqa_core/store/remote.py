"""The object store: a second place for finished artifacts, that many machines share.

Layout below the URL in `KGQA_STORE`: `artifacts/<kind>/<key>/<files>/…` holds an artifact's files, where `<files>` is
a digest of their bytes, and `artifacts/<kind>/<key>/index.json`, written last, says which of these folders counts.
So a half-sent artifact is never seen, and two machines that send the same key at once do not mix their files.
Credentials come from the environment alone and are in no message.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from kgqa_core.errors import ArtifactError, ConfigError, KgqaError
from kgqa_core.extras import require_extra
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.digest import MANIFEST, VOLATILE, canonical_json, hash_file
from kgqa_core.store.scratch import scratch_file
from kgqa_core.store.verified import RECORD

URL, OPTIONS = "KGQA_STORE", "KGQA_STORE_OPTIONS"
INDEX = "index.json"
SCHEMA_VERSION = 1
INDEX_BYTES = 2**25
"""Bytes that an index or a manifest may have."""
WORKERS = 8
WAITS = (0.5, 2.0)
"""Seconds before each further try; s3fs tries several times within each."""
REST = 60.0
"""Seconds for which a store that could not be reached is left alone."""
DAY = 86400.0
SECRET = re.compile(r"key|secret|token|password|passwd|credential|account", re.IGNORECASE)
LOCAL = {"file", "local"}
S3 = ("s3://", "s3a://")


class StoredFile(msgspec.Struct, frozen=True):
    """A file of an artifact in the store."""

    bytes: int
    sha256: str


class Index(msgspec.Struct, frozen=True):
    """Which folder of the store holds an artifact's files, and what they are."""

    schema: int
    kind: str
    key: str
    digest: str
    folder: str
    files: dict[str, StoredFile]


class StoreFault(KgqaError):
    """The store could not be reached or refused; the work that it was for goes on without it."""


class DigestMismatch(ArtifactError):
    """The store has another outcome under the same key: something that is not in the key decides."""


def safe_name(name: object) -> PurePosixPath:
    """A name of a manifest that stays inside its folder and that a file can have.  Raises ArtifactError for others."""
    text = name if isinstance(name, str) else ""
    path = PurePosixPath(text)
    plain = text and "\\" not in text and "\0" not in text and text == path.as_posix() and not path.is_absolute()
    if not plain or ".." in path.parts or text == ".":
        raise ArtifactError(f"a manifest names the file {name!r}, which could leave its folder; it is not used")
    try:
        short = len(text.encode()) <= 1000 and all(len(part.encode()) <= 255 for part in path.parts)
    except UnicodeEncodeError:
        short = False
    if not short:
        raise ArtifactError(f"a manifest names the file {text[:40]!r}…, which cannot be written; it is not used")
    return path


class RemoteStore:
    """Artifacts at a URL of fsspec (`s3://bucket/prefix`, `file:///mnt/store`, …).

    Methods raise StoreFault when the store cannot be used; it then rests for a minute, in which they raise at once.
    """

    def __init__(self, url: str, options: dict[str, Any] | None = None) -> None:
        self.url, self.options = url, options or {}
        self.name = _without_secrets(url)
        self._resting_until = 0.0
        self._opened: tuple[Any, str] | None = None
        self._guard = threading.Lock()

    @classmethod
    def current(cls) -> RemoteStore | None:
        """The store that the environment names, if any.  Raises ConfigError for options that are no JSON object."""
        url, text = os.environ.get(URL, "").strip(), os.environ.get(OPTIONS, "").strip()
        if not url:
            return None
        try:
            options = json.loads(text) if text else {}
        except ValueError:
            options = None
        if not isinstance(options, dict):
            raise ConfigError(f'{OPTIONS} is not a JSON object such as {{"endpoint_url": "https://…"}}')
        if "://" not in url:
            raise ConfigError(f"{URL} is {url!r}, which is no URL; say s3://bucket/prefix or file:///folder")
        if url.startswith(S3):
            require_extra("store", f"{URL}={_without_secrets(url)}")
        with _KNOWN_GUARD:
            # a forked child needs connections of its own
            return _KNOWN.setdefault(canonical_json([os.getpid(), url, options]), cls(url, options))

    @property
    def resting(self) -> bool:
        """Was the store out of reach a moment ago?"""
        return time.monotonic() < self._resting_until

    def push(self, folder: Path, monitor: Monitor = QUIET, *, again: bool = False) -> None:
        """Send an artifact: files first, the index last; files that an earlier try has sent are not sent again.

        again: what the store has of it is damaged and is replaced.
        Raises StoreFault, and DigestMismatch when the store has another digest under this key (which then stays).
        """
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        kind, key = str(manifest["kind"]), str(manifest["key"])
        if self._agrees(kind, key, manifest["digest"]) and not again:
            return
        files = {
            path.relative_to(folder).as_posix(): StoredFile(path.stat().st_size, hash_file(path))
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path != folder / RECORD
        }
        part = hashlib.sha256(canonical_json(msgspec.to_builtins(files)).encode()).hexdigest()[:16]
        target = f"{self._place(kind, key)}/{part}"
        sent = {} if again else self._sizes(target)
        jobs: dict[str, Callable[[Any], None]] = {}
        for name, file in files.items():
            if sent.get(name) != file.bytes:
                jobs[name] = lambda report, name=name: self._put(folder / name, f"{target}/{name}", report)  # type: ignore[misc]
        self._transfer(jobs, sum(files[name].bytes for name in jobs), monitor, "MB sent to the store")
        if self._agrees(kind, key, manifest["digest"]) and not again:
            return
        index = Index(SCHEMA_VERSION, kind, key, manifest["digest"], part, files)
        text = json.dumps(msgspec.to_builtins(index), sort_keys=True, indent=1).encode()
        try:
            self._try(lambda: self._write(f"{self._place(kind, key)}/{INDEX}", text))
        except FileNotFoundError as fault:
            raise self._lost(fault) from None

    def fetch(self, kind: str, key: str, into: Path, monitor: Monitor = QUIET) -> bool:
        """Fill the new folder `into` with an artifact; False when the store has none.

        Every file is checked by the index.  Raises StoreFault, and ArtifactError for what is damaged or hostile;
        what is in `into` is then of no use.
        """
        index = self._index(kind, key)
        if index is None:
            return False
        names = {str(safe_name(name)): stored for name, stored in index.files.items()}
        safe_name(index.folder)
        if MANIFEST not in names:
            raise ArtifactError(f"the {kind} artifact {key[:20]} in {self.name} has no manifest; it is not used")
        if names[MANIFEST].bytes > INDEX_BYTES:
            raise ArtifactError(f"the manifest of {kind} {key[:20]} in {self.name} is damaged: it is too large")
        source = f"{self._place(kind, key)}/{index.folder}"
        into.mkdir(parents=True)
        jobs: dict[str, Callable[[Any], None]] = {
            name: (lambda report, name=name, stored=stored: self._get(f"{source}/{name}", into / name, stored, report))  # type: ignore[misc]
            for name, stored in names.items()
        }
        for name in names:
            if twice := {str(parent) for parent in PurePosixPath(name).parents} & set(names):
                raise ArtifactError(f"{self.name}: {min(twice)!r} is a file and a folder at once; it is not used")
            (into / name).parent.mkdir(parents=True, exist_ok=True)
        self._transfer(jobs, sum(stored.bytes for stored in names.values()), monitor, "MB fetched from the store")
        self._check_manifest(kind, key, index, set(names), into)
        return True

    def _check_manifest(self, kind: str, key: str, index: Index, names: set[str], into: Path) -> None:
        """The artifact's own manifest must be of this key and digest and name every file that counts."""
        try:
            manifest = json.loads((into / MANIFEST).read_text(encoding="utf-8"))
            whose = (manifest["kind"], manifest["key"], manifest["digest"])
            counted = {str(safe_name(name)) for name in manifest["files"]}
        except (ValueError, KeyError, TypeError, RecursionError) as fault:
            raise ArtifactError(f"the manifest of {kind} {key[:20]} in {self.name} is damaged: {fault!r}") from None
        apart = {name for name in names if {VOLATILE, MANIFEST} & set(PurePosixPath(name).parts)}
        loose = names - counted - apart  # as `content_files` has it: an artifact within one has a manifest of its own
        if whose != (kind, key, index.digest) or counted - names or loose:
            raise ArtifactError(f"what {self.name} has as {kind} {key[:20]} is another artifact; it is not used")

    def _agrees(self, kind: str, key: str, digest: str) -> bool:
        """Has the store this artifact?  Raises DigestMismatch when it has another under its key."""
        try:
            index = self._index(kind, key)
        except ArtifactError:
            return False  # of no use to anybody: replaced
        if index is not None and index.digest != digest:
            raise DigestMismatch(
                f"the {kind} artifact {key[:20]} has the digest {digest[:16]} here and {index.digest[:16]} in "
                f"{self.name}: something that is not in its key decides; the store keeps the first"
            )
        return index is not None

    def _index(self, kind: str, key: str) -> Index | None:
        path = f"{self._place(kind, key)}/{INDEX}"
        try:
            text = self._try(lambda: self._read(path))
        except FileNotFoundError:
            return None
        try:
            index: Index | None = msgspec.convert(json.loads(text), Index)
        except (ValueError, RecursionError):
            index = None
        if index is None or (index.schema, index.kind, index.key) != (SCHEMA_VERSION, kind, key):
            raise ArtifactError(f"the index of {kind} {key[:20]} in {self.name} is damaged; it is not used")
        return index

    def _place(self, kind: str, key: str) -> str:
        return f"artifacts/{kind}/{key[:20]}"

    def _open(self) -> tuple[Any, str]:
        with self._guard:
            if self._opened is None:
                from fsspec.core import url_to_fs

                options = dict(self.options)
                if self.url.startswith(S3):
                    retries = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 1}}
                    options = {"config_kwargs": retries, **options}
                    for name in ("botocore", "aiobotocore"):  # at DEBUG they write access keys into the log
                        if logging.getLogger(name).level == logging.NOTSET:
                            logging.getLogger(name).setLevel(logging.WARNING)
                try:
                    system, root = url_to_fs(self.url, use_listings_cache=False, skip_instance_cache=True, **options)
                except (ImportError, ValueError) as fault:
                    raise ConfigError(
                        f"{URL}={self.name} cannot be opened: {self._describe(fault)}; "
                        "install the package by which fsspec reads such a URL"
                    ) from None
                except TypeError as fault:
                    raise ConfigError(f"{OPTIONS} has an option that is unknown: {self._describe(fault)}") from None
                self._opened = system, root.rstrip("/")
            return self._opened

    @property
    def _is_local(self) -> bool:
        protocol = self._open()[0].protocol
        return bool(LOCAL & set([protocol] if isinstance(protocol, str) else protocol))

    def _read(self, path: str) -> bytes:
        system, root = self._open()
        if (size := system.info(f"{root}/{path}")["size"]) > INDEX_BYTES:
            raise ArtifactError(f"{self.name}/{path} is damaged: no index has {size:,} bytes; it is not used")
        return bytes(system.cat_file(f"{root}/{path}"))

    def _write(self, path: str, text: bytes) -> None:
        system, root = self._open()
        if not self._is_local:
            system.pipe_file(f"{root}/{path}", text)
            return
        with self._beside(f"{root}/{path}") as scratch:
            scratch.write_bytes(text)

    def _put(self, file: Path, path: str, report: Any) -> None:
        system, root = self._open()
        if not self._is_local:
            self._try(lambda: system.put_file(str(file), f"{root}/{path}", callback=report))
            return

        def copy() -> None:
            with self._beside(f"{root}/{path}") as scratch:
                system.put_file(str(file), str(scratch), callback=report)

        self._try(copy)

    @contextlib.contextmanager
    def _beside(self, path: str) -> Any:
        """A file beside `path` that takes its place when the block ends well; what killed pushes left goes in a day."""
        target, root = Path(path), self._open()[1]
        if not Path(root).is_dir():  # perhaps a share that is not mounted
            raise FileNotFoundError(f"there is no folder {root}; make it, or mount it")
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_file(target.parent, target.name, older=DAY) as scratch:
            yield scratch
            os.replace(scratch, target)

    def _get(self, path: str, file: Path, stored: StoredFile, report: Any) -> None:
        system, root = self._open()
        if self._is_local and any(part.is_symlink() for part in _steps(Path(root), path)):
            raise ArtifactError(f"{self.name}/{path} is a symbolic link; it is not used")
        try:
            size = self._try(lambda: system.info(f"{root}/{path}"))["size"]
            if size == stored.bytes:
                self._try(lambda: system.get_file(f"{root}/{path}", str(file), callback=report), ours=file.parent)
        except FileNotFoundError:
            size = None
        if size != stored.bytes or not file.is_file() or hash_file(file) != stored.sha256:
            raise ArtifactError(f"{self.name}/{path} is missing or damaged")

    def _sizes(self, folder: str) -> dict[str, int]:
        """What is below a folder of the store, with bytes."""
        system, root = self._open()
        try:
            listing = self._try(lambda: system.find(f"{root}/{folder}", detail=True))
        except FileNotFoundError:
            return {}
        base = f"{root}/{folder}/"
        return {name[len(base) :]: facts["size"] for name, facts in listing.items() if name.startswith(base)}

    def _try(self, act: Callable[[], Any], ours: Path | None = None) -> Any:
        """Act, and again after a fault that may pass.  Raises StoreFault, FileNotFoundError.

        ours: a folder of this machine that the act writes into; that its disk is full is no fault of the store.
        """
        if self.resting:
            raise StoreFault(f"the store {self.name} cannot be reached")
        for pause in (*WAITS, None):
            try:
                return act()
            except (FileNotFoundError, KgqaError):
                raise
            except Exception as fault:
                full = isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
                if full and ours is not None:
                    raise
                refused = _refused(fault)
                if pause is None or refused or full:
                    raise self._lost(fault, refused) from None
            if self.resting:  # another transfer has given up
                raise StoreFault(f"the store {self.name} cannot be reached")
            time.sleep(pause * random.uniform(0.75, 1.25))
        raise AssertionError("unreachable")

    def _lost(self, fault: Exception, refused: bool = False) -> StoreFault:
        """Lets the store rest and says why."""
        self._resting_until = time.monotonic() + REST
        if refused:
            return StoreFault(
                f"the store {self.name} refuses us ({self._describe(fault)}); check AWS_ACCESS_KEY_ID, "
                f"AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or {OPTIONS}"
            )
        return StoreFault(f"the store {self.name} cannot be reached ({self._describe(fault)})")

    def _describe(self, fault: BaseException) -> str:
        """What a fault says, in one line and without any secret."""
        text = f"{type(fault).__name__}: {fault}".split("\n", 1)[0]
        for secret in sorted(_secrets(self.url, self.options), key=len, reverse=True):
            text = text.replace(secret, "…")
        return text[:300]

    def _transfer(self, jobs: dict[str, Callable[[Any], None]], total: int, monitor: Monitor, what: str) -> None:
        """Run transfers side by side; the first fault stops those that have not begun."""
        if not jobs:
            return
        report = _counter()
        with ThreadPoolExecutor(min(WORKERS, len(jobs)), thread_name_prefix="kgqa-store") as pool:
            waiting: set[Future[None]] = {pool.submit(job, report) for job in jobs.values()}
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_EXCEPTION)
                    monitor.progress(min(report.bytes, total) / 1e6, total / 1e6, what)
                    for future in done:
                        try:
                            future.result()
                        except FileNotFoundError as fault:
                            raise self._lost(fault) from None
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise


_KNOWN: dict[str, RemoteStore] = {}
_KNOWN_GUARD = threading.Lock()


def _counter() -> Any:
    """A callback of fsspec that adds up the bytes of many transfers."""
    from fsspec.callbacks import Callback

    class Counter(Callback):
        def __init__(self) -> None:
            super().__init__()
            self.bytes, self._guard = 0, threading.Lock()

        def relative_update(self, inc: int = 1) -> None:
            with self._guard:
                self.bytes += inc

        def absolute_update(self, value: int) -> None:
            pass

        def set_size(self, size: int | None) -> None:
            pass

    return Counter()


def _steps(root: Path, path: str) -> Iterable[Path]:
    """A path below `root`, and every folder on the way to it."""
    for part in PurePosixPath(path).parts:
        root = root / part
        yield root


def _refused(fault: Exception) -> bool:
    return isinstance(fault, PermissionError) or type(fault).__name__ in (
        "NoCredentialsError",
        "PartialCredentialsError",
        "ProfileNotFound",
    )


def _without_secrets(url: str) -> str:
    """A URL without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _secrets(url: str, options: dict[str, Any]) -> set[str]:
    """Values that no message may hold."""
    secrets = {value for name, value in os.environ.items() if SECRET.search(name)}
    netloc, query = urlsplit(url).netloc, urlsplit(url).query
    secrets |= {netloc.rpartition("@")[0], *netloc.rpartition("@")[0].split(":", 1), query}

    def search(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for inner, part in value.items():
                search(inner, part)
        elif isinstance(value, str) and SECRET.search(name):
            secrets.add(value)

    search("", options)
    return {value for value in secrets if len(value) >= 4}
