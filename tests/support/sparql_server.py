"""A SPARQL 1.1 endpoint on loopback over a store in memory, which can misbehave on demand.

It takes queries by GET and POST and answers with JSON results, as the protocol has it.  `faults` are given out one a
request, then it behaves: `429` (with Retry-After), `500`, `400`, `cut` (the connection ends in the middle of the
reply), `truncated` (JSON that ends early, under a right length), `html` (an error page with status 200), `slow`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyoxigraph

RETRY_AFTER = 7
SLOW = 1.5


class SparqlServer:
    """An endpoint over N-Triples, while a `with` block lasts.

    max_rows: rows that it gives at most, silently, as Virtuoso does.  queries: what it was asked.
    """

    def __init__(self, ntriples: str, max_rows: int | None = None) -> None:
        self.store = pyoxigraph.Store()
        self.store.load(input=ntriples.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
        self.faults: list[str] = []
        self.queries: list[str] = []
        self.max_rows = max_rows
        self.too_large: int | None = None
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else a reply waits 40 ms for the client to confirm its head

            def do_GET(self) -> None:
                owner.answer(self, urlsplit(self.path).query)

            def do_POST(self) -> None:
                owner.answer(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """What names it in the place of a dump."""
        return f"sparql+http://127.0.0.1:{self._server.server_address[1]}/sparql"

    def __enter__(self) -> SparqlServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def misbehave(self, faults: Iterable[str]) -> None:
        """The next requests meet these faults."""
        self.faults += faults

    def answer(self, request: BaseHTTPRequestHandler, form: str) -> None:
        """Answers one request."""
        query = parse_qs(form)["query"][0]
        with self._lock:
            self.queries.append(query)
            fault = self.faults.pop(0) if self.faults else ""
        if self.too_large is not None and query.split("VALUES", 2)[1].count("<") > self.too_large + 1:
            fault = "500"
        if fault in ("400", "429", "500"):
            headers = {"Retry-After": str(RETRY_AFTER)} if fault == "429" else {}
            self._send(request, int(fault), b"the server says no\nand more", "text/plain", headers)
            return
        if fault == "slow":
            time.sleep(SLOW)
        try:
            with self._lock:
                body = self._results(query)
        except (SyntaxError, ValueError) as error:
            self._send(request, 400, str(error).encode(), "text/plain", {})
            return
        kind = "application/sparql-results+json"
        if fault == "html":
            body, kind = b"<html>come back later</html>", "text/html"
        if fault == "truncated":
            body = body[: len(body) // 2]
        if fault == "cut":
            request.send_response(200)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body[: len(body) // 2])
            request.wfile.flush()
            request.close_connection = True
            return
        self._send(request, 200, body, kind, {})

    def _results(self, query: str) -> bytes:
        results = self.store.query(query)
        data = bytes(results.serialize(format=pyoxigraph.QueryResultsFormat.JSON))  # type: ignore[union-attr, arg-type]
        if self.max_rows is None:
            return data
        value = json.loads(data)
        value["results"]["bindings"] = value["results"]["bindings"][: self.max_rows]
        return json.dumps(value).encode()

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str, headers: dict[str, str]
    ) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)
