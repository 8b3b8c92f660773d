"""Writing files: whole or not at all, and with a word on full and read-only disks."""

from __future__ import annotations

import contextlib
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
def storage_faults(root: Path) -> Iterator[None]:
    """Turn errors of a full or read-only disk into a StorageError that says where, and what to do."""
    try:
        yield
    except OSError as fault:
        if (other := _elsewhere(fault, root)) is not None and fault.errno in _FAULTS:
            what = "no space left for {}" if fault.errno in _FULL else "{} cannot be read or written"
            raise StorageError(
                f"{what.format(other)} ({fault.strerror}); mend that and start again. Finished stages are kept."
            ) from fault
        if fault.errno in _FULL:
            raise StorageError(
                f"no space left for the home {root}; free some, or choose another place with --home. "
                "Finished stages are kept."
            ) from fault
        if fault.errno in _REFUSED:
            raise StorageError(
                f"the home {root} cannot be written ({fault.strerror}); choose another with --home"
            ) from fault
        if fault.errno in _LOCKLESS:
            raise StorageError(
                f"the file system of the home {root} has no file locks ({fault.strerror}); "
                "mount it with them, or choose another place with --home (docs/home.md)"
            ) from fault
        raise
    except Exception as fault:
        if "No space left on device" in str(fault):
            raise StorageError(
                f"no space left for the home {root}; free some, or choose another place with --home. "
                "Finished stages are kept."
            ) from fault
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
