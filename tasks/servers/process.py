"""Starting a server of `tasks.servers` as a child process that does not outlive this one, whatever ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.servers.parent import PARENT

LOG_BYTES = 4 * 2**20
"""A log that is longer when a server starts is begun anew."""
ROOT = Path(__file__).resolve().parents[2]


def start(
    kind: str, bound: socket.socket, log: Path | None, environment: Mapping[str, str], words: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start a server of a kind (`prefect`, `mlflow`) on a socket of `addresses.reserve`, which stays open here.

    The child reads a pipe that this process holds, and ends when it closes.  Its session is its own, so that Ctrl-C in
    the terminal reaches this process alone; of stdin, stdout and stderr it inherits nothing.  log: of its output.
    """
    command = [sys.executable, "-P", "-m", "tasks.servers", kind, "--fd", str(bound.fileno()), *words]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with open(_open_log(log), "ab") as out:
        return subprocess.Popen(
            command,
            env={**environment, PARENT: str(os.getpid()), "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            pass_fds=(bound.fileno(),),
            start_new_session=True,
        )


def stop(*servers: subprocess.Popen[bytes], patience: float = 2) -> None:
    """End servers of `start` in order, after `patience` seconds by force."""
    for server in servers:
        if server.poll() is None:
            server.terminate()
    until = time.monotonic() + patience
    for server in servers:
        try:
            server.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        if server.stdin is not None:
            server.stdin.close()


def _open_log(log: Path | None) -> int:
    """File descriptor of a log that only its owner can read, or of the null device where none can be written."""
    if log is not None:
        try:
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if os.fstat(descriptor).st_size > LOG_BYTES:
                os.ftruncate(descriptor, 0)
            return descriptor
        except OSError:
            pass
    return os.open(os.devnull, os.O_WRONLY)
