"""The server that Prefect starts for a process without `PREFECT_API_URL`, replaced by one behind the gate.

Prefect's client imports `SubprocessASGIServer` from `prefect.server.api.server` when it needs one, and with it the
whole server, which takes the process that only talks to it three seconds.  `replace_default` puts a module in its place
that has our class alone; whoever looks for anything else in it gets Prefect's own module.
"""

from __future__ import annotations

import atexit
import http.client
import importlib
import logging
import subprocess
import sys
import threading
import time
from types import ModuleType
from typing import Any, ClassVar

from kgqa_core.serving.addresses import reserve
from tasks.servers import early, process

MODULE, CLASS = "prefect.server.api.server", "SubprocessASGIServer"
STEP = 0.05
"""Seconds between two looks whether the server answers."""
PATIENCE = 120.0
"""Seconds until it must answer, at least: beside other work a start is slow, and one that fails is seen at once."""

log = logging.getLogger("prefect.server")


class TemporaryServer:
    """A server process that asks for the login of this process's clients and ends with it; one for each port.

    port: where it listens; any free one, where it is None.
    """

    _instances: ClassVar[dict[int | None, TemporaryServer]] = {}
    _starting: ClassVar[threading.RLock] = threading.RLock()
    port: int | None
    running: bool
    server_process: subprocess.Popen[bytes] | None
    _key: int | None

    def __new__(cls, port: int | None = None) -> TemporaryServer:
        """The one of this port."""
        if port not in cls._instances:
            made = super().__new__(cls)
            made.port, made._key = port, port
            made.running, made.server_process = False, None
            cls._instances[port] = made
        return cls._instances[port]

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        """Where its API is."""
        return f"{self.address}/api"

    def start(self, timeout: float | None = None) -> None:
        """Start it, unless it runs, and wait until it answers.  Raises RuntimeError, which names its log."""
        from prefect.settings import PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS

        with self._starting:  # Prefect's workers for events and logs are threads that start it too
            if self.running:
                return
            self._launch()
            atexit.register(self.stop)
            self._wait(timeout or max(PATIENCE, float(PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.value())))
            self.running = True

    def stop(self) -> None:
        """End it in order; the next start is of a new one."""
        atexit.unregister(self.stop)
        server, self.server_process, self.running = self.server_process, None, False
        if server is not None:
            log.info("Stopping temporary server on %s", self.address)
            process.stop(server, patience=5)
        self.port = self._key

    def _launch(self) -> None:
        launched = early.port() if self.port is None else None
        if launched is not None:
            self.port, self.server_process = launched, early.take()
        if self.server_process is None:
            with reserve("127.0.0.1", self.port or 0) as bound:
                self.port = int(bound.getsockname()[1])
                log.info("Starting temporary server on %s", self.address)
                self.server_process = early.spawn(bound)

    def _wait(self, seconds: float) -> None:
        assert self.server_process is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.server_process.poll() is None:
            if self._answers():
                return
            time.sleep(STEP)
        code = self.server_process.poll()
        fault = f"did not answer within {seconds:g} seconds" if code is None else f"ended with {code}"
        raise RuntimeError(f"The temporary Prefect server {fault}. Its log is {early.log_file()}")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/api/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class _InItsPlace(ModuleType):
    """A module that has our class, and becomes Prefect's when something else is looked for in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(MODULE) is self:
            del sys.modules[MODULE]
        real = importlib.import_module(MODULE)
        setattr(real, CLASS, TemporaryServer)
        return getattr(real, name)


def replace_default() -> None:
    """Let the server that Prefect starts by itself be of this class."""
    known = sys.modules.get(MODULE)
    if known is None:
        known = sys.modules[MODULE] = _InItsPlace(MODULE)
    elif not isinstance(known, _InItsPlace):
        started = getattr(known, CLASS)
        if getattr(started, "_instances", {}).get(None) is not None and started._instances[None].running:
            return
    setattr(known, CLASS, TemporaryServer)
