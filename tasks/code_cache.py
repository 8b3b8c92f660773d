"""What was read out of the source files of this project, kept beside them: parsing all of them takes four seconds.

An entry counts for a file with the same bytes, read by the same code on the same Python.  So nothing in it is ever out
of date, and whoever cannot read or write it does without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from kgqa_core.store.artifacts import Home, write_json

FILE = "module_code.json"
"""Where Python keeps what it compiles of this package, or in the cache of a home."""
MOST = 5_000
"""Entries in the file; with more, those that the last process did not need go."""

Entry = tuple[tuple[str, ...], str]
"""Names that a module may import, and the digest of its syntax tree."""


class CodeCache:
    """The entries of one file.  reader: identifies the code that makes entries."""

    def __init__(self, path: Path, reader: bytes) -> None:
        self._path = path
        self._reader = hashlib.sha256(sys.version.encode() + reader).digest()
        self._known = _read(path)
        self._needed: dict[str, Entry] = {}
        self._new = False

    @classmethod
    def shared(cls, reader: bytes) -> CodeCache:
        """That of this installation, or of the home of this process where nothing can be written there."""
        compiled = Path(__file__).with_name("__pycache__")
        with contextlib.suppress(OSError):
            compiled.mkdir(exist_ok=True)
        return cls((compiled if os.access(compiled, os.W_OK) else Home.current().cache) / FILE, reader)

    def get(self, source: bytes, name: str, make: Callable[[], Entry]) -> Entry:
        """The entry of a module, made where it is not there.  name: of the module, with what else decides."""
        key = hashlib.sha256(b"\0".join((self._reader, name.encode(), source))).hexdigest()
        found = self._known.get(key)
        if found is None:
            found, self._new = make(), True
        self._needed[key] = self._known[key] = found
        return found

    def save(self) -> None:
        """Write new entries, where there is a home that can be written."""
        if self._new and self._path.parent.is_dir():
            kept = self._known if len(self._known) <= MOST else self._needed
            with contextlib.suppress(OSError):
                write_json(self._path, {key: [list(imports), digest] for key, (imports, digest) in kept.items()})
            self._new = False


def _read(path: Path) -> dict[str, Entry]:
    """The entries of a file; none where it is missing or damaged."""
    try:
        rows = json.loads(path.read_bytes())
        return {str(key): (tuple(map(str, imports)), _digest(digest)) for key, (imports, digest) in rows.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _digest(text: str) -> str:
    if len(bytes.fromhex(text)) != hashlib.sha256().digest_size:
        raise ValueError(text)
    return text
