"""The gate before our servers, by forged headers; and the login that it asks for."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kgqa_core.serving.addresses import is_wildcard
from kgqa_core.serving.guard import Guard
from tasks.servers import login
from tasks.servers.gate import gate as make_gate

AUTH = "kgqa:geheim-ä"
OWN = "127.0.0.1:4200"
BASIC = "Basic " + base64.b64encode(AUTH.encode()).decode()


async def inner(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """A server that answers everybody."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def call(gate: Guard, headers: list[tuple[str, str]], path: str = "/api/flows", **scope: Any) -> list[Any]:
    """What the gate sends for a request."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    pairs = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers]
    path, _, query = path.partition("?")
    given = {"type": "http", "method": "POST", "path": path, "query_string": query.encode(), "headers": pairs, **scope}
    asyncio.run(gate(given, receive, send))
    return sent


def status(gate: Guard, headers: dict[str, str], path: str = "/api/flows", **scope: Any) -> int:
    return int(call(gate, list(headers.items()), path, **scope)[0]["status"])


@pytest.fixture
def gate() -> Guard:
    return make_gate(inner, AUTH, [OWN, "localhost:4200", "[::1]:4200", "kgqa.example.org"])


@pytest.mark.parametrize("host", [OWN, "LOCALHOST:4200", "[::1]:4200", "kgqa.example.org", "kgqa.example.org:8443"])
def test_own_names_with_the_login_come_in(gate: Guard, host: str) -> None:
    assert status(gate, {"host": host, "authorization": BASIC}) == 200
    assert status(gate, {"host": host, "authorization": BASIC, "origin": f"http://{host}"}) == 200


@pytest.mark.parametrize(
    "host",
    ["", "attacker.example", "attacker.example:4200", "127.0.0.1", "127.0.0.1:4201", "127.0.0.1:4200@attacker.example"]
    + ["127.0.0.1:4200/x", "kgqa.example.org.attacker.example", "localhost:4200.attacker.example", "10.0.0.5:4200"]
    + ["127.0.0.1:x", "[::1", "xkgqa.example.org"],
)
def test_another_host_is_refused_whatever_else_is_right(gate: Guard, host: str) -> None:
    headers = {"host": host, "authorization": BASIC} | ({"origin": f"http://{host}"} if host else {})
    for path in ("/", "/api/flows", "/health", login.LOGIN, login.PROOF):
        assert status(gate, headers, path) == 403


def test_no_host_or_two_are_refused(gate: Guard) -> None:
    assert status(gate, {"authorization": BASIC}) == 403
    twice = [("host", OWN), ("host", "attacker.example"), ("authorization", BASIC)]
    assert call(gate, twice)[0]["status"] == 403
    assert call(gate, [*twice[:1], twice[2], ("origin", f"http://{OWN}"), ("origin", "null")])[0]["status"] == 403


def test_any_address_is_a_host_where_the_server_listens_on_all() -> None:
    gate = make_gate(inner, AUTH, [OWN], addresses=True)
    for host, expected in (("10.0.0.5:4200", 200), ("[fe80::1]:80", 200), ("attacker.example:4200", 403)):
        assert status(gate, {"host": host, "authorization": BASIC}) == expected


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://attacker.example", "http://127.0.0.1:9999", "http://127.0.0.1", "http://localhost:4200"]
    + ["http://attacker.localhost:4200", f"http://{OWN}.attacker.example", f"file://{OWN}", f"http://me@{OWN}"],
)
def test_another_origin_is_refused_even_with_the_login(gate: Guard, origin: str) -> None:
    headers = {"host": OWN, "authorization": BASIC, "origin": origin}
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        sent = call(gate, list(headers.items()), method=method)
        assert sent[0]["status"] == 403
        assert not [key for key, _ in sent[0]["headers"] if key.startswith(b"access-control")]
    socket = call(gate, list(headers.items()), "/api/events/in", type="websocket")
    assert socket == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_sends_for_another_page_is_refused_but_a_link_opens(gate: Guard, site: str) -> None:
    own = {"host": OWN, "authorization": BASIC, "sec-fetch-site": site}
    link = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert status(gate, own | {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, method="GET") == 403
    assert status(gate, own | link | {"sec-fetch-dest": "iframe"}, method="GET") == 403
    assert status(gate, own | link, method="POST") == 403
    assert status(gate, own | link, method="GET") == 200
    assert status(gate, own | {"sec-fetch-site": "same-origin"}, method="POST") == 200


@pytest.mark.parametrize(
    "header",
    [None, "", "Basic", "Bearer geheim", BASIC[:-4], BASIC + "A", BASIC.lower(), "Basic a2dxYTo="],
)
def test_without_the_login_only_the_health_and_the_login_page_answer(gate: Guard, header: str | None) -> None:
    headers = {"host": OWN} | ({} if header is None else {"authorization": header})
    assert status(gate, headers) == status(gate, headers, "/", method="GET") == 401
    assert status(gate, headers, "/health/../api/flows", method="GET") == 401
    assert status(gate, headers, "/health", method="GET") == status(gate, headers, login.LOGIN, method="GET") == 200
    socket = call(gate, list(headers.items()), type="websocket")
    assert socket == [{"type": "websocket.close", "code": 1008}]


def test_a_browser_without_a_login_is_sent_to_the_page_for_it(gate: Guard) -> None:
    page = [("host", OWN), ("accept", "text/html,*/*")]
    sent = call(gate, page, "/", method="GET")
    assert sent[0]["status"] == 303 and (b"location", login.LOGIN.encode()) in sent[0]["headers"]
    assert call(gate, page, "/")[0]["status"] == 401, "but not with a form"
    wrong = call(gate, [*page, ("authorization", "Basic eDp5")], "/", method="GET")
    assert wrong[0]["status"] == 401 and any(key == b"www-authenticate" for key, _ in wrong[0]["headers"])


def test_a_server_with_its_own_login_is_asked_for_it(gate: Guard) -> None:
    assert status(make_gate(inner, AUTH, [OWN], basic=False), {"host": OWN}) == 200


def test_no_page_of_another_origin_may_frame_or_embed_an_answer(gate: Guard) -> None:
    headers = dict(call(gate, [("host", OWN), ("authorization", BASIC)])[0]["headers"])
    assert headers[b"x-frame-options"] == b"SAMEORIGIN"
    assert headers[b"cross-origin-resource-policy"] == b"same-origin"
    page = call(gate, [("host", OWN)], login.LOGIN, method="GET")
    rules = dict(page[0]["headers"])[b"content-security-policy"].decode()
    assert "default-src 'none'" in rules and "frame-ancestors 'none'" in rules and "unsafe" not in rules
    assert b"geheim" not in page[1]["body"]


def test_the_proof_is_for_one_nonce_and_one_host(gate: Guard) -> None:
    nonce = "0123456789abcdef" * 2
    proof = call(gate, [("host", OWN)], f"{login.PROOF}?nonce={nonce}", method="GET")[1]["body"].decode()
    assert proof == login.prove(AUTH, OWN, nonce) and len(proof) == 64
    other = call(gate, [("host", "localhost:4200")], f"{login.PROOF}?nonce={nonce}", method="GET")[1]["body"].decode()
    assert proof != other
    assert status(gate, {"host": OWN}, f"{login.PROOF}?nonce=x", method="GET") == 400


def test_the_login_is_made_once_whole_and_for_its_owner(tmp_path: Path) -> None:
    (tmp_path / "prefect").mkdir()
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(login.ensure_auth_string(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and len(set(results)) == 1
    user, _, password = results[0].partition(":")
    assert user == "kgqa" and len(password) >= 43
    assert stat.S_IMODE(login.auth_file(tmp_path).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "prefect").iterdir()] == ["auth_string"]
    login.auth_file(tmp_path).chmod(0o644)
    assert login.ensure_auth_string(tmp_path) == results[0]
    assert stat.S_IMODE(login.auth_file(tmp_path).stat().st_mode) == 0o600


@pytest.mark.parametrize("damaged", ["", "no colon", "\n"])
def test_a_damaged_login_is_made_anew(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "prefect").mkdir()
    login.auth_file(tmp_path).write_text(damaged)
    assert login.ensure_auth_string(tmp_path).startswith("kgqa:")


def test_a_login_of_the_users_own_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(login.VARIABLE, "me:mine")
    assert login.ensure_auth_string(tmp_path) == "me:mine" and not login.auth_file(tmp_path).exists()
    monkeypatch.setenv(login.VARIABLE, "mine")
    with pytest.raises(ValueError, match="user:password"):
        login.ensure_auth_string(tmp_path)


@contextmanager
def listening(auth_string: str | None) -> Iterator[tuple[str, list[str]]]:
    """A server that gives the proof of `auth_string`, or repeats what it is sent; and what it was sent."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path}\n{self.headers}")
            nonce = parse_qs(urlsplit(self.path).query)["nonce"][0]
            body = (login.prove(auth_string, self.headers["Host"], nonce) if auth_string else nonce).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()


def test_the_login_goes_to_a_server_that_knows_it_and_to_no_other(tmp_path: Path) -> None:
    (tmp_path / "prefect").mkdir()
    auth_string = login.ensure_auth_string(tmp_path)
    for known, expected in ((auth_string, True), (None, False), ("kgqa:other", False)):
        with listening(known) as (address, heard):
            record = {"api": f"{address}/api", "prefect": address, "mlflow": address, "process": os.getpid()}
            login.record_file(tmp_path).write_text(json.dumps(record))
            environment = {"PREFECT_API_URL": f"{address}/api", "MLFLOW_TRACKING_URI": address}
            login.hand_to_clients(tmp_path, environment)
            assert (login.running_server(tmp_path) == f"{address}/api") is expected
            assert (environment.get("PREFECT_API_AUTH_STRING") == auth_string) is expected
            assert (environment.get("MLFLOW_TRACKING_PASSWORD") == auth_string.partition(":")[2]) is expected
            assert heard and auth_string.partition(":")[2] not in "".join(heard)


def test_a_login_that_the_user_has_set_stays(tmp_path: Path) -> None:
    (tmp_path / "prefect").mkdir()
    auth_string = login.ensure_auth_string(tmp_path)
    with listening(auth_string) as (address, _):
        login.record_file(tmp_path).write_text(json.dumps({"api": f"{address}/api", "mlflow": address}))
        own = {"PREFECT_API_URL": f"{address}/api", "MLFLOW_TRACKING_URI": address}
        own |= {"PREFECT_API_KEY": "mine", "MLFLOW_TRACKING_TOKEN": "mine"}
        given = dict(own)
        login.hand_to_clients(tmp_path, given)
        assert given == own


@pytest.mark.parametrize(
    ("host", "expected"),
    [("0.0.0.0", True), ("::", True), ("", True), ("127.0.0.1", False), ("::1", False), ("kgqa.example.org", False)],
)
def test_listening_on_all_addresses_is_recognised(host: str, expected: bool) -> None:
    assert is_wildcard(host) is expected
