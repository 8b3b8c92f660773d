"""The Prefect server of a process that has none: behind our gate, with a login of its own, ended with the process.

Without `PREFECT_API_URL` Prefect starts a server in a child process.  That one listens to everybody and outlives a
process that is killed, so ours takes its place; it starts when Prefect first needs it.
"""

from __future__ import annotations

from tasks.servers import early


def install() -> None:
    """Let the server that Prefect starts for this process be ours, and give this process and its children the login.

    Where Prefect would start none, one that was launched ends, and nothing else is done; nor is it in a worker process,
    which works with its parent's.
    """
    if not early.is_wanted():
        early.withdraw()
        return
    from tasks.servers.temporary import replace_default

    early.make_login()
    replace_default()
