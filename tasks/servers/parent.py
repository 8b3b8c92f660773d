"""A server's watch over the process that started it: when that dies, however early, the server ends too."""

from __future__ import annotations

import os
import select
import signal

PARENT = "KGQA_SERVER_PARENT"
"""Variable that holds the id of the process that started a server."""
POLL_SECONDS = 1.0


def end_with(parent: int) -> None:
    """End this process and its group once stdin is at its end or `parent` is not its parent any more."""
    while os.getppid() == parent:
        if select.select([0], [], [], POLL_SECONDS)[0] and not os.read(0, 1024):
            break
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
