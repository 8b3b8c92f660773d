"""A chat-completions server on loopback that misbehaves on demand.

with ChatServer(reply=lambda prompt: "Paris") as server:
    server.fail("capital", Fault(status=429, headers={"Retry-After": "0"}))
    … base_url=server.base_url …
    assert len(server.prompts) == 2
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Fault:
    """What happens to one request: an error status, a hang-up, garbage instead of JSON, or a wait before the answer.

    finish: the finish reason of the reply.  refusal, content: fields of its message, where they are not the usual ones.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    garbage: bool = False
    delay: float = 0.0
    finish: str = "stop"
    refusal: str | None = None
    content: str | None = None
    choices: bool = True


class ChatServer:
    """Serves `/v1/chat/completions` and keeps what was asked."""

    def __init__(self, reply: Callable[[str], str] = lambda prompt: f"echo {prompt}") -> None:
        self.reply = reply
        self.prompts: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.most_at_once = 0
        self.slowness = 0.0
        self._faults: list[tuple[str, Fault]] = []
        self._always: list[tuple[str, Fault]] = []
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def fail(self, part: str, *faults: Fault) -> None:
        """The next requests whose prompt contains `part` meet these faults, one each."""
        self._faults += [(part, fault) for fault in faults]

    def always(self, part: str, fault: Fault) -> None:
        """Every request whose prompt contains `part` meets this fault."""
        self._always.append((part, fault))

    def __enter__(self) -> ChatServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _next_fault(self, prompt: str) -> Fault:
        with self._lock:
            for index, (part, fault) in enumerate(self._faults):
                if part in prompt:
                    del self._faults[index]
                    return fault
        return next((fault for part, fault in self._always if part in prompt), Fault())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Silent."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = body["messages"][-1]["content"]
                with server._lock:
                    server.prompts.append(prompt)
                    server.bodies.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    server.times.append(time.monotonic())
                    server._at_once += 1
                    server.most_at_once = max(server.most_at_once, server._at_once)
                try:
                    self._serve(prompt, server._next_fault(prompt))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                finally:
                    with server._lock:
                        server._at_once -= 1

            def _serve(self, prompt: str, fault: Fault) -> None:
                time.sleep(fault.delay or server.slowness)
                if fault.hang_up:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if fault.status != 200:
                    self._send(fault.status, {"error": {"message": f"refused with {fault.status}"}}, fault.headers)
                    return
                text = fault.content if fault.content is not None else server.reply(prompt)
                message = {"role": "assistant", "content": text, "refusal": fault.refusal}
                choice = {"index": 0, "message": message, "finish_reason": fault.finish}
                usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
                usage["total_tokens"] = sum(usage.values())
                data = {"id": "x", "object": "chat.completion", "created": 0, "model": "stub", "usage": usage}
                data["choices"] = [choice] if fault.choices else []
                self._send(200, "{not json" if fault.garbage else data, fault.headers)

            def _send(self, status: int, data: Any, headers: dict[str, str]) -> None:
                body = (data if isinstance(data, str) else json.dumps(data)).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def closed_port() -> int:
    """A loopback port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
