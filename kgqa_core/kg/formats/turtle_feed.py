"""The bytes of a file for a parser, the last of them kept: where a fault is, and where to read on after it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kgqa_core.kg.formats.source import Source

BLOCK, MOST_BLOCKS = 1 << 20, 24
"""Bytes read at once, and blocks in memory; a parser looks at most 16 MiB ahead."""

STATEMENT = re.compile(rb"[.}](?:[ \t]*(?:#[^\r\n]*+)?(?:\r\n?|\n))++(?=[ \t]*[^\s#}])")
"""Behind it a line begins at which a statement may begin, for the line before it ends with a dot or a brace."""


class _Block(NamedTuple):
    """Bytes of the file from position `begin` and line `line` on; ends: the indexes of the last bytes of its lines."""

    begin: int
    line: int
    data: bytes
    ends: np.ndarray


class Feed:
    """A binary file for `pyoxigraph.parse`; positions are bytes of the decompressed file, from 0; lines from 1.

    on_read: called with the line reached, whenever the parser takes bytes.
    """

    def __init__(self, source: Source) -> None:
        self._stream = source.stream()
        self.close, self.position = self._stream.close, 0
        self._blocks: deque[_Block] = deque()
        self._pending, self._line = b"", 1
        self._before = self.origin = 0  # lines before those that the parser counts; where it began
        self.on_read: Callable[[int], None] = lambda line: None

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far."""
        return self._stream.fraction

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        last = self._blocks[-1] if self._blocks else None
        inside = last is not None and last.begin <= self.position < last.begin + len(last.data)
        block = last if inside else self._block(self.position)
        if block is None:
            return b""
        at = self.position - block.begin
        data = block.data[at : at + size if size >= 0 else None]
        self.position += len(data)
        self._line += data.count(b"\n")
        self.on_read(self._line)
        return data

    def restart(self, position: int, prologue: bytes) -> None:
        """Prepares the feed for a new parser: `prologue`, which is one line, then the file from a position on."""
        self._line = self.line(position)
        self._before = self._line - 2
        self.position = self.origin = position
        self._pending = prologue

    def locate(self, parser_line: int, column: int) -> int:
        """The position that the parser names so; columns are characters."""
        line = parser_line + self._before
        block = next((block for block in reversed(self._blocks) if block.line <= line), self._blocks[0])
        at = line - block.line
        begin = block.begin + int(block.ends[at - 1]) + 1 if at > 0 else self.line_begin(block.begin)
        begin = max(begin, self.origin)
        text = self.window(begin, 4 * column).decode(errors="surrogateescape")[: column - 1]
        return begin + len(text.encode(errors="surrogateescape"))

    def line(self, position: int) -> int:
        """The number of the line of a position."""
        block = self._block(position) or self._blocks[-1]
        return block.line + int(block.ends.searchsorted(position - block.begin))

    def line_begin(self, position: int) -> int:
        """Where the line of a position begins, as far as it is in memory."""
        for block in reversed(self._blocks):
            if block.begin <= position and (count := int(block.ends.searchsorted(position - block.begin))):
                return block.begin + int(block.ends[count - 1]) + 1
        return self.first

    @property
    def first(self) -> int:
        """The first position in memory."""
        return self._blocks[0].begin if self._blocks else 0

    @property
    def last(self) -> int:
        """The end of what is read of the file."""
        return self._blocks[-1].begin + len(self._blocks[-1].data) if self._blocks else 0

    def window(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from a position on; fewer at the end of the file, or when it is no longer in memory."""
        parts: list[bytes] = []
        while size > 0 and (block := self._block(position)) is not None:
            parts.append(block.data[position - block.begin : position - block.begin + size])
            position += len(parts[-1])
            size -= len(parts[-1])
        return b"".join(parts)

    def statement_before(self, position: int) -> int:
        """The begin of the last line up to a position at which a statement may begin; the first position in memory."""
        for size in (1 << 12, 1 << 16, BLOCK):
            start = max(self.first, self.origin, position - size)
            if matches := [*STATEMENT.finditer(self.window(start, position + 1 - start))]:
                return start + matches[-1].end()
        return max(self.first, self.origin)

    def find(self, pattern: re.Pattern[bytes], position: int, most: int) -> int | None:
        """The position behind the first match of a pattern that begins within `most` bytes of a position; else None."""
        size, stop = 1 << 12, position + most
        while (match := pattern.search(text := self.window(position, size))) is None:
            position, size, short = position + size // 2, min(2 * size, BLOCK), len(text) < size
            if short or position >= stop:
                return None
        return position + match.end()

    def _block(self, position: int) -> _Block | None:
        """The block of a position, loaded if need be; None after the end of the file, and before what is in memory."""
        while not self._blocks or position >= self.last:
            if not (data := self._stream.read(BLOCK)):
                return None
            if data.endswith(b"\r"):
                data += self._stream.read(1)
            line = self._blocks[-1].line + len(self._blocks[-1].ends) if self._blocks else 1
            self._blocks.append(_Block(self.last, line, data, _ends(data)))
            if len(self._blocks) > MOST_BLOCKS:
                self._blocks.popleft()
        return next((block for block in reversed(self._blocks) if block.begin <= position), None)


def _ends(data: bytes) -> np.ndarray:
    r"""Where lines end: at every `\n`, and at a `\r` that no `\n` follows, as the parser counts."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    ends = buffer == 10
    if b"\r" in data:
        ends[:-1] |= (buffer[:-1] == 13) & (buffer[1:] != 10)
        ends[-1] |= buffer[-1] == 13
    return np.flatnonzero(ends)
