"""The Wikimedia REST API of page views on loopback, which misbehaves on demand.

with PageViewServer({"Oslo": {"202101": 1200, "202102": 900}}) as server:
    server.fail("Oslo", 429, 503)
    … base_url=server.base_url …

It speaks the real paths and bodies: `/metrics/pageviews/per-article/PROJECT/ACCESS/AGENT/TITLE/monthly/START/END`,
status 404 with a problem body for an article without views in the period, 403 for a request that does not say who asks.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

from tests.support.odd_replies import bomb

ELSEWHERE = "http://127.0.0.2:9/api/rest_v1"
"""Where `away` redirects to."""

PATH = re.compile(
    r"/api/rest_v1/metrics/pageviews/per-article/(?P<project>[^/]+)/(?P<access>[^/]+)/(?P<agent>[^/]+)/"
    r"(?P<title>[^/]+)/(?P<grain>[^/]+)/(?P<start>\d{8}(?:\d{2})?)/(?P<end>\d{8}(?:\d{2})?)"
)
ACCESS = ("all-access", "desktop", "mobile-app", "mobile-web")
AGENTS = ("all-agents", "user", "spider", "automated")


class PageViewServer:
    """views: by title (with underscores) and month (YYYYMM).  titles: in the order of the requests."""

    def __init__(self, views: dict[str, dict[str, int]]) -> None:
        self.views = views
        self.titles: list[str] = []
        self.agents: set[str] = set()
        self.times: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.retry_after: str | None = None
        self._faults: dict[str, list[int | str]] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/api/rest_v1"

    def fail(self, title: str, *faults: int | str) -> None:
        """The next requests for a title meet these: a status, `garbage`, `strange` (other JSON), `hang up`; `drops`
        (a reply byte by byte, without end), `bomb` (gzip of 32 MB), `away` (a redirect to another server), `deep` or
        `huge` (JSON that no number of views is in)."""
        self._faults.setdefault(title, []).extend(faults)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def answer(self, path: str, agent: str) -> tuple[int, Any, bool]:
        """Status, body and whether the connection is dropped instead."""
        with self._lock:
            self.times.append(time.monotonic())
            self.agents.add(agent)
            match = PATH.fullmatch(path)
            if match is None or match["grain"] not in ("monthly", "daily"):
                return 404, _problem("unknown_route", path), False
            title = unquote(match["title"])
            self.titles.append(title)
            waiting = self._faults.get(title)
            fault = waiting.pop(0) if waiting else None
            if fault == "hang up":
                return 0, None, True
            if fault == "garbage":
                return 200, "{not json", False
            if fault == "deep":
                return 200, "[" * 100_000, False
            if fault == "huge":
                return 200, '{"items": [{"views": 1' + "0" * 5000 + '}, {"views": 1e999}]}', False
            if fault in ("drops", "bomb", "away"):
                return 200, fault, False
            if fault == "strange":
                return 200, {"items": [{"views": "many"}]}, False
            if isinstance(fault, int):
                return fault, _problem(str(fault), path), False
            if not agent or agent.startswith("python-"):
                return 403, _problem("policy: set a User-Agent", path), False
            if match["access"] not in ACCESS or match["agent"] not in AGENTS or " " in title:
                return 400, _problem("invalid_request", path), False
            first, last = match["start"][:6], match["end"][:6]
            known = self.views.get(title, {})
            items = [
                {
                    "project": match["project"], "article": title, "granularity": match["grain"],
                    "timestamp": f"{month}0100", "access": match["access"], "agent": match["agent"], "views": number,
                }
                for month, number in sorted(known.items()) if first <= month <= last
            ]  # fmt: skip
            return (200, {"items": items}, False) if items else (404, _problem("not_found", path), False)


def _problem(kind: str, path: str) -> dict[str, Any]:
    return {
        "type": f"about:blank#{kind}", "title": kind, "method": "get", "uri": path,
        "detail": "The date(s) you used are valid, but we either do not have data for those date(s), or the project "
        "you asked for is not loaded yet.",
    }  # fmt: skip


def _handler(server: PageViewServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status, body, dropped = server.answer(self.path, self.headers.get("User-Agent", ""))
            server.statuses[status] += 1
            if dropped:
                self.close_connection = True
                self.connection.close()
                return
            if body == "drops":
                with contextlib.suppress(OSError):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                    for _ in range(200):
                        self.wfile.write(b"y")
                        time.sleep(0.05)
                self.close_connection = True
                return
            if body in ("bomb", "away"):
                data = bomb(32) if body == "bomb" else b""
                self.send_response(200 if data else 302)
                self.send_header("Content-Encoding" if data else "Location", "gzip" if data else ELSEWHERE)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(data)
                return
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if server.retry_after is not None and status == 429:
                self.send_header("Retry-After", server.retry_after)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
