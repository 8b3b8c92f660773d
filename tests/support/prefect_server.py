"""One Prefect server for all tests of a pytest process: starting one takes longer than most of what is tested on it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from prefect.server.api.server import SubprocessASGIServer
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_DATABASE_CONNECTION_URL, temporary_settings

from tests.support.command import closed_port

SECONDS = 600
"""Longest wait for its start, on a machine with other work."""


_running = ExitStack()


@functools.cache
def shared_server() -> str:
    """Address of the API; the server is started by the first call and ended by `stop`, with the session."""
    folder = _running.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-prefect-", ignore_cleanup_errors=True))
    database = f"sqlite+aiosqlite:///{Path(folder) / 'prefect.db'}"
    server = SubprocessASGIServer(port=closed_port())
    with temporary_settings({PREFECT_SERVER_DATABASE_CONNECTION_URL: database}):
        server.start(timeout=SECONDS)
    _running.callback(server.stop)
    return server.api_url


def stop() -> None:
    """End the server, if there is one."""
    _running.close()


@contextmanager
def on_shared_server() -> Iterator[str]:
    """Flows of this process run on the shared server, whose address this yields."""
    address = shared_server()
    with temporary_settings({PREFECT_API_URL: address}):
        yield address
