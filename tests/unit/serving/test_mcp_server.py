"""The tools of MCP, called by the official client in the same process and over loopback HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from kgqa_core.answering.reply import Answer, AnswerFact, AnswerTopic
from kgqa_core.errors import ConfigError, InputError
from kgqa_core.serving.addresses import bind, host_names, is_loopback
from kgqa_core.serving.ask_record import Ask
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.guard import TOKEN_VARIABLE, Guard, serve_token, token_guard
from kgqa_core.serving.mcp_http import MAX_BODY, McpEndpoint
from kgqa_core.serving.mcp_server import McpLimits, mcp_server
from kgqa_core.serving.run import ServeOptions
from tests.support.question_graph import X
from tests.support.served import listening
from tests.support.served_graph import HOSTILE

TOOLS = ["schema", "search_entities", "entity", "neighbours", "paths", "query", "sql", "ask"]
SECRET = "a-token-of-enough-characters"


class Asked:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []
        self.hold: threading.Event | None = None

    def __call__(self, ask: Ask) -> Answer:
        question, knowledge = ask.question, ask.knowledge
        self.given.append((question, list(ask.topics), list(ask.dialogue), knowledge, ask.min_confidence))
        if self.hold is not None:
            self.hold.wait(30)
        if knowledge == "nothing":
            raise InputError("knowledge 'nothing': this run can answer from hop_path")
        if question == "crash":
            raise RuntimeError("a secret of the server")
        topic = AnswerTopic("c0", HOSTILE, "norland", 0.9)
        facts = tuple(AnswerFact(f"(Norland, capital, Norland City {n})", 1, 0.5, 1) for n in range(80))
        return Answer(
            "1", question, "Norland City", model="auto", knowledge="hop_path/triples", topics=(topic,), facts=facts,
            operation="path", form="(JOIN (R capital) c0)", answers=("Norland City",), proof=("(a, b, c)",),
            proof_rows=1, answerable=True, confidence=0.8, calibrated=True, min_confidence=0.4,
        )  # fmt: skip


def calls(
    server: MCPServer | str, work: Callable[[Client], Awaitable[Any]], *, mode: str = "auto", token: str | None = None
) -> Any:
    """What `work` does with a client of a server, in process or at an address."""

    async def main() -> Any:
        if isinstance(server, str):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with (
                create_mcp_http_client(headers=headers) as web,
                Client(streamable_http_client(server, http_client=web), mode=mode) as client,
            ):
                return await work(client)
        async with Client(server, mode=mode) as client:
            return await work(client)

    return asyncio.run(main())


def call(server: MCPServer | str, tool: str, mode: str = "auto", **arguments: Any) -> CallToolResult:
    return calls(server, lambda client: client.call_tool(tool, arguments), mode=mode)


def text(result: CallToolResult) -> str:
    [block] = result.content
    return str(block.text)  # type: ignore[union-attr]


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def server(view: GraphView, asked: Asked) -> MCPServer:
    return mcp_server(view, asked)


# -- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_has_a_schema_of_its_result_and_only_reads(server: MCPServer, mode: str) -> None:
    listed = calls(server, lambda client: client.list_tools(), mode=mode).tools
    assert [tool.name for tool in listed] == TOOLS
    for tool in listed:
        assert tool.description and tool.output_schema["type"] == "object" and tool.output_schema["properties"]
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint and not tool.annotations.open_world_hint


def test_tools_return_what_the_view_returns_as_record_and_as_text(server: MCPServer, view: GraphView) -> None:
    for tool, arguments, record in (
        ("search_entities", {"text": "norl"}, view.search("norl", 10)),
        ("entity", {"name": "Norland", "limit": 3}, view.entity("Norland", limit=3)),
        ("entity", {"name": "Norland", "relation": "capital", "direction": "out"},
         view.entity("Norland", limit=25, relation="capital", direction="out")),
        ("neighbours", {"name": "Ada Stone", "limit": 6}, view.neighbourhood("Ada Stone", 6)),
        ("paths", {"start": "Norland City", "end": "Sudland"}, view.paths("Norland City", "Sudland", 3, 10)),
    ):  # fmt: skip
        result = call(server, tool, **arguments)
        assert not result.is_error, text(result)
        assert result.structured_content == record.to_json() == json.loads(text(result))
    result = call(server, "query", form="(JOIN (R capital) Norland)").structured_content
    assert result is not None and [node["name"] for node in result["answers"]] == ["Norland City"]
    assert result["proof"][0]["relation"]["key"] == f"{X}capital"


def test_the_graph_and_its_entities_are_resources_and_a_question_is_a_prompt(
    server: MCPServer, view: GraphView
) -> None:
    async def work(client: Client) -> None:
        tool = await client.call_tool("schema", {"limit": 3})
        assert tool.structured_content == view.schema(3).to_json() and len(view.schema(3).relations) == 3
        [card] = (await client.list_resources()).resources
        [content] = (await client.read_resource(str(card.uri))).contents
        assert json.loads(content.text) == view.schema().to_json()
        [content] = (await client.read_resource("kgqa://entity/http%3A%2F%2Fx%2Fc0")).contents
        assert json.loads(content.text) == view.entity("Norland", limit=25).to_json()
        with pytest.raises(MCPError, match=r"'Norlnd' is not in graph .*did you mean 'Norland'"):
            await client.read_resource("kgqa://entity/Norlnd")
        [prompt] = (await client.list_prompts()).prompts
        [message] = (await client.get_prompt(prompt.name, {"question": "Why <b>?"})).messages
        assert "Why <b>?" in message.content.text and "never instructions" in message.content.text

    calls(server, work)


def test_a_question_is_answered_with_its_proof_and_bounded_facts(server: MCPServer, asked: Asked) -> None:
    result = call(
        server, "ask", question="what is the capital of norland?", topics=["Norland"], dialogue=["hi", "hello"],
        min_confidence=0.2,
    ).structured_content  # fmt: skip
    assert asked.given == [
        ("what is the capital of norland?", ["Norland"], [("user", "hi"), ("agent", "hello")], None, 0.2)
    ]
    assert result is not None and result["answers"] == ["Norland City"] and result["proof"] == ["(a, b, c)"]
    assert result["confidence"] == 0.8 and result["form"] and result["road"] is None
    assert len(result["facts"]) == 50 and result["facts_total"] == 80
    assert result["topics"] == [{"key": "c0", "name": HOSTILE, "mention": "norland", "rho": 0.9}]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("entity", {"name": "Norlnd"}, "'Norlnd' is not in graph.*did you mean 'Norland'"),
        ("neighbours", {"name": "Norlnd"}, "did you mean 'Norland'"),
        ("paths", {"start": "Norland", "end": "Norlnd"}, "did you mean 'Norland'"),
        ("entity", {"name": "Norland", "relation": "captal"}, "relation 'captal'.*did you mean 'capital'"),
        ("query", {"form": "(JION a b)"}, "no operator 'JION'; did you mean 'JOIN'"),
        ("query", {"form": "(COUNT"}, "character 1.*never closed|never closed"),
        (
            "query",
            {"form": "SELECT * WHERE { ?a ?b ?c }"},
            "a variable relation, which logical forms cannot say.*use SQL",
        ),
        ("sql", {"statement": "SELECT * FROM facts"}, "facts does not exist.*Tables are entities"),
        ("sql", {"statement": "COPY triples TO 'out.csv'"}, "only this graph can be read"),
        ("query", {"form": "x" * 20_001}, "at most 20000 characters"),
        ("search_entities", {"text": "a", "limit": 1000}, "less than or equal to 100.*1000"),
        ("search_entities", {"text": " "}, "is empty"),
        ("search_entities", {}, "text.*Field required"),
        ("search_entities", {"text": "a", "limits": 5}, "limits.*Extra inputs are not permitted"),
        ("entity", {"name": "Norland", "direction": "up"}, "'both', 'out' or 'in'"),
        ("paths", {"start": "Norland", "end": "Sudland", "max_hops": 9}, "less than or equal to 3.*9"),
        ("ask", {"question": ""}, "at least 1 character"),
        ("ask", {"question": "a?", "topics": ["x"] * 51}, "at most 50 items"),
        ("ask", {"question": "a?", "min_confidence": 2}, "less than or equal to 1"),
        ("ask", {"question": "a?", "knowledge": "nothing"}, "can answer from hop_path"),
        ("nope", {}, "nope"),
    ],
)
def test_what_is_wrong_with_a_call_is_a_tool_error_that_names_it(
    server: MCPServer, tool: str, arguments: dict[str, Any], message: str
) -> None:
    result = call(server, tool, **arguments)
    assert result.is_error and result.structured_content is None
    import re

    assert re.search(message, text(result), re.DOTALL), text(result)


def test_what_is_wrong_with_the_server_is_not_told(server: MCPServer, caplog: pytest.LogCaptureFixture) -> None:
    result = call(server, "ask", question="crash")
    assert result.is_error and "secret" not in text(result)
    assert "a secret of the server" in caplog.text
    assert not call(server, "ask", question="again").is_error


def test_a_hostile_label_is_data(server: MCPServer) -> None:
    result = call(server, "entity", name=f"{X}evil")
    assert result.structured_content is not None and result.structured_content["entity"]["name"] == HOSTILE
    assert "\x1b" not in text(result)
    assert json.loads(text(result))["entity"]["name"] == HOSTILE
    assert all(line.startswith((" ", "{", "}")) for line in text(result).splitlines()), "no line is the label's"
    unknown = call(server, "entity", name="Norlnd\n\x1b[2J")
    assert unknown.is_error and "\x1b" not in text(unknown) and "\n" not in text(unknown)


def test_many_calls_at_once_get_what_they_asked_for(server: MCPServer) -> None:
    async def work(client: Client) -> list[CallToolResult]:
        names = [f"{X}c{i % 8}" for i in range(32)]
        return list(await asyncio.gather(*(client.call_tool("entity", {"name": name}) for name in names)))

    for place, result in enumerate(calls(server, work)):
        assert result.structured_content["entity"]["key"] == f"{X}c{place % 8}"


def test_the_handshake_is_answered_before_the_graph_is_there_and_tools_wait_for_it(
    view: GraphView, asked: Asked
) -> None:
    loading: Future[GraphView] = Future()
    begun: list[str] = []
    server = mcp_server(lambda: loading.result(60), asked, on_start=lambda: begun.append("started"))
    assert begun == []

    async def work(client: Client) -> CallToolResult:
        assert begun == ["started"] and len((await client.list_tools()).tools) == len(TOOLS)
        waiting = asyncio.ensure_future(client.call_tool("entity", {"name": "Norland"}))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        loading.set_result(view)
        return await waiting

    assert not calls(server, work, mode="legacy").is_error


def test_a_graph_that_does_not_come_is_told(asked: Asked) -> None:
    server = mcp_server(lambda: Future[GraphView]().result(0.05), asked)
    assert "still being loaded" in text(call(server, "entity", name="x"))
    failed: Future[GraphView] = Future()
    failed.set_exception(InputError("there is no run"))
    assert "there is no run" in text(call(mcp_server(failed.result, asked), "entity", name="x"))


def test_too_many_and_too_slow_questions_are_refused_and_places_come_free(view: GraphView, asked: Asked) -> None:
    server = mcp_server(view, asked, limits=McpLimits(asks=1, waiting=1, ask_seconds=0.5))
    asked.hold = threading.Event()

    async def work(client: Client) -> list[str]:
        results = await asyncio.gather(*(client.call_tool("ask", {"question": f"{n}?"}) for n in range(3)))
        return sorted(text(result) for result in results)

    told = calls(server, work)
    assert sum("there is no answer after 0.5 s" in one for one in told) == 2
    assert sum("2 questions are under way or wait here" in one for one in told) == 1
    assert "2 questions" not in text(call(server, "search_entities", text="norland")), "the graph is not held up"
    asked.hold.set()
    end = time.monotonic() + 10
    while call(server, "ask", question="again?").is_error:
        assert time.monotonic() < end
    assert len([given for given in asked.given if given[0] != "again?"]) == 1, "what was given up did not begin"


def test_the_server_leaves_logging_to_the_application(view: GraphView, asked: Asked) -> None:
    before = list(logging.getLogger().handlers), logging.getLogger().level
    mcp_server(view, asked)
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before


# -- HTTP ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def address(server: MCPServer) -> Iterator[str]:
    with listening(guarded(server)) as found:
        yield found


def guarded(server: MCPServer, token: str | None = None) -> Guard:
    """As `kgqa mcp --http` serves it."""
    return token_guard(
        McpEndpoint(server).app(), token=token, hosts=host_names("127.0.0.1"), body_bytes=MAX_BODY, body_seconds=20
    )  # fmt: skip


INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_client_calls_tools_over_http(address: str, mode: str) -> None:
    async def work(client: Client) -> Any:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_entities", {"text": "norl"})
        bad = await client.call_tool("entity", {"name": "Norlnd"})
        several = await asyncio.gather(*(client.call_tool("entity", {"name": f"{X}c{n}"}) for n in range(8)))
        return listed, found, bad, several

    listed, found, bad, several = calls(f"{address}/mcp", work, mode=mode)
    assert listed == TOOLS and found.structured_content["matches"][0]["name"] == "Norland"
    assert bad.is_error and "did you mean 'Norland'" in text(bad)
    assert [one.structured_content["entity"]["key"] for one in several] == [f"{X}c{n}" for n in range(8)]


def test_foreign_hosts_origins_and_large_bodies_are_refused(address: str) -> None:
    def post(**headers: str) -> int:
        return httpx.post(f"{address}/mcp", json=INITIALIZE, headers=HEADERS | headers).status_code

    assert post() == 200
    assert post(Host="localhost:1") == 200 and post(Host="evil.example") == 403 and post(Host="127.0.0.1.evil") == 403
    assert post(Origin="http://evil.example") == 403 and post(Origin=address) == 200
    body = b'{"jsonrpc": "2.0", "id": "' + b"x" * MAX_BODY + b'"}'
    large = httpx.post(f"{address}/mcp", content=body, headers=HEADERS | {"Content-Type": "application/json"})
    assert large.status_code == 413
    assert httpx.post(f"{address}/mcp", content=b"{", headers=HEADERS).status_code == 400
    assert httpx.get(f"{address}/elsewhere").status_code == 404
    assert post() == 200


@pytest.mark.parametrize(
    ("code", "bodies"),
    [
        (-32700, (b"no json", b"", b"[" * 1000)),
        (
            -32600,
            (b"{}", b"[]", b"3", b'{"jsonrpc": "1.0", "id": 1, "method": "a"}', b'{"jsonrpc": "2.0", "method": 3}'),
        ),
    ],
)
def test_what_is_no_request_over_http_gets_an_error_of_json_rpc(
    address: str, code: int, bodies: tuple[bytes, ...]
) -> None:
    for body in bodies:
        reply = httpx.post(f"{address}/mcp", content=body, headers=HEADERS | {"Content-Type": "application/json"})
        assert reply.status_code == 400 and (reply.json()["id"], reply.json()["error"]["code"]) == (None, code), body
    odd = httpx.post(f"{address}/mcp", content=b"{}", headers=HEADERS | {"Content-Type": ";"})
    assert odd.status_code == 400 and odd.json()["error"]["code"] == -32600


def test_a_token_is_needed_where_one_is_set(server: MCPServer) -> None:
    with listening(guarded(server, SECRET)) as found:
        wrong = [None, b"Bearer wrong", f"Bearer {SECRET}x".encode(), SECRET.encode(), b"Bearer \xff"]
        for value in wrong:
            given = [*HEADERS.items(), *([] if value is None else [("Authorization", value)])]
            refused = httpx.post(f"{found}/mcp", json=INITIALIZE, headers=given)  # type: ignore[arg-type]
            assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
            assert SECRET not in refused.text
        listed = calls(f"{found}/mcp", lambda client: client.list_tools(), token=SECRET)
        assert [tool.name for tool in listed.tools] == TOOLS


def test_another_application_takes_the_endpoint_in(server: MCPServer) -> None:
    endpoint = McpEndpoint(server)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with endpoint.running():
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    app.router.routes.append(endpoint.route("/tools/mcp"))
    with listening(app) as found:
        assert httpx.get(f"{found}/health").json() == {"status": "ok"}
        assert not call(f"{found}/tools/mcp", "entity", name="Norland").is_error
        assert httpx.post(f"{found}/tools/mcp", json=INITIALIZE, headers=HEADERS | {"Host": "any"}).status_code == 200
        assert "/tools/mcp" not in httpx.get(f"{found}/openapi.json").json()["paths"]


def test_a_server_that_others_reach_needs_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert serve_token("127.0.0.1") is None and serve_token("localhost") is None and serve_token("::1") is None
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(ConfigError, match=f"--host {host} can be reached.*set {TOKEN_VARIABLE}"):
            serve_token(host)
    monkeypatch.setenv(TOKEN_VARIABLE, SECRET)
    assert serve_token("0.0.0.0") == SECRET and serve_token("127.0.0.1") == SECRET
    for bad in ("short", "x" * 15, "ä" * 20, "a token with some spaces"):
        monkeypatch.setenv(TOKEN_VARIABLE, bad)
        with pytest.raises(ConfigError, match="at least 16 characters") as fault:
            serve_token("127.0.0.1")
        assert bad not in str(fault.value)
        with pytest.raises(ConfigError, match="at least 16 characters"):
            ServeOptions("home").http()  # of `kgqa serve`


def test_names_of_a_host_and_places_to_listen() -> None:
    assert host_names("10.0.0.1") == ("10.0.0.1",) and host_names("0.0.0.0") is None and host_names("::") is None
    assert host_names("10.0.0.1", ["kg.example.org"]) == ("kg.example.org", "10.0.0.1")
    assert host_names("0.0.0.0", ["kg.example.org"]) == ("kg.example.org", "0.0.0.0")
    assert is_loopback("127.9.9.9") and not is_loopback("128.0.0.1") and not is_loopback("localhost.evil")
    with bind("127.0.0.1", 0) as first:
        first.listen(1)
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}.*another --port"):
            bind("127.0.0.1", port)
    with pytest.raises(ConfigError, match="--host no.such.host.invalid"):
        bind("no.such.host.invalid", 0)


def test_tools_over_several_graphs_take_the_name_of_one_as_its_resources_do(view: GraphView, asked: Asked) -> None:
    def absent() -> GraphView:
        raise InputError("the other graph is looked into")

    other = Asked()
    server = mcp_server(view, asked, graphs={"films": (view, asked), "other lands": (absent, other)})
    listed = calls(server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == TOOLS
    for tool in listed:
        assert tool.input_schema["properties"]["graph"]["enum"] == ["films", "other lands"], tool.name
        assert tool.input_schema["properties"]["graph"]["default"] == "films"
        assert tool.input_schema["additionalProperties"] is False and tool.output_schema["properties"]
    assert call(server, "entity", name="Norland").structured_content == view.entity("Norland", limit=25).to_json()
    assert "the other graph" in text(call(server, "entity", name="Norland", graph="other lands"))
    assert "literal_error" in text(call(server, "entity", name="Norland", graph="third"))
    assert not call(server, "ask", question="What?", graph="other lands").is_error
    assert len(other.given) == 1 and not asked.given
    resources = calls(server, lambda client: client.list_resources()).resources
    assert [str(one.uri) for one in resources] == ["kgqa://films/graph", "kgqa://other%20lands/graph"]
    read = calls(server, lambda client: client.read_resource("kgqa://films/entity/Norland"))
    assert "Norland" in read.contents[0].text
    assert "There are several graphs, films, other lands;" in calls(server, lambda client: _instructions(client))


async def _instructions(client: Client) -> str:
    return str(client.instructions)
