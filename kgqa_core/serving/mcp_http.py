"""MCP over streamable HTTP: a route for another application, or an application that runs alone.

Every request stands for itself (no sessions), so nothing grows and workers need not know of each other.  Who may speak
to it is checked by the `guard` around either.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_PARAMS, INVALID_REQUEST
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

PATH = "/mcp"
MAX_BODY = 1 << 20
"""Bytes of a request."""


class McpEndpoint:
    """An MCP server over HTTP, in an application of its own or of others, behind a `token_guard`.

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
        await self._manager.handle_request(scope, receive, _with_jsonrpc_errors(send))

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


def _with_jsonrpc_errors(send: Send) -> Send:
    """Sends all refusals of the SDK as errors of JSON-RPC; some are plain text, or blame params without a request."""
    start: Message | None = None
    received = b""

    async def sent(message: Message) -> None:
        nonlocal start, received
        if message["type"] == "http.response.start" and message["status"] >= 400:
            start = message
        elif start is None:
            await send(message)
        else:
            received += message.get("body", b"")
            if not message.get("more_body", False):
                body = json.dumps(_jsonrpc_error(received, start["status"])).encode()
                lengths = {b"content-type": b"application/json", b"content-length": str(len(body)).encode()}
                await send({**start, "headers": [*({**dict(start["headers"]), **lengths}).items()]})
                await send({"type": "http.response.body", "body": body})

    return sent


def _jsonrpc_error(body: bytes, status: int) -> dict[str, Any]:
    """The error of a refusal's body.  Without an id there was no request, so its params cannot be what is wrong."""
    try:
        reply: dict[str, Any] = json.loads(body)
    except ValueError:
        message = body.decode("utf-8", "replace") or HTTPStatus(status).phrase
        return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message}}
    if reply["id"] is None and reply["error"]["code"] == INVALID_PARAMS:
        reply["error"] |= {"code": INVALID_REQUEST, "message": "the body is no request or notification of JSON-RPC 2.0"}
    return reply
