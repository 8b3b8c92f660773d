"""Files of the user, before and while they are read: what they are made of, and whether they stay as they are."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.errors import InputError, KgInputError, KgqaError
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


_EXPORT = "export each sheet as CSV (in a spreadsheet program `Save as`, or `soffice --convert-to csv FILE`)"
_UNPACK = "unpack it and name the files in it"
_TABLES = "export its tables as CSV or Parquet"
_SAVE = "it may be an error page that was saved instead of the file: fetch it again"
_OTHER_FILES: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"7z\xbc\xaf\x27\x1c", "packed with 7-Zip", "unpack it, with `7z x`, and name the files in it"),
    (0, b"Rar!\x1a\x07", "packed with RAR", "unpack it, with `unrar x`, and name the files in it"),
    (0, b"\x04\x22\x4d\x18", "packed with lz4", "unpack it (`lz4 -d`), or use gzip, bzip2, zstd or xz"),
    (0, b"LZIP\x01", "packed with lzip", "unpack it (`lzip -d`), or use gzip, bzip2, zstd or xz"),
    (0, b"\x1f\x9d", "packed with compress (.Z)", "unpack it (`uncompress`), or use gzip, bzip2, zstd or xz"),
    (257, b"ustar", "a tar archive", "unpack it, with `tar -xf`, and name the files in it"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old document of Microsoft Office (.xls, .doc)", _EXPORT),
    (0, b"%PDF-", "a PDF document", "name the data that it was made from"),
    (0, b"SQLite format 3\0", "an SQLite database", _TABLES),
    (8, b"DUCK", "a DuckDB database", _TABLES),
    (0, b"\x89PNG\r\n", "an image", "name the data that it was made from"),
    (0, b"\x7fELF", "a program", "name a text file"),
    (0, b"$HDT", "an HDT file", "write it as N-Triples, with `hdt2rdf FILE graph.nt`"),
    (0, b"ARROW1", "an Arrow file", "write it as Parquet"),
    (0, b"\x89HDF\r\n", "an HDF5 file", "write it as CSV or Parquet"),
    (0, b"\x93NUMPY", "a NumPy array", "write it as CSV or Parquet"),
)
"""Files that hold no text: position and bytes by which they are known, what they are, and the way out."""

_DIRECTORY = 1 << 16
"""Bytes at the end of a zip archive in which its names are looked for."""

_ZIPPED = (
    (b"xl/workbook.xml", "a spreadsheet of Excel (.xlsx)", _EXPORT),
    (b"word/document.xml", "a document of Word (.docx)", "save it as plain text, or its tables as CSV"),
    (b"ppt/presentation.xml", "a presentation (.pptx)", "save its tables as CSV"),
    (b"content.xml", "a document of OpenDocument (.ods, .odt)", _EXPORT),
)
"""Name within a zip archive, what the archive is, and the way out."""


def refuse_other_files(path: Path, data: bytes, fault: type[InputError] = InputError) -> None:
    """Raises `fault` where `data`, how a file begins, show that it holds no text: a spreadsheet, an archive, a PDF."""
    if data.startswith(b"PK\x03\x04"):
        kinds = [_zipped(path)]
    else:
        kinds = [(what, advice) for at, magic, what, advice in _OTHER_FILES if data.startswith(magic, at)]
    for what, advice in kinds:
        advice = (
            advice
            if "CSV" not in advice or issubclass(fault, KgInputError)
            else "write what is needed of it as lines of text"
        )
        raise fault(f"{path} is {what}, which we do not read; {advice}")
    if data[:200].lstrip().lower().startswith((b"<!doctype html", b"<html>", b"<html ")):
        raise fault(f"{path} is a page of HTML, which we do not read; {_SAVE}")


def _zipped(path: Path) -> tuple[str, str]:
    """What a zip archive is, and the way out."""
    with regular_file(path).open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - _DIRECTORY))
        names = stream.read()
    for name, what, advice in _ZIPPED:
        if name in names:
            return what, advice
    return "packed with zip", _UNPACK


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
    refuse_other_files(path, data, fault)
    if not data.strip():
        raise fault(f"{path} is empty{': it holds only white space' if data else ''}; it needs {needs}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(f"{path} is not UTF-8 (byte {error.start + 1}); convert it, with `iconv -t UTF-8`") from None
