"""The file that the graph of a server was fetched into: resumed where a fetch was cut off, used until it is too old."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from pathlib import Path

from kgqa_core.config import KgOptions
from kgqa_core.errors import PASSWORD, KgInputError, without_passwords
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.remote.api import RemoteSpec, host_of
from kgqa_core.monitor import Log
from kgqa_core.store.artifacts import Home
from kgqa_core.store.files import storage_faults, write_json

log = logging.getLogger("kgqa")

RECORD = "fetched.json"
"""Beside the file: address, counts and seconds."""
PAGES = "pages"
GRACE = 3600.0
"""Seconds in which a process does not fetch the same again, whatever `kg.max_age` says: a run looks several times."""
PROGRESS = 5.0
"""Seconds between two lines of the log."""

_looked: dict[Path, float] = {}
"""When this process last found a file young enough, or fetched it."""


def snapshot(name: str, spec: RemoteSpec, options: KgOptions) -> Path:
    """The file with the graph of a server: fetched now, unless it was within `kg.max_age` hours.

    A fetch that was cut off goes on with the next page.  Raises KgInputError, EndpointError, StorageError.
    """
    if PASSWORD.search(name):
        raise KgInputError(
            f"{without_passwords(name)} holds a password, which others can read in the list of processes; put user and "
            "password into the environment: NEO4J_USERNAME and NEO4J_PASSWORD, or SPARQL_USERNAME and SPARQL_PASSWORD"
        )
    folder = folder_of(name, spec, options)
    file = folder / spec.file
    if file.is_file() and _young(file, options.max_age):
        return file
    spec.check(name, options)
    with storage_faults(folder, what="what is fetched", option="kg.fetched"):
        folder.mkdir(parents=True, exist_ok=True)
        passes = PassFolder(folder / PAGES)
        scratch = folder / f".{spec.file}.{os.getpid()}"
        log.info("%s: its graph is fetched into %s", name, folder)
        started = time.monotonic()
        try:
            counts = spec.fetch(name, options, passes, scratch, Log(every=PROGRESS))
            os.replace(scratch, file)
        finally:
            with contextlib.suppress(FileNotFoundError):
                scratch.unlink()
        record = {"address": name, "settings": dict(spec.settings(options)), "counts": dict(counts),
                  "pages_found_done": len(passes.done), "seconds": round(time.monotonic() - started, 2)}  # fmt: skip
        write_json(folder / RECORD, record)
        passes.clear()
    log.info("%s: fetched, %s", name, ", ".join(f"{value:,} {what}" for what, value in counts.items()))
    _looked[file] = time.monotonic()
    return file


def folder_of(name: str, spec: RemoteSpec, options: KgOptions) -> Path:
    """Where the graph of a server is fetched to: one folder for each address and choice of statements."""
    root = Path(options.fetched).expanduser() if options.fetched else Home.current().cache / "fetched"
    settings = json.dumps([name, dict(spec.settings(options))], sort_keys=True)
    return root / f"{host_of(name)}-{hashlib.sha256(settings.encode()).hexdigest()[:16]}"


def _young(file: Path, hours: float) -> bool:
    looked = _looked.get(file)
    if looked is not None and time.monotonic() - looked < GRACE:
        return True
    if time.time() - file.stat().st_mtime > hours * 3600:
        return False
    _looked[file] = time.monotonic()
    return True
