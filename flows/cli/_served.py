"""Asking the server of a home, where one runs: no model has to be loaded for a question."""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgqa_core.errors import InputError, KgqaError
from kgqa_core.serving.home_server import prove, read_address
from kgqa_core.serving.limits import TOKEN_VARIABLE

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 300.0
OWN = ("knowledge", "min_confidence")
"""Options of a server by which it answers otherwise than a command without them."""


def ask_server(
    home: Path, run: str | None, request: dict[str, Any], tell: Callable[[str], None] = lambda why: None
) -> dict[str, Any] | None:
    """The reply of the home's server to `POST /ask`; None where none runs that answers as this command would.

    run: that must answer; None takes the server's.  tell: is given why a server that runs is not asked.
    Nothing is sent before what listens at the address has proved that it is the server of this home.
    Raises InputError for a question that it refuses, KgqaError where it fails on it.
    """

    def leave(why: str) -> dict[str, Any] | None:
        tell(f"the server of this home {why}; the system is loaded here")
        return None

    address = read_address(home)
    if address is None:
        return None
    if own := [f"--{name.replace('_', '-')} {address[name]}" for name in OWN if address.get(name) is not None]:
        return leave(f"was started with {' '.join(own)}")
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
            if status != 200:
                return leave("is not ready")
            if run not in (None, ready.get("run")):
                return leave(f"answers with run {ready.get('run')}, not with {run}")
            if token := os.environ.get(TOKEN_VARIABLE):
                headers["Authorization"] = f"Bearer {token}"
            connection.auto_open = 0  # a second connection would be to somebody who has proved nothing
            connection.sock.settimeout(ANSWER_SECONDS)
            status, reply = _call(connection, "POST", "/ask", headers, request)
    except (OSError, AttributeError, http.client.HTTPException, ValueError):
        return None  # it is going, or something else listens there
    if status == 200:
        return reply
    message = str((reply.get("error") or {}).get("message") or f"the server replied with status {status}")
    if status in (401, 403, 503):
        return leave(f"refuses: {message}")
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
