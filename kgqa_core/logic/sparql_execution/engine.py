"""SPARQL in a process of its own, which is ended when a query takes too long."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.closing import Closing
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.logic.sparql_execution import worker

SECONDS = 10.0
"""Time of one request, unless given."""

_PACKAGE = Path(worker.__file__).resolve().parents[3]


class NotExecuted(FormError):
    """A query that is not executed; reason: a few words that are the same for queries of one kind."""

    def __init__(self, reason: str, what: str = "") -> None:
        super().__init__(f"the query is not executed: {reason}{': ' + what if what else ''}")
        self.reason = reason


class SparqlEngine(Closing):
    """A worker process, started with the first request and again after one that was ended; a context manager."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None

    def load(self, triples: str, literals: Sequence[str]) -> list[str]:
        """Loads N-Triples in place of what was there; the literals as the engine stores them, in their order."""
        results: list[str] = self._reply({"triples": triples, "literals": list(literals)})["literals"]
        return results

    def query(self, text: str, prefixes: Mapping[str, str], most: int) -> dict[str, Any]:
        """`variables`, `rows` (at most so many) and `more`, or `truth`.

        Raises NotExecuted for what the engine does not read, and FormTimeout.
        """
        return self._reply({"query": text, "prefixes": dict(prefixes), "most": most})

    def _reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = self._line(process.stdout.fileno())
        except BrokenPipeError:
            line = b""
        if line is None:
            self.close()
            raise FormTimeout(f"the query took longer than {self.seconds:g} s")
        if not line:
            self.close()
            raise NotExecuted("it needs more memory than the engine may have")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise NotExecuted("the engine does not read it", str(reply["error"])[:300])
        return reply

    def _line(self, descriptor: int) -> bytes | None:
        """The next line; empty where the process ended, None where the time is over."""
        parts: list[bytes] = []
        end = time.monotonic() + self.seconds
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0:
                if not selector.select(left):
                    continue
                part = os.read(descriptor, 1 << 20)
                parts.append(part)
                if not part:
                    return b""
                if part.endswith(b"\n"):
                    return b"".join(parts)
        return None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            path = os.pathsep.join([str(_PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
            self._process = subprocess.Popen(
                [sys.executable, "-m", worker.MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path},
            )
        return self._process
