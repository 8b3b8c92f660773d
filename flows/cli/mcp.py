"""`kgqa mcp`: the newest run's graph and system as tools for agents, over stdio or HTTP."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._options import KnowledgeOption, MinConfidenceOption, RunOption
from flows.cli._session import JsonSession, err
from kgqa_core.errors import ConfigError, KgqaError
from kgqa_core.extras import require_extra
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import Home

if TYPE_CHECKING:
    from kgqa_core.answering.reply import Answer
    from kgqa_core.runs.finished import SystemParts
    from kgqa_core.serving.graph_view import GraphView
    from kgqa_core.system import System

PORT = 8765
"""Default port of HTTP."""
MOST_CONNECTIONS = 128
"""Connections of HTTP at once; further ones get 503."""
GRACE_SECONDS = 3
"""Time for requests that are under way when the server is stopped."""
log = logging.getLogger("kgqa")


class ServerSession(JsonSession):
    """A command that serves: stdout may be its protocol's."""

    options = ("home", "verbose")


def mcp(
    session: ServerSession,
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
    run_id: RunOption = None,
    knowledge: KnowledgeOption = None,
    min_confidence: MinConfidenceOption = None,
) -> None:
    """Serve the newest run's graph and system to agents as tools of the Model Context Protocol."""
    require_extra("serve", "kgqa mcp")
    for name, value in (("--port", port), ("--host", host), ("--allowed-host", allowed_host)):
        if value is not None and not http:
            raise ConfigError(f"{name} {value} is for HTTP; add --http, or leave it out")
    if knowledge is not None:
        from kgqa_core.config import Knowledge

        Knowledge.parse(knowledge)  # what is no knowledge of any run is refused before anything is loaded
    chosen = session.look()
    session.start_logging()
    record = newest_run(chosen, run_id)
    if http:
        _serve_http(_Loader(chosen, record, knowledge, min_confidence), host or "127.0.0.1", port, allowed_host or ())
    else:
        _serve_stdio(_Loader(chosen, record, knowledge, min_confidence))


class _Loader:
    """Opens what a run made in the background: first its graph, then its system."""

    def __init__(self, home: Home, record: dict[str, Any], knowledge: str | None, min_confidence: float | None) -> None:
        from kgqa_core.serving.open_systems import OpenSystems

        self._home, self._record = home, record
        self._knowledge, self._min_confidence = knowledge, min_confidence
        self._systems = OpenSystems(self._open)
        self.view: Future[GraphView] = Future()
        self._loaded: Future[None] = Future()

    def start(self) -> None:
        """Begin to open it."""
        threading.Thread(target=self._load, name="kgqa loader", daemon=True).start()

    def ask(
        self,
        question: str,
        topics: Sequence[str],
        dialogue: Sequence[tuple[str, str]],
        knowledge: str | None,
        min_confidence: float | None,
    ) -> Answer:
        """The answer of the system, once it is open; see `kgqa_core.serving.ask_record.AskSystem`."""
        self._loaded.result()
        return self._systems(question, topics, dialogue, knowledge, min_confidence)

    def _load(self) -> None:
        try:
            from kgqa_core.serving.graph_view import GraphView

            parts = self._parts(None)
            assert parts.mentions is not None
            self.view.set_result(GraphView.open(parts.kg, parts.dkg, parts.mentions))
            self._systems.load()
        except Exception as fault:
            if not isinstance(fault, KgqaError):
                log.exception("the run %s cannot be opened", self._record["run_id"])
            else:
                log.error("the run %s cannot be opened: %s", self._record["run_id"], fault)
            for future in (self.view, self._loaded):
                if not future.done():
                    future.set_exception(fault)
        else:
            self._loaded.set_result(None)
            log.info("run %s is open", self._record["run_id"])

    def _parts(self, knowledge: str | None) -> SystemParts:
        from kgqa_core.runs.finished import system_parts, with_mentions
        from tasks.secrets import load_secrets

        parts = system_parts(self._home, self._record, knowledge or self._knowledge, self._min_confidence)
        load_secrets(parts.profile)
        graph = stage_artifact(self._record, "kg")
        return with_mentions(parts, common.mentions_folder(self._home, graph, self._record))

    def _open(self, knowledge: str | None) -> System:
        from kgqa_core.system import System

        return System.open(self._parts(knowledge))


def _serve_stdio(loader: _Loader) -> None:
    """Serve until stdin ends."""
    from kgqa_core.serving.mcp_server import mcp_server

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # Only the protocol may be on stdout: the SDK turns other output to stderr, from before `on_start` to the end.
    mcp_server(loader.view, loader.ask, on_start=loader.start).run("stdio")
    if any(thread.daemon and thread.name.startswith("kgqa ") for thread in threading.enumerate()):
        _end()  # nobody reads what they may still find, and native code of a daemon may not outlive the interpreter


def _end(number: int | None = None, frame: FrameType | None = None) -> None:
    """Ends the process at once: everything is only read, and the thread that reads stdin cannot be woken."""
    sys.stderr.flush()
    os._exit(0 if number is None else 128 + number)


def _serve_http(loader: _Loader, host: str, port: int | None, more_hosts: Sequence[str]) -> None:
    """Serve until a signal comes."""
    import uvicorn

    from kgqa_core.serving.mcp_http import PATH, McpEndpoint, host_names, listen, serve_token
    from kgqa_core.serving.mcp_server import mcp_server

    token = serve_token(host)
    with listen(host, PORT if port is None else port) as socket:
        server = mcp_server(loader.view, loader.ask, on_start=loader.start)
        endpoint = McpEndpoint(server, hosts=host_names(host, more_hosts), token=token)
        name = f"[{host}]" if ":" in host else host
        needs = " (with the token of KGQA_SERVE_TOKEN)" if token else ""
        err.print(
            f"MCP at http://{name}:{socket.getsockname()[1]}{PATH}{needs}; Ctrl-C stops it",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        uvicorn.Server(
            uvicorn.Config(
                endpoint.app(),
                log_config=None,
                access_log=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        ).run(sockets=[socket])
