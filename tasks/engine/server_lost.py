"""The loss of the Prefect server: said when it happens, told apart from other faults, and not waited for at the end.

Prefect's client tries every request again for half a minute or more and tells nobody.  MLflow's loss is another matter:
a run goes on without it (`tasks.tracking.buffered_tracker`).
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import urllib.request

from kgqa_core.errors import StorageError
from kgqa_core.store.artifacts import Home
from kgqa_core.store.files import full_disk, has_no_room
from tasks.tracking.mlflow_store import without_credentials

log = logging.getLogger("kgqa.tracking")
SILENCE = 300.0
"""Seconds without a failed request after which a next one counts as a new loss."""
BUSY_TRIES = 3
"""Tries of a request that a server answers with 503 before that counts: on SQLite it does so when two write at once."""


class ServerLossHandler(logging.Handler):
    """Listens to the tries of Prefect's client, and says once that the server is away."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.last = -SILENCE

    def emit(self, record: logging.LogRecord) -> None:
        """One line of the client's log; those that tell of another attempt count.

        Raises StorageError, and so ends the attempts, where the server is ours and its disk is full.
        """
        message = record.getMessage()
        if "Another attempt" not in message:
            return
        _check_disk()
        if _only_busy(message):
            return
        if record.exc_info:
            what = f"is away ({record.exc_info[1]})"
        else:
            what = f"fails ({message.partition('.')[0].removeprefix('Received response with ')})"
        now, last = time.monotonic(), self.last
        self.last = now
        if now - last >= SILENCE:
            logging.raiseExceptions = False  # Prefect's log worker would write its faults beside our one line
            log.warning(
                "the Prefect server at %s %s; each request is tried again for about half a minute",
                address(), without_credentials(what),
            )  # fmt: skip


def _check_disk() -> None:
    from prefect.settings import PREFECT_API_URL

    home = Home.current().root
    if not PREFECT_API_URL.value() and has_no_room(home):
        logging.raiseExceptions = False  # Prefect's log worker would write the fault once for every line
        raise StorageError(full_disk(home))


def _only_busy(message: str) -> bool:
    """Whether a try was answered with 503, and too few of that request were to make anything of it."""
    number = re.search(r"attempt (\d+)/", message)
    return "status code 503" in message and number is not None and int(number[1]) < BUSY_TRIES


def watch() -> None:
    """Say when the server is lost, from now on in this process; what was lost before does not count."""
    heard = logging.getLogger("prefect.client")
    for handler in [handler for handler in heard.handlers if isinstance(handler, ServerLossHandler)]:
        heard.removeHandler(handler)
    heard.addHandler(ServerLossHandler())
    heard.setLevel(logging.DEBUG)
    logging.getLogger("prefect._internal.concurrency").setLevel(logging.CRITICAL)


def away() -> bool:
    """Whether a try to reach the server has failed in the last minutes, and it does not answer now either."""
    from prefect.settings import PREFECT_API_URL

    heard = [
        handler for handler in logging.getLogger("prefect.client").handlers if isinstance(handler, ServerLossHandler)
    ]
    if not PREFECT_API_URL.value() or not any(time.monotonic() - handler.last < SILENCE for handler in heard):
        return False
    try:
        with urllib.request.urlopen(f"{PREFECT_API_URL.value()}/health", timeout=5) as reply:
            return bool(reply.status != 200)
    except (OSError, ValueError):
        return True


def address() -> str:
    """Where the Prefect server is."""
    from prefect.settings import PREFECT_API_URL

    return without_credentials(str(PREFECT_API_URL.value() or "its temporary address"))


def is_loss(fault: BaseException | None) -> bool:
    """Whether a fault, or what caused it, is a request to the Prefect server that found nobody or a failing server."""
    if "httpx" not in sys.modules or "prefect" not in sys.modules:
        return False
    import httpx
    from prefect.settings import PREFECT_API_URL

    api = str(PREFECT_API_URL.value() or "")
    while fault is not None:
        broken = isinstance(fault, httpx.HTTPStatusError) and fault.response.status_code >= 500
        if isinstance(fault, httpx.HTTPError) and (broken or isinstance(fault, httpx.TransportError)):
            try:
                url = str(fault.request.url)
                return url.startswith(api) if api else "/api/" in url
            except RuntimeError:  # a fault that no request belongs to
                return False
        fault = fault.__cause__ or fault.__context__
    return False


def wants_login(fault: BaseException | None) -> bool:
    """Whether a fault, or what caused it, is a request that the Prefect server refused for want of a valid login."""
    if "httpx" not in sys.modules or "prefect" not in sys.modules:
        return False
    import httpx
    from prefect.settings import PREFECT_API_URL

    api = str(PREFECT_API_URL.value() or "")
    while fault is not None:
        if isinstance(fault, httpx.HTTPStatusError) and fault.response.status_code == 401:
            return bool(api) and str(fault.request.url).startswith(api)
        fault = fault.__cause__ or fault.__context__
    return False


def leave(code: int) -> None:
    """End the process now: Prefect's threads would go on for minutes to tell a server that is gone."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
