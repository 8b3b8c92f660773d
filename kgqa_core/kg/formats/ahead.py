"""An iterator that is worked ahead of its consumer, on a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Fault:
    error: BaseException


_END = object()


def read_ahead(make: Callable[[], Iterator[T]], depth: int = 2) -> Generator[T, None, None]:
    """The items of `make()`, in order, of which up to `depth` wait ready while the consumer works.

    An error of the iterator is raised here after the items before it.  The thread ends when the items do, or when
    this generator is closed or let go of.  It gains where the work leaves Python's lock: reading, decompressing.
    """
    ready: queue.Queue[object] = queue.Queue(depth)
    stop = threading.Event()

    def work() -> None:
        try:
            for item in make():
                ready.put(item)
                if stop.is_set():
                    return
            ready.put(_END)
        except BaseException as error:
            ready.put(_Fault(error))

    thread = threading.Thread(target=work, name="read-ahead", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, _Fault):
                raise item.error
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        while thread.is_alive():
            while not ready.empty():
                ready.get_nowait()
            thread.join(0.005)
