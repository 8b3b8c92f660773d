"""Entity linkers on loopback that speak TAGME's, REL's and BLINK's protocols, and misbehave on demand.

with LinkerServer({"oslo": "Oslo"}) as server:
    server.fail(503, "garbage")
    … LinkerEndpoint(api="tagme", url=server.url("tagme")) …

It knows pages by the words that mean them, in small letters.  A wrong token or a wrong path is refused as the real ones
do.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

PATHS = {"tagme": "/tagme/tag", "rel": "/", "blink": "/api/entity-link/samples"}


class LinkerServer:
    """pages: title of each spot.  token: what requests must show.  texts: what was asked; faults: of the next requests,
    a status, `garbage`, `strange` (other JSON), `hang up`, `away` (a redirect), or bytes that are sent as they are."""

    def __init__(self, pages: dict[str, str], token: str = "") -> None:
        self.pages, self.token = pages, token
        self.bodies: list[Any] = []
        self.faults: list[int | str | bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    def url(self, api: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{PATHS[api]}"

    def fail(self, *faults: int | str | bytes) -> None:
        self.faults += faults

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spots(self, text: str) -> list[tuple[int, int, str]]:
        """(start, end, title) of every page in a text; in UTF-16 units, as a linker in Java counts."""
        found = []
        for words, title in self.pages.items():
            at = text.casefold().find(words)
            if at >= 0:
                start = len(text[:at].encode("utf-16-le")) // 2
                found.append((start, start + len(words), title))
        return sorted(found)

    def reply(self, path: str, body: bytes, headers: Any) -> tuple[int, Any]:
        """Status and JSON of a request."""
        if path == PATHS["tagme"]:
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.bodies.append(form)
            if form.get("gcube-token", "") != self.token:
                return 401, {"error": "Unauthorized"}
            text = form["text"]
            rows = [
                {"spot": text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le"), "start": start, "end": end,
                 "rho": "0.4", "link_probability": 0.7, "id": 7, "title": title}
                for start, end, title in self.spots(text)
            ]  # fmt: skip
            return 200, {"annotations": rows, "lang": form["lang"], "time": 1}
        asked = json.loads(body)
        self.bodies.append(asked)
        if headers.get("Authorization", "") != (f"Bearer {self.token}" if self.token else ""):
            return 403, {"detail": "no"}
        if path == PATHS["blink"]:
            linked = [
                {"idx": number, "sample": sample, "entity_id": number, "score": -3.5, "entity_text": "…",
                 "entity_title": self.pages.get(sample["mention"].casefold(), "Nothing here")}
                for number, sample in enumerate(asked)
            ]  # fmt: skip
            return 200, {"samples": asked, "linked_entities": linked}
        text = asked["text"]
        return 200, [
            [start, end - start, text[start:end], title.replace(" ", "_"), 0.9, 0.8, "LOC"]
            for start, end, title in self.spots(text)
        ]


def _handler(own: LinkerServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            fault = own.faults.pop(0) if own.faults else None
            if fault == "hang up":
                return
            if fault == "away":
                self._send(302, b"", Location="http://127.0.0.2:9/")
            elif isinstance(fault, int):
                self._send(fault, b'{"detail": "busy"}', **{"Retry-After": "0"})
            elif fault == "garbage":
                self._send(200, b"<html>")
            elif fault == "strange":
                self._send(200, b'{"annotations": 7, "linked_entities": {}}')
            elif isinstance(fault, bytes):
                self._send(200, fault)
            else:
                status, reply = own.reply(self.path, body, self.headers)
                self._send(status, json.dumps(reply).encode())

        def _send(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr."""

    return Handler
