"""Events that wait for their tracker in a file, one JSON object a line, and those that it refused in another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kgqa_core.store.home import located, portable
from tasks.tracking.tracker import Event

UNTRACKED, REFUSED = "untracked.jsonl", "refused.jsonl"


class Journal:
    """Events that wait, in a file; none where there is no file."""

    def __init__(self, folder: Path) -> None:
        self.path, self._refused = folder / UNTRACKED, folder / REFUSED
        self._home = folder.parent.parent  # whose paths are written relative to it

    def add(self, event: Event) -> None:
        """Write an event down."""
        self._append(self.path, self._line(event))

    def refuse(self, event: Event, why: str) -> None:
        """Write down an event that the store does not take."""
        self._append(self._refused, self._line(event, refused=why))

    def events(self) -> list[Event]:
        """The events that wait; a line that a kill cut short is left out."""
        return list(self._read())

    def keep(self, events: Sequence[Event]) -> None:
        """Let only these wait."""
        if not events:
            self.path.unlink(missing_ok=True)
            return
        scratch = self.path.with_suffix(".tmp")
        scratch.write_text("".join(map(self._line, events)), encoding="utf-8")
        os.replace(scratch, self.path)

    def _read(self) -> Iterator[Event]:
        if not self.path.is_file():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield msgspec.convert(located(json.loads(line), self._home), Event, strict=False)
            except ValueError:
                continue

    def _append(self, path: Path, line: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(line)

    def _line(self, event: Event, **more: Any) -> str:
        row = {"call": event.__struct_config__.tag, **msgspec.structs.asdict(event), **more}
        return json.dumps(portable(row, self._home), default=str) + "\n"
