"""The process that started this one by `multiprocessing`."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """From now on this process ends when its parent has ended, however that ended; at once where it has."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, name="kgqa-parent", daemon=True).start()
