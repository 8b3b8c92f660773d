"""A home has one server that `ask` asks, and it asks nobody who cannot prove to be that server."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from flows.cli._served import ask_server
from kgqa_core.serving.home_server import announced, prove, read_address
from kgqa_core.serving.limits import ADDRESS, SERVE_FOLDER, TOKEN_VARIABLE
from kgqa_core.store.artifacts import Home, write_json

ASKED = {"question": "where?"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


class Listener(ThreadingHTTPServer):
    """Answers with run `one`; `key` proves it where there is one.  seen: paths and authorizations of requests."""

    key: str | None = None

    def __init__(self, home: Home) -> None:
        self.home, self.seen = home, list[tuple[str, str | None]]()
        super().__init__(("127.0.0.1", 0), Handler)

    def address(self, key: str = "k") -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{self.server_port}", "process": os.getpid(), "key": key}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.seen.append((url.path, self.headers.get("Authorization")))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        nonce = parse_qs(url.query).get("challenge", [""])[0]
        proof = self.server.key and prove(self.server.key, self.server.home.root, nonce)
        body = json.dumps({"ready": True, "run": "one", "proof": proof, "answer": "here"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def listener(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.setenv(TOKEN_VARIABLE, "a-token-of-the-home")
    with Listener(home) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_who_listens_at_the_address_gets_neither_token_nor_question_before_it_proves_to_be_the_server(
    home: Home, listener: Listener, tmp_path: Path
) -> None:
    with announced(home, listener.address()):
        assert ask_server(home.root, "one", ASKED) is None
        assert listener.seen == [("/ready", None)], "another program listens there"
        listener.key = "k"
        assert (ask_server(home.root, "one", ASKED) or {})["answer"] == "here"
        assert listener.seen[1:] == [("/ready", None), ("/ask", "Bearer a-token-of-the-home")]
        why: list[str] = []
        assert ask_server(home.root, "other", ASKED, why.append) is None and listener.seen[-1][0] == "/ready"
        assert why == ["the server of this home answers with run one, not with other; the system is loaded here"]
        assert (ask_server(home.root, None, ASKED, why.append) or {})["answer"] == "here" and len(why) == 1
        del listener.seen[:]
        shutil.copytree(home.root, tmp_path / "copy")
        assert ask_server(tmp_path / "copy", "one", ASKED) is None, "the server is that of the original"
        assert listener.seen == [("/ready", None)]


def test_a_second_server_leaves_the_address_of_the_first(home: Home, listener: Listener) -> None:
    file = home.root / SERVE_FOLDER / ADDRESS
    with announced(home, listener.address("first")) as first:
        with announced(home, listener.address("second")) as second:
            assert (first, second) == (True, False)
        assert (read_address(home.root) or {})["key"] == "first"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()
    with announced(home, listener.address("third") | {"min_confidence": 0.5}) as third:
        why: list[str] = []
        assert third and ask_server(home.root, None, ASKED, why.append) is None and not listener.seen
        assert why[0].startswith("the server of this home was started with --min-confidence 0.5;")


def test_an_address_that_others_could_have_written_or_whose_process_is_gone_is_none(home: Home) -> None:
    with announced(home, {"url": "http://127.0.0.1:1", "process": os.getpid(), "key": "k"}):
        file = home.root / SERVE_FOLDER / ADDRESS
        assert read_address(home.root) is not None
        file.chmod(0o664)
        assert read_address(home.root) is None
        for wrong in ({"process": 2**22 + 1}, {"process": 10**30}, {"key": None}, {"url": 8000}):
            write_json(file, {"url": "http://127.0.0.1:1", "process": os.getpid(), "key": "k"} | wrong, mode=0o600)
            assert read_address(home.root) is None, wrong
