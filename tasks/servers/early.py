"""The temporary Prefect server of a process, started while the process still imports what it needs.

The server takes three seconds to answer.  A command that is going to run a flow starts it first of all, before Prefect
is imported, and `tasks.servers.temporary`, whose imports take as long, takes it over when Prefect asks for a server.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.serving.addresses import reserve
from tasks.servers import process
from tasks.servers.login import VARIABLE, make_auth_string

EPHEMERAL = {"PREFECT_SERVER_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
LOGIN = "PREFECT_API_AUTH_STRING"
LOG = "temporary-server.log"


@dataclass
class _Launched:
    """A server that was started and that nobody has taken over.

    port: where it is going to listen.  made_login: whether this process has its login from here.
    """

    port: int
    process: subprocess.Popen[bytes]
    made_login: bool


_launched: _Launched | None = None


def is_wanted() -> bool:
    """Whether Prefect would start a server for this process.  A worker process works with its parent's."""
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE

    return not PREFECT_API_URL.value() and bool(
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value() and not multiprocessing.parent_process()
    )


def make_login() -> None:
    """Give this process and its children a login for its server, unless they have one."""
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_AUTH_STRING

    if not PREFECT_API_AUTH_STRING.value():
        os.environ[LOGIN] = make_auth_string()
        refresh_global_settings_context()


def launch() -> None:
    """Start the server that this process will need; it ends with the process.

    Where Prefect is not imported yet it is not waited for: its settings may name a server in a file that is not read
    here, and `withdraw` ends this one then.
    """
    if _launched is not None:
        return
    if "prefect" in sys.modules:
        if is_wanted():
            make_login()
            _start(spawn)
    elif _may_be_wanted():
        made_login = not os.environ.get(LOGIN)
        if made_login:
            os.environ[LOGIN] = make_auth_string()
        _start(_spawn_at_once, made_login=made_login)


def _start(make: Callable[[socket.socket], subprocess.Popen[bytes]], *, made_login: bool = False) -> None:
    global _launched
    with reserve("127.0.0.1", 0) as bound:
        _launched = _Launched(int(bound.getsockname()[1]), make(bound), made_login)
    atexit.register(discard)


def withdraw() -> None:
    """End a launched server that is not wanted, and take back the login that was made for it."""
    made_login = _launched is not None and _launched.made_login
    discard()
    if made_login:
        from prefect.context import refresh_global_settings_context

        os.environ.pop(LOGIN, None)
        refresh_global_settings_context()


def port() -> int | None:
    """The port of a launched server that waits to be taken over; one that has ended meanwhile is forgotten."""
    if _launched is not None and _launched.process.poll() is not None:
        discard()
    return _launched.port if _launched is not None else None


def take() -> subprocess.Popen[bytes] | None:
    """The launched server's process, which is the caller's from now on."""
    global _launched
    launched, _launched = _launched, None
    atexit.unregister(discard)
    return launched.process if launched is not None else None


def discard() -> None:
    """End a launched server that nobody has taken over."""
    server = take()
    if server is not None:
        process.stop(server)


def spawn(bound: socket.socket) -> subprocess.Popen[bytes]:
    """A server process on a socket, with the settings and the login of this process."""
    from prefect.settings import PREFECT_API_AUTH_STRING, get_current_settings

    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    login = {VARIABLE: str(PREFECT_API_AUTH_STRING.value())}
    return process.start("prefect", bound, log_file(), {**os.environ, **settings, **EPHEMERAL, **login})


def _may_be_wanted() -> bool:
    """The same as `is_wanted`, but for Prefect's settings in files."""
    given = any(os.environ.get(name) for name in ("PREFECT_API_URL", "PREFECT_PROFILE"))
    return not given and not multiprocessing.parent_process()


def _spawn_at_once(bound: socket.socket) -> subprocess.Popen[bytes]:
    """A server process on a socket, which reads the settings itself."""
    log = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser() / LOG
    return process.start("prefect", bound, log, {**os.environ, **EPHEMERAL, VARIABLE: os.environ[LOGIN]})


def log_file() -> Path:
    """Where the output of the temporary server goes."""
    from prefect.settings import PREFECT_HOME

    return Path(PREFECT_HOME.value()) / LOG
