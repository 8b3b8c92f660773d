"""What is kept of one dump file: lines of the subset, and names of relations that may turn out to be unused."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from kgqa_core.kg.subset.codes import Array

LINES, RELATION_LINES, RELATION_CODES, HITS = "lines", "relation_lines", "relation_codes", "hits.npy"
"""Files of a part: what is kept, and the names of relations with the relation of each, of which some may be unused."""


class PartWriter:
    """Writes what is kept of one file."""

    def __init__(self, folder: Path) -> None:
        self._lines: BinaryIO = (folder / LINES).open("wb")
        self._relation_lines: BinaryIO = (folder / RELATION_LINES).open("wb")
        self._codes: BinaryIO = (folder / RELATION_CODES).open("wb")

    def lines(self, data: bytes) -> None:
        """Lines of the subset, each with its end."""
        self._lines.write(data)

    def relation_names(self, codes: Array, data: bytes) -> None:
        """Names of relations, a line for each code."""
        self._codes.write(codes.astype(np.uint64).tobytes())
        self._relation_lines.write(data)

    def close(self) -> None:
        """Closes the files."""
        for stream in (self._lines, self._relation_lines, self._codes):
            stream.close()
