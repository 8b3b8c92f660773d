"""An array in a `.npy` file that grows: its length is known at the end only, and no part of it stays in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from numpy.typing import NDArray


class GrowingFile:
    """One-dimensional array, written a piece at a time; `close` writes its length into the header."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        self._stream = path.open("wb")
        self._write_header()

    def add(self, values: NDArray[Any]) -> None:
        """Appends values, cast to the array's type."""
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._length += len(values)

    def close(self) -> int:
        """How many values were written; they are on the disk."""
        begins = self._stream.tell() - self._length * self._dtype.itemsize
        self._stream.seek(0)
        self._write_header()
        assert self._stream.tell() == begins, "numpy's header leaves room for any length"
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return self._length

    def _write_header(self) -> None:
        header = header_data_from_array_1_0(np.empty(0, self._dtype)) | {"shape": (self._length,)}
        write_array_header_1_0(self._stream, header)
