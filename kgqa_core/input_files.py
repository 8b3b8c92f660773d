"""Files of the user, before and while they are read: what they are made of, and whether they stay as they are."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.errors import InputError, KgqaError
from kgqa_core.spool import regular_file

MAX_DOCUMENT = 256 << 20
"""Bytes of a file that is read as one piece (a JSON document, a sheet)."""


@dataclass(frozen=True, slots=True)
class FileState:
    """Identifies the state of a file without reading it.  Times are in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: tuple[int, int]

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state of a file now.  Raises OSError."""
        state = os.stat(path)
        return cls(state.st_size, state.st_mtime_ns, state.st_ctime_ns, (state.st_dev, state.st_ino))

    def change(self, later: FileState) -> str | None:
        """What has changed since, in words that follow a file's name; None where nothing has."""
        if self.inode != later.inode:
            return "was replaced by another file"
        if self.size != later.size:
            return f"{'grew' if later.size > self.size else 'shrank'} from {self.size:,} to {later.size:,} bytes"
        if self.modified != later.modified:
            return f"was written at {_clock(later.modified)}"
        if self.changed != later.changed:
            return f"was changed at {_clock(later.changed)} (its content, its time, its permissions or its links)"
        return None


def _clock(nanoseconds: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(nanoseconds / 1e9))


@contextlib.contextmanager
def unchanged(paths: Iterable[Path], fault: type[InputError] = InputError) -> Iterator[None]:
    """Raises `fault` at the end, also in place of another error, for a file that changed while the block read it."""
    before: list[tuple[Path, Path, FileState]] = []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            before.append((path, file := regular_file(path, fault), FileState.of(file)))
    try:
        yield
    except (KgqaError, OSError):
        _compare(before, fault)
        raise
    _compare(before, fault)


def _compare(before: Sequence[tuple[Path, Path, FileState]], fault: type[InputError]) -> None:
    for path, file, state in before:
        try:
            change = state.change(FileState.of(file))
        except OSError:
            change = "is gone"
        if change is not None:
            raise changed(path, change, fault)


def changed(path: Path | str, change: str, fault: type[InputError] = InputError) -> InputError:
    """The error for a file that changed while it was read."""
    return fault(
        f"{path} {change} while it was read, so that nothing is made of it; start again when whoever writes it is done"
    )


def refuse_zeros(path: Path, data: bytes, fault: type[InputError] = InputError) -> None:
    """Raises `fault` where `data`, how a file begins, are zero bytes: a copy of it failed."""
    if data and not data.strip(b"\0"):
        what = "holds only zero bytes" if _is_zero(path) else f"begins with {len(data):,} zero bytes"
        raise fault(f"{path} {what}; copying or fetching it failed, fetch it again")


def _is_zero(path: Path) -> bool:
    """Whether a file is zero bytes up to its end, or for a gigabyte."""
    with regular_file(path).open("rb") as stream:
        for _ in range(1024):
            if not (data := stream.read(1 << 20)):
                return True
            if data.strip(b"\0"):
                return False
    return True


def read_document(
    path: Path, fault: type[InputError] = InputError, most: int = MAX_DOCUMENT, needs: str = "text"
) -> str:
    """The text of a file that is read as one piece, without a byte-order mark.  needs: what it is to hold, in words.

    Raises `fault` for one that is empty, blank, no UTF-8 or longer than `most` bytes, or that changes meanwhile; and
    where it cannot be read.
    """
    try:
        with unchanged([path], fault), regular_file(path, fault, most).open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise fault(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > most:
        raise fault(f"{path} has more than {most:,} bytes, the most that is read of such a file; check that it is one")
    refuse_zeros(path, data, fault)
    if not data.strip():
        raise fault(f"{path} is empty{': it holds only white space' if data else ''}; it needs {needs}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(f"{path} is not UTF-8 (byte {error.start + 1}); convert it, with `iconv -t UTF-8`") from None
