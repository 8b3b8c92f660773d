"""The HTTP server: questions, OpenAI's chat protocol, the graph, feedback, health and counts.

Built by `create_app`; who may speak to it is in `guard`, what it answers with in `service`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kgqa_core.errors import (
    BudgetReached,
    EndpointError,
    FormTimeout,
    InputError,
    KgqaError,
    QuestionTimeout,
    ServerBusy,
    StorageError,
)
from kgqa_core.question_limits import shown
from kgqa_core.serving import messages
from kgqa_core.serving.ask_record import Ask, AskReply
from kgqa_core.serving.chat import Chunks, ask_events, completion, question_of
from kgqa_core.serving.feedback import Feedback, FeedbackRefused, FeedbackStore, client_of
from kgqa_core.serving.graph_routes import add_graph_routes, gated
from kgqa_core.serving.guard import (
    OPEN_PATHS,
    App,
    BodyLimit,
    Guard,
    Message,
    Receive,
    Scope,
    Send,
    error_body,
    token_guard,
)
from kgqa_core.serving.limits import GRAPH_CALLS, TOKEN_VARIABLE
from kgqa_core.serving.mcp_http import McpEndpoint
from kgqa_core.serving.mcp_server import McpLimits, mcp_server
from kgqa_core.serving.metrics import Metrics
from kgqa_core.serving.name_routes import add_name_routes
from kgqa_core.serving.page.routes import add_page_routes
from kgqa_core.serving.service import Served, Service
from kgqa_core.serving.thread_gate import ThreadGate
from kgqa_core.serving.upload_routes import BODY_SECONDS as UPLOAD_SECONDS
from kgqa_core.serving.upload_routes import PATH as UPLOAD_PATH
from kgqa_core.serving.upload_routes import GraphUploads, OpenGraph, add_upload_routes
from kgqa_core.tracing import OnStep

log = logging.getLogger("kgqa")

RETRY_SECONDS = 1
"""`Retry-After` of a server that is busy."""
CLOSE_SECONDS = 3.0
"""In which a batch ends that is being answered when no request is under way any more."""
GRAPH_WAITING = 64
"""Calls of HTTP and MCP together that wait to look into the graph."""


@dataclass(frozen=True)
class HttpOptions:
    """Limits of the server.

    body_kb: of a request's body.  body_seconds: in which it must come.  timeout_seconds: for an answer, waiting
    included.  hosts: names beside loopback's addresses that `Host` may have; None takes any.  token: that requests
    must bear; None asks for none.  proof: what `/ready` answers to a client's challenge.  proxies: addresses and
    networks whose `X-Forwarded-For` names the client.  naming: whether clients may change the home's names.
    upload_mb: of a graph file that a client sends; 0 where none is taken.
    """

    body_kb: int = 1024
    body_seconds: float = 20.0
    timeout_seconds: float = 120.0
    hosts: Sequence[str] | None = ()
    token: str | None = None
    proof: Callable[[str], str] | None = None
    proxies: Sequence[str] = ()
    naming: bool = False
    upload_mb: int = 0


def create_app(
    service: Service,
    options: HttpOptions | None = None,
    feedback: FeedbackStore | None = None,
    metrics: Metrics | None = None,
    on_feedback: Callable[[Feedback], None] | None = None,
    graphs: Mapping[str, Service] | None = None,
    open_graph: OpenGraph | None = None,
) -> Guard:
    """The ASGI application over a service, which it starts and closes with itself.

    feedback: keeps what people say of answers; None takes none.  on_feedback: is told of each that is kept, such as a
    tracker; a fault of it is logged.  graphs: services of several graphs by name, `service` among them; each has all
    routes below `/g/NAME`, too, and is a model of the chat protocol.  open_graph: of the files that clients send; None
    takes none.
    """
    options, metrics = options or HttpOptions(), metrics or Metrics()
    gate = ThreadGate("calls that look into the graph", GRAPH_CALLS, GRAPH_WAITING)
    every = dict(graphs or {})
    make = partial(
        _application, options=options, feedback=feedback, metrics=metrics, on_feedback=on_feedback, gate=gate,
        every=every,
    )  # fmt: skip
    mounted = {name: make(one, graphs={name: one}) for name, one in every.items()}
    uploads = GraphUploads(every, open_graph, lambda name, one: make(one, graphs={name: one}))
    app = make(service, graphs=every, mounted=mounted, uploads=uploads)
    limit = BodyLimit(options.upload_mb << 20, UPLOAD_SECONDS, "--upload-mb")
    return token_guard(
        ProxyHeadersMiddleware(Counted(app, metrics), list(options.proxies)),  # type: ignore[arg-type]
        token=options.token,
        hosts=options.hosts,
        body_bytes=options.body_kb * 1024,
        body_seconds=options.body_seconds,
        others={UPLOAD_PATH: limit} if open_graph is not None else None,
    )


def _application(
    service: Service,
    options: HttpOptions,
    feedback: FeedbackStore | None,
    metrics: Metrics,
    on_feedback: Callable[[Feedback], None] | None,
    gate: ThreadGate,
    graphs: Mapping[str, Service],
    every: Mapping[str, Service],
    mounted: Mapping[str, FastAPI] | None = None,
    uploads: GraphUploads | None = None,
) -> FastAPI:
    """All routes over one service.

    graphs: that are its models, all of them or its own; every: all graphs.  mounted: applications of single graphs,
    below `/g/NAME`.  uploads: adds further ones.
    """
    limits, mounted = McpLimits(ask_seconds=options.timeout_seconds), mounted or {}
    look = gated(lambda: service.view, gate, options.timeout_seconds)
    mcp = McpEndpoint(mcp_server(lambda: service.view, service.answer, limits=limits, graph_gate=gate))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not service.started:
            await asyncio.to_thread(service.start)
        try:
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(mcp.running())
                if uploads is not None:
                    await stack.enter_async_context(uploads.running())
                for one in mounted.values():
                    await stack.enter_async_context(one.router.lifespan_context(one))
                yield
        finally:
            await asyncio.to_thread(service.close, CLOSE_SECONDS)

    app = FastAPI(
        title="kgqa", description=DESCRIPTION, version="1", lifespan=lifespan, docs_url=None, redoc_url=None,
        generate_unique_id_function=lambda route: route.name, responses={422: {"model": messages.ErrorReply}},
    )  # fmt: skip
    app.openapi = partial(_schema, app, options.token)  # type: ignore[method-assign]
    app.state.service, app.state.feedback = service, feedback
    app.router.routes.append(mcp.route())
    _answer_faults(app)
    _ask_routes(app, service, options, metrics)
    _chat_routes(app, service, graphs, options, metrics)
    add_graph_routes(app, look)
    naming = options.naming and feedback is not None
    add_name_routes(app, service, feedback, options.token, writable=naming)
    if feedback is not None:
        _feedback_routes(app, feedback, options.token, metrics, on_feedback)
    _state_routes(app, service, metrics, options.proof)

    def state() -> dict[str, Any]:
        known = {"feedback": feedback is not None, "naming": naming, "graphs": tuple(every)}
        known["upload_mb"] = options.upload_mb
        return {"graph": service.name, "run": service.run, **known}

    add_page_routes(app, lambda: service.view, look, state, service.examples)
    if uploads is not None:
        add_upload_routes(app, uploads)
    for name, one in mounted.items():
        app.mount(f"/g/{name}", one)
    return app


DESCRIPTION = "Answers to questions from a knowledge graph, with their proof and confidence, or why there is none."
STREAM: dict[int | str, Any] = {200: {"content": {"text/event-stream": {}}}}
WAITS = (400, 503, 504)
STATUSES = {
    "/ask": (*WAITS, 429, 502), "/v1/chat": (*WAITS, 404, 429, 502), "/v1/models": (503,), "/entities": WAITS,
    "/paths": WAITS, "/query": WAITS, "/sql": WAITS, "/feedback": (400, 404, 409, 429),
    "/names": (*WAITS, 429), "/graphs": (*WAITS, 409),
}  # fmt: skip
"""Errors of the routes that begin so, beside those of every route and of every body."""
TAGS = {"ask": "answers", "v1": "answers", "feedback": "answers", "health": "server", "ready": "server",
        "metrics": "server"}  # fmt: skip
"""Groups of operations by the first part of their path, `graph` of all others: modules of a generated client."""


def _schema(app: FastAPI, token: str | None) -> dict[str, Any]:
    """The OpenAPI description with the errors of each route and the token, where the server asks for one."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    fault = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorReply"}}}
    for path, operations in schema["paths"].items():
        own = next((statuses for start, statuses in STATUSES.items() if path.startswith(start)), ())
        for operation in operations.values():
            body = (408, 413) if "requestBody" in operation else ()
            login = () if path in OPEN_PATHS else (401,)
            operation["tags"] = [TAGS.get(path.split("/")[1], "graph")]
            for status in (*login, 403, *body, *own, 500):
                entry = {"description": HTTPStatus(status).phrase, "content": fault}
                operation["responses"].setdefault(str(status), entry)
            if not login:
                operation["security"] = []
            if not body and "parameters" not in operation:
                del operation["responses"]["422"]
    bearer = {"type": "http", "scheme": "bearer", "description": f"{TOKEN_VARIABLE} of the server, where it has one"}
    schema["components"]["securitySchemes"] = {"token": bearer}
    app.openapi_schema = schema | {"security": [{"token": []}] if token else [{}, {"token": []}]}
    return app.openapi_schema


def _ask_routes(app: FastAPI, service: Service, options: HttpOptions, metrics: Metrics) -> None:
    @app.post("/ask", summary="The answer to a question, with its proof", response_model=AskReply, responses=STREAM)
    async def ask(request: messages.AskRequest, sent: Request) -> Response:
        if request.stream:
            return await _stream(service, request.ask(), options, metrics, sent, ask_events)
        [served] = await _served(service, [request.ask()], options, metrics, sent)
        return JSONResponse(messages.served_json(_answered(served)))

    @app.post("/ask/batch", summary="The answers to several questions, or rejects", response_model=messages.BatchReply)
    async def ask_batch(request: messages.BatchRequest, sent: Request) -> JSONResponse:
        outcomes = await _served(service, [result.ask() for result in request.questions], options, metrics, sent)
        answers = []
        for result, given in zip(outcomes, request.questions, strict=True):
            if isinstance(result, Served):
                answers.append(messages.served_json(result))
            elif isinstance(result, InputError):
                answers.append(
                    {"question": shown(given.question), "answer": None, "answers": [], "reject": str(result)}
                )
            else:
                raise result
        rejects = [index for index, result in enumerate(outcomes) if not isinstance(result, Served)]
        return JSONResponse({"answers": answers, "rejects": rejects})


def _chat_routes(
    app: FastAPI, service: Service, graphs: Mapping[str, Service], options: HttpOptions, metrics: Metrics
) -> None:
    def models() -> dict[str, Service]:
        return {f"kgqa/{name}": one for name, one in (graphs or {service.name: service}).items()}

    @app.post(
        "/v1/chat/completions", summary="OpenAI's chat protocol, plain and streaming",
        response_model=messages.ChatReply, responses=STREAM,
    )  # fmt: skip
    async def chat_completion(request: messages.ChatRequest, sent: Request) -> Response:
        question = question_of(request)
        name = service.name if request.model in ("", "kgqa") else request.model.removeprefix("kgqa/")
        known = f"kgqa/{name}"
        if (asked := models().get(known)) is None:
            message = f"model {request.model!r} is not here; there is {', '.join(models())}"
            return _error(404, message, "model_not_found")
        identity, created = f"chatcmpl-{uuid.uuid4().hex}", int(time.time())
        if request.stream:
            counted = request.stream_options is not None and request.stream_options.include_usage
            show = Chunks(identity, created, known, question, counted)
            return await _stream(asked, question, options, metrics, sent, show)
        [outcome] = await _served(asked, [question], options, metrics, sent)
        served = _answered(outcome)
        record = messages.served_json(served)
        return JSONResponse(completion(identity, created, known, question, served.answer, record))

    @app.get("/v1/models", summary="The models: a graph each, by name", response_model=messages.ModelList)
    async def list_models() -> dict[str, Any]:
        head = {"object": "model", "created": 0, "owned_by": "kgqa"}
        return {"object": "list", "data": [{"id": name, **head, "run": one.run} for name, one in models().items()]}


def _feedback_routes(
    app: FastAPI,
    feedback: FeedbackStore,
    token: str | None,
    metrics: Metrics,
    on_feedback: Callable[[Feedback], None] | None,
) -> None:
    def tell(verdict: Feedback) -> None:
        try:
            if on_feedback is not None:
                on_feedback(verdict)
        except Exception as fault:
            log.warning("the tracker was not told of feedback: %s", fault, exc_info=not isinstance(fault, KgqaError))

    @app.post("/feedback", summary="A thumb up or down for an answer, or the right one", status_code=201)
    async def give_feedback(request: messages.FeedbackRequest, sent: Request) -> messages.FeedbackReply:
        client = client_of(sent.client.host if sent.client else "", token)
        verdict = await asyncio.to_thread(feedback.add, request.feedback(), client)
        metrics.feedback.labels(request.verdict).inc()
        await asyncio.to_thread(tell, verdict)
        return messages.FeedbackReply(id=verdict.number)


def _state_routes(app: FastAPI, service: Service, metrics: Metrics, proof: Callable[[str], str] | None = None) -> None:
    @app.get("/health", summary="Whether the process is alive")
    async def health() -> messages.Health:
        return messages.Health()

    @app.get("/ready", summary="Whether questions are answered, and by which run", response_model=messages.Ready,
             responses={503: {"model": messages.Ready}})  # fmt: skip
    async def ready(challenge: Annotated[str | None, Query(max_length=64)] = None) -> JSONResponse:
        proved = {"proof": proof(challenge)} if proof is not None and challenge is not None else {}
        if not service.ready:
            return JSONResponse({"ready": False, **proved}, status_code=503)
        more = proved | ({"fault": service.fault} if service.fault else {})
        return JSONResponse({"ready": True, "run": service.run, "graph": service.name, "swaps": service.swaps, **more})

    @app.get("/metrics", summary="Counts, in Prometheus' text format", response_class=PlainTextResponse)
    async def metrics_text() -> Response:
        text, kind = metrics.text(service)
        return Response(text, headers={"Content-Type": kind})


async def _stream(
    service: Service,
    ask: Ask,
    options: HttpOptions,
    metrics: Metrics,
    sent: Request,
    show: Callable[..., Iterator[str]],
) -> Response:
    """The events that `show` makes of each step; a fault before the first is one of the request."""
    loop, steps = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def tell(*step: Any) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, step)

    task = asyncio.create_task(_served(service, [ask], options, metrics, sent, tell))
    task.add_done_callback(lambda _: steps.put_nowait(None))

    async def events(step: Any) -> AsyncIterator[str]:
        try:
            while step is not None:
                for line in show(*step):
                    yield line
                step = await steps.get()
            for line in show("done", _answered(task.result()[0])):
                yield line
        except Exception as fault:
            body = error_body(*_refusal(fault))
            yield f"event: error\ndata: {json.dumps(body)}\n\n"
        finally:
            task.cancel()

    if (first := await steps.get()) is None:
        _answered(task.result()[0])
    return StreamingResponse(events(first), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _served(
    service: Service,
    asks: Sequence[Ask],
    options: HttpOptions,
    metrics: Metrics,
    sent: Request,
    tell: OnStep | None = None,
) -> list[Served | Exception]:
    """What came of each question of a request; a connection is a client.  An answer that takes feedback has an id.

    Raises ServerBusy, or TimeoutError when the answers took too long.
    """
    try:
        futures: list[Future[Served]] = service.submit(asks, str(sent.client), tell)
    except ServerBusy:
        metrics.answers.labels("rejected").inc(len(asks))
        raise
    waiting = [asyncio.wrap_future(future) for future in futures]
    try:
        async with asyncio.timeout(options.timeout_seconds):
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    except TimeoutError:
        metrics.answers.labels("failed").inc(len(asks))
        raise
    except asyncio.CancelledError:  # the server has waited for its requests as long as it may
        raise ServerBusy("the server is stopping; ask again later") from None
    finally:
        for future in futures:
            future.cancel()
    for outcome in outcomes:
        if isinstance(outcome, Served):
            metrics.answered(outcome)
        else:
            metrics.answers.labels("rejected" if isinstance(outcome, InputError) else "failed").inc()
            if not isinstance(outcome, Exception):
                raise outcome
    known = [outcome for outcome in outcomes if isinstance(outcome, Served | Exception)]
    feedback: FeedbackStore | None = sent.app.state.feedback
    client = client_of(sent.client.host if sent.client else "", options.token)
    return known if feedback is None else await asyncio.to_thread(_with_ids, known, asks, feedback, client)


def _with_ids(
    outcomes: list[Served | Exception], asks: Sequence[Ask], feedback: FeedbackStore, client: str
) -> list[Served | Exception]:
    pairs = zip(outcomes, asks, strict=True)
    try:
        given = [messages.issued(outcome, len(ask.dialogue)) for outcome, ask in pairs if isinstance(outcome, Served)]
        ids = iter(feedback.issue(given, client))
    except StorageError as fault:  # an answer is worth more than feedback on it
        log.warning("answers have no id, and take no feedback: %s", fault)
        return outcomes
    return [replace(outcome, answer_id=next(ids)) if isinstance(outcome, Served) else outcome for outcome in outcomes]


def _answered(outcome: Served | Exception) -> Served:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _answer_faults(app: FastAPI) -> None:
    """Errors of the project as replies that say what to do, in the shape that OpenAI's clients read."""

    async def invalid(request: Request, fault: Exception) -> JSONResponse:
        assert isinstance(fault, RequestValidationError)
        lines = []
        for error in fault.errors()[:5]:
            field = ".".join(str(part) for part in error["loc"] if part != "body") or "the body"
            lines.append(f"{field}: {error['msg']}")
        return _error(422, "; ".join(lines), "invalid_request_error")

    async def known(request: Request, fault: Exception) -> JSONResponse:
        status, message, kind = _refusal(fault)
        return _error(status, message, kind, {"Retry-After": str(RETRY_SECONDS)} if status in (429, 503) else None)

    async def refused(request: Request, fault: Exception) -> JSONResponse:
        assert isinstance(fault, HTTPException)
        return _error(fault.status_code, fault.detail, "invalid_request_error", dict(fault.headers or {}))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(TimeoutError, known)
    app.add_exception_handler(KgqaError, known)
    app.add_exception_handler(Exception, known)


def _refusal(fault: Exception) -> tuple[int, str, str]:
    """Status, message and type of a fault; what is wrong with the server, and may name files, is in its log alone."""
    if isinstance(fault, TimeoutError):
        return 504, "the answer took too long; ask again later, or start the server with more --timeout", "timeout"
    status, kind = _status(fault)
    if status != 500:
        return status, str(fault), kind
    if isinstance(fault, KgqaError):
        log.error("a request failed: %s", fault)
    return status, f"an error of the server, {type(fault).__name__}; its log has more", kind


def _status(fault: Exception) -> tuple[int, str]:
    if isinstance(fault, FeedbackRefused):
        return fault.status, "invalid_request_error"
    if isinstance(fault, InputError):
        return 400, "invalid_request_error"
    if isinstance(fault, ServerBusy):
        return 503, "server_busy"
    if isinstance(fault, FormTimeout | QuestionTimeout):
        return 504, "timeout"
    if isinstance(fault, BudgetReached):
        return 429, "insufficient_quota"
    if isinstance(fault, EndpointError):
        return 502, "endpoint_error"
    return 500, "server_error"


def _error(status: int, message: str, kind: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error_body(status, message, kind), status_code=status, headers=headers)


class Counted:
    """An ASGI application that counts its requests."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), "499"  # the client went before a reply began

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(path, status).inc()
            self._metrics.request_seconds.labels(path).observe(time.perf_counter() - began)
