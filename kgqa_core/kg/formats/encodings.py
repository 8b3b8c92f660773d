"""The encoding of a text file: UTF-8, UTF-16 with or without a mark, Windows-1252, or one that must be named.

A file is UTF-8 unless the first bytes that are not ASCII cannot be it.  Then it is Windows-1252, the encoding of older
Western exports, of which Latin-1 is a part; but not where runs of such bytes tell of another alphabet.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.decompress import Stream, StreamOver

UTF16_LE, UTF16_BE, WINDOWS = "utf-16-le", "utf-16-be", "cp1252"
NAMES = {UTF16_LE: "UTF-16 (little-endian)", UTF16_BE: "UTF-16 (big-endian)", WINDOWS: "Windows-1252 (Latin-1)"}
"""What notes call each encoding that is read besides UTF-8."""

_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def wide_encoding(data: bytes) -> str | None:
    """Which UTF-16 the first bytes of a file are; None for other text, UTF-32 and binary data."""
    sample = data[:1024]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    marked = UTF16_LE if data.startswith(codecs.BOM_UTF16_LE) else UTF16_BE
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        if len(sample) < 4 or max(even, odd) * 4 <= len(sample):
            return None
        marked = UTF16_LE if odd > even else UTF16_BE
    units = (sample[at : at + 2] for at in range(0, len(sample) - 1, 2))
    return None if b"\0\0" in units else marked


def narrow_encoding(data: bytes, path: Path, offset: int = 0, cut_off: bool = False) -> str | None:
    """WINDOWS where bytes of a file are that and not UTF-8; None where they are UTF-8, perhaps with faults, or binary.

    offset: of `data` in the file; cut_off: it goes on, perhaps within a character.  Raises KgInputError for text in an
    encoding that cannot be known.
    """
    rest = _SEQUENCE.sub(b"", data)
    runs: list[bytes] = _HIGH.findall(rest[:-3] if cut_off else rest)
    high, whole = sum(map(len, runs)), (len(data) - len(rest)) // 2
    if not high or whole > high or _CONTROL.search(data):
        return None
    long = sum(len(run) for run in runs if len(run) > 2)
    unmapped = any(byte in run for run in runs for byte in b"\x81\x8d\x8f\x90\x9d")
    if long * 5 > high or unmapped:
        at = next((match.start() for match in _HIGH.finditer(data)), 0)
        raise KgInputError(
            f"{path} is text, but neither UTF-8 nor Windows-1252 (byte {offset + at + 1:,} is {data[at]:#04x}); "
            "convert it with `iconv -f ENCODING -t UTF-8`, ENCODING being that of the program that wrote it"
        )
    return WINDOWS if whole * 10 <= high else None


class Transcoded(StreamOver):
    """A stream of text in another encoding as UTF-8.  Raises KgInputError at bytes that are none."""

    def __init__(self, stream: Stream, encoding: str, path: Path) -> None:
        super().__init__(stream)
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoding, self._path = encoding, path
        self._ready, self._done, self._read = b"", False, 0

    def read(self, size: int) -> bytes:
        """The next bytes of UTF-8: exactly `size` of them unless the end is nearer.  Raises Damaged."""
        while len(self._ready) < size and not self._done:
            data = self._stream.read(max(size // 2, 1 << 16))
            self._done = not data
            at = self._read - len(self._decoder.getstate()[0])
            try:
                self._ready += self._decoder.decode(data, self._done).encode()
            except UnicodeDecodeError as fault:
                raise KgInputError(
                    f"{self._path} was read as {NAMES[self._encoding]}, which it is not at byte "
                    f"{at + fault.start + 1:,} ({fault.object[fault.start]:#04x}); convert it with "
                    "`iconv -f ENCODING -t UTF-8`"
                ) from None
            self._read += len(data)
        result, self._ready = self._ready[:size], self._ready[size:]
        return result
