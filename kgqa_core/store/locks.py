"""Locks of a home: held by the kernel, described in a file, and free the moment their holder is gone.

A lock file says who holds it (host, process, command, run, since when); the lock itself is `flock`, so that a killed
holder blocks nobody.  `ProcessUses` is the other half: what a live process has been given, so that gc leaves it.
On network file systems see docs/home.md.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import re
import secrets
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """Who holds a lock.  since: seconds since 1970; command: program and subcommand, never its arguments."""

    host: str
    pid: int
    command: str
    run: str
    since: float

    def __str__(self) -> str:
        run = f" (run {self.run})" if self.run else ""
        return f"process {self.pid} on {self.host}{run}"

    @property
    def gone(self) -> bool:
        """Is this a process of this machine that has ended?"""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    @property
    def when(self) -> str:
        """Since when it holds the lock, in local time."""
        then = datetime.datetime.fromtimestamp(self.since)
        return f"{then:%H:%M}" if then.date() == datetime.date.today() else f"{then:%Y-%m-%d %H:%M}"


def myself(run: str = "") -> Owner:
    """This process as an owner."""
    words = [Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"]
    words += [word for word in sys.argv[1:2] if re.fullmatch(r"[a-z][a-z-]{0,20}", word)]
    return Owner(socket.gethostname(), os.getpid(), " ".join(words), run, time.time())


def read_owner(path: Path) -> Owner | None:
    """Who a lock file names; None when it says nothing, is being written or was written by another version."""
    try:
        value = json.loads(path.read_bytes()[:4096].split(b"\n", 1)[0])
        return Owner(
            str(value["host"]), int(value["pid"]), str(value["command"]), str(value["run"]), float(value["since"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def held(path: Path, doing: str, say: Callable[[str], None], run: str = "") -> Iterator[None]:
    """Hold the lock of this file; whoever has to wait is shown who holds it and what that process is `doing`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = acquire(path, lambda: say(_waiting(path, doing)))
    try:
        _write_owner(handle, run)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
        os.close(handle)


def acquire(path: Path, wait: Callable[[], None] = lambda: None) -> int:
    """The handle of a lock file that is held until it is closed.  wait: called once, where another holds it."""
    noted = False
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not noted:
                    wait()
                    noted = True
                fcntl.flock(handle, fcntl.LOCK_EX)
            if is_still(handle, path):  # else it was removed between opening and locking
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextlib.contextmanager
def free(path: Path, *, remove: bool = False) -> Iterator[bool]:
    """Take a lock if nobody holds it, and say whether; with `remove` its file goes when the block ends."""
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            acquired = is_still(handle, path)
        except BlockingIOError:
            acquired = False
        yield acquired
        if acquired and remove:
            path.unlink(missing_ok=True)


def idle(path: Path) -> bool:
    """Does nobody hold this lock?  Looks without taking it, so that it works in a home that cannot be written."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


@contextlib.contextmanager
def shared(path: Path, *, alone: bool = False) -> Iterator[None]:
    """Hold a lock together with others, or `alone`; waits.  Its file is never removed."""
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The handle of a lock file, which is made where there is none; closed in the end, and free then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


class ProcessUses:
    """What one process has been given of a home, in a file that it keeps locked as long as it may need it.

    The file is locked and written while the home's `gc.lock` is shared, and housekeeping reads it while it holds
    that lock alone.  An empty file means that its process could not say (a full disk): everything counts as used.
    """

    def __init__(self, locks: Path) -> None:
        self.locks = locks
        self._guard = threading.Lock()
        self._pid, self._names = os.getpid(), set[str]()
        self._handle: int | None = None
        self._end: weakref.finalize[[int, Path, int], ProcessUses] | None = None

    def add(self, name: str) -> None:
        """Say that something is used from now on.  A home that cannot be written is not tidied either."""
        with self._guard:
            if self._pid != os.getpid():  # a forked child has a file of its own
                self._forget()
            if name in self._names:
                return
            with contextlib.suppress(OSError), shared(gate(self.locks)):
                if self._handle is None:
                    self._handle = self._open()
                try:
                    line = f"{name}\n".encode()
                    if os.write(self._handle, line) != len(line):
                        raise OSError("short write")
                except OSError:
                    os.ftruncate(self._handle, 0)
                    raise
                self._names.add(name)

    def close(self) -> None:
        """Nothing is used any more."""
        with self._guard:
            if self._end is not None and self._pid == os.getpid():
                self._end()
            self._forget()

    def _open(self) -> int:
        folder = self.locks / "uses"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX)
        self._end = weakref.finalize(self, _end_use, handle, path, os.getpid())
        with contextlib.suppress(OSError):
            _write_owner(handle, "")
        return handle

    def _forget(self) -> None:
        self._pid, self._names = os.getpid(), set()
        self._handle = self._end = None


@dataclass(frozen=True)
class InUse:
    """What live processes use: names, whether one of them could not say, and who they are."""

    names: frozenset[str]
    everything: bool
    owners: tuple[Owner, ...]


def gate(locks: Path) -> Path:
    """The lock that is shared by whoever notes a use, and held alone by housekeeping."""
    return locks / "gc.lock"


def in_use(locks: Path) -> InUse:
    """What live processes use of a home; what dead ones left is no use.  Call it while `gate` is held alone to act."""
    names: set[str] = set()
    owners, everything = [], False
    for path in sorted((locks / "uses").glob("*")):
        if idle(path):
            continue
        with contextlib.suppress(FileNotFoundError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if (owner := read_owner(path)) is not None:
                owners.append(owner)
            everything |= owner is None
            names.update(lines[1:])
    return InUse(frozenset(names), everything, tuple(owners))


def forget_dead(locks: Path) -> None:
    """Remove the notes of use of processes that have ended, unless the home is being tidied or noted in right now."""
    with contextlib.suppress(OSError), free(gate(locks)) as alone:
        for path in (locks / "uses").glob("*") if alone else ():
            if idle(path):
                path.unlink(missing_ok=True)


def is_still(handle: int, path: Path) -> bool:
    """Is what was opened still the file at this path?"""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    own_stat = os.fstat(handle)
    return (own_stat.st_dev, own_stat.st_ino) == (there.st_dev, there.st_ino)


def _write_owner(handle: int, run: str) -> None:
    """Writes who holds the lock; a full disk does not matter, since the lock is the kernel's."""
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, json.dumps(asdict(myself(run))).encode() + b"\n")


def _waiting(path: Path, doing: str) -> str:
    for _ in range(5):
        owner = read_owner(path)
        if owner is not None and not owner.gone:
            return f"waiting for {owner}, which has been {doing} since {owner.when}"
        time.sleep(0.02)  # the holder has the lock and is about to write its name
    return f"waiting for another process, which is {doing}"


def _end_use(handle: int, path: Path, pid: int) -> None:
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            path.unlink()
    with contextlib.suppress(OSError):
        os.close(handle)
