"""Archives and workbooks as the files in them: members of a zip or tar, sheets of an .xlsx, .xls or .ods as CSV.

Each member is copied to a temporary file without a name, so that no name in an archive leads anywhere.  Bounded are the
number of members, what they expand to, and how much more that is than the archive.
"""

from __future__ import annotations

import json
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from kgqa_core.errors import KgInputError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.formats import sheet_process
from kgqa_core.kg.formats.decompress import Damaged, Stream, is_compressed, open_stream
from kgqa_core.kg.formats.source import Source
from kgqa_core.spool import Content, check_room, regular_file, shorten, unnamed_file

MAX_MEMBERS = 256
"""Files in one archive, each of which is open while the graph is built."""

MAX_EXPANDED = 64 << 30
"""Bytes that the members of an archive may have together."""

MAX_RATIO = 250
"""Times that an archive may expand, once it has given FREELY bytes; text packs to a tenth, seldom to a fiftieth."""

FREELY = 64 << 20

MAX_WORKBOOK = 128 << 20
"""Bytes of a workbook, which is read as one piece."""

_DIRECTORY = 16 << 20
"""Bytes of a zip's list of names, and of what a tar may say of a member."""

_PIECE = 1 << 20
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BESIDE = ("readme", "license", "licence", "copying", "notice", "changelog", "thumbs")
"""Names of files that stand beside the data in an archive."""

_AS_CSV = "export each sheet as CSV (in a spreadsheet program `Save as`, or `soffice --convert-to csv FILE`)"
_UNPACK = "unpack it and name the files in it"


def expand(source: Source, nested: bool = False) -> Iterator[Source]:
    """The members of an archive or the sheets of a workbook; the source itself where it is neither.

    nested: within an archive, which may hold workbooks, and no archive.  Raises KgInputError for an archive or a
    workbook that is broken, encrypted or beyond the bounds, and StorageError.
    """
    kind = _kind(source.path)
    if kind is None:
        yield source
        return
    if kind in (_zip, _tar) and nested:
        raise KgInputError(f"{source.path} is an archive within an archive; {_UNPACK}")
    with unchanged([source.path], KgInputError):
        members = list(kind(source))
    if not members:
        what = "archive without a file" if kind in (_zip, _tar) else "workbook without a value in its visible sheets"
        raise KgInputError(f"{source.path} is an {what} that could be read{_beside(source)}; check what is in it")
    members[0].found.update(source.found)
    for member in members:
        yield from expand(member, nested=True) if kind in (_zip, _tar) else (member,)


def _beside(source: Source) -> str:
    return "".join(f" ({what}: {names})" for what, names in source.found.items())


def _kind(path: Path) -> Callable[[Source], Iterator[Source]] | None:
    """How the members of a file are read; None for one that has none."""
    file = regular_file(path, KgInputError)
    with file.open("rb") as stream:
        magic = stream.read(512)
    if magic.startswith(_OLE):
        return _workbook
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        try:
            names = set(_directory(file, path).namelist())
        except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError):
            return _zip
        if {"word/document.xml", "ppt/presentation.xml"} & names:
            return None
        return _workbook if {"xl/workbook.xml", "xl/workbook.bin", "content.xml"} & names else _zip
    if is_compressed(magic):
        opened = open_stream(path)
        try:
            magic = opened.read(512)
        except Damaged as fault:
            magic = fault.data
        finally:
            opened.close()
    return _tar if magic[257:262] == b"ustar" else None


class _Bounds:
    """Counts what an archive expands to.  Raises KgInputError where that is too much."""

    def __init__(self, path: Path) -> None:
        self.path, self.packed = path, max(1, regular_file(path, KgInputError).stat().st_size)
        self.expanded = self.members = 0

    def member(self) -> None:
        self.members += 1
        if self.members > MAX_MEMBERS:
            raise KgInputError(f"{self.path} has more than {MAX_MEMBERS} files; {_UNPACK}")

    def add(self, size: int) -> None:
        before, self.expanded = self.expanded, self.expanded + size
        if self.expanded > MAX_EXPANDED or self.expanded > max(FREELY, MAX_RATIO * self.packed):
            raise KgInputError(
                f"{self.path} has {self.packed:,} bytes and expands to more than {self.expanded:,}, at most "
                f"{MAX_RATIO} times as many and {MAX_EXPANDED >> 30} GiB are read; if that is right, {_UNPACK}"
            )
        if before // FREELY != self.expanded // FREELY:
            check_room()


def _copied(source: Source, name: str, read: Callable[[int], bytes], bounds: _Bounds) -> Source:
    """A member as a source of its own."""
    content = Content()
    while data := read(_PIECE):
        bounds.add(len(data))
        content.file.write(data)
    return _member(source, name, content)


def _member(source: Source, name: str, content: Content) -> Source:
    path = source.path / name
    if path.exists():
        raise KgInputError(f"{path} is a file and in an archive; move one of them")
    content.stands_for(path)
    return Source(path, f"{source.label}/{name}", content=content)


def _wanted(name: str, source: Source, seen: set[str], size: int) -> bool:
    """Whether a member of this name is read; what is passed over is noted.  Raises KgInputError."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if "\0" in name or not parts or ".." in parts or parts[0] == "/" or parts[0].endswith(":"):
        raise KgInputError(f"{source.path} has a member {shorten(name)!r}, whose name leads out of it; {_UNPACK}")
    if name in seen:
        raise KgInputError(f"{source.path} has two members {shorten(name)!r}; {_UNPACK}")
    seen.add(name)
    hidden = parts[0] == "__MACOSX" or any(part.startswith(".") and part != "." for part in parts)
    if not hidden and size and parts[-1].split(".")[0].lower() not in _BESIDE:
        return True
    known = source.found.get("left out of the archive", "")
    if len(known) < 300:
        source.found["left out of the archive"] = f"{known}, {shorten(name, 60)}".removeprefix(", ")
    return False


def _directory(file: Path, path: Path) -> zipfile.ZipFile:
    """A zip archive, whose list of names is bounded before it is read."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - (1 << 16) - 22))
        tail = stream.read()
    at = tail.rfind(b"PK\x05\x06")
    if at >= 0 and len(tail) >= at + 16 and struct.unpack_from("<I", tail, at + 12)[0] > _DIRECTORY:
        raise KgInputError(f"{path} is a zip archive with too many names; {_UNPACK}")
    return zipfile.ZipFile(file)


def _zip(source: Source) -> Iterator[Source]:
    bounds, seen = _Bounds(source.path), set[str]()
    file = regular_file(source.path, KgInputError)
    try:
        with _directory(file, source.path) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                mode = info.external_attr >> 16
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                    raise KgInputError(f"{source.path} has a link, {shorten(info.filename)!r}; {_UNPACK}")
                if not _wanted(info.filename, source, seen, info.file_size):
                    continue
                if info.flag_bits & 1:
                    raise KgInputError(f"{source.path} is encrypted ({shorten(info.filename)!r}); {_UNPACK}")
                bounds.member()
                with archive.open(info) as member:
                    yield _copied(source, info.filename, member.read, bounds)
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, UnicodeDecodeError, OSError) as fault:
        raise KgInputError(f"{source.path} is packed with zip and cannot be read ({fault}); {_UNPACK}") from None


class _TarInfo(tarfile.TarInfo):
    """A header of a tar, without long texts about a member."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if not self.isreg() and self.size > _DIRECTORY:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(archive)  # type: ignore[misc, no-any-return]


class _TarStream:
    """A stream as `tarfile` reads it."""

    def __init__(self, stream: Stream) -> None:
        self.read = stream.read


def _tar(source: Source) -> Iterator[Source]:
    bounds, seen = _Bounds(source.path), set[str]()
    file = regular_file(source.path, KgInputError)
    with file.open("rb") as raw:
        packed = is_compressed(raw.read(512))
    stream: Stream | IO[bytes] = open_stream(source.path) if packed else file.open("rb")
    try:
        with tarfile.open(fileobj=_TarStream(stream), mode="r|", tarinfo=_TarInfo) as archive:  # type: ignore[call-overload, arg-type]
            for info in archive:
                if info.isdir():
                    continue
                if not info.isreg() or info.issparse():
                    what = "a link" if info.issym() or info.islnk() else "no plain file"
                    raise KgInputError(f"{source.path}: its member {shorten(info.name)!r} is {what}; {_UNPACK}")
                wanted = _wanted(info.name, source, seen, info.size)
                member = archive.extractfile(info)
                if wanted and member is not None:
                    bounds.member()
                    yield _copied(source, info.name, member.read, bounds)
                else:
                    bounds.add(info.size)
    except (tarfile.TarError, Damaged, EOFError, OSError) as fault:
        raise KgInputError(f"{source.path} is a tar archive that cannot be read ({fault}); fetch it again") from None
    finally:
        stream.close()


def _workbook(source: Source) -> Iterator[Source]:
    """The visible sheets of a workbook that hold something, as CSV, in order."""
    file = regular_file(source.path, KgInputError)
    if (size := file.stat().st_size) > MAX_WORKBOOK:
        raise KgInputError(f"{source.path} is a workbook of {size:,} bytes, {MAX_WORKBOOK:,} are read; {_AS_CSV}")
    data = file.read_bytes()
    what = "an old document of Microsoft Office (.xls, .doc)" if data.startswith(_OLE) else ""
    what = what or (
        "a document of OpenDocument (.ods, .odt)" if b"content.xml" in data else "a spreadsheet of Excel (.xlsx)"
    )
    if data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in data:
        raise KgInputError(f"{source.path} is an encrypted workbook; save it without a password, or {_AS_CSV}")
    left_out: dict[str, list[str]] = {"hidden sheets left out": [], "empty sheets": []}
    with unnamed_file() as output:
        done = subprocess.run(
            [sys.executable, "-P", sheet_process.__file__, str(file)],
            stdout=output, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False,
            pass_fds=[int(file.name)] if file.parent == Path("/proc/self/fd") else [],
        )  # fmt: skip
        output.seek(0)
        sheets = []
        while line := output.readline():
            header = json.loads(line)
            if "fault" in header:
                raise KgInputError(f"{source.path} is {what}, which cannot be read ({header['fault']}); {_AS_CSV}")
            name, size = header["name"], header["size"]
            if header["visible"] and size:
                content = Content()
                content.file.write(output.read(size))
                sheets.append(_member(source, f"{name.replace('/', '_')}.csv", content))
            else:
                output.seek(size, 1)
                left_out["empty sheets" if header["visible"] else "hidden sheets left out"].append(name)
        if done.returncode:
            raise KgInputError(
                f"{source.path} is {what}, which needs more than {sheet_process.MEMORY >> 30} GiB of memory or "
                f"{sheet_process.SECONDS} s, or cannot be read; {_AS_CSV}"
            )
    source.found.update({kind: ", ".join(map(repr, names)) for kind, names in left_out.items() if names})
    yield from sheets
