"""A graph file as a stream of numbered lines, decompressed, decoded and checked.

In a file whose beginning has carriage returns and no line feed (old Macintosh), a carriage return ends a line.

Reading and decompressing run on a thread ahead of the consumer.  `chunks` gives the bytes of whole lines, `blocks` the
same as checked text, `stream` the bytes for a parser that finds its own way.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from kgqa_core.errors import KgInputError
from kgqa_core.input_files import refuse_other_files, refuse_zeros, unchanged
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.base import REJECTS, empty
from kgqa_core.kg.formats.decompress import Damaged, Stream, StreamOver, open_stream
from kgqa_core.kg.formats.encodings import Transcoded, narrow_encoding, wide_encoding
from kgqa_core.spool import Content, regular_file

MAX_LINE = 16 << 20
"""Longest line in bytes; a longer one is rejected."""

BLOCK = 8 << 20
"""Bytes in one chunk of lines."""

HEAD = 256 << 10
"""Bytes that are looked at to find a file's format."""

SEARCHED = 64 << 20
"""Bytes of a file in which its first character beyond ASCII is looked for, which says its encoding."""

_MARKUP = re.compile(rb"(?:\s|#[^\r\n]*[\r\n])*(?:[<{\[@_]|(?i:prefix|base)\s|PAR1)")
"""How a file begins that is UTF-8 by its format."""

PARQUET = b"PAR1"
"""How Parquet begins, the one format that is no text."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes of some whole lines, as they stand in the file; the last line of a file is ended if it was not.

    first_line: number of its first line, from 1; lines are counted by `\\n`.  fraction: share of the file's bytes read
    so far.  rejects: as `base.REJECTS`, an over-long line left out here; such a chunk holds no byte.
    """

    data: bytes
    first_line: int
    fraction: float
    rejects: pl.DataFrame


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
    """A graph file.

    label: its name in counts, rejects and errors, free of the folders of this machine.  encoding: of its text; None for
    UTF-8.  content: the bytes of a member of an archive or a sheet, where `path` names no file (`members`).  found:
    what was guessed of it, by what it is (`delimiter`, `encoding`), for the notes of a build.
    """

    path: Path
    label: str
    encoding: str | None = None
    content: Content | None = None
    found: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """Bytes of the file as it stands."""
        return regular_file(self.path, KgInputError).stat().st_size

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet, which is read at several places and never packed."""
        with regular_file(self.path, KgInputError).open("rb") as stream:
            return stream.read(4) == PARQUET

    def check(self) -> None:
        """Raises KgInputError for a file that is empty, blank, of zero bytes, no UTF-8 at its beginning or damaged."""
        data = self._beginning()
        if len(data) < HEAD and not data.removeprefix(_BOM).strip():
            what = "is empty: it holds only white space" if data else "is empty"
            raise KgInputError(f"{self.path} {what}; name a file with triples")

    def head(self, lines: int = 200) -> list[str]:
        """The first lines that hold something (blank ones left out); undecodable bytes are replaced."""
        data = self._beginning()
        whole = data.removeprefix(_BOM).decode("utf-8", errors="replace").split("\n")
        if len(data) == HEAD and len(whole) > 1:
            whole.pop()
        result = (line.rstrip("\r") for line in whole if line.strip())
        return [line for line, _ in zip(result, range(lines), strict=False)]

    def _beginning(self) -> bytes:
        """The first HEAD bytes."""
        stream = self.open()
        try:
            data = stream.read(HEAD)
        except Damaged as fault:
            raise self._damaged(fault, fault.data.count(b"\n")) from None
        finally:
            stream.close()
        if stream.returns:
            self.found["line ends"] = "carriage returns alone"
        self._refuse_other_encodings(data)
        return data

    def open(self) -> LineFeeds:
        """The bytes, decompressed, as UTF-8, with line feeds where lines end by carriage returns alone."""
        stream: Stream = open_stream(self.path)
        if self.encoding is not None:
            stream = Transcoded(stream, self.encoding, self.path)
        return LineFeeds(stream)

    def find_encoding(self) -> str | None:
        """The encoding of the text where it is not UTF-8: by the first bytes that are not ASCII, of the first SEARCHED.

        Only tables and other plain text are searched; the formats of RDF, JSON and XML are UTF-8.  Raises KgInputError.
        """
        stream = open_stream(self.path)
        try:
            data, offset = stream.read(HEAD), 0
            if (wide := wide_encoding(data)) is not None or _MARKUP.match(data):
                return wide
            while data.isascii() and len(data) == HEAD and offset < SEARCHED:
                offset, data = offset + HEAD, stream.read(HEAD)
            return narrow_encoding(data, self.path, offset, len(data) == HEAD)
        except Damaged:
            return None  # said by `check`
        finally:
            stream.close()

    def stream(self) -> SourceStream:
        """The bytes, decompressed, for a parser with a reader of its own; a byte-order mark is removed."""
        return SourceStream(self)

    def whole(self, limit: int, what: str, way_out: str) -> bytes:
        """All bytes of a document.  what, way_out: for the error.  Raises KgInputError for more than the limit."""
        data = bytearray()
        with self.stream() as stream:
            while piece := stream.read():
                data += piece
                if len(data) > limit:
                    raise KgInputError(f"{self.path} is one {what} of more than {limit >> 20} MiB; {way_out}")
        return bytes(data)

    def chunks(self, size: int = BLOCK) -> Iterator[Chunk]:
        """Whole lines in chunks of about `size` bytes, read and decompressed ahead on a thread.

        A byte-order mark is removed, an over-long line rejected; nothing else is changed or checked.  Raises
        KgInputError for a damaged or truncated compressed file, for UTF-16, and for a file that changes meanwhile.
        """
        return read_ahead(lambda: self._watched(size))

    def blocks(self, size: int = BLOCK) -> Generator[Block, None, None]:
        """The lines in blocks of about `size` bytes.

        CRLF and a byte-order mark are removed; a line that is not UTF-8 or too long is rejected.  Raises
        KgInputError as `chunks` does.
        """
        for chunk in self.chunks(size):
            yield block_of(chunk)

    def _watched(self, size: int) -> Iterator[Chunk]:
        with unchanged([self.path], KgInputError):
            yield from self._chunks(size)

    def _chunks(self, size: int) -> Iterator[Chunk]:
        first = 1  # number of the first line that is not given out yet
        rest = b""  # the beginning of that line, or what is left of it
        dropped = 0  # bytes dropped of an over-long line, whose beginning is `rest`
        stream = self.open()
        try:
            start = True
            while True:
                try:
                    data = stream.read(size)
                except Damaged as fault:
                    raise self._damaged(fault, first - 1 + (rest + fault.data).count(b"\n")) from None
                last = len(data) < size
                if start:
                    self._refuse_other_encodings(data)
                    data = data.removeprefix(_BOM)
                    start = False
                fraction = 1.0 if last else stream.fraction
                if dropped:
                    at = data.find(b"\n")
                    if at < 0 and not last:
                        dropped += len(data)
                        continue
                    at = len(data) if at < 0 else at
                    yield Chunk(b"", first, fraction, _reject(first, _too_long(dropped + at), rest))
                    first, dropped, rest = first + 1, 0, b""
                    data = data[at + 1 :]
                at = data.rfind(b"\n") + 1
                if last and at < len(data):
                    data += b"\n"
                    at = len(data)
                if at:
                    for chunk in _split(b"".join((rest, memoryview(data)[:at])), first, fraction):
                        yield chunk
                        first = chunk.first_line + chunk.data.count(b"\n") + chunk.rejects.height
                    rest = data[at:]
                else:
                    rest += data
                if last and rest:
                    yield from _split(rest + b"\n", first, fraction)
                if last:
                    return
                if len(rest) > MAX_LINE:
                    dropped, rest = len(rest), rest[:4096]
        finally:
            stream.close()

    def _refuse_other_encodings(self, data: bytes) -> None:
        if data.startswith(PARQUET):
            if not self.is_parquet:
                raise KgInputError(f"{self.path} is Parquet within another compression; unpack it")
            return
        refuse_zeros(self.path, data, KgInputError)
        refuse_other_files(self.path, data, KgInputError)
        sample = data[:1024]
        zeros = sample[0::2].count(0), sample[1::2].count(0)
        wide = len(sample) >= 4 and max(zeros) * 4 > len(sample)
        if wide or data.startswith((b"\xff\xfe", b"\xfe\xff")):
            name, width = ("UTF-32", 4) if sum(zeros) * 2 > len(sample) else ("UTF-16", 2)
            if bytes(width) in (sample[at : at + width] for at in range(0, len(sample), width)):
                raise KgInputError(
                    f"{self.path} holds binary data; `file {self.path}` says of which program: export text"
                )
            raise KgInputError(f"{self.path} is {name}; convert it to UTF-8, with `iconv -f {name} -t UTF-8`")

    def _damaged(self, fault: Damaged, lines: int) -> KgInputError:
        return KgInputError(f"{self.path} {fault} after line {lines:,}; fetch or compress the file again")


class LineFeeds(StreamOver):
    """A stream with line feeds for the carriage returns, where its beginning has these only."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.returns: bool | None = None

    def read(self, size: int) -> bytes:
        """The next bytes.  Raises Damaged."""
        data = self._stream.read(size)
        if self.returns is None:
            begin = data[:HEAD]
            self.returns = b"\r" in begin[:-1] and b"\n" not in begin
        return data.replace(b"\r", b"\n") if self.returns else data


class SourceStream(StreamOver):
    """The decompressed bytes of a source as a binary file, which a `with` closes.  Raises KgInputError when damaged."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.open())
        self._source = source
        self._lines = 0
        self._start = True

    def read(self, size: int = BLOCK) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        try:
            data = self._stream.read(BLOCK if size < 0 else size)
        except Damaged as fault:
            raise self._source._damaged(fault, self._lines + fault.data.count(b"\n")) from None
        if self._start:
            self._start = False
            self._source._refuse_other_encodings(data)
            data = data.removeprefix(_BOM) or self._stream.read(BLOCK if size < 0 else size)
        self._lines += data.count(b"\n")
        return data

    @property
    def lines(self) -> int:
        """Line ends read so far."""
        return self._lines


def block_of(chunk: Chunk) -> Block:
    """The lines of a chunk as text; those that are not UTF-8 are rejected."""
    data = chunk.data
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10) + 1
    if not len(ends):
        return Block(pl.DataFrame(schema={"line": pl.Int64, "text": pl.String}), chunk.rejects, chunk.fraction)
    text = _text(data, ends)
    rejects = chunk.rejects
    lines = np.arange(chunk.first_line, chunk.first_line + len(ends), dtype=np.int64)
    try:
        text.validate(full=True)
        frame = pl.DataFrame({"line": lines, "text": pl.from_arrow(text)})
    except pa.ArrowInvalid:
        bad, rejects, data = _blanked(data, ends, chunk)
        frame = pl.DataFrame({"line": lines, "text": pl.from_arrow(_text(data, ends))}).filter(~bad)
    return Block(
        frame.with_columns(pl.col("text").str.strip_suffix("\n").str.strip_suffix("\r")), rejects, chunk.fraction
    )


def readable(chunk: Chunk) -> tuple[bytes, pl.DataFrame, int]:
    """The bytes of a chunk with the lines blank that are not UTF-8, all its rejects, and how many lines that were."""
    ends = np.flatnonzero(np.frombuffer(chunk.data, dtype=np.uint8) == 10) + 1
    bad, rejects, data = _blanked(chunk.data, ends, chunk)
    return data, rejects, int(bad.sum())


def _text(data: bytes, ends: np.ndarray) -> pa.LargeStringArray:
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))


def _blanked(data: bytes, ends: np.ndarray, chunk: Chunk) -> tuple[pl.Series, pl.DataFrame, bytes]:
    """Which lines are not UTF-8, their rejects, and the bytes with those lines blank."""
    bad = np.zeros(len(ends), dtype=bool)
    rejects = [chunk.rejects]
    text = bytearray(data)
    view = memoryview(data)
    at = 0
    while at < len(data):
        try:
            codecs.utf_8_decode(view[at:], "strict", True)
            break
        except UnicodeDecodeError as fault:
            fault_at = at + fault.start
            line = int(np.searchsorted(ends, fault_at, side="right"))
            begin, at = (int(ends[line - 1]) if line else 0), int(ends[line])
            reason = f"byte {data[fault_at]:#04x} at column {fault_at - begin + 1} is not UTF-8"
            rejects.append(_reject(chunk.first_line + line, reason, data[begin:at].rstrip(b"\r\n")))
            text[begin : at - 1] = b" " * (at - 1 - begin)
            bad[line] = True
    return pl.Series(bad), pl.concat(rejects), bytes(text)


def _split(data: bytes, first: int, fraction: float) -> Iterator[Chunk]:
    """A chunk of whole lines, or several with the over-long lines between them left out."""
    if len(data) <= MAX_LINE:
        yield Chunk(data, first, fraction, empty(REJECTS))
        return
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10) + 1
    lengths = np.diff(ends, prepend=0) - 1
    done = 0  # lines
    begin = 0
    for line in np.flatnonzero(lengths > MAX_LINE).tolist():
        end = int(ends[line])
        length = int(lengths[line])
        if line > done:
            yield Chunk(data[begin : end - length - 1], first + done, fraction, empty(REJECTS))
        text = data[end - length - 1 : end - length + 4095]
        yield Chunk(b"", first + line, fraction, _reject(first + line, _too_long(length), text))
        done, begin = line + 1, end
    if begin < len(data):
        yield Chunk(data[begin:], first + done, fraction, empty(REJECTS))


def _reject(line: int, reason: str, text: bytes) -> pl.DataFrame:
    shown = text[:2000].decode("utf-8", errors="replace")[:500]
    return pl.DataFrame({"line": [line], "reason": [reason], "text": [shown]}, schema=REJECTS)


def _too_long(length: int) -> str:
    return f"line of {length:,} bytes, longer than {MAX_LINE:,}"
