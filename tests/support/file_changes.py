"""Ways in which a file that is read may change under its reader."""

from __future__ import annotations

import os
from pathlib import Path


def grow(path: Path) -> None:
    with path.open("a") as stream:
        stream.write("late\tis in\tgraph\n")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def swap(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(path.read_text().swapcase())
    state = path.stat()
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    os.replace(other, path)


def overwrite(path: Path) -> None:
    """In its place, with the same length and the old time."""
    state = path.stat()
    text = path.read_text().swapcase()
    with path.open("r+") as stream:
        stream.write(text)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
