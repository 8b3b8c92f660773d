"""Prefect's temporary server ends with the process that started it, even when that is killed.

Without a server of its own a run starts one in a child process, which Prefect stops when the run's process exits.  A
killed process exits nowhere.  So a small guard holds the other end of a pipe, and ends the server when it closes.
"""

from __future__ import annotations

import atexit
import subprocess
import sys

import psutil
from prefect.settings import PREFECT_API_URL

SERVER = "prefect.server.api.server:create_app"
GUARD = """
import contextlib, sys, psutil
sys.stdin.read()
with contextlib.suppress(psutil.Error):
    server = psutil.Process(int(sys.argv[1]))
    if server.create_time() == float(sys.argv[2]):
        server.kill()
"""
_guards: dict[int, subprocess.Popen[bytes]] = {}


def guard() -> None:
    """See to it that a temporary server of this process does not outlive it."""
    if PREFECT_API_URL.value():
        return
    for child in psutil.Process().children():
        try:
            if child.pid in _guards or SERVER not in child.cmdline():
                continue
            words = [sys.executable, "-c", GUARD, str(child.pid), repr(child.create_time())]
        except psutil.Error:
            continue
        _guards[child.pid] = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    if _guards:
        atexit.unregister(_release)
        atexit.register(_release)


def _release() -> None:
    """Nothing is left to guard: who exits in order stops the server itself."""
    while _guards:
        _, one = _guards.popitem()
        one.kill()
        one.communicate()
