"""Anonymous pipes that something is written to, named as a shell's process substitution names them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def written_pipes() -> Iterator[Callable[[bytes], Path]]:
    """Makes a pipe for some bytes, which a thread writes; the reading ends are closed when the block ends."""
    opened: list[int] = []

    def make(data: bytes) -> Path:
        reading, writing = os.pipe()
        opened.append(reading)

        def write() -> None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
                stream.write(data)

        threading.Thread(target=write, daemon=True).start()
        return Path(f"/dev/fd/{reading}")

    yield make
    for number in opened:
        os.close(number)
