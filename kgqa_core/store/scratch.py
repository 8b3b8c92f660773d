"""Temporary files and folders outside a home; what a killed process left of them goes with the next of the same name.

Each is locked (`flock`) while its process lives.  One that nobody holds is therefore what a killed process left.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kgqa_core.store.locks import is_still

SUFFIX = ".tmp"


@contextlib.contextmanager
def scratch_file(parent: Path, name: str, *, older: float = 0.0) -> Iterator[Path]:
    """An empty file `.NAME.<random>.tmp` in a folder; it is deleted when the block ends, unless it was renamed.

    older: seconds; what was written since then stays, which file systems need that several machines share and on which
    a lock may hold on one machine only.
    """
    with _scratch(parent, name, folder=False, older=older) as path:
        yield path


@contextlib.contextmanager
def scratch_folder(parent: Path | None, name: str) -> Iterator[Path]:
    """An empty folder likewise.  parent: the system's folder of temporary files when None."""
    with _scratch(parent or Path(tempfile.gettempdir()), name, folder=True) as path:
        yield path


def clear_remains(parent: Path, name: str, older: float = 0.0) -> None:
    """Delete the temporary files and folders of this name whose processes are gone; what cannot be deleted stays.

    older: as of `scratch_file`.
    """
    before = time.time() - older
    for path in parent.glob(f".{glob.escape(name)}.{'[0-9a-f]' * 8}{SUFFIX}"):
        with contextlib.suppress(OSError):
            access = os.O_RDONLY if path.is_dir() else os.O_RDWR  # network file systems lock only what can be written
            handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if is_still(handle, path) and os.fstat(handle).st_mtime <= before:
                    delete_path(path)
            finally:
                os.close(handle)


@contextlib.contextmanager
def _scratch(parent: Path, name: str, *, folder: bool, older: float = 0.0) -> Iterator[Path]:
    clear_remains(parent, name, older)
    path, handle = _made(parent, name, folder=folder)
    try:
        yield path
    finally:
        if is_still(handle, path):
            delete_path(path)
        os.close(handle)


def _made(parent: Path, name: str, *, folder: bool) -> tuple[Path, int]:
    """A new file or folder and the handle that holds its lock."""
    while True:
        path = parent / f".{name}.{secrets.token_hex(4)}{SUFFIX}"
        if folder:
            path.mkdir()
        try:
            how = os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL
            handle = os.open(path, how | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:  # somebody cleared it before it could be locked
            continue
        with contextlib.suppress(OSError):  # where a file system has no locks nothing is cleared either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if is_still(handle, path):
            return path, handle
        os.close(handle)


def delete_path(path: Path) -> None:
    """Deletes a file, a link or a folder with what is in it, where it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
