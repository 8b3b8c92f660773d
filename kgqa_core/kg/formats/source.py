"""A graph file as a stream of numbered lines, decompressed, decoded and checked."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa

from kgqa_core.errors import KgInputError

try:  # about three times as fast as zlib
    from isal import igzip, isal_zlib

    _open_gzip: Any = igzip.GzipFile
    _GZIP_FAULTS: Any = (EOFError, gzip.BadGzipFile, zlib.error, isal_zlib.error)
except ImportError:  # pragma: no cover
    _open_gzip = gzip.GzipFile
    _GZIP_FAULTS = (EOFError, gzip.BadGzipFile, zlib.error)

MAX_LINE = 16 << 20
"""Longest line in bytes; a longer one is rejected."""

BLOCK = 8 << 20
"""Bytes in one block of lines."""

_UNREADABLE = {
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a source.

    lines: columns `line` (from 1) and `text`, without line ends.  rejects: lines that are no text, as `base.REJECTS`.
    fraction: share of the file's bytes read so far.
    """

    lines: pl.DataFrame
    rejects: pl.DataFrame
    fraction: float


@dataclass(frozen=True, slots=True)
class Source:
    """A graph file.  label: its name in counts, rejects and errors, free of the folders of this machine."""

    path: Path
    label: str

    def head(self, lines: int = 200) -> list[str]:
        """The first lines that hold something (blank ones left out); undecodable bytes are replaced."""
        found: list[str] = []
        with self.path.open("rb") as raw:
            try:
                data = self._decompressed(raw).read(256 << 10)
            except _GZIP_FAULTS as fault:
                raise self._damaged(fault, 0) from None
        self._refuse_other_encodings(data)
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
        whole = text.split("\n")
        if len(data) == 256 << 10 and len(whole) > 1:
            whole.pop()
        for line in whole:
            if line.strip():
                found.append(line.rstrip("\r"))
                if len(found) == lines:
                    break
        return found

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """The lines in blocks of about `size` bytes.

        CRLF and a byte-order mark are taken off; a line that is not UTF-8 or too long is rejected.  Raises
        KgInputError for a damaged or truncated compressed file.
        """
        total = max(1, self.path.stat().st_size)
        first = 1
        rest = b""
        dropping = 0  # bytes dropped of an over-long line
        beginning = b""  # of the over-long line
        with self.path.open("rb") as raw:
            stream = self._decompressed(raw)
            start = True
            while True:
                try:
                    data = stream.read(size)
                except _GZIP_FAULTS as fault:
                    raise self._damaged(fault, first - 1 + rest.count(b"\n")) from None
                last = not data
                if start:
                    self._refuse_other_encodings(data)
                    data = data.removeprefix(b"\xef\xbb\xbf")
                    start = False
                fraction = min(1.0, raw.tell() / total)
                if dropping:
                    at = data.find(b"\n")
                    if at < 0 and not last:
                        dropping += len(data)
                        continue
                    yield Block(_no_lines(), _reject(first, _too_long(dropping + max(at, 0)), beginning), fraction)
                    first, dropping = first + 1, 0
                    data = data[at + 1 :] if at >= 0 else b""
                data = rest + data
                rest = b""
                if not last:
                    at = data.rfind(b"\n")
                    data, rest = data[: at + 1], data[at + 1 :]
                    if len(rest) > MAX_LINE:
                        dropping, beginning, rest = len(rest), rest[:4096], b""
                if data:
                    block, count = self._block(data, first, fraction)
                    first += count
                    # The over-long line begins after the lines of this block.
                    yield block
                if last:
                    return

    def _block(self, data: bytes, first: int, fraction: float) -> tuple[Block, int]:
        if not data.endswith(b"\n"):
            data += b"\n"
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10) + 1
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        numbers = np.arange(first, first + len(ends), dtype=np.int64)
        rejects = _no_rejects()
        try:
            data.decode("utf-8")
            array = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
            frame = pl.DataFrame({"line": numbers, "text": pl.from_arrow(array)})
        except UnicodeDecodeError:
            good, bad = [], []
            for number, (a, b) in enumerate(itertools.pairwise(offsets), start=first):
                try:
                    good.append((number, data[a:b].decode("utf-8")))
                except UnicodeDecodeError as fault:
                    reason = f"byte {data[a + fault.start]:#04x} at column {fault.start + 1} is not UTF-8"
                    bad.append(_reject(number, reason, data[a:b].rstrip(b"\r\n")))
            frame = pl.DataFrame(good, schema={"line": pl.Int64, "text": pl.String}, orient="row")
            rejects = pl.concat([rejects, *bad])
        frame = frame.with_columns(pl.col("text").str.strip_suffix("\n").str.strip_suffix("\r"))
        return Block(frame, rejects, fraction), len(ends)

    def _decompressed(self, raw: BinaryIO) -> BinaryIO:
        magic = raw.read(5)
        raw.seek(0)
        for prefix, name in _UNREADABLE.items():
            if magic.startswith(prefix):
                raise KgInputError(
                    f"{self.path} is compressed with {name}, which we do not read; decompress it, or use gzip"
                )
        if magic.startswith(b"\x1f\x8b"):
            stream: BinaryIO = _open_gzip(fileobj=raw, mode="rb")
            return stream
        return raw

    def _refuse_other_encodings(self, data: bytes) -> None:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise KgInputError(f"{self.path} is UTF-16; convert it to UTF-8, with `iconv -f UTF-16 -t UTF-8`")

    def _damaged(self, fault: Exception, lines: int) -> KgInputError:
        what = "is cut off" if isinstance(fault, EOFError) else f"is damaged ({fault})"
        return KgInputError(
            f"{self.path} {what}: the compressed data end early after line {lines:,}; fetch or compress the file again"
        )


def _no_lines() -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})


def _no_rejects() -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.Int64, "reason": pl.String, "text": pl.String})


def _reject(line: int, reason: str, text: bytes) -> pl.DataFrame:
    shown = text[:2000].decode("utf-8", errors="replace")[:500]
    return pl.DataFrame({"line": [line], "reason": [reason], "text": [shown]}, schema=_no_rejects().schema)


def _too_long(length: int) -> str:
    return f"line of {length:,} bytes, longer than {MAX_LINE:,}"
