"""Calls to a tracker that wait in a file, one JSON object a line, and those that it refused in another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.store.home import located, portable

UNTRACKED, REFUSED = "untracked.jsonl", "refused.jsonl"

Row = dict[str, Any]


class Journal:
    """Calls that wait, in a file; none where there is no file."""

    def __init__(self, folder: Path) -> None:
        self.path, self._refused = folder / UNTRACKED, folder / REFUSED
        self._home = folder.parent.parent  # whose paths are written relative to it

    def add(self, row: Row) -> None:
        """Write one call down."""
        self._append(self.path, row)

    def refuse(self, row: Row, why: str) -> None:
        """Write down a call that the store does not take."""
        self._append(self._refused, {**row, "refused": why})

    def rows(self) -> list[Row]:
        """The calls that wait; a line that a kill cut short is left out."""
        return list(self._read())

    def keep(self, rows: Sequence[Row]) -> None:
        """Let only these wait."""
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        scratch = self.path.with_suffix(".tmp")
        scratch.write_text("".join(map(self._line, rows)), encoding="utf-8")
        os.replace(scratch, self.path)

    def _read(self) -> Iterator[Row]:
        if not self.path.is_file():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield located(row, self._home)

    def _append(self, path: Path, row: Row) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(self._line(row))

    def _line(self, row: Row) -> str:
        return json.dumps(portable(row, self._home), default=str) + "\n"
