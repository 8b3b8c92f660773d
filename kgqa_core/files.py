"""Writing files: whole or not at all, and with a word on full and read-only disks."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgqa_core.errors import StorageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
_LOCKLESS = (errno.ENOLCK, errno.EOPNOTSUPP)
_FAULTS = (*_FULL, *_REFUSED, *_LOCKLESS)


@contextlib.contextmanager
def storage_faults(root: Path, *, what: str = "the home", option: str = "--home") -> Iterator[None]:
    """Turn errors of a full or read-only disk into a StorageError that says where, and what to do.

    what: what `root` is, in words.  option: with which another place is chosen.
    """
    rest = " Finished stages are kept." if option == "--home" else ""
    full = f"no space left for {what} {root}; free some, or choose another place with {option}.{rest}"
    try:
        yield
    except OSError as fault:
        if (other := _elsewhere(fault, root)) is not None and fault.errno in _FAULTS:
            text = "no space left for {}" if fault.errno in _FULL else "{} cannot be read or written"
            raise StorageError(f"{text.format(other)} ({fault.strerror}); mend that and start again.{rest}") from fault
        if fault.errno in _FULL:
            raise StorageError(full) from fault
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
        if "No space left on device" in str(fault):
            raise StorageError(full) from fault
        raise


def _elsewhere(fault: OSError, root: Path) -> Path | None:
    """The file or folder that a fault names, where it has nothing to do with `root`."""
    if not isinstance(fault.filename, str | bytes | os.PathLike):
        return None
    path, root = (Path(os.path.abspath(name)) for name in (os.fsdecode(fault.filename), root))
    return None if path.is_relative_to(root) or root.is_relative_to(path) else path


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    temporary.write_text(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
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
