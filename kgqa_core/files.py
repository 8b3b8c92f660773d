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
        if fault.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
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


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    temporary.write_text(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
    os.replace(temporary, path)
