"""`kgqa mcp`: the champion's graph and system as tools for agents, over stdio or HTTP."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._graph import GraphChoice, graph_or_run, graph_records, named_graphs, other_name
from flows.cli._options import NamedGraphsOption, SystemChoice
from flows.cli._session import JsonSession, err
from kgqa_core.errors import ConfigError, KgqaError
from kgqa_core.runs.records import stage_artifact
from kgqa_core.store.artifacts import Home

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from kgqa_core.answering.reply import Answer
    from kgqa_core.serving.ask_record import Ask
    from kgqa_core.serving.graph_view import GraphView
    from kgqa_core.serving.systems import SystemSource

PORT = 8765
"""Default port of HTTP."""
BODY_SECONDS = 20.0
"""Time in which a request's body must come."""
MOST_CONNECTIONS = 128
"""Connections of HTTP at once; further ones get 503."""
LOAD_SECONDS = 300.0
"""Time that a tool waits for the graph to be loaded."""
GRACE_SECONDS = 3
"""Time for requests that are under way when the server is stopped."""
log = logging.getLogger("kgqa")


class ServerSession(JsonSession):
    """A command that serves: stdout may be its protocol's."""

    options = ("home", "verbose")


def mcp(
    session: ServerSession,
    choice: SystemChoice,
    graph: GraphChoice,
    graphs: NamedGraphsOption = None,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help=f"Port of --http; 0 takes any [{PORT}].", show_default=False),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            help="Address of --http; one that other machines reach needs KGQA_SERVE_TOKEN [127.0.0.1].",
            show_default=False,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Further name by which clients of --http reach it, such as that of a proxy; repeat it."),
    ] = None,
) -> None:
    """Serve a graph and what answers from it to agents as tools of the Model Context Protocol.

    With --kg, or --graph for several, a graph is built once and answers without training.  Without it the champion is
    followed as it changes; in a home without one the newest finished run answers.
    """
    for name, value in (("--port", port), ("--host", host), ("--allowed-host", allowed_host)):
        if value is not None and not http:
            raise ConfigError(f"{name} {value} is for HTTP; add --http, or leave it out")
    if choice.knowledge is not None:
        from kgqa_core.config import Knowledge

        Knowledge.parse(choice.knowledge)  # what is no knowledge of any run is refused before anything is loaded
    graph, further = named_graphs(graphs or (), graph, choice.run_id)
    chosen, record = graph_or_run(session, graph, choice.run_id)
    records = graph_records(chosen, further)
    from kgqa_core.serving.mcp_server import McpLimits
    from kgqa_core.serving.systems import SystemSource
    from tasks.secrets import load_secrets

    seconds = McpLimits().ask_seconds
    source = SystemSource(
        chosen, choice.run_id, choice.knowledge, choice.min_confidence, prepare=load_secrets, seconds=seconds,
        record=record if graph.kg else None,
    ).fixed()  # fmt: skip
    sources = {other_name(source, records): source}
    sources |= {name: replace(source, run=None, knowledge=None, record=own) for name, own in records.items()}
    loaders = {name: _Loader(chosen, dict(own.record_of(own.current())), own) for name, own in sources.items()}
    if http:
        _serve_http(loaders, host or "127.0.0.1", port, allowed_host or ())
    else:
        _serve_stdio(loaders)


class _Loader:
    """Starts a service in the background; the graph is looked into before the system is there."""

    def __init__(self, home: Home, record: dict[str, Any], source: SystemSource) -> None:
        from kgqa_core.serving.service import Service

        self._home, self._record = home, record
        self._service = Service(source)
        self._first_view: Future[GraphView | None] = Future()
        self._started: Future[None] = Future()

    def start(self) -> None:
        """Begin to open it."""
        threading.Thread(target=self._load, name="kgqa loader", daemon=True).start()

    def view(self) -> GraphView:
        """The graph of the run that answers now, once it is open.

        Raises TimeoutError, InputError where the system reads no graph, and the fault of a run that cannot be opened.
        """
        first = self._first_view.result(LOAD_SECONDS)
        return first if first is not None and not self._service.ready else self._service.view

    def ask(self, ask: Ask) -> Answer:
        """The answer of the system, once it is open; an `ask_record.AskSystem`."""
        self._started.result()
        return self._service.answer(ask)

    def _load(self) -> None:
        run = self._record["run_id"]
        try:
            common.mentions_folder(self._home, stage_artifact(self._record, "kg"), self._record)
            self._service.start(self._first_view.set_result)
        except Exception as fault:
            if not isinstance(fault, KgqaError):
                log.exception("the run %s cannot be opened", run)
            else:
                log.error("the run %s cannot be opened: %s", run, fault)
            for future in (self._first_view, self._started):
                if not future.done():
                    future.set_exception(fault)
        else:
            self._started.set_result(None)
            log.info("run %s is open", self._service.run)


def _server(loaders: Mapping[str, _Loader]) -> MCPServer:
    """The protocol's server over graphs that are loaded when it starts."""
    from kgqa_core.serving.mcp_server import mcp_server

    def start() -> None:
        for loader in loaders.values():
            loader.start()

    first, graphs = next(iter(loaders.values())), {name: (one.view, one.ask) for name, one in loaders.items()}
    return mcp_server(first.view, first.ask, graphs=graphs, on_start=start)


def _serve_stdio(loaders: Mapping[str, _Loader]) -> None:
    """Serve until stdin ends."""
    from kgqa_core.serving.mcp_stdio import serve_stdio

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # Only the protocol may be on stdout: the SDK turns other output to stderr, from before `on_start` to the end.
    serve_stdio(_server(loaders))
    if any(thread.daemon and thread.name.startswith("kgqa") for thread in threading.enumerate()):
        _end()  # nobody reads what they may still find, and native code of a daemon may not outlive the interpreter


def _end(number: int | None = None, frame: FrameType | None = None) -> None:
    """Ends the process at once: everything is only read, and the thread that reads stdin cannot be woken."""
    sys.stderr.flush()
    os._exit(0 if number is None else 128 + number)


def _serve_http(loaders: Mapping[str, _Loader], host: str, port: int | None, more_hosts: Sequence[str]) -> None:
    """Serve until a signal comes."""
    import uvicorn

    from kgqa_core.serving.addresses import bind, host_names
    from kgqa_core.serving.guard import serve_token, token_guard
    from kgqa_core.serving.mcp_http import MAX_BODY, PATH, McpEndpoint
    from kgqa_core.serving.run import ImpatientProtocol

    token = serve_token(host)
    with bind(host, PORT if port is None else port) as socket:
        socket.listen(128)
        endpoint = McpEndpoint(_server(loaders))
        names = host_names(host, more_hosts)
        app = token_guard(endpoint.app(), token=token, hosts=names, body_bytes=MAX_BODY, body_seconds=BODY_SECONDS)
        name = f"[{host}]" if ":" in host else host
        needs = " (with the token of KGQA_SERVE_TOKEN)" if token else ""
        err.print(
            f"MCP at http://{name}:{socket.getsockname()[1]}{PATH}{needs}; Ctrl-C stops it",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        uvicorn.Server(
            uvicorn.Config(
                app,
                http=ImpatientProtocol,
                log_config=None,
                access_log=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        ).run(sockets=[socket])
