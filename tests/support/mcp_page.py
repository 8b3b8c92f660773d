"""The examples of docs/mcp.md: calls of tools and their results; `python -m tests.support.mcp_page HOME` writes them.

HOME holds a run over the graph of `tests.support.question_graph` with the answerer `auto`, which answers `ask`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server.mcpserver import MCPServer

from tests.support.command import ROOT

PAGE = ROOT / "docs" / "mcp.md"
EXAMPLE = re.compile(
    r"^```json\n// (?P<tool>\w+) (?P<arguments>\{[^\n]*\})\n(?P<result>.*?)^```$", re.MULTILINE | re.DOTALL
)
WIDTH = 118


def shown(value: Any, indent: str = "") -> str:
    """JSON with as much in a line as fits."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= WIDTH:
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {shown(own, deeper)}" for name, own in value.items()]
        return "{\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + shown(own, deeper) for own in value) + f"\n{indent}]"


def call(server: MCPServer, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool returns; times, which differ, are 0.01."""

    async def main() -> dict[str, Any]:
        async with Client(server) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error and result.structured_content is not None, result
        return result.structured_content

    found = asyncio.run(main())
    return {**found, "seconds": 0.01} if "seconds" in found else found


def main(home: Path) -> None:
    """Write the results of all examples into the page."""
    from kgqa_core.serving.mcp_server import mcp_server
    from kgqa_core.serving.service import Service
    from kgqa_core.serving.systems import SystemSource
    from kgqa_core.store.artifacts import Home
    from tests.support.served_graph import films

    view = films(Path(tempfile.mkdtemp())).view()
    service = Service(SystemSource(Home(home).look()))
    service.start()
    server = mcp_server(view, service.answer)

    def example(found: re.Match[str]) -> str:
        result = call(server, found["tool"], json.loads(found["arguments"]))
        return f"```json\n// {found['tool']} {found['arguments']}\n{shown(result)}\n```"

    PAGE.write_text(EXAMPLE.sub(example, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
