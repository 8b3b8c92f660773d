"""Asking the server of a home, where one runs: no model has to be loaded for a question."""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgqa_core.errors import InputError, KgqaError
from kgqa_core.serving.home_server import prove, read_address
from kgqa_core.serving.limits import TOKEN_VARIABLE

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 300.0


def ask_server(home: Path, run: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """The reply of the home's server to `POST /ask`; None where none runs that answers with this run.

    Nothing is sent before what listens at the address has proved that it is the server of this home.
    Raises InputError for a question that it refuses, KgqaError where it fails on it.
    """
    address = read_address(home)
    if address is None or address.get("knowledge") is not None or address.get("min_confidence") is not None:
        return None  # there is none, or it answers otherwise than this command would
    headers = {"Content-Type": "application/json"}
    nonce = secrets.token_hex(16)
    try:
        url = urlsplit(address["url"])
        connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=CONNECT_SECONDS)
        with contextlib.closing(connection):
            status, ready = _call(connection, "GET", f"/ready?challenge={nonce}", headers, None)
            proof = prove(address["key"], home, nonce)
            if not hmac.compare_digest(str(ready.get("proof")).encode(), proof.encode()):
                return None
            if status != 200 or ready.get("run") != run:
                return None
            if token := os.environ.get(TOKEN_VARIABLE):
                headers["Authorization"] = f"Bearer {token}"
            connection.auto_open = 0  # a second connection would be to somebody who has proved nothing
            connection.sock.settimeout(ANSWER_SECONDS)
            status, reply = _call(connection, "POST", "/ask", headers, request)
    except (OSError, AttributeError, http.client.HTTPException, ValueError):
        return None  # it is going, or something else listens there
    if status == 200:
        return reply
    if status in (401, 403, 503):
        return None
    message = str((reply.get("error") or {}).get("message") or f"the server replied with status {status}")
    raise InputError(message) if status in (400, 422) else KgqaError(f"the server of this home: {message}")


def _call(
    connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str], body: Any
) -> tuple[int, dict[str, Any]]:
    connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
    response = connection.getresponse()
    value = json.loads(response.read())
    if not isinstance(value, dict):
        raise ValueError("no object")
    return response.status, value
