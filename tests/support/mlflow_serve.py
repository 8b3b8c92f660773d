"""`mlflow models serve` as a process of its own, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.command import closed_port


@dataclass(frozen=True)
class ModelServer:
    """A server that answers.  port: of loopback.  seconds: from its start until it did.  timeout: of a request."""

    port: int
    seconds: float
    timeout: float

    def post(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and JSON of the reply to a body sent to `/invocations`."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/invocations", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as fault:
            return fault.code, json.load(fault)


@contextlib.contextmanager
def served_model(
    mlflow: Sequence[str | Path],
    model: str,
    env: Mapping[str, str],
    folder: Path,
    *,
    starts: float = 300.0,
    timeout: float = 120.0,
) -> Iterator[ModelServer]:
    """A server of a model, in the environment that it is started in, until the block ends.

    mlflow: words that run MLflow, whose folder of programs goes before others: it calls `uvicorn`.  folder: where it
    runs and writes `serve.log`.  starts: most seconds until it answers; then RuntimeError, with the end of the log.
    """
    port, began, log = closed_port(), time.perf_counter(), folder / "serve.log"
    words = ["models", "serve", "-m", model, "--env-manager", "local", "--host", "127.0.0.1", "--port", str(port)]
    path = os.pathsep.join([str(Path(mlflow[0]).parent), env["PATH"]])
    with log.open("w") as out:
        process = subprocess.Popen(
            [*map(str, mlflow), *words], env={**env, "PATH": path}, cwd=folder, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
    try:
        while not _answers(port):
            if process.poll() is not None or time.perf_counter() - began > starts:
                raise RuntimeError(f"the model is not served: {log.read_text()[-5000:]}")
            time.sleep(0.5)
        yield ModelServer(port, time.perf_counter() - began, timeout)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
