"""Archives and workbooks as the files in them: members of a zip or tar, sheets of an .xlsx, .xls or .ods as CSV.

Each is copied to a temporary file without a name, so that no name in an archive leads anywhere.  Bounded are the number
of members, what they expand to, and how much more that is than the archive.
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
from typing import Any

from kgqa_core.errors import KgInputError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.formats import sheet_process
from kgqa_core.kg.formats.decompress import Damaged, is_compressed, open_stream
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

_HEADERS = 16 << 20
"""Bytes of a zip's list of names, and of what a tar may say of a member."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BESIDE = ("readme", "license", "licence", "copying", "notice", "changelog", "thumbs")
"""Names of files that stand beside the data in an archive."""

_AS_CSV = "export each sheet as CSV (in a spreadsheet program `Save as`, or `soffice --convert-to csv FILE`)"
_UNPACK = "unpack it (`unzip FILE -d FOLDER`, `tar -xf FILE -C FOLDER`) and name the files in it"

_Members = Iterator[tuple[str, int, str, Callable[[int], bytes]]]
"""Of each file in an archive: its name, its bytes, what is against reading it, and how it is read."""


def expand(source: Source, nested: bool = False) -> Iterator[Source]:
    """The members of an archive or the sheets of a workbook; the source itself where it is neither.

    nested: within an archive, which may hold workbooks, and no archive.  Raises KgInputError for an archive or a
    workbook that is broken, encrypted or beyond the bounds, and StorageError.
    """
    kind = _kind(source.path)
    if kind is None:
        yield source
        return
    if kind is not _sheets and nested:
        raise KgInputError(f"{source.path} is an archive within an archive; {_UNPACK}")
    with unchanged([source.path], KgInputError):
        parts = list(_sheets(source) if kind is _sheets else _copies(source, kind(source.path)))
    if not parts:
        what = "a workbook without a value in its visible sheets" if kind is _sheets else "an archive without a file"
        beside = "; ".join(f"{name}: {text}" for name, text in source.found.items())
        raise KgInputError(f"{source.path} is {what} that could be read ({beside}); check what is in it")
    parts[0].found.update(source.found)
    for part in parts:
        yield from (part,) if kind is _sheets else expand(part, nested=True)


def _kind(path: Path) -> Callable[[Any], Iterator[Any]] | None:
    """How the members of a file are read; None for one that has none."""
    with regular_file(path, KgInputError).open("rb") as stream:
        magic = stream.read(512)
    if magic.startswith(_OLE):
        return _sheets
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        try:
            names = set(_directory(path).namelist())
        except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError):
            return _zip
        if {"word/document.xml", "ppt/presentation.xml"} & names:
            return None
        return _sheets if {"xl/workbook.xml", "xl/workbook.bin", "content.xml"} & names else _zip
    if is_compressed(magic):
        packed = open_stream(path)
        try:
            magic = packed.read(512)
        except Damaged as fault:
            magic = fault.data
        finally:
            packed.close()
    return _tar if magic[257:262] == b"ustar" else None


def _copies(source: Source, members: _Members) -> Iterator[Source]:
    """The members of an archive that are read; what is passed over is noted."""
    path, packed = source.path, max(1, source.size)
    expanded, seen, left_out = 0, set[str](), list[str]()
    try:
        for name, size, fault, read in members:
            parts = PurePosixPath(name.replace("\\", "/")).parts
            if "\0" in name or not parts or ".." in parts or parts[0] == "/" or parts[0].endswith(":"):
                fault = "has a name that leads out of the archive"
            fault = f"has a name of {len(name):,} characters" if len(name) > 1000 else fault
            if fault or name in seen:
                raise KgInputError(f"{path}: {shorten(name)!r} {fault or 'is there twice'}; {_UNPACK}")
            seen.add(name)
            hidden = any(part.startswith((".", "__MACOSX")) and part != "." for part in parts)
            wanted = not hidden and size and parts[-1].split(".")[0].lower() not in _BESIDE
            if not wanted:
                left_out.append(shorten(name, 60))
            elif len(seen) - len(left_out) > MAX_MEMBERS:
                raise KgInputError(f"{path} has more than {MAX_MEMBERS} files; {_UNPACK}")
            content = Content()
            while data := read(1 << 20):
                expanded += len(data)
                if expanded > min(MAX_EXPANDED, max(FREELY, MAX_RATIO * packed)):
                    raise KgInputError(
                        f"{path} has {packed:,} bytes and expands to {expanded:,} and more; {MAX_RATIO} times as many "
                        f"and {MAX_EXPANDED >> 30} GiB are read; if that is right, {_UNPACK}"
                    )
                if wanted:
                    check_room()
                    content.file.write(data)
            if wanted:
                yield part_of(source, name, content)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, EOFError, zlib.error) as fault:
        raise KgInputError(f"{path} is packed with zip and cannot be read ({fault}); {_UNPACK}") from None
    except (tarfile.TarError, Damaged, OSError) as fault:
        raise KgInputError(f"{path} is an archive that cannot be read ({fault}); fetch it again") from None
    if left_out:
        source.found["left out of the archive"] = shorten(", ".join(left_out))


def part_of(source: Source, name: str, content: Content) -> Source:
    """A file of this name within a source, whose bytes are complete."""
    path = source.path / name
    content.stands_for(path)
    return Source(path, f"{source.label}/{name}", content=content)


def _directory(path: Path) -> zipfile.ZipFile:
    """A zip archive, whose list of names is bounded before it is read."""
    file = regular_file(path, KgInputError)
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - (1 << 16) - 22))
        tail = stream.read()
    at = tail.rfind(b"PK\x05\x06")
    if at >= 0 and len(tail) >= at + 16 and struct.unpack_from("<I", tail, at + 12)[0] > _HEADERS:
        raise KgInputError(f"{path} is a zip archive with too many names; {_UNPACK}")
    return zipfile.ZipFile(file)


def _zip(path: Path) -> _Members:
    with _directory(path) as archive:
        for info in archive.infolist():
            link = stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR)
            fault = "is a link" if link else "is encrypted" if info.flag_bits & 1 else ""
            if fault:
                yield info.filename, 0, fault, lambda _: b""
            elif not info.is_dir():
                with archive.open(info) as member:
                    yield info.filename, info.file_size, "", member.read


class _TarInfo(tarfile.TarInfo):
    """A header of a tar, without long texts about a member."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if not self.isreg() and self.size > _HEADERS:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(archive)  # type: ignore[misc, no-any-return]


def _tar(path: Path) -> _Members:
    stream: Any = open_stream(path, refuse=False)
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarInfo) as archive:
            for info in archive:
                if info.isreg() and not info.issparse() and (member := archive.extractfile(info)) is not None:
                    yield info.name, info.size, "", member.read
                elif not info.isdir():
                    yield info.name, 0, "is a link, a device or a sparse file", lambda _: b""
    finally:
        stream.close()


def _sheets(source: Source) -> Iterator[Source]:
    """The visible sheets of a workbook that hold something, as CSV, in order."""
    file = regular_file(source.path, KgInputError)
    if source.size > MAX_WORKBOOK:
        raise KgInputError(f"{source.path} is a workbook of more than {MAX_WORKBOOK >> 20} MiB; {_AS_CSV}")
    data = file.read_bytes()
    if data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in data:
        raise KgInputError(f"{source.path} is an encrypted workbook; save it without a password, or {_AS_CSV}")
    what = "a document of OpenDocument (.ods, .odt)" if b"content.xml" in data else "a spreadsheet of Excel (.xlsx)"
    what = "an old document of Microsoft Office (.xls, .doc)" if data.startswith(_OLE) else what
    left_out: dict[str, list[str]] = {
        "hidden sheets left out": [],
        "empty sheets": [],
        "cells with errors left out": [],
    }
    with unnamed_file() as output:
        command = [sys.executable, "-P", sheet_process.__file__, str(file)]
        descriptors = [int(file.name)] if file.parent == Path("/proc/self/fd") else []
        done = subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, pass_fds=descriptors, check=False)
        output.seek(0)
        while line := output.readline():
            header = json.loads(line)
            if "fault" in header:
                raise KgInputError(f"{source.path} is {what}, which cannot be read ({header['fault']}); {_AS_CSV}")
            if header["errors"]:
                left_out["cells with errors left out"].append(f"{header['errors']:,} in {header['name']}")
            content = Content()
            content.file.write(output.read(header["size"]))
            if header["visible"] and header["size"]:
                yield part_of(source, f"{header['name'].replace('/', '_')}.csv", content)
            else:
                left_out["empty sheets" if header["visible"] else "hidden sheets left out"].append(header["name"])
    if done.returncode:
        raise KgInputError(
            f"{source.path} is {what}, which needs more than {sheet_process.MEMORY >> 30} GiB of memory or "
            f"{sheet_process.SECONDS} s, or cannot be read; {_AS_CSV}"
        )
    source.found.update({kind: ", ".join(map(repr, names)) for kind, names in left_out.items() if names})
