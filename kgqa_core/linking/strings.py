"""Texts in one memory-mapped block of bytes with the places where they begin."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

Array = NDArray[Any]


class Strings:
    """Texts by number.  blob: uint8.  offsets: int64 [n + 1]."""

    def __init__(self, blob: Array, offsets: Array) -> None:
        self.blob, self.offsets = blob, offsets

    @classmethod
    def open(cls, folder: Path, name: str) -> Strings:
        """What `Writer` has written.  Raises OSError, ValueError."""
        path = folder / f"{name}.bin"
        offsets = np.load(folder / f"{name}.offsets.npy", mmap_mode="r", allow_pickle=False)
        size = path.stat().st_size
        if offsets.ndim != 1 or not len(offsets) or int(offsets[-1]) != size:
            raise ValueError(f"{path} has {size} bytes, but its offsets say {offsets[-1:]}")
        return cls(np.memmap(path, dtype=np.uint8, mode="r") if size else np.empty(0, np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        return bytes(self.blob[int(self.offsets[number]) : int(self.offsets[number + 1])]).decode("utf-8")


class Writer:
    """Writes texts one after the other; `close` writes the offsets."""

    def __init__(self, folder: Path, name: str) -> None:
        self._stream: BinaryIO = (folder / f"{name}.bin").open("wb")
        self._path = folder / f"{name}.offsets.npy"
        self._lengths: list[Array] = []

    def add(self, column: Any) -> None:
        """An Arrow column of texts, none of them null."""
        column = column.cast("large_string")
        _, offsets, data = column.buffers()
        places = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
        self._lengths.append(np.diff(places).astype(np.int32))
        if data is not None:
            self._stream.write(memoryview(data)[int(places[0]) : int(places[-1])])

    def close(self) -> int:
        """How many texts were written."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        offsets = open_memmap(self._path, mode="w+", dtype=np.int64, shape=(sum(map(len, self._lengths)) + 1,))
        offsets[0] = 0
        np.cumsum(np.concatenate([np.empty(0, np.int32), *self._lengths]), dtype=np.int64, out=offsets[1:])
        offsets.flush()
        return len(offsets) - 1
