"""What stands before every HTTP server of ours: who may speak to it, how long a request may be, how slowly it may come.

A page of another origin can make a browser send requests to loopback.  It cannot hide where it comes from: browsers
set `Host`, `Origin` and `Sec-Fetch-*` themselves.  A name that an attacker points at 127.0.0.1 (DNS rebinding) is in
`Host`.  A server that others reach asks for a token or a login.

`kgqa serve` and `kgqa mcp` stand behind a `token_guard`, Prefect's and MLflow's servers behind `tasks.servers.gate`.
The image of those two has the modules imported here and no others of the library.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from kgqa_core.errors import ConfigError
from kgqa_core.serving.addresses import header_name, is_loopback, same_origin
from kgqa_core.serving.limits import TOKEN_VARIABLE

OPEN_PATHS = ("/health", "/ready", "/", "/entity", "/console", "/docs", "/openapi.json")
"""Paths that need no token: probes have none, and learn nothing; the pages are the same for all, and ask for it."""
_OF_GRAPH = re.compile(r"^/g/[^/]+(?:/|$)")
"""What the path of one of several graphs begins with."""
LEAST_TOKEN = 16
"""Characters of a token."""
SHOWN = 100
"""Characters of a header that a message repeats."""
ASSETS = "/assets/"
"""Below it are the scripts and styles of the page, which need no token either."""
ELSEWHERE = ("cross-site", "same-site")
"""`Sec-Fetch-Site` of requests by other origins; another port of one host is the same site, but another origin."""
DECISIVE = ("host", "origin", "authorization", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
"""Headers that may be there once at most."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Mapping[str, str]


class Refused(HTTPException):
    """A request that is not handed on.  status: of HTTP.  message: what the client is told.

    FastAPI lets it through where it reads a body, and makes the reply; the guard does so before that.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        if status in (408, 413):
            headers = {"Connection": "close"}
        super().__init__(status, message, headers)


def error_body(status: int, message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """The JSON of an error, in the shape that OpenAI's clients read."""
    return {"error": {"message": message, "type": kind, "code": status}}


def render_json(refused: Refused) -> tuple[str, bytes]:
    """Content type and body of a refusal, as JSON."""
    return "application/json", json.dumps(error_body(refused.status_code, refused.detail)).encode()


@dataclass(frozen=True)
class Login:
    """What a request must bear.  authorization: the header's value.  is_open: which requests need none.

    challenge: the answer to a request without it.
    """

    authorization: str
    is_open: Callable[[Scope], bool]
    challenge: Callable[[Scope, Headers], Refused]

    def admits(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request needs no login, or bears it."""
        given = headers.get("authorization", "").encode("latin-1")
        return self.is_open(scope) or hmac.compare_digest(given, self.authorization.encode())


@dataclass(frozen=True)
class BodyLimit:
    """How many bytes a request's body may have, and how many seconds may pass from its headers to its end.

    option: of the command line, which allows more.  others: limits of some paths.
    """

    size: int
    seconds: float
    option: str = "--body-kb"
    others: Mapping[str, BodyLimit] = field(default_factory=dict)

    def apply(self, path: str, receive: Receive, headers: Headers) -> Receive:
        """Receives a body that ends in time and in size.  Raises Refused."""
        if path in self.others:
            return self.others[path].apply("", receive, headers)
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise Refused(400, f"Content-Length {length[:SHOWN]!r} is no number")
        too_long = Refused(
            413, f"the body may have {self.size:,} bytes; send less, or start the server with more {self.option}"
        )
        if len(length) > 18 or int(length) > self.size:
            raise too_long
        received, complete = 0, False
        loop = asyncio.get_running_loop()
        end = loop.time() + self.seconds

        async def limited() -> Message:
            nonlocal received, complete
            if complete:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, end - loop.time()))
            except TimeoutError:
                raise Refused(408, f"the body did not end within {self.seconds:g} seconds") from None
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self.size:
                    raise too_long
            complete = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        return limited


class Guard:
    """An ASGI application that refuses what is foreign, too long or too slow, and hands on all else.

    hosts: names that `Host` may have, each with its port or for any port; None takes any.  is_address: which further
    names it may have: addresses, to which no name can be rebound.  render: content type and body of a refusal.
    """

    def __init__(
        self,
        app: App,
        *,
        hosts: Iterable[str] | None,
        is_address: Callable[[str], bool] = is_loopback,
        login: Login | None = None,
        body: BodyLimit | None = None,
        render: Callable[[Refused], tuple[str, bytes]] = render_json,
    ) -> None:
        self._app, self._login, self._body, self._render = app, login, body, render
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._is_address = is_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; hand all others on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            headers = read_headers(scope)
            self._check(scope, headers)
            if self._body is not None and scope["type"] == "http":
                receive = self._body.apply(scope["path"], receive, headers)
        except Refused as refused:
            await self._refuse(scope, receive, send, refused)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        given = headers.get("host", "").lower()  # absent in HTTP/1.0
        host = header_name(given) if given else ""
        if host is None:
            raise Refused(403, f"Host {given[:SHOWN]!r} is no name or address, with or without a port")
        if self._hosts is not None and not {host, given} & self._hosts and not self._is_address(host):
            name = host[:SHOWN]
            raise Refused(403, f"Host {name!r} is none of this server's; start it with --allowed-host {name or 'NAME'}")
        origin = headers.get("origin")
        if origin is not None and not same_origin(origin, given):
            raise Refused(403, f"requests by pages of {origin[:SHOWN]!r} are refused; ask from a page of this server")
        if headers.get("sec-fetch-site") in ELSEWHERE:
            opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            if not (opened and scope.get("method") in ("GET", "HEAD")):  # no link that somebody followed
                raise Refused(403, "requests by pages of another origin are refused; ask from a page of this server")
        if self._login is not None and not self._login.admits(scope, headers):
            raise self._login.challenge(scope, headers)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the handshake gets 403
            return
        kind, body = self._render(refused)
        await respond(send, refused.status_code, kind, body, refused.headers or {})


def read_headers(scope: Scope) -> dict[str, str]:
    """Headers by their names in lower case.  Raises Refused where one that decides is there twice."""
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        if name in headers and name in DECISIVE:
            raise Refused(403, f"the header {name!r} is there twice")
        headers[name] = value.decode("latin-1")
    return headers


async def respond(send: Send, status: int, kind: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a whole reply that no browser keeps, frames or takes for another type."""
    fixed = {
        "content-type": kind, "content-length": str(len(body)), "cache-control": "no-store",
        "x-content-type-options": "nosniff", "x-frame-options": "DENY",
    }  # fmt: skip
    pairs = [(name.lower().encode(), value.encode()) for name, value in (*fixed.items(), *headers.items())]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def token_guard(
    app: App,
    *,
    token: str | None,
    hosts: Iterable[str] | None,
    body_bytes: int,
    body_seconds: float,
    others: Mapping[str, BodyLimit] | None = None,
) -> Guard:
    """The guard of `kgqa serve` and `kgqa mcp`.

    token: that requests must bear; None asks for none.  hosts: names that `Host` may have, IP addresses of loopback
    always; None takes any.  body_bytes: of a request's body at most.  body_seconds: from the headers to its end.
    others: limits of the bodies of some paths.
    """
    login = Login(f"Bearer {token}", _needs_no_token, _ask_for_token) if token is not None else None
    return Guard(app, hosts=hosts, login=login, body=BodyLimit(body_bytes, body_seconds, others=others or {}))


def _needs_no_token(scope: Scope) -> bool:
    path = _OF_GRAPH.sub("/", scope["path"])
    return path in OPEN_PATHS or (path.startswith(ASSETS) and "/" not in path[len(ASSETS) :])


def _ask_for_token(scope: Scope, headers: Headers) -> Refused:
    message = f"give the token of the server's {TOKEN_VARIABLE} as `Authorization: Bearer TOKEN`"
    return Refused(401, message, {"WWW-Authenticate": "Bearer"})


def serve_token(host: str) -> str | None:
    """The token of the environment.

    Raises ConfigError where there is none and other machines reach `host`, or where it is too short or no ASCII.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        if is_loopback(host):
            return None
        raise ConfigError(
            f"--host {host} can be reached from other machines, so a token is needed: set {TOKEN_VARIABLE} to at least "
            f"{LEAST_TOKEN} characters, or listen on 127.0.0.1"
        )
    if len(token) < LEAST_TOKEN or not token.isascii() or any(sign.isspace() for sign in token):
        raise ConfigError(
            f"{TOKEN_VARIABLE} must have at least {LEAST_TOKEN} characters, all of them ASCII and none a space"
        )
    return token
