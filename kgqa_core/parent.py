"""The process that started this one."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

POLL_SECONDS = 0.5


def end_with_parent() -> None:
    """From now on this process ends when its parent has ended, however that ended."""
    parent, number = multiprocessing.parent_process(), os.getppid()

    def wait() -> None:
        if parent is not None:
            parent.join()
        while parent is None and os.getppid() == number:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=wait, name="kgqa-parent", daemon=True).start()
