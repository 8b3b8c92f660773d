"""HTTP routes that look into the graph: search, entity pages, neighbourhoods, paths, logical forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field

from kgqa_core.serving.graph_view import Direction, GraphView
from kgqa_core.serving.limits import (
    LONGEST,
    LONGEST_FORM,
    MOST_FACTS,
    MOST_HOPS,
    MOST_PATHS,
    MOST_ROWS,
    MOST_SEARCHED,
    MOST_SHOWN,
)

Name = Annotated[str, Query(max_length=LONGEST, description="A key, label or alias of the graph.")]


class QueryRequest(BaseModel):
    """A logical form (docs/logic.md); things may be named by label.  limit: answers, and triples of proof."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"form": "(JOIN (R capital) <New Zealand>)", "limit": 20}]}
    )

    form: Annotated[str, Field(min_length=1, max_length=LONGEST_FORM)]
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 50


def add_graph_routes(app: FastAPI, view: Callable[[], GraphView]) -> None:
    """Adds the routes.  view: gives the view of the graph that answers now."""

    @app.get("/entities", summary="Entities by name or key, best first; typing errors too")
    def search(q: Name, limit: Annotated[int, Query(ge=1, le=MOST_SEARCHED)] = 20) -> dict[str, Any]:
        return view().search(q, limit).to_json()

    @app.get("/entities/{name:path}/neighbourhood", summary="An entity with its neighbours, for a picture")
    def neighbourhood(name: str, limit: Annotated[int, Query(ge=1, le=MOST_SHOWN)] = 50) -> dict[str, Any]:
        return view().neighbourhood(name, limit).to_json()

    @app.get("/entities/{name:path}", summary="What the graph says of an entity, in both directions")
    def entity(
        name: str,
        limit: Annotated[int, Query(ge=1, le=MOST_FACTS)] = 50,
        offset: Annotated[int, Query(ge=0)] = 0,
        direction: Direction = "both",
        relation: Annotated[str | None, Query(max_length=LONGEST)] = None,
    ) -> dict[str, Any]:
        found = view().entity(name, limit=limit, offset=offset, direction=direction, relation=relation)
        return found.to_json()

    @app.get("/paths", summary="The shortest relation paths between two entities")
    def paths(
        start: Name,
        end: Name,
        max_hops: Annotated[int, Query(ge=1, le=MOST_HOPS)] = 3,
        limit: Annotated[int, Query(ge=1, le=MOST_PATHS)] = 20,
    ) -> dict[str, Any]:
        return view().paths(start, end, max_hops, limit).to_json()

    @app.post("/query", summary="What a logical form denotes, with its proof")
    def query(request: QueryRequest) -> dict[str, Any]:
        return view().query(request.form, request.limit).to_json()
