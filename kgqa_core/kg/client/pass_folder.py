"""The folder of finished passes, so that a killed subset goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgqa_core.errors import KgInputError
from kgqa_core.input_files import FileState
from kgqa_core.kg.formats.source import Source
from kgqa_core.store.files import storage_faults, write_json
from kgqa_core.store.scratch import scratch_folder

VERSION = 2
"""Of what passes write; another number makes all of them anew."""

COUNTS = "counts.json"


class PassFolder:
    """Results of passes, each a folder with a `counts.json`, under a name made of what decides it.

    path: the folder.  done: passes that were there already.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: list[str] = []
        if path.exists() and not path.is_dir():
            raise KgInputError(f"{path} is not a folder; name another place for the passes with --work")

    def result(self, name: str, key: Any, make: Callable[[Path], dict[str, Any]]) -> tuple[Path, dict[str, Any]]:
        """The folder of a pass and its counts.  make: fills a folder, which takes its name when it is complete."""
        digest = hashlib.sha256(json.dumps([VERSION, key], sort_keys=True).encode()).hexdigest()[:16]
        folder = self.path / f"{name}-{digest}"
        if (folder / COUNTS).is_file():
            self.done.append(name)
            return folder, json.loads((folder / COUNTS).read_text(encoding="utf-8"))
        with storage_faults(self.path, what="the passes", option="--work"):
            self.path.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            with scratch_folder(self.path, folder.name) as scratch:
                counts = make(scratch)
                write_json(scratch / COUNTS, counts)
                try:
                    os.rename(scratch, folder)
                except OSError:
                    if not (folder / COUNTS).is_file():  # another process may have finished the same pass
                        raise
        return folder, counts

    def clear(self) -> None:
        """Deletes the folder with all results."""
        shutil.rmtree(self.path, ignore_errors=True)


def state_of_source(source: Source) -> list[Any]:
    """What tells one state of a dump file from another without reading it."""
    state = FileState.of(source.path)
    return [str(source.path.resolve()), state.size, state.modified, state.changed, list(state.inode)]
