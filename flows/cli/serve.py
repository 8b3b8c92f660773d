"""`kgqa serve`: the system of a home over HTTP."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._graph import GraphChoice, graph_or_run, graph_records, named_graphs, other_name
from flows.cli._options import NamedGraphsOption, TracedSystemChoice
from flows.cli._session import Session, err
from flows.cli.servers import in_url
from kgqa_core.runs.finished import system_parts
from kgqa_core.runs.records import stage_artifact
from kgqa_core.serving.home_server import announced
from kgqa_core.store.artifacts import Home

if TYPE_CHECKING:
    from kgqa_core.serving.feedback import Feedback
    from kgqa_core.serving.guard import Guard
    from kgqa_core.serving.run import ServeHooks, ServeOptions
    from kgqa_core.tracing import QuestionTracer


@dataclass(frozen=True)
class ListenOptions:
    """The options that say where `kgqa serve` listens and how much it takes on."""

    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8000
    workers: Annotated[int, typer.Option(help="Processes that answer.", min=1, max=64)] = 1
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Further name by which clients reach the server, such as that of a proxy; may be repeated."),
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address or network of a proxy whose X-Forwarded-For names the client; may be repeated."),
    ] = None
    timeout: Annotated[float, typer.Option(help="Seconds for an answer, waiting included.", min=0.1)] = 120.0
    queue: Annotated[int, typer.Option(help="Questions that wait at most.", min=1)] = 256
    graph: NamedGraphsOption = None
    allow_naming: Annotated[
        bool | None,
        typer.Option(
            "--allow-naming/--no-naming",
            help="Let clients give names to what the graph has [where only this machine reaches the server].",
            show_default=False,
        ),
    ] = None
    allow_upload: Annotated[
        bool,
        typer.Option("--allow-upload", help="Let clients add graph files, which are served until the server ends."),
    ] = False
    upload_mb: Annotated[int, typer.Option(help="Size of such a file at most, in MB.", min=1, max=4096)] = 64
    body_kb: Annotated[int, typer.Option(help="Size of a request at most, in KB.", min=1)] = 1024


def serve(session: Session, listen: ListenOptions, choice: TracedSystemChoice, graph: GraphChoice) -> None:
    """Answer questions over HTTP: JSON, OpenAI's chat protocol, the graph; Ctrl-C stops it.

    With --kg a graph is built once and answers without training.  Without it the champion is followed
    as it changes; in a home without one the newest finished run answers.  Others than
    this machine reach it only with --host, and then need the token of KGQA_SERVE_TOKEN.
    """
    graph, further = named_graphs(listen.graph or (), graph, choice.run_id)
    chosen, record = graph_or_run(session, graph, choice.run_id)
    records = graph_records(chosen, further)
    if chosen.writable:
        session.prepare()
    else:
        err.print(f"the home {chosen.root} cannot be written: no feedback, no traces, and `kgqa ask` does not ask this "
                  "server", soft_wrap=True)  # fmt: skip
    from kgqa_core.serving import run as server
    from kgqa_core.serving.addresses import bind
    from kgqa_core.serving.metrics import MULTIPROCESS_VARIABLE
    from kgqa_core.serving.systems import SystemSource
    from tasks.secrets import load_secrets

    source = SystemSource(chosen, choice.run_id, record=record if graph.kg else None).fixed()
    record = dict(source.record_of(source.current()))
    other_name(source, records)
    parts = system_parts(chosen, record, choice.knowledge, choice.min_confidence)
    load_secrets(parts.profile)
    if parts.reads_graph:
        common.mentions_folder(chosen, stage_artifact(record, "kg"), record)
    options = server.ServeOptions(
        str(chosen.root),
        source.run,
        choice.knowledge,
        choice.min_confidence,
        listen.host,
        listen.port,
        listen.workers,
        queue=listen.queue,
        hosts=tuple(listen.allowed_host or ()),
        proxies=tuple(listen.trusted_proxy or ()),
        body_kb=listen.body_kb,
        timeout_seconds=listen.timeout,
        trace_share=choice.trace_share,
        record=record if graph.kg else None,
        graphs=records,
        naming=listen.allow_naming,
        upload_mb=listen.upload_mb if listen.allow_upload else 0,
        key=secrets.token_hex(32),
    )
    options.http()
    hooks = serve_hooks(options)
    bound = bind(listen.host, listen.port)
    with contextlib.ExitStack() as stack:
        stack.callback(bound.close)
        service = None
        if listen.workers == 1:
            started = time.monotonic()
            with err.status("loading the graph, the retriever and the model …"):
                service = options.service(hooks)
                service.start()
            err.print(f"run {service.run} is loaded, {time.monotonic() - started:.1f} s", highlight=False)
        else:  # before the workers import prometheus_client
            os.environ[MULTIPROCESS_VARIABLE] = stack.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-metrics-"))
        address = f"http://{in_url(listen.host)}:{bound.getsockname()[1]}"
        started_with = {"knowledge": choice.knowledge, "min_confidence": choice.min_confidence, "key": options.key}
        there = stack.enter_context(announced(chosen, {"url": address, "process": os.getpid(), **started_with}))
        if not there and chosen.writable:
            err.print("another server of this home runs; `kgqa ask` asks that one", highlight=False)
        common.out.print(f"answering at {address}  (POST /ask, /v1/chat/completions; Ctrl-C stops)", highlight=False)
        server.serve(options, bound, service, hooks, worker="flows.cli.serve:worker_app")
    common.out.print("stopped")


def serve_hooks(options: ServeOptions) -> ServeHooks:
    """The home's MLflow as what keeps traces, and is told of feedback on answers that were traced."""
    from kgqa_core.config import recorded_profile
    from kgqa_core.serving.run import ServeHooks
    from tasks.secrets import load_secrets
    from tasks.tracking.traces import open_tracer, record_feedback

    home = Home(Path(options.home)).look()

    def tracer_of(record: Mapping[str, Any]) -> QuestionTracer:
        run_share = recorded_profile(record).tracking.trace_share
        return open_tracer(home, run_share if options.trace_share is None else options.trace_share, record, "serve")

    def on_feedback(feedback: Feedback) -> None:
        if feedback.trace is not None:
            record_feedback(home, feedback.trace, feedback.verdict == "up", correction=feedback.correction)

    return ServeHooks(tracer_of, on_feedback, load_secrets)


def worker_app() -> Guard:
    """The application of one worker of several."""
    from kgqa_core.serving.run import worker_options

    options = worker_options()
    return options.app(serve_hooks(options))
