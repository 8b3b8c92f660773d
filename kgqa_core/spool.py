"""What is not a regular file (a pipe, standard input, a socket) as one: copied once, to a file without a name.

Readers open their input several times: to find its format, to digest it, to parse it.  A pipe can be read once only.
While a command runs inside `spooling`, `regular_file` copies a pipe when it is first opened and hands out the copy from
then on.  The copy has no name in any folder, so that nothing of it is left however the process ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import select
import shutil
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from kgqa_core.errors import InputError, StorageError

log = logging.getLogger("kgqa")

PATIENCE = 10.0
"""Seconds to wait for the first writer of a named pipe."""

RESERVE = 1 << 30
"""Bytes of the disk that a copy leaves free; an endless pipe ends here."""

PROGRESS = 5.0
"""Seconds between two log lines on a copy that is under way."""

_CHUNK = 1 << 20
_OPEN_FILES = Path("/proc/self/fd")
_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/(?:self|\d+|thread-self)/fd)/(\d+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
"""Names of the open files that every process has."""


class Spool:
    """The copies of one command.  folder: where their bytes lie; the folder for temporary files where it is None."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._copies: dict[tuple[int, int], IO[bytes]] = {}
        self._guard = threading.Lock()

    def copy_of(self, path: Path, fault: type[InputError], most: int | None) -> Path:
        """The copy of a pipe or socket, made by the first call.  Raises `fault`, StorageError."""
        with self._guard:
            state = os.stat(path)
            key = state.st_dev, state.st_ino
            if key not in self._copies:
                self._copies[key] = self._copy(path, fault, most)
            return _OPEN_FILES / str(self._copies[key].fileno())

    def close(self) -> None:
        """Removes the copies."""
        for copy in self._copies.values():
            copy.close()
        self._copies.clear()

    def _copy(self, path: Path, fault: type[InputError], most: int | None) -> IO[bytes]:
        folder = self.folder if self.folder and os.access(self.folder, os.W_OK) else Path(tempfile.gettempdir())
        log.info("%s is a %s: it is copied to a temporary file in %s first", path, _kind(path), folder)
        with contextlib.ExitStack() as closing:
            try:
                source = _open(path, fault)
                closing.callback(os.close, source)
                with contextlib.ExitStack() as failing:
                    copy = failing.enter_context(tempfile.TemporaryFile(dir=folder, prefix=".kgqa-spool-"))
                    size = _transfer(source, copy, path, folder, fault, most)
                    copy.flush()
                    failing.pop_all()
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
                    raise StorageError(
                        f"the copy of {path} cannot be written to {folder} ({error.strerror}); write it to a file and "
                        "name that, or choose another folder for temporary files with TMPDIR"
                    ) from None
                raise fault(f"{path} cannot be read: {error.strerror or error}") from None
        log.info("%s: %s bytes are copied", path, f"{size:,}")
        return copy


_CURRENT: Spool | None = None
_CONTENTS: weakref.WeakValueDictionary[Path, Content] = weakref.WeakValueDictionary()
"""The content of members of archives, by paths that no file has."""


@contextlib.contextmanager
def spooling(folder: Path | None = None) -> Iterator[None]:
    """Pipes can be read inside, each is copied once; the copies are gone afterwards.  An inner one changes nothing."""
    global _CURRENT
    if _CURRENT is not None:
        yield
        return
    _CURRENT = Spool(folder)
    try:
        yield
    finally:
        spool, _CURRENT = _CURRENT, None
        spool.close()


def unnamed_file() -> IO[bytes]:
    """A new temporary file without a name, on the disk of the copies."""
    folder = _CURRENT.folder if _CURRENT is not None else None
    folder = folder if folder and os.access(folder, os.W_OK) else None
    return tempfile.TemporaryFile(dir=folder, prefix=".kgqa-spool-")


class Content:
    """The bytes of a path that no file has; `regular_file` finds them there as long as somebody holds this."""

    def __init__(self) -> None:
        self.file = unnamed_file()
        weakref.finalize(self, self.file.close)

    def stands_for(self, path: Path) -> None:
        """Says what path the bytes have, which are complete."""
        self.file.flush()
        _CONTENTS[path] = self


def check_room() -> None:
    """Raises StorageError where the disk of the copies has less than RESERVE bytes left."""
    folder = (_CURRENT.folder if _CURRENT is not None else None) or Path(tempfile.gettempdir())
    if shutil.disk_usage(folder).free < RESERVE:
        raise StorageError(f"the disk of {folder} has less than {RESERVE:,} bytes left; set TMPDIR to another folder")


def spool_in(folder: Path) -> None:
    """Copies that are made from now on lie on the disk of this folder."""
    if _CURRENT is not None:
        _CURRENT.folder = folder


def is_spooled(path: Path) -> bool:
    """Whether a path names something that is read once only, a pipe or a socket."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def regular_file(path: Path, fault: type[InputError] = InputError, most: int | None = None) -> Path:
    """A path that may be opened any number of times: `path` itself, or the copy of the pipe that it names.

    What does not exist is left to whoever opens it.  most: bytes that a pipe may have.  Raises `fault` for a device, a
    name that is too long, and a pipe outside of `spooling`, that nobody writes to, or that has more than `most` bytes;
    StorageError when the disk is full.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if (content := _CONTENTS.get(path)) is not None:
            return _OPEN_FILES / str(content.file.fileno())
        if error.errno == errno.ENAMETOOLONG:
            raise fault(
                f"the name {shorten(str(path))!r} of {len(str(path)):,} characters is too long for a file"
            ) from None
        return path
    except ValueError:  # a NUL in the name
        return path
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return path
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        what = "the terminal" if _is_terminal(path) else "a device, which may have no end"
        raise fault(f"{path} is {what}; name a regular file, or write what is meant into a pipe")
    if _CURRENT is None or not _OPEN_FILES.is_dir():
        raise fault(f"{path} is a {_kind(path)}, which can be read once only; write it to a file and name that")
    return _CURRENT.copy_of(path, fault, most)


def shorten(name: str, most: int = 200) -> str:
    """A name as a message shows it: the beginning of a very long one."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _kind(path: Path) -> str:
    return "socket" if stat.S_ISSOCK(os.stat(path).st_mode) else "pipe"


def _is_terminal(path: Path) -> bool:
    number = _number(path)
    return number is not None and os.isatty(number)


def _number(path: Path) -> int | None:
    """The open file of this process that a path names, such as `/dev/fd/63`."""
    if (standard := _STANDARD.get(str(path))) is not None:
        return standard
    match = _DESCRIPTOR.fullmatch(str(path))
    return int(match.group(1)) if match else None


def _open(path: Path, fault: type[InputError]) -> int:
    number = _number(path)
    if number is not None:
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            raise fault(f"{path} is open for writing only; name what is to be read")
        return os.dup(number)
    if stat.S_ISSOCK(os.stat(path).st_mode):
        raise fault(f"{path} is a socket, which cannot be read like a file; write what it sends to a file")
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _transfer(source: int, copy: IO[bytes], path: Path, folder: Path, fault: type[InputError], most: int | None) -> int:
    """Copies everything; how many bytes that were."""
    waits = os.get_blocking(source)  # a read of an open file of this process, whose mode others share
    poller = select.poll()
    poller.register(source, select.POLLIN)
    begun = last = time.monotonic()
    size = checked = 0
    while True:
        ready = poller.poll(200)
        now = time.monotonic()
        if now - last >= PROGRESS:
            log.info("%s: %s so far", path, f"{size / 1e6:,.1f} MB" if size else "waiting for what is written to it")
            last = now
        if waits and not ready:
            continue
        try:
            data = os.read(source, _CHUNK)
        except BlockingIOError:
            continue
        if not data:
            if not ready and not size:  # a named pipe that nobody has opened for writing yet
                if now - begun >= PATIENCE:
                    raise fault(f"nothing is written to the pipe {path}; start what writes to it, or name a file")
                continue
            return size
        size += len(data)
        if most is not None and size > most:
            raise fault(f"the pipe {path} holds more than {most:,} bytes; write it to a file and name that")
        if size - checked >= 64 * _CHUNK:
            checked = size
            if shutil.disk_usage(folder).free < RESERVE:
                raise StorageError(
                    f"the pipe {path} has given {size:,} bytes without an end, and the disk of {folder} has less than "
                    f"{RESERVE:,} bytes left; write it to a file elsewhere and name that"
                )
        copy.write(data)
