"""MCP over streamable HTTP: a route for another application, or an application that runs alone.

Every request stands for itself (no sessions), so nothing grows and workers need not know of each other.
"""

from __future__ import annotations

import hmac
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kgqa_core.errors import ConfigError
from kgqa_core.serving.guard import TOKEN_VARIABLE, is_loopback, is_wildcard

LEAST_TOKEN = 16
"""Characters of a token."""
PATH = "/mcp"
MAX_BODY = 1 << 20
"""Bytes of a request."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class McpEndpoint:
    """An MCP server over HTTP, in an application of its own or of others.

    hosts: names in the Host header that are answered, without port; None where the application around it checks them.
    token: that requests must carry (`Authorization: Bearer …`); None lets all in.

    Another application adds `route()` to its routes and runs within `running()` (its lifespan); `app()` does both.
    """

    def __init__(self, server: MCPServer, *, hosts: Sequence[str] | None = LOOPBACK, token: str | None = None) -> None:
        checked = TransportSecuritySettings(
            enable_dns_rebinding_protection=hosts is not None,
            allowed_hosts=[name for host in hosts or () for name in (host, f"{host}:*")],
            allowed_origins=[
                f"{scheme}://{name}"
                for host in hosts or ()
                for name in (host, f"{host}:*")
                for scheme in ("http", "https")
            ],
        )
        server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_BODY,
            transport_security=checked,
        )
        self._manager = server.session_manager
        self._endpoint = TokenGuard(self._manager.handle_request, token)

    def route(self, path: str = PATH) -> Route:
        """The endpoint at a path of an application."""
        return Route(path, endpoint=self._endpoint, include_in_schema=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which requests are answered; once for each endpoint."""
        async with self._manager.run():
            yield

    def app(self, path: str = PATH) -> Starlette:
        """An application with this endpoint alone."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with self.running():
                yield

        return Starlette(routes=[self.route(path)], lifespan=lifespan)


class TokenGuard:
    """An ASGI application that lets requests through which carry a token; the others get 401.

    token: None lets all through.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._expected = app, None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - of ASGI
        if self._expected is not None:
            given = Headers(scope=scope).get("authorization", "").encode("utf-8", "surrogateescape")
            if not hmac.compare_digest(given, self._expected):
                text = (
                    f"this server needs the header 'Authorization: Bearer …' with the token of its {TOKEN_VARIABLE}\n"
                )
                refusal = PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


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


def host_names(host: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Names in a Host header that mean a server which listens on `host`; more: further ones, of a proxy."""
    own = [f"[{host}]" if ":" in host and not host.startswith("[") else host]
    if is_wildcard(host):
        own = [*LOOPBACK, socket.gethostname()]
    return tuple(dict.fromkeys([*own, *(LOOPBACK if is_loopback(host) else ()), *more]))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.  Raises ConfigError where that is not possible."""
    bare = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as fault:
        raise ConfigError(f"--host {host} is no address of this machine ({fault})") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as fault:
        found.close()
        raise ConfigError(f"cannot listen on {host} port {port} ({fault.strerror}); give another --port") from None
    return found
