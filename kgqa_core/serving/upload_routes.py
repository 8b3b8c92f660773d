"""Graph files that clients send: each is built, and served beside the other graphs until the server ends."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from pydantic import create_model

from kgqa_core.errors import InputError, ServerBusy
from kgqa_core.runs.graph_files import UPLOAD_SECONDS, check_upload
from kgqa_core.serving.feedback import FeedbackRefused
from kgqa_core.serving.service import Service
from kgqa_core.serving.thread_gate import ThreadGate

PATH = "/graphs"
MOST_UPLOADS = 8
"""Graphs that clients add to a server; each takes of its memory."""
BODY_SECONDS = 600.0
"""In which a file must come."""
NOT_HERE = (
    "graph files are not taken over this server; start it with --allow-upload, or name the file there: "
    "kgqa serve --graph NAME=FILE"
)
OpenGraph = Callable[[str, Path], Service]
"""A service, not started, over the graph of a file, by the graph's name."""

UploadReply: Any = create_model(
    "UploadReply", name=(str, ...), address=(str, ...), model=(str, ...), entities=(int, ...), triples=(int, ...)
)
"""address: below which the graph has the page and all requests.  model: of the chat protocol."""
_BODY = {"requestBody": {"required": True, "content": {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}  # fmt: skip


class GraphUploads:
    """Adds graphs to a server.

    graphs: all of it, by name, to which they are added.  open_graph: None where no file is taken.  make: the
    application over a service, which is mounted in `app`.
    """

    def __init__(
        self, graphs: dict[str, Service], open_graph: OpenGraph | None, make: Callable[[str, Service], FastAPI]
    ) -> None:
        self.graphs, self.open_graph, self.make = graphs, open_graph, make
        self.gate = ThreadGate("graph files that are read", 1, 0)
        self._receiving, self._ended = asyncio.Lock(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def add(self, app: FastAPI, name: str, file_name: str, sent: Request) -> Service:
        """The service over the graph of a request's body.  Raises InputError, ServerBusy, TimeoutError."""
        if self.open_graph is None:
            raise FeedbackRefused(403, NOT_HERE)
        check_upload(name, file_name)
        if self._receiving.locked():
            raise ServerBusy("another graph file is being read; send this one again in a while")
        async with self._receiving:
            if name in self.graphs:
                raise FeedbackRefused(409, f"there is a graph {name!r} already; give this one another name")
            if len(self._tasks) >= MOST_UPLOADS:
                raise FeedbackRefused(409, f"{MOST_UPLOADS} graphs were sent to this server, and no more are taken; "
                                           f"restart it with `--graph {name}=FILE`")  # fmt: skip
            service = await self._received(self.open_graph, name, file_name, sent)
            one, started = self.make(name, service), asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._hold(one, started))
            await started
            self._tasks.append(task)
            self.graphs[name] = service
            app.mount(f"/g/{name}", one)
        return service

    async def _received(self, open_graph: OpenGraph, name: str, file_name: str, sent: Request) -> Service:
        with tempfile.TemporaryDirectory(prefix="kgqa-upload-") as folder:
            path, size = Path(folder) / file_name, 0
            with path.open("wb") as out:
                async for data in sent.stream():
                    size += out.write(data)
            if not size:
                raise InputError(f"{file_name!r} is empty; send a graph file as the body")
            return await self.gate.run(lambda: open_graph(name, path), UPLOAD_SECONDS + 60.0)

    async def _hold(self, one: FastAPI, started: asyncio.Future[None]) -> None:
        """Starts an application and closes it with the server, in one task, as its task groups want."""
        try:
            async with one.router.lifespan_context(one):
                started.set_result(None)
                await self._ended.wait()
        except Exception as fault:
            if started.done():
                raise
            started.set_exception(fault)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Closes what was added at the end."""
        try:
            yield
        finally:
            self._ended.set()
            await asyncio.gather(*self._tasks)


def add_upload_routes(app: FastAPI, uploads: GraphUploads) -> None:
    """Adds the route by which a graph file is sent."""

    @app.post(
        PATH, summary="Serves the graph file that is sent as the body, beside the others", status_code=201,
        response_model=UploadReply, openapi_extra=_BODY,
    )  # fmt: skip
    async def add_graph(
        name: Annotated[str, Query(description="What the graph is called", max_length=1000)],
        file: Annotated[str, Query(description="The file's name, whose ending says its format", max_length=1000)],
        sent: Request,
    ) -> dict[str, Any]:
        counts = (await uploads.add(app, name, file, sent)).view.counts
        known = {"name": name, "address": f"/g/{name}/", "model": f"kgqa/{name}"}
        return known | {"entities": counts["entities"], "triples": counts["triples"]}
