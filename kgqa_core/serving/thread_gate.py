"""Calls that block, made from an event loop in threads of their own; so many at once, and so many that wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kgqa_core.errors import ServerBusy

T = TypeVar("T")


class GateFull(ServerBusy):
    """As many calls are under way or wait as a server bears."""


class ThreadGate:
    """Lets `at_once` calls run, and `waiting` further ones wait for them.

    what: the calls, in words.  Threads are daemons, so that none holds up the end of the process.
    """

    def __init__(self, what: str, at_once: int, waiting: int) -> None:
        self._what, self._most = what, at_once + waiting
        self._running = threading.BoundedSemaphore(at_once)
        self._inside = threading.BoundedSemaphore(self._most)

    async def run(self, call: Callable[[], T], seconds: float | None = None) -> T:
        """What a call returns.

        seconds: most time, its wait included; a call that has begun then goes on in the background and keeps its place.
        Raises GateFull, TimeoutError, and what the call raises.
        """
        if not self._inside.acquire(blocking=False):
            raise GateFull(f"{self._most} {self._what} are under way or wait here; try again in a while")
        future: Future[T] = Future()

        def work() -> None:
            begun = False
            try:
                with self._running:
                    if future.set_running_or_notify_cancel():
                        begun = True
                        result = call()
            except BaseException as fault:
                self._inside.release()
                future.set_exception(fault)
                return
            self._inside.release()
            if begun:
                future.set_result(result)

        threading.Thread(target=work, name=f"kgqa {self._what}", daemon=True).start()
        return await asyncio.wait_for(asyncio.wrap_future(future), seconds)
