"""The server that Prefect starts for a process without `PREFECT_API_URL`, replaced by one behind the gate."""

from __future__ import annotations

import socket
import subprocess

from prefect.server.api.server import SubprocessASGIServer

from tasks.servers import early, process


class TemporaryServer(SubprocessASGIServer):
    """Prefect's class in all but the process: that asks for the login of this process's clients, and ends with it."""

    _bound: socket.socket | None = None

    def find_available_port(self) -> int:
        """A port that is this process's from now on."""
        self._release()
        if (launched := early.port()) is not None:
            return launched
        self._bound = process.reserve("127.0.0.1", 0)
        return int(self._bound.getsockname()[1])

    def start(self, timeout: int | None = None) -> None:
        """Start it and wait until it answers.  Raises RuntimeError, which names its log."""
        try:
            super().start(timeout)
        except RuntimeError as fault:
            raise RuntimeError(f"{fault} Its log is {early.log_file()}") from fault

    def stop(self) -> None:
        """End it in order; the next start is of this class again."""
        server, known = self.server_process, SubprocessASGIServer._instances.get(self._instance_key)
        super().stop()
        if server is not None and server.stdin is not None:
            server.stdin.close()
        if known is self:
            SubprocessASGIServer._instances[self._instance_key] = self

    def _run_uvicorn_command(self) -> subprocess.Popen[bytes]:
        if self.port is not None and self.port == early.port() and (launched := early.take()) is not None:
            return launched
        if self._bound is None:
            self._bound = process.reserve("127.0.0.1", self.port or 0)
        try:
            return early.spawn(self._bound)
        finally:
            self._release()

    def _release(self) -> None:
        if self._bound is not None:
            self._bound.close()
            self._bound = None


def replace_default() -> None:
    """Let the server that Prefect starts by itself be of this class."""
    known = SubprocessASGIServer._instances.get(None)
    if isinstance(known, TemporaryServer) or (known is not None and known.running):
        return
    SubprocessASGIServer._instances.pop(None, None)
    TemporaryServer()
