"""Running the HTTP server: one process, or several that share its port, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kgqa_core.config import Profile
from kgqa_core.errors import ConfigError
from kgqa_core.parent import end_with_parent
from kgqa_core.runs.graph_files import uploaded_record
from kgqa_core.serving.addresses import check_proxies, host_names, is_loopback
from kgqa_core.serving.feedback import Feedback, FeedbackStore
from kgqa_core.serving.guard import Guard, error_body, serve_token
from kgqa_core.serving.home_server import prove
from kgqa_core.serving.http import CLOSE_SECONDS, HttpOptions, create_app
from kgqa_core.serving.limits import SERVE_FOLDER, TOKEN_VARIABLE
from kgqa_core.serving.service import Service
from kgqa_core.serving.systems import SystemSource
from kgqa_core.store.artifacts import Home
from kgqa_core.tracing import QuestionTracer

VARIABLE = "KGQA_SERVE_OPTIONS"
"""Where a worker finds the options of its server, as JSON; of secrets they hold the key alone."""
HEADER_SECONDS = 15.0
"""In which a connection must send the headers of its first request."""
GRACE_SECONDS = 30
"""In which a server has ended after a signal; requests that are under way are finished in all but its last seconds."""


@dataclass(frozen=True)
class ServeOptions:
    """How a home is served.

    home: its folder.  run, knowledge, min_confidence: as `SystemSource` takes them.  host, port: 0 takes any free port.
    workers: processes; each has the networks for itself, and shares the memory-mapped graph.  connections: at once, of
    a worker.  max_batch, queue, poll_seconds: as `Service` takes them.  hosts, proxies, body_kb, body_seconds,
    timeout_seconds: as `HttpOptions` has them.  trace_share: of the questions that are traced; that of the run when
    absent.  record: as of `SystemSource`.  graphs: such records of further
    graphs, by name.  naming: clients may change names of the graph; where only this machine reaches the server, when
    absent.  upload_mb: of a graph file that clients may send; 0 where they may not.  key: by which the server proves
    that it is the home's.
    """

    home: str
    run: str | None = None
    knowledge: str | None = None
    min_confidence: float | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    connections: int = 512
    max_batch: int = 16
    queue: int = 256
    poll_seconds: float = 2.0
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    body_kb: int = 1024
    body_seconds: float = 20.0
    timeout_seconds: float = 120.0
    trace_share: float | None = None
    record: dict[str, Any] | None = None
    graphs: dict[str, dict[str, Any]] = field(default_factory=dict)
    naming: bool | None = None
    upload_mb: int = 0
    key: str = field(default="", repr=False)

    def service(self, hooks: ServeHooks | None = None) -> Service:
        """The service, not started."""
        home, hooks = Home(Path(self.home)).look(), hooks or ServeHooks()
        source = SystemSource(
            home, self.run, self.knowledge, self.min_confidence, tracer_of=hooks.tracer_of, prepare=hooks.prepare,
            seconds=self.timeout_seconds, record=self.record,
        )  # fmt: skip
        return Service(source, max_batch=self.max_batch, queue=self.queue, poll_seconds=self.poll_seconds)

    def app(self, hooks: ServeHooks | None = None, service: Service | None = None) -> Guard:
        """The application.  service: started already; its own when absent."""
        on_feedback = hooks.on_feedback if hooks is not None else None
        service, graphs = service or self.service(hooks), dict[str, Service]()
        if self.graphs or self.upload_mb:
            graphs = {service.source.name(service.source.current()): service}

        def further(record: dict[str, Any]) -> Service:
            return replace(self, run=None, knowledge=None, record=record).service(hooks)

        def open_graph(name: str, file: Path) -> Service:
            return further(uploaded_record(Home(Path(self.home)).look(), name, file))

        graphs |= {name: further(record) for name, record in self.graphs.items()}
        return create_app(
            service, self.http(), self.feedback(), on_feedback=on_feedback, graphs=graphs,
            open_graph=open_graph if self.upload_mb else None,
        )  # fmt: skip

    def feedback(self) -> FeedbackStore | None:
        """Where feedback is kept; None in a home that cannot be written."""
        home = Home(Path(self.home)).look()
        return FeedbackStore(home.root / SERVE_FOLDER) if home.writable else None

    def http(self) -> HttpOptions:
        """The limits of the HTTP server.  Raises ConfigError, as `serve_token` and `check_proxies`, and for uploads."""
        hosts, token = host_names(self.host, self.hosts), serve_token(self.host)
        check_proxies(self.proxies)
        proof = partial(prove, self.key, Path(self.home)) if self.key else None
        alone = is_loopback(self.host) and not self.hosts and not self.proxies
        naming = alone if self.naming is None else self.naming
        if self.upload_mb:
            self._check_upload(alone or token is not None)
        return HttpOptions(
            self.body_kb, self.body_seconds, self.timeout_seconds, hosts, token, proof, self.proxies, naming,
            self.upload_mb,
        )  # fmt: skip

    def _check_upload(self, known: bool) -> None:
        """known: whether it is known who sends files."""
        if self.workers > 1:
            raise ConfigError(
                f"--allow-upload needs one process, not --workers {self.workers}: each has its own graphs"
            )
        if not known:
            raise ConfigError(
                "--allow-upload where others may reach the server, by --allowed-host or --trusted-proxy, needs a "
                f"token: set {TOKEN_VARIABLE}"
            )
        if not (home := Home(Path(self.home)).look()).writable:
            raise ConfigError(f"--allow-upload builds graphs in the home {home.root}, which cannot be written")


@dataclass(frozen=True)
class ServeHooks:
    """What is around the library.  tracer_of, prepare: as of `SystemSource`.  on_feedback: as of `create_app`."""

    tracer_of: Callable[[Mapping[str, Any]], QuestionTracer] | None = None
    on_feedback: Callable[[Feedback], None] | None = None
    prepare: Callable[[Profile], None] | None = None


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed where no request begins in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the clock."""
        super().connection_made(transport)
        self._clock = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _too_slow(self) -> None:
        cycle: object = self.cycle
        if cycle is None:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP as the guard answers what it refuses, where no reply has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [("content-type", "application/json"), ("connection", "close")]
            body = json.dumps(error_body(400, msg)).encode()
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        self._clock.cancel()
        super().connection_lost(exc)


class OrderlyServer(uvicorn.Server):
    """A server for which a signal is the usual end: it is not raised again when the requests are done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends on SIGINT and SIGTERM, and leaves the handlers as they were."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _without_wakeup() -> Iterator[None]:
    """Signals are told to nobody but their handlers: the command line would end the process after its own grace."""
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)


def serve(
    options: ServeOptions,
    bound: socket.socket,
    service: Service | None = None,
    hooks: ServeHooks | None = None,
    *,
    worker: str,
) -> None:
    """Answers requests at a socket until SIGINT or SIGTERM; requests under way are finished first.

    service: started already, for one process.  worker: of several, `MODULE:FUNCTION` that gives the application of one.
    Raises ConfigError as `ServeOptions.http`.
    """
    options.http()
    config: dict[str, Any] = {
        "http": ImpatientProtocol, "ws": "none", "loop": "asyncio", "lifespan": "on", "log_config": None,
        "access_log": False, "server_header": False, "proxy_headers": False, "limit_concurrency": options.connections,
        "timeout_keep_alive": 15, "timeout_graceful_shutdown": int(GRACE_SECONDS - 2 * CLOSE_SECONDS),
        "h11_max_incomplete_event_size": 64 * 1024,
    }  # fmt: skip
    if options.workers == 1:
        with _without_wakeup():
            OrderlyServer(uvicorn.Config(options.app(hooks, service), **config)).run(sockets=[bound])
        return
    os.environ[VARIABLE] = json.dumps(asdict(options))
    from uvicorn.supervisors import Multiprocess

    chosen = uvicorn.Config(worker, factory=True, workers=options.workers, timeout_worker_healthcheck=60, **config)
    with _without_wakeup():
        Multiprocess(chosen, sockets=[bound]).run()


def worker_options() -> ServeOptions:
    """The options of the server that this process is a worker of.

    Its parent ends it, by a signal or by its own end, and not a terminal's Ctrl-C.
    """
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given: dict[str, Any] = json.loads(os.environ[VARIABLE])
    given |= {name: tuple(given[name]) for name in ("hosts", "proxies")}
    return replace(ServeOptions(given["home"]), **given)
