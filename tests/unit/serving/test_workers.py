"""Several processes that share a port, and their end."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time

import pytest

from tests.support.command import ROOT, environment

PARENT = """
from kgqa_core.serving.addresses import bind
from kgqa_core.serving.run import ServeOptions, serve

if __name__ == "__main__":
    bound = bind("127.0.0.1", 0)
    print(bound.getsockname()[1], flush=True)
    serve(ServeOptions("unused", workers=2), bound, worker="tests.support.served:echo_worker")
"""


def ready(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(b"GET /ready HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return re.match(rb"HTTP/1\.\d 200", connection.recv(100)) is not None
    return False


def test_workers_end_with_a_parent_that_is_killed_and_the_port_is_free() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        end = time.monotonic() + 60
        while not ready(port):
            assert time.monotonic() < end
            time.sleep(0.05)
        parent.kill()
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    pytest.fail(f"port {port} is held 5 s after the parent was killed")
