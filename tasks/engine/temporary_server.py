"""The Prefect server of a process that has none: behind our gate, with a login of its own, ended with the process.

Without `PREFECT_API_URL` Prefect starts a server in a child process.  That one listens to everybody and outlives a
process that is killed, so ours takes its place; it starts when Prefect first needs it.
"""

from __future__ import annotations

import multiprocessing
import os

from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, PREFECT_SERVER_ALLOW_EPHEMERAL_MODE

from tasks.servers.login import make_auth_string


def install() -> None:
    """Let the server that Prefect starts for this process be ours, and give this process and its children the login.

    Nothing is done where Prefect would start none, nor in a worker process, which works with its parent's.
    """
    if PREFECT_API_URL.value() or not PREFECT_SERVER_ALLOW_EPHEMERAL_MODE.value() or multiprocessing.parent_process():
        return
    from prefect.context import refresh_global_settings_context

    from tasks.servers.temporary import replace_default

    if not PREFECT_API_AUTH_STRING.value():
        os.environ["PREFECT_API_AUTH_STRING"] = make_auth_string()
        refresh_global_settings_context()
    replace_default()
