"""`kgqa serve` as a process of its own, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.support.command import ROOT, environment

STARTS = 240.0
"""Longest wait in seconds until it is ready."""


@dataclass
class Running:
    """A server that was started.

    url: where it answers.  seconds: from its start until it was ready.  log: what it prints.
    """

    process: subprocess.Popen[bytes]
    url: str
    seconds: float
    log: IO[bytes]

    def output(self) -> str:
        """What it has printed."""
        return _text(self.log)

    def call(self, path: str, body: Any = None) -> dict[str, Any]:
        """The reply to GET, or to POST of a body.  Raises HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            found: dict[str, Any] = json.loads(reply.read())
        return found


@contextlib.contextmanager
def served(home: Path, *words: str, **env: str) -> Iterator[Running]:
    """A server process of a home on a free port, ready; it is ended, then killed, where it has not ended.

    Raises RuntimeError where it ends before it is ready, with its output.
    """
    command = [sys.executable, "-m", "flows.cli", "serve", "--home", str(home), "--port", "0", *words]
    address = home / "serve" / "server.json"
    address.unlink(missing_ok=True)
    began = time.perf_counter()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(**env), stdout=log, stderr=subprocess.STDOUT)
        try:
            while True:
                if process.poll() is not None:
                    raise RuntimeError(f"the server ended with {process.returncode}: {_text(log)}")
                with contextlib.suppress(OSError, ValueError):
                    url = str(json.loads(address.read_text(encoding="utf-8"))["url"])
                    with urllib.request.urlopen(f"{url}/ready", timeout=10) as reply:
                        if reply.status == 200:
                            break
                if time.perf_counter() - began > STARTS:
                    raise RuntimeError(f"the server is not ready after {STARTS:g} s: {_text(log)}")
                time.sleep(0.02)
            yield Running(process, url, time.perf_counter() - began, log)
        finally:
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(30)
            process.kill()
            process.wait()


def _text(log: IO[bytes]) -> str:
    """What was written so far, without moving the writer's place."""
    return os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode("utf-8", "replace")
