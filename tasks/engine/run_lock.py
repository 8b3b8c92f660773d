"""Who owns a run: a lock that the kernel frees when its holder dies, and the care for runs whose holder is dead.

`runs/<id>/owner.lock` names host, process and since when; it is locked (`flock`) while the process lives.  A run that
ends with everything sent removes it.  A lock file that nobody holds therefore means: killed, or calls left to send.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import socket
import time
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run
from prefect.states import Completed, Crashed, Failed

from kgqa_core.store.artifacts import Home, write_json
from kgqa_core.store.locks import acquire, free
from tasks.tracking.buffered_tracker import BufferedTracker

log = logging.getLogger("kgqa.tracking")
OWNER = "owner.lock"
RECORD = "run.json"
DIED = "its process died"
CLOCKS = 5.0
"""Seconds by which the clocks of a server and of this machine may differ."""


class RunLock:
    """The hold of this process on a run's folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / OWNER
        self._handle: TextIO | None = _locked(self.path)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        named = {"host": socket.gethostname(), "pid": os.getpid(), "run": folder.name, "since": since}
        self._handle.truncate(0)
        json.dump({**named, "flow_run_id": flow_run.id}, self._handle)
        self._handle.flush()

    def release(self, *, settled: bool) -> None:
        """Let go; settled: nothing is left for a later run to do."""
        if self._handle is None:
            return
        if settled:
            self.path.unlink(missing_ok=True)
        self._handle.close()
        self._handle = None


def _locked(path: Path) -> TextIO:
    """The file of a lock that is held; where a file system has none, the run goes on, and nobody cares for it."""
    try:
        return os.fdopen(acquire(path), "r+")
    except OSError as fault:
        if fault.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
            return path.open("a+")
        raise


def reap_killed_runs(home: Home, run_id: str, tracker: BufferedTracker) -> list[str]:
    """Send what earlier runs of the home could not, close what killed ones left open; their ids.

    run_id: the run that cares.  Does nothing for runs whose process lives, and nothing to the store while it is away.
    """
    cared = []
    for path in sorted((home.root / "runs").glob(f"*/{OWNER}")):
        folder = path.parent
        with contextlib.suppress(OSError), free(path) as locked:
            if not locked or folder.name == run_id:
                continue
            killed = _mark_killed(folder)
            _write_off(path)
            if tracker.store is None:
                continue
            ids, left = tracker.adopt(folder)
            _name_in_record(folder, ids)
            if left:
                continue
            with contextlib.suppress(Exception):
                closed = tracker.store.kill(folder.name)
                path.unlink(missing_ok=True)
                cared.append(folder.name)
                if killed or closed:
                    log.info("run %s was killed; its %d open MLflow runs are closed as KILLED", folder.name, closed)
    return cared


def _mark_killed(folder: Path) -> bool:
    """Whether the run's record says that it was under way; it says `killed` from now on."""
    record = _record(folder)
    if record is not None and record.get("status") not in (None, "running"):
        return False
    with contextlib.suppress(OSError):
        write_json(folder / RECORD, {**(record or {"run_id": folder.name, "stages": []}), "status": "killed"})
    return True


def _write_off(path: Path) -> None:
    """Close in Prefect the flow run of an owner that died or lost the server, unless it has been taken up since."""
    with contextlib.suppress(Exception):
        name = json.loads(path.read_text(encoding="utf-8"))["flow_run_id"]
        if not flow_run.id or name in (None, flow_run.id):
            return
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(name)).state
            if state is not None and state.is_running() and state.timestamp.timestamp() < path.stat().st_mtime + CLOCKS:
                ended = (_record(path.parent) or {}).get("status")
                make_state = {"failed": Failed, "done": Completed, "ended": Completed}.get(str(ended))
                state = make_state(message="the server was away when it ended") if make_state else Crashed(message=DIED)
                client.set_flow_run_state(UUID(name), state, force=True)


def _name_in_record(folder: Path, ids: dict[str, str]) -> None:
    record = _record(folder)
    if record is not None and record.get("mlflow_handle") in ids:
        with contextlib.suppress(OSError):
            write_json(folder / RECORD, {**record, "mlflow_run_id": ids[record["mlflow_handle"]]})


def _record(folder: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
