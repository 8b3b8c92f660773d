"""The bytes of a file for a parser that cannot go on after a fault: they can be read again from a later position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.turtle_scan import MODE, PLAIN, START, Array, new_state, scan

BLOCK = 1 << 20
"""Bytes read at once."""

MOST_BLOCKS = 48
"""Most blocks in memory; a parser looks at most 16 MiB ahead, and so does the search for the end of a statement."""


@dataclass(slots=True)
class _Block:
    data: bytes
    begin: int  # byte of the file
    first_line: int  # number of the line that its first byte belongs to
    characters: int  # of that line before it
    ends: np.ndarray  # positions of the last byte of each line

    @property
    def stop(self) -> int:
        return self.begin + len(self.data)


class Feed:
    """A binary file, for `pyoxigraph.parse`, that counts lines and remembers the last MOST_BLOCKS blocks.

    Positions are bytes of the decompressed file from 0.  on_read: called with the line reached, whenever the parser
    takes bytes.
    """

    def __init__(self, source: Source, graphs: bool = False) -> None:
        self._source, self._graphs = source, graphs
        self._stream = source.stream()
        self._blocks: list[_Block] = []
        self._at = 0  # the next byte that the parser gets
        self._line = 1  # that it belongs to
        self._pending = b""
        self._origin = (0, 1, 0, 1)  # where the parser began: byte, line, characters before; its number of that line
        self._scanned = 0
        self._state = new_state()
        self.on_read: Callable[[int], None] = lambda line: None

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far."""
        return self._stream.fraction

    @property
    def position(self) -> int:
        """The next byte that the parser gets."""
        return self._at

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        block = self._block(self._at)
        if block is None:
            return b""
        byte = self._at - block.begin
        data = block.data[byte : byte + size if size >= 0 else None]
        self._at += len(data)
        self._line += data.count(b"\n")
        self.on_read(self._line)
        return data

    def restart(self, position: int, prologue: bytes, depth: int) -> None:
        """Prepares the feed for a new parser: `prologue`, which is one line, then the file from `position` on.

        depth: open braces there.
        """
        block = self._block(position)
        assert block is not None
        line = self.line(position)
        self._at, self._line, self._pending = position, line, prologue
        begin = self._line_begin(block, line)
        before = _count(block.data[begin - block.begin : position - block.begin])
        self._origin = (position, line, before + (block.characters if begin == block.begin else 0), 2)
        self._scanned, self._state = position, new_state(position, depth)

    def locate(self, parser_line: int, column: int) -> int:
        """The position that the parser names so; both count from 1, columns in characters.

        Raises KgInputError when it lies further back than what is in memory.
        """
        origin, first, before, number = self._origin
        line = max(parser_line - number, 0) + first
        wanted = column - 1 + (before if line == first else 0)
        for index, block in enumerate(self._blocks):
            if line < block.first_line:
                break
            if line > block.first_line + len(block.ends):
                continue
            following = self._blocks[index + 1] if index + 1 < len(self._blocks) else None
            if following is not None and following.first_line == line and following.characters <= wanted:
                continue
            start = self._line_begin(block, line)
            seen = block.characters if line == block.first_line else 0
            if line == first and block.begin <= origin < block.stop:
                start, seen = origin, before
            if wanted < seen:
                break
            return start + len(_bytes(block.data[start - block.begin :], wanted - seen))
        if self._blocks and line > self._blocks[0].first_line:
            return self._blocks[-1].stop
        raise KgInputError(
            f"{self._source.path}, line {line:,}: a statement begins there that does not end within "
            f"{MOST_BLOCKS * BLOCK >> 20} MiB; mend it, or convert the file to N-Triples (`riot --output=nt FILE`)"
        )

    def scanned(self, position: int) -> Array:
        """The state of a scan up to a position, from where the parser began on."""
        self._scan(position)
        return self._state.copy()

    def window(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from a position on; fewer at the end of the file, or when it is no longer in memory."""
        parts: list[bytes] = []
        while size > 0 and (block := self._block(position)) is not None:
            parts.append(block.data[position - block.begin : position - block.begin + size])
            position += len(parts[-1])
            size -= len(parts[-1])
        return b"".join(parts)

    def first(self) -> int:
        """The first position that is still in memory."""
        return self._blocks[0].begin if self._blocks else 0

    def last(self) -> int:
        """The end of what was read of the file."""
        return self._blocks[-1].stop if self._blocks else 0

    def line(self, position: int) -> int:
        """The number of the line of a position that is in memory."""
        block = self._block(position) or self._blocks[-1]
        return block.first_line + int(np.searchsorted(block.ends, position - block.begin))

    def text(self, position: int, most: int) -> bytes:
        """The beginning of the line of a position, as far as it is in memory and at most `most` bytes."""
        block = self._block(position) or self._blocks[-1]
        begin = self._line_begin(block, self.line(position))
        if begin == block.begin and block.characters:
            ahead = self.window(max(self.first(), begin - most), min(most, begin - self.first()))
            begin -= len(ahead) - max(ahead.rfind(b"\n"), ahead.rfind(b"\r")) - 1
        data = self.window(begin, most)
        ends = [end for end in (data.find(b"\n"), data.find(b"\r")) if end >= 0]
        return data[: min(ends)] if ends else data

    def _block(self, position: int) -> _Block | None:
        """The block of a position, loaded if need be; None after the end of the file, and before what is in memory."""
        while not self._blocks or position >= self._blocks[-1].stop:
            if not self._load():
                return None
        index = (position - self._blocks[0].begin) // BLOCK
        index = min(max(index, 0), len(self._blocks) - 1)
        while index > 0 and position < self._blocks[index].begin:
            index -= 1
        while position >= self._blocks[index].stop:
            index += 1
        return self._blocks[index] if position >= self._blocks[index].begin else None

    def _load(self) -> bool:
        data = self._stream.read(BLOCK)
        if not data:
            return False
        if data.endswith(b"\r"):
            data += self._stream.read(1)
        begin, line, characters = 0, 1, 0
        if self._blocks:
            last = self._blocks[-1]
            begin, line = last.stop, last.first_line + len(last.ends)
            tail = int(last.ends[-1]) + 1 if len(last.ends) else 0
            characters = _count(last.data[tail:]) + (0 if len(last.ends) else last.characters)
        self._blocks.append(_Block(data, begin, line, characters, _ends(data)))
        if len(self._blocks) > MOST_BLOCKS:
            self._scan(self._blocks[0].stop)
            del self._blocks[0]
        return True

    def _scan(self, position: int) -> None:
        while self._scanned < position and (block := self._block(self._scanned)) is not None:
            stop = min(position, block.stop)
            buffer = np.frombuffer(block.data, dtype=np.uint8)
            at = self._scanned - block.begin
            scan(buffer, block.begin, at, stop - block.begin, self._state, self._graphs, False)
            self._scanned = stop
        if self._scanned < position:  # the bytes between are dropped
            self._scanned = position
            self._state[MODE], self._state[START] = PLAIN, position

    def _line_begin(self, block: _Block, line: int) -> int:
        """Where a line begins that ends in this block or after it; the block's begin where it began before it."""
        return block.begin + (int(block.ends[line - block.first_line - 1]) + 1 if line > block.first_line else 0)


def _ends(data: bytes) -> np.ndarray:
    r"""Where lines end: at every `\n`, and at a `\r` that no `\n` follows, as the parser counts."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    ends = buffer == 10
    if b"\r" in data:
        ends[:-1] |= (buffer[:-1] == 13) & (buffer[1:] != 10)
        ends[-1] |= buffer[-1] == 13
    return np.flatnonzero(ends)


def _count(data: bytes) -> int:
    """Characters in some bytes of UTF-8."""
    return int(((np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80).sum())


def _bytes(data: bytes, characters: int) -> bytes:
    """The first characters of some bytes."""
    text = data[: 4 * characters].decode("utf-8", errors="surrogateescape")
    return text[:characters].encode("utf-8", errors="surrogateescape")
