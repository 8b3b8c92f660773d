"""What stands before a server: who may speak to it, by `Host`, by `Origin` and by login.

A page of another origin can make a browser send requests to loopback.  It cannot hide where it comes from: browsers
set `Host`, `Origin` and `Sec-Fetch-*` themselves.  A name that an attacker points at 127.0.0.1 (DNS rebinding) is in
`Host`.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tasks.servers.login import LOGIN, PROOF, prove
from tasks.servers.login_page import page

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ELSEWHERE = ("cross-site", "same-site")
"""`Sec-Fetch-Site` of requests by other origins; another port of one host is the same site, but another origin."""
HEALTH = ("/health", "/api/health", "/api/ready")


class Gate:
    """An ASGI application that refuses what does not come from its own pages or from somebody who has the login.

    hosts: names, each with its port or for any port, that `Host` may have.  addresses: whether any IP address may be
    in `Host`; no name can be rebound to one.  basic: whether this gate asks for the login, by HTTP's basic
    authentication; else the application does so itself, as Prefect's does for its API.
    """

    def __init__(
        self, app: App, auth_string: str, hosts: Iterable[str], *, addresses: bool = False, basic: bool = True
    ) -> None:
        self._app, self._auth_string, self._basic = app, auth_string, basic
        self._hosts, self._addresses = frozenset(host.lower() for host in hosts), addresses
        self._expected = b"Basic " + base64.b64encode(auth_string.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, or is the gate's own; hand all others on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _single(scope["headers"])
        why = "a header is there twice" if headers is None else self.refusal(scope, headers)
        if headers is None or why:
            await _refuse(scope, receive, send, 403, f"refused: {why}\n")
        elif scope["type"] == "http" and scope["path"] == LOGIN:
            await _answer(send, *page(basic=self._basic))
        elif scope["type"] == "http" and scope["path"] == PROOF:
            nonce = parse_qs(scope["query_string"].decode("latin-1")).get("nonce", [""])[0]
            proof = prove(self._auth_string, headers["host"], nonce) if re.fullmatch(r"[0-9a-f]{32}", nonce) else ""
            await _answer(send, 200 if proof else 400, "text/plain", proof.encode())
        elif self._basic and not self._is_open(scope) and not self._may_enter(headers):
            if scope["type"] == "http" and _opens_a_page(scope, headers):  # the part behind `#` goes along
                await _answer(send, 303, "text/plain", b"", [(b"location", LOGIN.encode())])
                return
            text = "log in with the user and the password of the home's auth string\n"
            challenge = [(b"www-authenticate", b'Basic realm="kgqa", charset="UTF-8"')]
            await _refuse(scope, receive, send, 401, text, challenge)
        else:
            await self._app(scope, receive, _with_headers(send))

    def refusal(self, scope: Scope, headers: dict[str, str]) -> str:
        """Why a request is refused whoever sends it, or nothing."""
        host = headers.get("host", "").lower()
        if not self._knows(host):
            return f"the Host {host!r} is none of this server's names"
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return f"it comes from the origin {origin!r}"
        if headers.get("sec-fetch-site") in ELSEWHERE:
            opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            if not (opened and scope.get("method") in ("GET", "HEAD")):
                return "it comes from a page of another origin"
        return ""

    def _knows(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname or "", parts.port
        except ValueError:
            return False
        if not name or parts.netloc != host or "@" in host:
            return False
        if host in self._hosts or name in self._hosts:
            return True
        return self._addresses and _is_address(name)

    def _is_open(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in HEALTH

    def _may_enter(self, headers: dict[str, str]) -> bool:
        return hmac.compare_digest(headers.get("authorization", "").encode("latin-1"), self._expected)


def _single(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """Headers by name; None where one of those that decide is there twice."""
    headers: dict[str, str] = {}
    for key, value in pairs:
        name = key.decode("latin-1").lower()
        if name in headers and (name in ("host", "origin", "authorization") or name.startswith("sec-fetch-")):
            return None
        headers[name] = value.decode("latin-1")
    return headers


def _same(origin: str, host: str) -> bool:
    scheme, _, rest = origin.lower().partition("://")
    return scheme in ("http", "https") and rest == host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _opens_a_page(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a browser without a login goes to a page."""
    html = "text/html" in headers.get("accept", "") and "authorization" not in headers
    return html and scope["method"] == "GET"


def _with_headers(send: Send) -> Send:
    """Answers say that no page of another origin may frame or embed them."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            there = {key.lower() for key, _ in message.get("headers", ())}
            added = [(b"x-frame-options", b"SAMEORIGIN"), (b"cross-origin-resource-policy", b"same-origin")]
            message["headers"] = [*message.get("headers", ()), *(pair for pair in added if pair[0] not in there)]
        await send(message)

    return sent


async def _answer(send: Send, status: int, kind: str, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    sizes = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    fixed = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"DENY")]
    await send({"type": "http.response.start", "status": status, "headers": [*sizes, *fixed, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _refuse(
    scope: Scope, receive: Receive, send: Send, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the handshake gets 403
    else:
        await _answer(send, status, "text/plain; charset=utf-8", text.encode("utf-8", "replace"), headers)
