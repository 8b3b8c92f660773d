"""Writing files: whole or not at all, and errors that name full and read-only disks."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kgqa_core.errors import ConfigError, StorageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
_LOCKLESS = (errno.ENOLCK, errno.EOPNOTSUPP)
_FAULTS = (*_FULL, *_REFUSED, *_LOCKLESS)
_FULL_TEXTS = ("No space left on device", "database or disk is full", "Disk quota exceeded")
"""What SQLite, DuckDB and the system write of a full disk, where a library passes on only the text."""

MIN_FREE_MB = "KGQA_MIN_FREE_MB"
"""Variable that overrides how much room a run needs to begin, in MB."""
NO_ROOM = 250_000
"""Free bytes below which a disk counts as full: SQLite and DuckDB need some for a journal or a block."""
_MIN_FREE_MB = 50
"""Room of Prefect's and MLflow's databases with their journals (about 10 MB), and of the artifacts of a small graph."""


def is_full(fault: BaseException | None) -> bool:
    """Whether a fault, one that caused it or one of its group, is a full disk or an exceeded quota."""
    waiting, seen = [fault], set[int]()
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        if (isinstance(cause, OSError) and cause.errno in _FULL) or any(text in str(cause) for text in _FULL_TEXTS):
            return True
        waiting += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]
    return False


def free_bytes(path: Path) -> tuple[int, int]:
    """Free and total bytes of the file system that holds a path, or would hold it."""
    while not path.exists() and path != path.parent:
        path = path.parent
    usage = shutil.disk_usage(path)
    return usage.free, usage.total


def full_disk(root: Path, what: str = "the home", option: str = "--home") -> str:
    """The message of a full disk: where, how much is free, and what to do.  what, option: as of `storage_faults`."""
    rest = " Finished stages are kept." if option == "--home" else ""
    return f"no space left for {what} {root}{_room(root)}; free some, or choose another place with {option}.{rest}"


def full_folder(folder: Path) -> str:
    """The message of another folder on a full disk."""
    return f"no space left in {folder}{_room(folder)}; free some and start the same command again"


def _room(root: Path) -> str:
    with contextlib.suppress(OSError):
        free, total = free_bytes(root)
        return f" ({free / 1e6:,.1f} of {total / 1e6:,.1f} MB free)"
    return ""


_watched: set[Path] = set()


def watch_room(root: Path, say: Callable[[str], None], *, every: float = 1.0) -> None:
    """Report as soon as the disk of a home is full, whichever library meets it first and however long that retries.

    Looks until the process ends; a disk that is full again is reported again.
    """

    def look() -> None:
        full = False
        while True:
            with contextlib.suppress(OSError):
                was, full = full, has_no_room(root)
                if full and not was:
                    say(full_disk(root))
            time.sleep(every)

    if root not in _watched:
        _watched.add(root)
        threading.Thread(target=look, name="kgqa-room", daemon=True).start()


def has_no_room(root: Path) -> bool:
    """Whether the disk of a path counts as full."""
    return free_bytes(root)[0] < NO_ROOM


def check_room(root: Path) -> None:
    """Refuse to begin a run where there is no room for it.  Raises StorageError, ConfigError."""
    text = os.environ.get(MIN_FREE_MB) or str(_MIN_FREE_MB)
    if not text.isdecimal():
        raise ConfigError(f"{MIN_FREE_MB} is {text!r}, but must be a whole number of MB, as {_MIN_FREE_MB}")
    free, total = free_bytes(root)
    if free < int(text) * 1_000_000:
        raise StorageError(
            f"no space left for the home {root} ({free / 1e6:,.1f} of {total / 1e6:,.1f} MB free): a run needs {text} "
            f"MB to begin; free some, choose another place with --home, or set {MIN_FREE_MB} to less"
        )


@contextlib.contextmanager
def storage_faults(root: Path, *, what: str = "the home", option: str = "--home") -> Iterator[None]:
    """Turn errors of a full or read-only disk into a StorageError that says where, and what to do.

    what: what `root` is, in words.  option: with which another place is chosen.
    """
    rest = " Finished stages are kept." if option == "--home" else ""
    try:
        yield
    except OSError as fault:
        if (other := _elsewhere(fault, root)) is not None and fault.errno in _FAULTS:
            text = "no space left for {}" if fault.errno in _FULL else "{} cannot be read or written"
            raise StorageError(f"{text.format(other)} ({fault.strerror}); mend that and start again.{rest}") from fault
        if fault.errno in _FULL:
            raise StorageError(full_disk(root, what, option)) from fault
        if fault.errno in _REFUSED:
            raise StorageError(
                f"{what} {root} cannot be written ({fault.strerror}); choose another with {option}"
            ) from fault
        if fault.errno in _LOCKLESS:
            raise StorageError(
                f"the file system of {what} {root} has no file locks ({fault.strerror}); "
                f"mount it with them, or choose another place with {option} (docs/home.md)"
            ) from fault
        raise
    except Exception as fault:
        if is_full(fault) and not isinstance(fault, StorageError):
            raise StorageError(full_disk(root, what, option)) from fault
        raise


def _elsewhere(fault: OSError, root: Path) -> Path | None:
    """The file or folder that a fault names, where it has nothing to do with `root`."""
    if not isinstance(fault.filename, str | bytes | os.PathLike):
        return None
    path, root = (Path(os.path.abspath(name)) for name in (os.fsdecode(fault.filename), root))
    return None if path.is_relative_to(root) or root.is_relative_to(path) else path


def write_json(path: Path, value: Any, mode: int = 0o666) -> None:
    """Write JSON with sorted keys, whole or not at all.  mode: of the file, less the umask."""
    write_text(path, json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, default=str), mode)


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a text, whole or not at all.  mode: of the file, less the umask."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    temporary.touch(mode)
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def rename_new(source: Path, target: Path) -> None:
    """Rename a file or folder in one step to a name that is free.  Raises FileExistsError when it is not."""
    if _rename(source, target, _NOREPLACE):
        return
    if source.is_dir() or not hasattr(os, "link"):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source, target)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with target.open("xb"):
            pass
        os.replace(source, target)
        return
    os.unlink(source)


def exchange(first: Path, second: Path) -> bool:
    """Swap two files or folders in one step, so that a kill leaves both whole; False where the system cannot."""
    return _rename(first, second, _EXCHANGE)


_HERE, _NOREPLACE, _EXCHANGE = -100, 1, 2


def _rename(first: Path, second: Path, how: int) -> bool:
    """`renameat2`, where there is one.  Raises FileExistsError for a name that must be free and is not."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), how) == 0:
        return True
    number = ctypes.get_errno()
    if how == _NOREPLACE and number == errno.EEXIST:
        raise FileExistsError(number, os.strerror(number), str(second))
    return False
