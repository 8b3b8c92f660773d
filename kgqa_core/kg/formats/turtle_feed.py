"""The bytes of a file for a parser that cannot go on after a fault: they can be read again from a later line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.base import MAX_REJECT_TEXT
from kgqa_core.kg.formats.source import Source

BLOCK = 1 << 20
"""Bytes read at once."""

KEPT = 48
"""Blocks kept for going back; a parser looks at most 16 MiB ahead."""

ENDS = (b".", b"}")
"""What ends a line after which a parser may begin again."""

BACK = 1_000
"""Lines that are looked back for the beginning of a statement."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A statement at fault.  line: of the fault; text: that line; statement: all its lines, as far as known.

    after: the line at which a new parser begins, None at the end of the file.
    """

    line: int
    text: str
    statement: bytes
    after: int | None


@dataclass(slots=True)
class _Block:
    data: bytes
    first_line: int  # number of the line that its first byte belongs to
    ends: np.ndarray  # places of the last byte of each line


class Feed:
    """A binary file, for `pyoxigraph.parse`, that counts lines and remembers the last KEPT blocks.

    on_read: called with the line reached, whenever the parser takes bytes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stream = source.stream()
        self._blocks: list[_Block] = []
        self._at = (0, 0)  # block, byte
        self._line = 1  # that the next byte belongs to
        self._offset = 0  # to be added to the parser's line numbers
        self._least = 1  # line that the parser began at
        self._pending = b""
        self.on_read: Callable[[int], None] = lambda line: None

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far."""
        return self._stream.fraction

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        number, byte = self._at
        while number == len(self._blocks) or byte == len(self._blocks[number].data):
            if number < len(self._blocks):
                number, byte = number + 1, 0
            if number == len(self._blocks) and not self._load():
                self._at = (number, 0)
                return b""
            number = min(number, len(self._blocks) - 1)
        data = self._blocks[number].data[byte : byte + size if size >= 0 else None]
        self._at = (number, byte + len(data))
        self._line += data.count(b"\n")
        self.on_read(self._line)
        return data

    def skip(self, parser_line: int, prologue: bytes) -> Skipped:
        """Prepares the feed for a new parser, after the statement at fault: `prologue`, then the lines that follow it.

        Raises KgInputError when the fault lies further back than what is kept.
        """
        line = max(parser_line + self._offset, self._least)
        if self._blocks and line <= self._blocks[0].first_line > 1:
            raise KgInputError(
                f"{self._source.path}, line {line:,}: a statement begins there that does not end within "
                f"{KEPT * BLOCK >> 20} MiB; mend it, or convert the file to N-Triples, where every line stands alone"
            )
        first = self._text(line) or b""
        statement = [first]
        after = line + 1
        while not statement[-1].rstrip().endswith(ENDS) and (found := self._text(after)) is not None:
            statement.append(found)
            after += 1
        earliest = max(self._least, self._blocks[0].first_line + 1 if len(self._blocks) == KEPT else 1, line - BACK)
        for number in range(line - 1, earliest - 1, -1):
            found = self._text(number) or b""
            if found.rstrip().endswith(ENDS):
                break
            statement.insert(0, found)
        text = first[: 4 * MAX_REJECT_TEXT].decode(errors="replace").rstrip("\r\n")[:MAX_REJECT_TEXT]
        place = self._place(after)
        if place is not None:
            self._at, self._line, self._least = place, after, after
            self._offset = after - 2
            self._pending = prologue
        return Skipped(line, text, b"".join(statement), None if place is None else after)

    def _load(self) -> bool:
        data = self._stream.read(BLOCK)
        if not data:
            return False
        if data.endswith(b"\r"):
            data += self._stream.read(1)
        last = self._blocks[-1] if self._blocks else None
        first = last.first_line + len(last.ends) if last else 1
        self._blocks.append(_Block(data, first, _ends(data)))
        if len(self._blocks) > KEPT:
            del self._blocks[0]
            self._at = (self._at[0] - 1, self._at[1])
        return True

    def _place(self, line: int) -> tuple[int, int] | None:
        """Block and byte at which a line begins; None after the end of the file."""
        number = 0
        while True:
            if number == len(self._blocks) and not self._load():
                return None
            number = min(number, len(self._blocks) - 1)
            block = self._blocks[number]
            if line == block.first_line and number == 0:
                return number, 0
            if line <= block.first_line + len(block.ends):
                at = int(block.ends[line - block.first_line - 1]) + 1
                if at < len(block.data):
                    return number, at
                if number + 1 == len(self._blocks) and not self._load():
                    return None
                return min(number + 1, len(self._blocks) - 1), 0
            number += 1

    def _text(self, line: int) -> bytes | None:
        """A line with its end; None after the end of the file."""
        place = self._place(line)
        if place is None:
            return None
        number, byte = place
        parts = []
        while True:
            block = self._blocks[number]
            at = int(np.searchsorted(block.ends, byte))
            if at < len(block.ends):
                parts.append(block.data[byte : block.ends[at] + 1])
                return b"".join(parts)
            parts.append(block.data[byte:])
            if number + 1 == len(self._blocks) and not self._load():
                return b"".join(parts)
            number, byte = min(number + 1, len(self._blocks) - 1), 0


def _ends(data: bytes) -> np.ndarray:
    r"""Where lines end: at every `\n`, and at a `\r` that no `\n` follows, as the parser counts."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    ends = buffer == 10
    if b"\r" in data:
        ends[:-1] |= (buffer[:-1] == 13) & (buffer[1:] != 10)
        ends[-1] |= buffer[-1] == 13
    return np.flatnonzero(ends)
