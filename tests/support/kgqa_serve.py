"""`kgqa serve` as a process of its own, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.command import ROOT, environment

STARTS = 240.0
"""Longest wait in seconds until it is ready."""


@dataclass
class Running:
    """A server that was started.  url: where it answers.  seconds: from its start until it was ready."""

    process: subprocess.Popen[str]
    url: str
    seconds: float

    def call(self, path: str, body: Any = None) -> dict[str, Any]:
        """The reply to GET, or to POST of a body.  Raises HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            found: dict[str, Any] = json.loads(reply.read())
        return found


@contextlib.contextmanager
def served(home: Path, *words: str, log: int = subprocess.PIPE, **env: str) -> Iterator[Running]:
    """A server process of a home on a free port, ready; it is ended, then killed, where it has not ended.

    log: where its output goes.  Raises RuntimeError where it ends before it is ready, with its output.
    """
    command = [sys.executable, "-m", "flows.cli", "serve", "--home", str(home), "--port", "0", *words]
    address = home / "serve" / "server.json"
    address.unlink(missing_ok=True)
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(**env), stdout=log, stderr=subprocess.STDOUT, text=True
    )  # fmt: skip
    try:
        while True:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}: {process.communicate()[0]}")
            with contextlib.suppress(OSError, ValueError):
                url = str(json.loads(address.read_text(encoding="utf-8"))["url"])
                with urllib.request.urlopen(f"{url}/ready", timeout=10) as reply:
                    if reply.status == 200:
                        break
            if time.perf_counter() - began > STARTS:
                raise RuntimeError(f"the server is not ready after {STARTS:g} s")
            time.sleep(0.02)
        yield Running(process, url, time.perf_counter() - began)
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        process.kill()
        process.communicate()
