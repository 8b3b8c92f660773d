"""`python -m tasks.servers prefect|mlflow`: one server behind the gate, in this process.

The first act is to watch the process that started it (`KGQA_SERVER_PARENT`): when that dies, however early, this one
ends with all it has started.  The imports of a server take seconds, in which nobody else could see to it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading

PARENT = "KGQA_SERVER_PARENT"
POLL_SECONDS = 1.0


def end_with(parent: int) -> None:
    """End this process and its group once stdin is at its end or `parent` is not its parent any more."""
    while os.getppid() == parent:
        if select.select([0], [], [], POLL_SECONDS)[0] and not os.read(0, 1024):
            break
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    if os.environ.get(PARENT):
        threading.Thread(target=end_with, args=(int(os.environ.pop(PARENT)),), name="parent", daemon=True).start()
    from tasks.servers.serve import main

    sys.exit(main(sys.argv[1:]))
