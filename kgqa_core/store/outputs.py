"""Places that a command writes to: nothing that is there already is overwritten or deleted unless the command says so.

Every command with a path to write to comes through here.  `claim_file`, `claim_files` and `claim_folder` check the
place before the long work begins; what they return checks again when the result is put there, since somebody else may
have written in the meantime.  Then nothing is lost: the result stays beside the place, under the name that the error
gives.  The rules, and what `--force` allows, are in docs/graphs.md.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.errors import OutputError
from kgqa_core.store.artifacts import Home
from kgqa_core.store.files import rename_new, storage_faults
from kgqa_core.store.home import FOLDERS, RECORD
from kgqa_core.store.scratch import scratch_file, scratch_folder

log = logging.getLogger("kgqa")

SHOWN = 3
"""Names of files in a message; the rest is a number."""

READER_SECONDS = 10.0
"""How long a named pipe may wait for its reader."""

LONGEST = 200
"""Bytes of a name; what is beside it while it is written has a longer one."""

OWN = {*FOLDERS, "champions", "serve", "unpushed", RECORD}
"""What of a home only kgqa writes."""

Paths = Iterable[Path | str]


@dataclass(frozen=True)
class FileClaim:
    """A file that may be written.  inputs: what the command reads; none of it is overwritten, whatever `force` says."""

    place: Path
    inputs: tuple[Path, ...]
    force: bool

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """A file to write, which takes its place when the block ends well; else nothing changes.

        A device or a pipe is written as it is.  Raises OutputError when something came to the place in the meantime;
        the result is then beside it.  Raises StorageError when the disk is full or cannot be written.
        """
        if is_stream(self.place):
            with _reader_of(self.place):
                yield self.place
            return
        with storage_faults(self.place.parent, what="the folder", option="--out"):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            with scratch_file(self.place.parent, self.place.name) as scratch:
                yield scratch
                self.put(scratch)

    def put(self, scratch: Path) -> None:
        """Moves a finished file to the place, checked again.  Raises OutputError that says where the file is."""
        try:
            _check_file(self.place, self.inputs, self.force)
            if self.force:
                os.replace(scratch, self.place)
            else:
                rename_new(scratch, self.place)
        except (OutputError, FileExistsError) as fault:
            beside = move_beside(scratch, self.place, "new")
            why = fault if isinstance(fault, OutputError) else f"{self.place} came there in the meantime"
            raise OutputError(f"{why}. What was made is in {beside}") from None


@dataclass(frozen=True)
class FilesClaim:
    """Files of given names that may be written into a folder, whose other files stay as they are."""

    folder: Path
    files: dict[str, FileClaim]

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """A folder to write the files into, which come to their places when the block ends well."""
        with storage_faults(self.folder.parent, what="the folder", option="--out"):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with scratch_folder(self.folder.parent, self.folder.name) as scratch:
                yield scratch
                with contextlib.suppress(FileExistsError):
                    rename_new(scratch, self.folder)
                    return
                for name in sorted(path.name for path in scratch.iterdir()):
                    self.files[name].put(scratch / name)


def claim_file(out: Path, *, inputs: Paths = (), force: bool = False) -> FileClaim:
    """The file `out`, when a command that reads `inputs` may write it.

    inputs: paths, and patterns as `kg.files` has them.  force: an earlier file may be replaced; the log says which.
    Raises OutputError for a place that exists, is an input, belongs to a home or cannot be written.
    """
    place = _allowed(out)
    claim = FileClaim(place, expand(inputs), force)
    if _check_file(place, claim.inputs, force):
        log.warning("--force: the file %s will be replaced", place)
    return claim


def claim_files(folder: Path, names: Sequence[str], *, inputs: Paths = (), force: bool = False) -> FilesClaim:
    """The files `names` of a folder, which is made when it is missing; other files in it are left alone.

    Raises OutputError as `claim_file` does, for the first file that may not be written.
    """
    place = _allowed(folder)
    state = state_of(place)
    if state is not None and not stat.S_ISDIR(state.st_mode):
        raise OutputError(f"{place} is not a folder; choose another place with --out")
    known = expand(inputs)
    if state is not None and any(same_place(given, place) for given in known):
        raise OutputError(f"{place} is an input of this command; choose another place with --out")
    there = [name for name in names if _check_file(place / name, known, force)]
    if there:
        log.warning("--force: %s will be replaced in %s", listed(there), place)
    return FilesClaim(place, {name: FileClaim(place / name, known, force) for name in names})


def allowed_folder(out: Path) -> Path:
    """The absolute path of a folder that may be written as a whole, whatever is in it now.

    Raises OutputError for a link, a file, a mount point, the working folder, a home, what belongs to one, and a place
    whose parent cannot be written.
    """
    place = _allowed(out)
    state = state_of(place)
    if state is not None and not stat.S_ISDIR(state.st_mode):
        raise OutputError(f"{place} is a file, not a folder; choose another place with --out")
    reasons: tuple[tuple[Callable[[], Path], str], ...] = (
        (Path.cwd, "the working folder, or holds it; run the command from elsewhere"),
        (lambda: Home.current().root, "a folder that holds the home; choose another place with --out"),
        (lambda: Path.home().resolve(), "your home folder, or holds it; name a folder in it"),
    )
    for folder, why in reasons:
        with contextlib.suppress(OSError, RuntimeError):  # a working folder that was deleted, a user without a folder
            if folder().is_relative_to(place):
                raise OutputError(f"{place} is {why}")
    if os.path.ismount(place):
        raise OutputError(f"{place} is a mount point, which cannot be replaced; name a folder in it")
    return place


def expand(inputs: Paths) -> tuple[Path, ...]:
    """The paths of what a command reads: patterns become the files that they match.

    Graphs of the package and on servers are none.
    """
    paths: list[Path] = []
    for text in map(str, inputs):
        if text.startswith("bundled:") or "://" in text:
            continue
        if glob.has_magic(text) and not os.path.lexists(text):
            paths += map(Path, glob.glob(text, recursive=True))
        else:
            paths.append(_user(Path(text)))
    return tuple(paths)


def state_of(place: Path) -> os.stat_result | None:
    """What lies at a path, links not followed; None where nothing does.  Raises OutputError for an impossible path."""
    try:
        return place.lstat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else fault
        raise OutputError(f"nothing can be written to {place} ({why}); choose another place with --out") from None


def same_place(path: Path, other: Path) -> bool:
    """Whether two paths are the same file or folder: by name, by a link or by a second name."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def move_beside(what: Path, place: Path, word: str) -> Path:
    """Renames a file or folder to the first free name beside a place, `NAME.WORD`, `NAME.WORD-2`, …, and returns it."""
    number = 1
    while True:
        free = place.with_name(f"{place.name}.{word}" + (f"-{number}" if number > 1 else ""))
        with contextlib.suppress(FileExistsError):
            rename_new(what, free)
            return free
        number += 1


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _allowed(out: Path) -> Path:
    """The absolute path of a place that is no link, of no home, and whose parent can be written.

    Raises OutputError.
    """
    path = _user(out)
    try:
        os.fsencode(path).decode("utf-8")
        if path.is_symlink():
            raise OutputError(f"{path} is a symbolic link to {os.readlink(path)}; name the place itself with --out")
        place = path.resolve()
    except UnicodeDecodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise OutputError(f"the name {shown} is not UTF-8; choose another place with --out") from None
    except (OSError, RuntimeError, ValueError) as fault:
        raise OutputError(f"nothing can be written to {path} ({fault}); choose another place with --out") from None
    if len(os.fsencode(place.name)) > LONGEST:
        raise OutputError(
            f"the name {place.name[:40]}… is longer than {LONGEST} bytes; choose a shorter one with --out"
        )
    _check_homes(place)
    if is_stream(place):
        return place
    parent = place.parent
    while state_of(parent) is None and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError(f"{place} cannot be written: {parent} is not a folder; choose another place with --out")
    try:
        tempfile.TemporaryFile(dir=parent).close()
    except OSError as fault:
        if fault.errno not in (errno.ENOSPC, errno.EDQUOT):  # a full disk is reported by the write itself
            raise OutputError(
                f"{place} cannot be written: nothing can be put into {parent} ({fault.strerror}); choose another place "
                "with --out"
            ) from None
    return place


def _check_homes(place: Path) -> None:
    current = Home.current().root
    for folder in (place, *place.parents):
        if folder != current and not ((folder / RECORD).is_file() and (folder / "artifacts").is_dir()):
            continue
        inside = place.relative_to(folder).parts
        if not inside:
            raise OutputError(f"{place} is a home of kgqa; choose another place with --out")
        if inside[0] in OWN:
            raise OutputError(f"{place} belongs to the home {folder}; choose a place outside of it with --out")


def _check_file(place: Path, inputs: tuple[Path, ...], force: bool) -> bool:
    """Whether a file will be replaced.  Raises OutputError where nothing may be written."""
    state = state_of(place)
    for given in inputs:
        if given.is_dir() and place.is_relative_to(given.resolve()):
            raise OutputError(f"{place} is in a folder that this command reads; choose another place with --out")
    if state is None:
        return False
    if stat.S_ISLNK(state.st_mode):
        raise OutputError(f"{place} is a symbolic link; name the file itself with --out")
    if stat.S_ISDIR(state.st_mode):
        raise OutputError(f"{place} is a folder, not a file; name a file in it")
    for given in inputs:
        if same_place(given, place):
            raise OutputError(f"{place} is an input of this command ({given}); choose another place with --out")
    if is_stream(place):
        return False
    if not stat.S_ISREG(state.st_mode):
        raise OutputError(f"{place} is not a regular file; choose another place with --out")
    if not force:
        raise OutputError(f"{place} exists; choose another place with --out, or add --force to replace it")
    return True


def is_stream(place: Path) -> bool:
    """A character device or a pipe: what is written there overwrites nothing."""
    state = state_of(place)
    return state is not None and (stat.S_ISCHR(state.st_mode) or stat.S_ISFIFO(state.st_mode))


@contextlib.contextmanager
def _reader_of(place: Path) -> Iterator[None]:
    """Waits until somebody reads a named pipe, and holds it open meanwhile.  Raises OutputError when nobody comes."""
    state = state_of(place)
    if state is None or not stat.S_ISFIFO(state.st_mode):
        yield
        return
    until = time.monotonic() + READER_SECONDS
    while True:
        try:
            pipe = os.open(place, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as fault:
            if fault.errno != errno.ENXIO or time.monotonic() > until:
                raise OutputError(
                    f"nothing reads the pipe {place}; start its reader first, or choose a file with --out"
                ) from None
            time.sleep(0.05)
    try:
        yield
    finally:
        os.close(pipe)


def _user(path: Path) -> Path:
    """The path with `~` spelled out, where it means a user's folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path
