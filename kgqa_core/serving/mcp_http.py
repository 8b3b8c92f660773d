"""MCP over streamable HTTP: a route for another application, or an application that runs alone.

Every request stands for itself (no sessions), so nothing grows and workers need not know of each other.  Who may speak
to it is checked by the `guard` around either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

PATH = "/mcp"
MAX_BODY = 1 << 20
"""Bytes of a request."""


class McpEndpoint:
    """An MCP server over HTTP, in an application of its own or of others, behind a `Guard`.

    Another application adds `route()` to its routes and runs within `running()` (its lifespan); `app()` does both.
    """

    def __init__(self, server: MCPServer) -> None:
        server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_BODY,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._manager = server.session_manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - of ASGI
        await self._manager.handle_request(scope, receive, send)

    def route(self, path: str = PATH) -> Route:
        """The endpoint at a path of an application."""
        return Route(path, endpoint=self, include_in_schema=False)

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
