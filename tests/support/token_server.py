"""A server of completions, chats or plain, on loopback that streams its tokens one at a time, as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class TokenServer:
    """Streams `tokens` to every request that asks for a stream, and sends the whole to others.

    held: tokens that are sent before `more` is set.  refuses: streams are refused with 400.  cut: a stream ends without
    its last event.  bodies: of the requests, in order.
    """

    def __init__(self, tokens: Sequence[str], held: int = 10**9, *, refuses: bool = False, cut: bool = False) -> None:
        self.tokens, self.held, self.refuses, self.cut = tokens, held, refuses, cut
        self.more, self.bodies = threading.Event(), list[dict[str, Any]]()
        self.scores = {"token_logprobs": [-0.25]}
        own = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                own.bodies.append(body)
                if body.get("stream") and own.refuses:
                    self._send(400, {"error": {"message": "stream is not supported here"}})
                elif body.get("stream"):
                    self._stream()
                else:
                    text = "".join(own.tokens)
                    said = {"message": {"role": "assistant", "content": text}} if self._chats else {"text": text}
                    self._send(200, {"choices": [{"index": 0, "finish_reason": "stop", **said}], "usage": own.usage})

            def _send(self, status: int, reply: dict[str, Any]) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())

            @property
            def _chats(self) -> bool:
                return self.path.endswith("/chat/completions")

            def _stream(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for number, token in enumerate(own.tokens):
                    if number == own.held and not own.more.wait(20):
                        return
                    said = {"delta": {"content": token}} if self._chats else {"text": token, "logprobs": own.scores}
                    self._event({"choices": [{"index": 0, "finish_reason": None, **said}]})
                if not own.cut:
                    said = {"delta": {}} if self._chats else {"text": ""}
                    self._event({"choices": [{"index": 0, "finish_reason": "stop", **said}]})
                    self._event({"choices": [], "usage": own.usage})
                    self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, event: dict[str, Any]) -> None:
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()

            def log_message(self, *_: Any) -> None:
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def usage(self) -> dict[str, int]:
        return {"prompt_tokens": 7, "completion_tokens": len(self.tokens), "total_tokens": 7 + len(self.tokens)}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.more.set()
        self._server.shutdown()
        self._server.server_close()
