"""`kgqa mcp`: a finished run served by a process of its own to the official client, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.support.command import ROOT, environment
from tests.support.films_home import films_home
from tests.support.forked_command import forked_kgqa

TOOLS = {"schema", "search_entities", "entity", "neighbours", "paths", "query", "sql", "ask"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
SECRET = "a-token-of-enough-characters"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run over films and people, with a mention dictionary."""
    return films_home(tmp_path_factory, "served")


def words(home: Path, *more: str) -> list[str]:
    return ["-m", "flows.cli", "mcp", "--home", str(home), *more]


def over_stdio(home: Path, work: Callable[[Client], Awaitable[Any]], mode: str = "legacy") -> Any:
    """What `work` does with a client that has started the command."""
    started = StdioServerParameters(command=sys.executable, args=words(home), env=environment(), cwd=ROOT)

    async def main() -> Any:
        async with Client(started, mode=mode) as client:
            return await work(client)

    return asyncio.run(main())


@contextmanager
def process(home: Path, *more: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """The command with pipes; killed at the end where it has not ended."""
    pipe = subprocess.PIPE
    given = environment(**(env or {}))
    started = [sys.executable, *words(home, *more)]
    with subprocess.Popen(started, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=given, cwd=ROOT) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def address(running: subprocess.Popen[str]) -> str:
    """Where HTTP is served, as the command says."""
    assert running.stderr is not None
    for line in running.stderr:
        if found := re.search(r"MCP at (http://\S+/mcp)", line):
            return found[1]
    raise AssertionError("the command ended without an address")


@pytest.mark.parametrize("mode", [pytest.param("legacy", marks=pytest.mark.slow), "auto"])
def test_a_client_on_stdio_uses_every_tool(home: Path, mode: str) -> None:
    film, director = "Night A0", "Ada Stone"

    async def work(client: Client) -> dict[str, Any]:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        given: dict[str, dict[str, Any]] = {
            "search_entities": {"text": "Ada"},
            "entity": {"name": film},
            "neighbours": {"name": director, "limit": 3},
            "paths": {"start": film, "end": director},
            "query": {"form": "(JOIN (R <http://x/directed_by>) <http://x/f0>)"},
            "sql": {"statement": "SELECT count(*) AS n FROM triples"},
            "ask": {"question": f"Who directed {film}?"},
        }
        results = {tool: await client.call_tool(tool, arguments) for tool, arguments in given.items()}
        results["other"] = await client.call_tool("ask", {**given["ask"], "knowledge": "rigel"})
        results["always"] = await client.call_tool("ask", {**given["ask"], "min_confidence": 0})
        return results

    results = over_stdio(home, work, mode)
    assert results.pop("other").is_error
    assert not any(result.is_error for result in results.values()), results
    found = {tool: result.structured_content for tool, result in results.items()}
    assert director in [match["name"] for match in found["search_entities"]["matches"]]
    assert (director, "http://x/directed_by") in [
        (fact["tail"]["name"], fact["relation"]["key"]) for fact in found["entity"]["facts"]["facts"]
    ]
    assert len(found["neighbours"]["edges"]) == 3 and found["neighbours"]["left_out"]
    assert found["paths"]["hops"] == 1
    assert [node["name"] for node in found["query"]["answers"]] == [director] and len(found["query"]["proof"]) == 1
    assert found["sql"]["columns"] == ["n"] and found["sql"]["rows"][0][0] > 0
    assert found["ask"]["topics"][0]["name"] == film and found["ask"]["facts"] and found["ask"]["seconds"] > 0
    assert found["always"]["answerable"] is True and found["always"]["min_confidence"] == 0


@pytest.mark.slow
def test_stdout_holds_the_protocol_alone_and_the_end_of_stdin_ends_it(home: Path) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "search_entities", "arguments": {"text": "a"}},
    }
    with process(home, "--verbose") as running:
        assert running.stdin is not None and running.stdout is not None and running.stderr is not None
        running.stdin.write(json.dumps(INITIALIZE) + "\nno JSON\n\n[]\n")
        running.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n' + json.dumps(call) + "\n")
        running.stdin.flush()
        answered: dict[Any, Any] = {}
        refused: list[int] = []
        while not {1, 2} <= answered.keys():
            message = json.loads(running.stdout.readline())
            if message["id"] is None:
                refused.append(message["error"]["code"])
            answered[message["id"]] = message
        assert refused == [-32700, -32600], "each line that is no message, and not the blank one"
        assert answered[1] and answered[1]["result"]["serverInfo"]["name"] == "kgqa"
        assert answered[2]["result"]["structuredContent"]["matches"]
        running.stdin.close()
        rest = running.stdout.read()
        assert all(json.loads(line) for line in rest.splitlines())
        assert running.wait(30) == 0, running.stderr.read()[-2000:]


@pytest.mark.slow
def test_a_signal_ends_it_while_it_waits_for_stdin(home: Path) -> None:
    with process(home) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write(json.dumps(INITIALIZE) + "\n")
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["id"] == 1
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 143


@pytest.mark.slow
def test_a_client_over_http_with_a_token(home: Path) -> None:
    with process(home, "--http", "--port", "0", env={"KGQA_SERVE_TOKEN": SECRET}) as running:
        url = address(running)
        accept = {"Accept": "application/json, text/event-stream"}
        assert httpx.post(url, json=INITIALIZE, headers=accept).status_code == 401
        allowed = accept | {"Authorization": f"Bearer {SECRET}"}
        reply = httpx.post(url, json=INITIALIZE, headers=allowed, timeout=60)
        assert reply.status_code == 200 and reply.json()["result"]["serverInfo"]["name"] == "kgqa"
        call = {"name": "search_entities", "arguments": {"text": "a"}}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        found = httpx.post(url, json=body, headers=allowed, timeout=120).json()["result"]
        assert found["structuredContent"]["matches"] and not found["isError"]
        assert httpx.post(url, json=body, headers=allowed | {"Host": "evil.example"}).status_code == 403
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 143
        assert running.stdout is not None and running.stdout.read() == ""


@pytest.mark.slow
def test_the_official_client_over_http(home: Path) -> None:
    with process(home, "--http", "--port", "0") as running:
        url = address(running)

        async def main() -> Any:
            async with Client(url) as client:
                calls = [client.call_tool("ask", {"question": f"Who works for number {n}?"}) for n in range(3)]
                return await asyncio.gather(client.call_tool("entity", {"name": "Nobody Xyz"}), *calls)

        unknown, *answers = asyncio.run(main())
        assert unknown.is_error and "'Nobody Xyz' is not in graph" in unknown.content[0].text
        assert [one.structured_content["question"] for one in answers] == [
            f"Who works for number {n}?" for n in range(3)
        ]


@pytest.mark.slow
def test_a_new_champion_answers_from_then_on(home: Path, tmp_path: Path) -> None:
    for entry in home.iterdir():
        if entry.name not in ("champions", "runs", "tmp"):
            (tmp_path / entry.name).symlink_to(entry)
    for name in ("champions", "runs"):
        shutil.copytree(home / name, tmp_path / name)
    [folder] = [run.parent for run in (tmp_path / "runs").glob("*/run.json")]
    other = f"{folder.name}-2"
    shutil.copytree(folder, tmp_path / "runs" / other)
    record = json.loads((folder / "run.json").read_text())
    (tmp_path / "runs" / other / "run.json").write_text(json.dumps(record | {"run_id": other}))
    [champions] = (tmp_path / "champions").glob("*.json")
    decision = json.loads(champions.read_text())
    call = {"name": "ask", "arguments": {"question": "Who works for Nobody?"}}
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    with process(tmp_path, "--http", "--port", "0") as running:
        url = address(running)
        headers = {"Accept": "application/json, text/event-stream"}
        assert not httpx.post(url, json=body, headers=headers, timeout=120).json()["result"]["isError"]
        champions.write_text(json.dumps(decision | {"champion": {**decision["champion"], "run_id": other}}))
        assert running.stderr is not None
        told = next(line for line in running.stderr if "answers from now on" in line)
        assert other in told
        assert not httpx.post(url, json=body, headers=headers, timeout=120).json()["result"]["isError"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--port", "9000"), "--port 9000 is for HTTP; add --http"),
        (("--http", "--host", "0.0.0.0"), "set KGQA_SERVE_TOKEN"),
        (("--http", "--host", "no.such.host.invalid"), "KGQA_SERVE_TOKEN"),
        (("--run", "nosuchrun"), "nosuchrun"),
        (("--knowledge", "rigel/poem"), "'rigel/poem' has no known format"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_loaded(
    home: Path, more: tuple[str, ...], message: str
) -> None:
    done = forked_kgqa("mcp", "--home", home, *more)
    assert done.code == 2 and message in done.err and done.out == "", done.err


@pytest.mark.slow
def test_a_run_that_cannot_be_opened_is_told_by_the_tools(home: Path) -> None:
    started = words(home, "--knowledge", "rigel")
    server = StdioServerParameters(command=sys.executable, args=started, env=environment(), cwd=ROOT)

    async def main() -> Any:
        async with Client(server, mode="legacy") as client:
            return await client.call_tool("search_entities", {"text": "a"}), await client.call_tool(
                "ask", {"question": "?"}
            )

    for result in asyncio.run(main()):
        assert result.is_error and "can answer from hop_path" in result.content[0].text


def test_a_port_in_use_is_told(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = forked_kgqa("mcp", "--home", home, "--http", "--port", str(other.getsockname()[1]))
        assert done.code == 2 and "another --port" in done.err
