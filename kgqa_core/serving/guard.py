"""What stands before the HTTP server: who may speak to it, how long a request may be, and how slowly it may come.

On loopback a page of another origin can make a browser send requests; it cannot hide its `Origin`, nor the `Host` that
a rebound name leaves.  A server that others reach asks for a token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from kgqa_core.errors import ConfigError
from kgqa_core.serving.addresses import header_name, is_loopback, same_origin
from kgqa_core.serving.limits import TOKEN_VARIABLE

OPEN_PATHS = ("/health", "/ready", "/", "/entity")
"""Paths that need no token: probes have none, and learn nothing; the page is the same for all, and asks for it."""
LEAST_TOKEN = 16
"""Characters of a token."""
SHOWN = 100
"""Characters of a header that a message repeats."""
ASSETS = "/assets/"
"""Below it are the scripts and styles of the page, which need no token either."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refused(HTTPException):
    """A request that is not handed on.  status: of HTTP.  message: what the client is told.

    FastAPI lets it through where it reads a body, and makes the reply; the guard does so before that.
    """

    def __init__(self, status: int, message: str) -> None:
        headers = {"Connection": "close"} if status in (408, 413) else None
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else headers
        super().__init__(status, message, headers)


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


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or (path.startswith(ASSETS) and "/" not in path[len(ASSETS) :])


class Guard:
    """An ASGI application that refuses what is foreign, too long or too slow, and hands on all else.

    token: that requests must bear; None asks for none.  hosts: names that `Host` may have, IP addresses of loopback
    always; None takes any.  body_bytes: of a request's body at most.  body_seconds: from the headers to its end.
    """

    def __init__(
        self, app: App, *, token: str | None, hosts: Iterable[str] | None, body_bytes: int, body_seconds: float
    ) -> None:
        self._app, self._token = app, token
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._body_bytes, self._body_seconds = body_bytes, body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; hand all others on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check(scope, headers)
            receive = self._limited(receive, headers) if scope["type"] == "http" else receive
        except Refused as refused:
            await _refuse(scope, send, refused)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        given = headers.get("host", "")  # absent in HTTP/1.0
        host = header_name(given) if given else ""
        if host is None:
            raise Refused(400, f"Host {given[:SHOWN]!r} is no name or address, with or without a port")
        if self._hosts is not None and host not in self._hosts and not is_loopback(host):
            name = host[:SHOWN]
            raise Refused(403, f"Host {name!r} is none of this server's; start it with --allowed-host {name or 'NAME'}")
        origin = headers.get("origin")
        if origin is not None and not same_origin(origin, given):
            raise Refused(403, f"requests by pages of {origin[:SHOWN]!r} are refused; ask from a page of this server")
        if self._token is None or _is_open(scope["path"]):
            return
        bearer = headers.get("authorization", "")
        if not hmac.compare_digest(bearer.encode(), f"Bearer {self._token}".encode()):
            raise Refused(401, f"give the token of the server's {TOKEN_VARIABLE} as `Authorization: Bearer TOKEN`")

    def _limited(self, receive: Receive, headers: dict[str, str]) -> Receive:
        """Receives a body that ends in time and in size.  Raises Refused."""
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise Refused(400, f"Content-Length {length[:SHOWN]!r} is no number")
        too_long = Refused(
            413, f"the body may have {self._body_bytes:,} bytes; send less, or start the server with more --body-kb"
        )
        if len(length) > 18 or int(length) > self._body_bytes:
            raise too_long
        seen, whole = 0, False
        loop = asyncio.get_running_loop()
        end = loop.time() + self._body_seconds

        async def limited() -> Message:
            nonlocal seen, whole
            if whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, end - loop.time()))
            except TimeoutError:
                raise Refused(408, f"the body did not end within {self._body_seconds:g} seconds") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._body_bytes:
                    raise too_long
            whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        return limited


def error_body(status: int, message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """The JSON of an error, in the shape that OpenAI's clients read."""
    return {"error": {"message": message, "type": kind, "code": status}}


async def _refuse(scope: Scope, send: Send, refused: Refused) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": refused.detail[:120]})
        return
    body = json.dumps(error_body(refused.status_code, refused.detail)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in (refused.headers or {}).items()]
    await send({"type": "http.response.start", "status": refused.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
