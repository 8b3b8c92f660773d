"""The event `kgqa.kg.updated`: there is a newer graph, and whoever follows it may refresh."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.errors import InputError, KgqaError
from kgqa_core.kg.ingest.sources import named_files
from kgqa_core.kg.remote.registry import remote_of
from kgqa_core.kg.update.delta import options_of
from kgqa_core.spool import is_spooled
from kgqa_core.store.artifacts import Home
from tasks.servers.login import hand_to_clients

EVENT = "kgqa.kg.updated"
BUNDLED = "bundled:"

log = logging.getLogger("kgqa")


def check_server(files: Sequence[str] = ()) -> None:
    """Raise InputError where no Prefect server is named that could take an event, or where a file of it is a pipe.

    Logs in to a server of the home's own.
    """
    hand_to_clients(Home.current().root, os.environ)
    from prefect.settings import get_current_settings

    if get_current_settings().api.url is None:
        raise InputError(
            f"--emit sends the event {EVENT} to a Prefect server, and PREFECT_API_URL names none; start one with "
            "`kgqa ui`, and set PREFECT_API_URL=http://127.0.0.1:4200/api, and PREFECT_API_AUTH_STRING to its login"
        )
    for file in files:
        if is_spooled(Path(file)):
            raise InputError(
                f"--emit names the dump to those who refresh, and {file} is a pipe, which they cannot read; name a file"
            )


def tell(folder: Path, result: Mapping[str, Any], files: Sequence[str]) -> str:
    """Send the event for the graph in `folder`, and return the id of its resource, `kgqa.kg.<name>`.

    result: what the build or update returned.  files: the dump that the graph was read from, if it was read whole; a
    refresh that the event starts reads it too.  Raises KgqaError when the server does not take the event.
    """
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.events.schemas.events import Event, Resource

    name = str(options_of(folder)["name"])
    resource = f"kgqa.kg.{name}"
    event = Event(
        event=EVENT,
        resource=Resource({"prefect.resource.id": resource, "prefect.resource.name": name, "kgqa.kg": name}),
        payload={
            "name": name,
            "folder": str(folder.resolve()),
            "digest": result["digest"],
            "files": _whole_paths(files),
            "changes": result.get("changes", {}),
            "counts": {key: value for key, value in result.items() if isinstance(value, int)},
        },
    )
    try:
        with get_client(sync_client=True) as client:
            client.request("POST", "/events", json=[event.model_dump(mode="json")])
            address = client.api_url
    except (httpx.HTTPError, OSError) as fault:
        raise KgqaError(
            f"the graph is finished in {folder}, but the Prefect server did not take the event {EVENT} ({fault}); "
            "check PREFECT_API_URL, or start the deployment kgqa-refresh/refresh by hand"
        ) from None
    log.info("the server %s was told: %s of %s", address, EVENT, resource)
    return resource


def _whole_paths(files: Sequence[str]) -> list[str]:
    """The files as another process finds them, whatever folder it works in; patterns are spelled out."""
    if not files:
        return []
    bundled = [file for file in files if file.startswith(BUNDLED) or remote_of(file) is not None]
    others = [file for file in files if file not in bundled]
    return bundled + [str(source.path.resolve()) for source in (named_files(others) if others else ())]
