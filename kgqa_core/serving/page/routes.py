"""The web page: its files, which hold no data, and what it asks of the server beside the public requests.

The page keeps the conversation in the browser, so any worker answers any request.  Its scripts write text only, and
its content security policy lets nothing else run or load (docs/adr/0009-the-page.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from kgqa_core.errors import InputError
from kgqa_core.serving.graph_routes import Look, Name
from kgqa_core.serving.graph_view import Direction, GraphView
from kgqa_core.serving.guard import ASSETS
from kgqa_core.serving.limits import MOST_FACTS, MOST_ROWS, MOST_SHOWN
from kgqa_core.serving.page.api_page import api_page
from kgqa_core.serving.thread_gate import ThreadGate

TYPES = {".css": "text/css", ".js": "text/javascript", ".html": "text/html", ".svg": "image/svg+xml"}
"""Files of this folder that are served, by their ending."""
RULES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content security policy: what comes from this server, and no text ever becomes markup or code."""
EXAMPLES_SECONDS, EXAMPLES_WAITING = 120.0, 16
"""In which questions are made from a graph, and pages that wait for them."""
HEADERS = {
    "Content-Security-Policy": RULES,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address of an entity page has its key
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # kept, and asked for again by its ETag
}


def add_page_routes(
    app: FastAPI,
    view: Callable[[], GraphView],
    look: Look,
    state: Callable[[], Mapping[str, Any]],
    examples: Callable[[], tuple[str, ...]],
) -> None:
    """Adds the page.

    view: gives the view of the graph that answers now.  look: calls it.  state: what the page says of the server.
    examples: gives questions that it answers.
    """
    examined = ThreadGate("calls for examples", 1, EXAMPLES_WAITING)
    contents = {
        entry.name: entry.read_bytes() for entry in files(__package__).iterdir() if _ending(entry.name) in TYPES
    }

    @app.get("/", include_in_schema=False)
    @app.get("/entity", include_in_schema=False)
    @app.get("/console", include_in_schema=False)
    def page(request: Request) -> Response:
        return _file(request, "page.html", contents["page.html"])

    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> Response:
        return _file(request, "docs.html", api_page(app.openapi(), str(request.base_url).rstrip("/")))

    @app.get(ASSETS + "{name}", include_in_schema=False)
    def asset(request: Request, name: str) -> Response:
        if name not in contents or name == "page.html":
            raise HTTPException(404)
        return _file(request, name, contents[name])

    @app.get("/page/state", include_in_schema=False)
    def describe() -> dict[str, Any]:
        try:
            view()
        except InputError:
            return {**state(), "graph_view": False}
        return {**state(), "graph_view": True}

    # as of `/entities/KEY`, but any key fits: in a path `..`, `a/neighbourhood` and empty segments mean something else

    @app.get("/page/entity", include_in_schema=False)
    async def entity(
        key: Name,
        limit: Annotated[int, Query(ge=1, le=MOST_FACTS)] = 25,
        offset: Annotated[int, Query(ge=0)] = 0,
        direction: Direction = "both",
        relation: Annotated[str | None, Query(max_length=1000)] = None,
    ) -> JSONResponse:
        return await look(
            lambda graph: graph.entity(key, limit=limit, offset=offset, direction=direction, relation=relation)
        )

    @app.get("/page/start", include_in_schema=False)
    async def start() -> JSONResponse:
        return await look(lambda graph: graph.schema(MOST_ROWS))

    @app.get("/page/examples", include_in_schema=False)
    async def questions() -> dict[str, tuple[str, ...]]:
        return {"questions": await examined.run(examples, EXAMPLES_SECONDS)}

    @app.get("/page/types", include_in_schema=False)
    async def types(id: Annotated[list[int], Query(min_length=1, max_length=MOST_SHOWN)]) -> JSONResponse:
        return await look(lambda graph: graph.types(id))

    @app.get("/page/neighbourhood", include_in_schema=False)
    async def neighbourhood(key: Name, limit: Annotated[int, Query(ge=1, le=MOST_SHOWN)] = 25) -> JSONResponse:
        return await look(lambda graph: graph.neighbourhood(key, limit))


def _file(request: Request, name: str, content: bytes) -> Response:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[_ending(name)], headers=headers)


def _ending(name: str) -> str:
    return name[name.rfind(".") :]
