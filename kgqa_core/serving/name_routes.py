"""HTTP routes of the names that a home gives to what its graph has: shown to all, changed where that is allowed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field, create_model

from kgqa_core.runs.home_names import FOLDER, LONGEST_TEXT, change_names, home_names, names_file
from kgqa_core.serving.feedback import FeedbackRefused, FeedbackStore, client_of
from kgqa_core.serving.service import Service
from kgqa_core.serving.thread_gate import ThreadGate

SECONDS, WAITING = 60.0, 8
"""In which a change is made, its wait included; changes that wait."""
NOT_HERE = (
    "names are not given over this server: others reach it, or its home cannot be written. Put the lines into a file "
    "of --names, or start the server with --allow-naming"
)


class NamesRequest(BaseModel):
    """Lines of a names file (`kgqa kg words`), as YAML.  remove: takes these names out instead."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"lines": "relations: {directed by: [boss]}"}]}
    )

    lines: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    remove: bool = False


NamesReply: Any = create_model(
    "NamesReply", names=(dict[str, dict[str, list[str]]], ...), file=(str, ...), writable=(bool, ...),
    active=(bool, ...), fault=(str | None, None),
)  # fmt: skip
"""names: by section and key.  file: in the home.  active: the next question is read with them."""


def add_name_routes(
    app: FastAPI, service: Service, feedback: FeedbackStore | None, token: str | None, *, writable: bool
) -> None:
    """Adds the routes.  feedback: counts what a client sends.  writable: whether names may be changed."""
    gate = ThreadGate("changes of names", 1, WAITING)

    def state() -> dict[str, Any]:
        source = service.source
        record = source.record_of(service.run)
        names = home_names(source.home, record).model_dump(mode="json", exclude={"hide"}, exclude_defaults=True)
        file = f"{FOLDER}/{names_file(source.home, record).name}"
        active = service.names == source.names(service.run)
        return {
            "names": names, "file": file, "writable": writable, "active": active,
            "fault": None if active else service.fault,
        }  # fmt: skip

    def change(request: NamesRequest, client: str) -> dict[str, Any]:
        if feedback is not None:
            feedback.admit(client)
        change_names(service.source.home, service.source.record_of(service.run), request.lines, remove=request.remove)
        service.renew()
        return state()

    @app.get("/names", summary="Names that the home gives to what the graph has", response_model=NamesReply)
    async def names() -> dict[str, Any]:
        return await gate.run(state, SECONDS)

    @app.post(
        "/names", summary="Gives names that the next question may use, or takes them out", response_model=NamesReply
    )
    async def give_names(request: NamesRequest, sent: Request) -> dict[str, Any]:
        if not writable:
            raise FeedbackRefused(403, NOT_HERE)
        client = client_of(sent.client.host if sent.client else "", token)
        return await gate.run(lambda: change(request, client), SECONDS)
