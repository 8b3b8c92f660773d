"""Asking the server of a home, where one runs: no model has to be loaded for a question."""

from __future__ import annotations

import http.client
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgqa_core.errors import InputError, KgqaError
from kgqa_core.serving.limits import ADDRESS, SERVE_FOLDER, TOKEN_VARIABLE

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 300.0


def ask_server(home: Path, run: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """The reply of the home's server to `POST /ask`; None where none runs that answers with this run.

    Raises InputError for a question that it refuses, KgqaError where it fails on it.
    """
    address = _address(home)
    if address is None:
        return None
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get(TOKEN_VARIABLE):
        headers["Authorization"] = f"Bearer {token}"
    host, port = address
    try:
        status, ready = _call(host, port, "GET", "/ready", headers, None, CONNECT_SECONDS)
        if status != 200 or ready.get("run") != run:
            return None
        status, reply = _call(host, port, "POST", "/ask", headers, request, ANSWER_SECONDS)
    except (OSError, http.client.HTTPException, ValueError):
        return None  # it is going, or something else listens there
    if status == 200:
        return reply
    if status in (401, 403, 503):
        return None
    message = str((reply.get("error") or {}).get("message") or f"the server replied with status {status}")
    raise InputError(message) if status in (400, 422) else KgqaError(f"the server of this home: {message}")


def _address(home: Path) -> tuple[str, int] | None:
    """Host and port that the home's server wrote down, where its process is alive."""
    try:
        said = json.loads((home / SERVE_FOLDER / ADDRESS).read_text(encoding="utf-8"))
        os.kill(int(said["process"]), 0)
        if said.get("knowledge") is not None or said.get("min_confidence") is not None:
            return None  # it answers otherwise than this command would
        url = urlsplit(said["url"])
        return (url.hostname, url.port) if url.hostname and url.port else None
    except PermissionError:
        return None  # the process is another user's
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _call(
    host: str, port: int, method: str, path: str, headers: dict[str, str], body: Any, seconds: float
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        response = connection.getresponse()
        found = json.loads(response.read())
    finally:
        connection.close()
    if not isinstance(found, dict):
        raise ValueError("no object")
    return response.status, found
