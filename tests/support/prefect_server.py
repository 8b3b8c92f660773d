"""One Prefect server for all tests of a pytest process: starting one takes longer than most of what is tested on it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_SERVER_DATABASE_CONNECTION_URL,
    temporary_settings,
)

from tasks.servers.login import make_auth_string
from tests.support.command import closed_port

LOGIN = make_auth_string()
SECONDS = 600
"""Longest wait for its start, on a machine with other work."""


_running = ExitStack()


@functools.cache
def shared_server() -> str:
    """Address of the API; the server is started by the first call and ended by `stop`, with the session."""
    folder = _running.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-prefect-", ignore_cleanup_errors=True))
    database = f"sqlite+aiosqlite:///{Path(folder) / 'prefect.db'}"
    from tasks.servers.temporary import TemporaryServer

    server = TemporaryServer(port=closed_port())
    with temporary_settings({PREFECT_SERVER_DATABASE_CONNECTION_URL: database, PREFECT_API_AUTH_STRING: LOGIN}):
        server.start(timeout=SECONDS)
    _running.callback(server.stop)
    return server.api_url


def shared_environment() -> dict[str, str]:
    """What the environment of a process needs that works with the shared server."""
    return {"PREFECT_API_URL": shared_server(), "PREFECT_API_AUTH_STRING": LOGIN}


def stop() -> None:
    """End the server, if there is one."""
    _running.close()


@contextmanager
def on_shared_server() -> Iterator[str]:
    """Flows of this process run on the shared server, whose address this yields."""
    address = shared_server()
    with temporary_settings({PREFECT_API_URL: address, PREFECT_API_AUTH_STRING: LOGIN}):
        yield address
