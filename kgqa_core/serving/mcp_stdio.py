"""MCP over stdin and stdout, where every line that is no message is answered with an error of JSON-RPC.

The SDK hands such lines to its session as exceptions, which are dropped there.
"""

from __future__ import annotations

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


def serve_stdio(server: MCPServer) -> None:
    """Serves until stdin ends."""
    anyio.run(_serve, server)


async def _serve(server: MCPServer) -> None:
    lowlevel = server._lowlevel_server
    async with stdio_server() as (lines, replies), anyio.create_task_group() as tasks:
        send, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def read() -> None:
            async with send:
                async for line in lines:
                    if isinstance(line, SessionMessage):
                        await send.send(line)
                    elif (error := refusal(line)) is not None:
                        await replies.send(SessionMessage(error))

        tasks.start_soon(read)
        await lowlevel.run(messages, replies, lowlevel.create_initialization_options())
        tasks.cancel_scope.cancel()


def refusal(fault: Exception) -> JSONRPCError | None:
    """The reply to a line that is no message; None to a blank line."""
    code, message = PARSE_ERROR, "the line is no JSON"
    if isinstance(fault, ValidationError):
        [first, *_] = fault.errors(include_url=False)
        if first["type"] != "json_invalid":
            code, message = INVALID_REQUEST, "the line is no request, notification or response of JSON-RPC 2.0"
        elif not str(first["input"]).strip():
            return None
        else:
            message = f"{message}: {first['ctx']['error']}"
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))
