"""Many words of 64 bits, sorted in bounded memory: where they do not fit, they go to files by their highest bits.

Each file holds the words of one range of values; a range whose words still do not fit is divided again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WAYS = 64
"""Files that a range of values is divided into."""
PIECE = 500_000
"""Words that are read from a file at once."""
LEAST = 4_096
"""Words that are always sorted in memory."""


class SortedWords:
    """Takes words in any order and gives them back sorted.

    count: how many there will be.  below: a bound of their values.  memory: bytes that they may take at a time.
    folder: for the files; it is there, and what is written in it is deleted when all words were given back.
    """

    def __init__(self, count: int, below: int, memory: int, folder: Path) -> None:
        self._most, self._folder = max(LEAST, memory // 8), folder
        self._kept = np.empty(count, dtype=np.uint64) if count <= self._most else None
        self._ordered, self._last = True, np.uint64(0)
        self._at = 0
        self._ranges = None if self._kept is not None else _Ranges(folder, "words", 0, below)

    def add(self, words: Array, ordered: bool = False) -> None:
        """Takes uint64 words.  ordered: whether they are known to be sorted."""
        if self._ranges is not None:
            self._ranges.add(words)
        elif self._kept is not None and len(words):
            self._ordered &= ordered and bool(words[0] >= self._last)
            self._last = words[-1]
            self._kept[self._at : self._at + len(words)] = words
            self._at += len(words)

    def pieces(self, size: int) -> Iterator[Array]:
        """All words in order, at most `size` at a time.  They are given once."""
        parts = self._of_memory() if self._ranges is None else self._of_files(self._ranges)
        for words in parts:
            for first in range(0, len(words), size):
                yield words[first : first + size]

    def _of_memory(self) -> Iterator[Array]:
        assert self._kept is not None
        words = self._kept[: self._at]
        if not self._ordered:
            words.sort()
        yield words

    def _of_files(self, ranges: _Ranges) -> Iterator[Array]:
        ranges.close()
        for path, low, high in ranges.files():
            count = path.stat().st_size // 8
            if count <= self._most:
                words = np.fromfile(path, dtype=np.uint64)
                words.sort()
                yield words
            elif high - low == 1:  # all are equal
                yield from _read(path)
            else:
                parts = _Ranges(self._folder, path.name, low, high)
                for words in _read(path):
                    parts.add(words)
                path.unlink()
                yield from self._of_files(parts)
            path.unlink(missing_ok=True)


class _Ranges:
    """Files of the words from `low` to below `high`, each of an equal part of that range."""

    def __init__(self, folder: Path, name: str, low: int, high: int) -> None:
        self._low, self._high = low, high
        self._step = max(1, -(-(high - low) // WAYS))
        self._paths = [folder / f"{name}-{number:02d}" for number in range(-(-(high - low) // self._step))]
        self._streams = [path.open("wb") for path in self._paths]

    def add(self, words: Array) -> None:
        """Writes each word to the file of its range."""
        indexes = ((words - np.uint64(self._low)) // np.uint64(self._step)).astype(np.uint8)
        order = np.argsort(indexes, kind="stable")
        ends = np.cumsum(np.bincount(indexes, minlength=len(self._streams)))
        divided = words[order]
        for stream, begin, end in zip(self._streams, [0, *ends[:-1]], ends, strict=True):
            if end > begin:
                divided[begin:end].tofile(stream)

    def close(self) -> None:
        """Ends writing."""
        for stream in self._streams:
            stream.close()

    def files(self) -> Iterator[tuple[Path, int, int]]:
        """Each file with its range, in order."""
        for number, path in enumerate(self._paths):
            low = self._low + number * self._step
            yield path, low, min(self._high, low + self._step)


def _read(path: Path) -> Iterator[Array]:
    with path.open("rb") as stream:
        while len(words := np.fromfile(stream, dtype=np.uint64, count=PIECE)):
            yield words
