"""The guard before Prefect's and MLflow's servers, their login, and how a server proves that it knows the login."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from kgqa_core.serving.guard import App, Guard, Headers, Login, Receive, Refused, Scope, Send, respond
from tasks.servers.login import LOGIN, PROOF, prove
from tasks.servers.login_page import page

OPEN = (LOGIN, PROOF)
HEALTH = ("/health", "/api/health", "/api/ready")


def gate(app: App, auth_string: str, hosts: Iterable[str], *, addresses: bool = False, basic: bool = True) -> Guard:
    """An application behind the guard, with the pages for its login.

    hosts: names, each with its port or for any port, that `Host` may have.  addresses: whether any IP address may be
    in `Host`.  basic: whether the guard asks for the login, by HTTP's basic authentication; else the application does
    so itself, as Prefect's does for its API.
    """
    credentials = base64.b64encode(auth_string.encode()).decode()
    return Guard(
        _LoginPages(app, auth_string, basic),
        hosts=hosts,
        is_address=_is_address if addresses else lambda name: False,
        login=Login(f"Basic {credentials}", _is_open, _ask_for_login) if basic else None,
        render=lambda refused: ("text/plain; charset=utf-8", f"{refused.detail}\n".encode("utf-8", "replace")),
    )


class _LoginPages:
    """An application that answers for the login, and hands on all else."""

    def __init__(self, app: App, auth_string: str, basic: bool) -> None:
        self._app, self._auth_string, self._basic = app, auth_string, basic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == LOGIN:
            await respond(send, *page(basic=self._basic))
        elif scope["type"] == "http" and scope["path"] == PROOF:
            host = next(value.decode("latin-1") for key, value in scope["headers"] if key.lower() == b"host")
            nonce = parse_qs(scope["query_string"].decode("latin-1")).get("nonce", [""])[0]
            proof = prove(self._auth_string, host, nonce) if re.fullmatch(r"[0-9a-f]{32}", nonce) else ""
            await respond(send, 200 if proof else 400, "text/plain", proof.encode(), {})
        else:
            await self._app(scope, receive, _with_headers(send))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_open(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    return scope["path"] in OPEN or (scope["method"] == "GET" and scope["path"] in HEALTH)


def _ask_for_login(scope: Scope, headers: Headers) -> Refused:
    """A browser without a login that opens a page is sent to that for the login; the part behind `#` goes along."""
    html = "text/html" in headers.get("accept", "") and "authorization" not in headers
    if html and scope["type"] == "http" and scope["method"] == "GET":
        return Refused(303, "", {"location": LOGIN})
    challenge = {"www-authenticate": 'Basic realm="kgqa", charset="UTF-8"'}
    return Refused(401, "log in with the user and the password of the home's auth string", challenge)


def _with_headers(send: Send) -> Send:
    """Answers say that no page of another origin may frame or embed them."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            there = {key.lower() for key, _ in message.get("headers", ())}
            added = [(b"x-frame-options", b"SAMEORIGIN"), (b"cross-origin-resource-policy", b"same-origin")]
            message["headers"] = [*message.get("headers", ()), *(pair for pair in added if pair[0] not in there)]
        await send(message)

    return sent
