"""HTTP routes that look into the graph: search, entity pages, neighbourhoods, paths, logical forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from kgqa_core.serving import limits
from kgqa_core.serving.graph_records import (
    EntityPage,
    FormResult,
    NeighbourhoodRecord,
    PathsRecord,
    SearchResult,
    TableRecord,
)
from kgqa_core.serving.graph_view import Direction, GraphView
from kgqa_core.serving.thread_gate import ThreadGate

Name = Annotated[str, Query(max_length=limits.LONGEST, description="A key, label or alias of the graph.")]

Look = Callable[[Callable[[GraphView], Any]], Awaitable[Any]]
"""Makes a call of the view, and gives its record as JSON.  Raises GateFull, TimeoutError, and what the call raises."""


def gated(view: Callable[[], GraphView], gate: ThreadGate, seconds: float) -> Look:
    """Calls through a gate.  view: gives the view of the graph that answers now.  seconds: most time, waiting included.

    The JSON is made in the call's thread too, so that a long reply holds up no other request.
    """

    async def look(call: Callable[[GraphView], Any]) -> JSONResponse:
        return await gate.run(lambda: JSONResponse(call(view()).to_json()), seconds)

    return look


class QueryRequest(BaseModel):
    """A logical form (docs/logic.md), or a SELECT or ASK of SPARQL that one can say; things may be named by label.

    limit: answers, and triples of proof.
    """

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"form": "(JOIN (R capital) <New Zealand>)", "limit": 20}]}
    )

    form: Annotated[str, Field(min_length=1, max_length=limits.LONGEST_FORM)]
    limit: Annotated[int, Field(ge=1, le=limits.MOST_ROWS)] = 50


class SqlRequest(BaseModel):
    """A statement in SQL over the tables that `SHOW TABLES` lists.  limit: rows."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"statement": "SHOW TABLES"}]})

    statement: Annotated[str, Field(min_length=1, max_length=limits.LONGEST_FORM)]
    limit: Annotated[int, Field(ge=1, le=limits.MOST_ROWS)] = 50


def add_graph_routes(app: FastAPI, look: Look) -> None:
    """Adds the routes.  look: gives the JSON of a record of the graph that answers now."""

    @app.get("/entities", summary="Entities by name or key, best first; typing errors too")
    async def search_entities(
        q: Name, limit: Annotated[int, Query(ge=1, le=limits.MOST_SEARCHED)] = 20
    ) -> SearchResult:
        return await look(lambda graph: graph.search(q, limit))

    @app.get("/entities/{name:path}/neighbourhood", summary="An entity with its neighbours, for a picture")
    async def neighbours(
        name: str, limit: Annotated[int, Query(ge=1, le=limits.MOST_SHOWN)] = 50
    ) -> NeighbourhoodRecord:
        return await look(lambda graph: graph.neighbourhood(name, limit))

    @app.get("/entities/{name:path}", summary="What the graph says of an entity, in both directions")
    async def entity(
        name: str,
        limit: Annotated[int, Query(ge=1, le=limits.MOST_FACTS)] = 50,
        offset: Annotated[int, Query(ge=0)] = 0,
        direction: Direction = "both",
        relation: Annotated[str | None, Query(max_length=limits.LONGEST)] = None,
    ) -> EntityPage:
        return await look(
            lambda graph: graph.entity(name, limit=limit, offset=offset, direction=direction, relation=relation)
        )

    @app.get("/paths", summary="The shortest relation paths between two entities")
    async def paths(
        start: Name,
        end: Name,
        max_hops: Annotated[int, Query(ge=1, le=limits.MOST_HOPS)] = 3,
        limit: Annotated[int, Query(ge=1, le=limits.MOST_PATHS)] = 20,
    ) -> PathsRecord:
        return await look(lambda graph: graph.paths(start, end, max_hops, limit))

    @app.post("/query", summary="What a logical form denotes, with its proof")
    async def query(request: QueryRequest) -> FormResult:
        return await look(lambda graph: graph.query(request.form, request.limit))

    @app.post("/sql", summary="Rows of a statement in SQL, which can only read the graph")
    async def sql(request: SqlRequest) -> TableRecord:
        return await look(lambda graph: graph.sql(request.statement, request.limit))
