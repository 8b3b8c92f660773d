"""A file as a stream of bytes, decompressed by what its first bytes say, not by its name.

gzip by isal (concatenated members, BGZF), bzip2 by rapidgzip on several cores (concatenated streams; the standard
library reads small files and judges damaged ones), Zstandard by zstandard (several frames, windows up to 2 GiB), xz by
the standard library (concatenated streams).  What follows the last member is treated as gzip(1), bzip2(1), zstd(1) and
xz(1) do: padding of zeros after gzip and xz is skipped, other bytes after gzip and bzip2 are left out with a warning
unless another member follows them, which is an error; after Zstandard and xz they are an error always.
"""

from __future__ import annotations

import bz2
import logging
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import rapidgzip
import zstandard
from isal import igzip_lib

from kgqa_core.closing import Closing
from kgqa_core.cores import own_cores
from kgqa_core.errors import InputError, KgInputError
from kgqa_core.input_files import refuse_other_files
from kgqa_core.spool import regular_file

logger = logging.getLogger(__name__)

_FEED = 1 << 18
_ZSTD_FEED = 1 << 14
"""Compressed bytes at a time.  zstandard returns all that they expand to, up to 128 KiB for every 4 of them."""

_ZSTD_WINDOW = 1 << 31

_XZ_MEMORY = 1 << 30
"""Bytes that the dictionary of an xz file may take; `xz -9` needs 65 MiB."""

_PARALLEL_BZIP2 = 1 << 20
"""Compressed bytes of a bzip2 file from which on several cores gain."""


class Damaged(Exception):
    """Compressed data end early or are wrong; the text says which, in words that follow a file's name.

    data: what the failed read had got before the fault.
    """

    data: bytes = b""


class Stream(Protocol):
    """Decompressed bytes."""

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, in [0, 1]."""

    def read(self, size: int) -> bytes:
        """The next bytes: exactly `size` of them unless the end is nearer.  Raises Damaged."""

    def close(self) -> None:
        """Closes the file."""


def is_compressed(magic: bytes) -> bool:
    """Whether a file that begins so is decompressed by `open_stream`."""
    return any(kind.begins(magic) for kind in (_GZIP, _ZSTD, _XZ, _BZIP2))


def open_stream(
    path: Path, fault: type[InputError] = KgInputError, most: int | None = None, refuse: bool = True
) -> Stream:
    """The bytes of a file or pipe, decompressed.  most: bytes that a pipe may have; refuse: only what may be text.

    Raises `fault` for what `refuse_other_files` names, and for what is neither a file nor a pipe.
    """
    named, path = path, regular_file(path, fault, most)
    with path.open("rb") as raw:
        magic = raw.read(512)
        size = os.fstat(raw.fileno()).st_size
    if refuse:
        refuse_other_files(named, magic, fault)
    for kind in (_GZIP, _ZSTD, _XZ):
        if kind.begins(magic):
            return _Inflated(path, kind)
    if _BZIP2.begins(magic):
        return _Bzip2(path) if size >= _PARALLEL_BZIP2 and len(own_cores()) > 1 else _Inflated(path, _BZIP2)
    return _Plain(path)


class StreamOver(Closing):
    """A stream of what another one reads."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far."""
        return self._stream.fraction

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()


class _Plain:
    """A file that is not compressed."""

    def __init__(self, path: Path, buffering: int = 0) -> None:
        self._raw: BinaryIO = path.open("rb", buffering=buffering)  # type: ignore[assignment]
        self._size = max(1, os.fstat(self._raw.fileno()).st_size)

    @property
    def fraction(self) -> float:
        return min(1.0, self._raw.tell() / self._size)

    def read(self, size: int) -> bytes:
        return _exactly(size, self._some)

    def close(self) -> None:
        self._raw.close()

    def _some(self, most: int) -> bytes | None:
        return self._raw.read(most)


class _Decoder(Protocol):
    """One member of a compressed file, as `bz2.BZ2Decompressor` does it."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZstdFrame:
    needs_input = True

    def __init__(self) -> None:
        self._frame: Any = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._frame.decompress(data))


class _Compression:
    """A compression: how its members begin and are read, and what may follow them."""

    def __init__(
        self, name: str, magic: tuple[bytes, ...], decoder: Callable[[], Any], faults: Any, padding: bytes, strict: bool
    ) -> None:
        self.name, self.magic, self.decoder, self.faults = name, magic, decoder, faults
        self.padding, self.strict = padding, strict
        self.members = (b"\x1f\x8b\x08\x00", b"\x1f\x8b\x08\x08", b"\x1f\x8b\x08\x04") if name == "gzip" else magic
        self.feed = _ZSTD_FEED if decoder is _ZstdFrame else _FEED

    def begins(self, data: bytes) -> bool:
        return data.startswith(self.magic)


_GZIP = _Compression(
    "gzip",
    (b"\x1f\x8b",),
    lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
    igzip_lib.IsalError,
    b"\0",
    False,
)
_BZIP2_MAGIC = tuple(
    b"BZh%d" % level + block for level in range(1, 10) for block in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
)
_BZIP2 = _Compression("bzip2", _BZIP2_MAGIC, bz2.BZ2Decompressor, (OSError, ValueError), b"", False)
_ZSTD = _Compression(
    "zstd",
    (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + i]) + b"\x2a\x4d\x18" for i in range(16))),
    _ZstdFrame,
    zstandard.ZstdError,
    b"",
    True,
)
_XZ = _Compression(
    "xz",
    (b"\xfd7zXZ\0",),
    lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
    lzma.LZMAError,
    b"\0",
    True,
)


class _Inflated(_Plain):
    """A compressed file of one or more members."""

    def __init__(self, path: Path, kind: _Compression, begin: int = 0) -> None:
        super().__init__(path, buffering=-1)
        self._path, self._kind = path, kind
        self._decoder: _Decoder | None = None
        self._raw.seek(begin)  # where a member ended, unless it is 0
        self._data = b""
        self._members = 1 if begin else 0
        self._ended = False

    def _some(self, most: int) -> bytes:
        while not self._ended:
            if self._decoder is None and not self._next():
                return b""
            assert self._decoder is not None
            if self._decoder.needs_input and not self._data:
                self._data = self._raw.read(self._kind.feed)
                if not self._data:
                    raise Damaged("is cut off: the compressed data end early")
            data, self._data = self._data, b""
            try:
                out = self._decoder.decompress(data, most)
            except self._kind.faults as fault:
                raise Damaged(f"is damaged ({fault})") from None
            if self._decoder.eof:
                self._data, self._decoder = self._decoder.unused_data, None
                self._members += 1
            if out:
                return out
        return b""

    def _next(self) -> bool:
        """Begins the next member; False when there is none."""
        longest = max(map(len, self._kind.magic))
        while True:
            self._data = self._data.lstrip(self._kind.padding) if self._members and self._kind.padding else self._data
            if len(self._data) >= longest:
                break
            more = self._raw.read(self._kind.feed)
            if not more:
                break
            self._data += more
        if not self._data:
            self._ended = True
            return False
        if not self._kind.begins(self._data):
            self._ended = True
            if self._more_members():
                raise Damaged(f"is damaged (bytes that are no {self._kind.name} data lie between two members)")
            if self._kind.strict:
                raise Damaged(f"is damaged (the bytes after {self._kind.name} frame {self._members} are no frame)")
            logger.warning(
                "%s: the %s data are whole, the bytes after them are left out", self._path.name, self._kind.name
            )
            return False
        self._decoder = self._kind.decoder()
        return True

    def _more_members(self) -> bool:
        """Whether a member begins in the bytes after the last one, which are none's beginning."""
        data = self._data
        while data:
            if any(magic in data for magic in self._kind.members):
                return True
            following = self._raw.read(self._kind.feed)
            data = data[-16:] + following if following else b""
        return False


class _Bzip2:
    """A bzip2 file on several cores; where rapidgzip fails, the standard library reads on and names the fault."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = max(1, path.stat().st_size)
        self._fast: Any = rapidgzip.IndexedBzip2File(str(path), parallelization=min(8, len(own_cores())))
        self._slow: _Inflated | None = None
        self._delivered = 0

    @property
    def fraction(self) -> float:
        if self._slow is not None:
            return self._slow.fraction
        return min(1.0, self._fast.tell_compressed() / 8 / self._size)

    def read(self, size: int) -> bytes:
        return _exactly(size, self._some)

    def close(self) -> None:
        self._fast.close()
        if self._slow is not None:
            self._slow.close()

    def _some(self, most: int) -> bytes:
        if self._slow is None:
            try:
                data = bytes(self._fast.read(most))
                self._delivered += len(data)
                end = -(-self._fast.tell_compressed() // 8)
                if data or end >= self._size:
                    return data
                self._slow = _Inflated(self._path, _BZIP2, end)
            except (RuntimeError, ValueError, OSError):
                self._slow = _Inflated(self._path, _BZIP2)
                skip = self._delivered
                while skip:
                    skip -= len(self._slow.read(min(skip, 1 << 20)))
        return self._slow.read(most)


def _exactly(size: int, some: Callable[[int], bytes | None]) -> bytes:
    """`size` bytes of a reader that gives what it has; fewer only at the end."""
    first = some(size) or b""
    if len(first) >= size or not first:
        return first
    parts, length = [first], len(first)
    try:
        while length < size and (part := some(size - length)):
            parts.append(part)
            length += len(part)
    except Damaged as fault:
        fault.data = b"".join(parts)
        raise
    return b"".join(parts)
