"""Bounds of what an endpoint may send: its size, its time, and where it may send us."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from kgqa_core.config import LlmOptions
from kgqa_core.errors import EndpointError
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.probe import check_endpoint
from kgqa_core.llm.protocol import Completion, GenerationParams
from tests.support.chat_server import ROOT, ChatServer
from tests.support.odd_replies import OddReply, bomb

PARAMS = GenerationParams(max_new_tokens=8)
GOOD = json.dumps({"choices": [{"message": {"content": "Rome"}, "finish_reason": "stop"}]}).encode()
PACKED = gzip.compress(GOOD, mtime=0)
"""Without the time: it is in the names of tests, which every worker of pytest must find alike."""

CLIENT = """
import resource, sys
from kgqa_core.config import LlmOptions
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.protocol import GenerationParams
model = OpenAIModel("stub", LlmOptions(base_url=sys.argv[1], retries=0))
model.generate(["warm"], GenerationParams())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = model.generate(["bomb"], GenerationParams())[0]
print(made.finish, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, made.error)
"""


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def wire(body: bytes, *headers: str, status: str = "200 OK") -> OddReply:
    """A whole reply."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
    return OddReply("", None, [head.encode() + b"\r\n\r\n" + body])


def generate(odd: OddReply, **given: object) -> Completion:
    """What comes of one prompt that meets an odd reply, after one that does not."""
    options: dict[str, object] = {"retries": 0} | given
    with ChatServer(odd=lambda prompt, *_: odd if prompt == "odd" else None) as server:
        model = OpenAIModel("stub", LlmOptions.model_validate({"base_url": server.base_url, **options}))
        model.generate(["warm"], PARAMS)
        return model.generate(["odd"], PARAMS)[0]


def test_a_bomb_of_gzip_takes_no_memory_and_names_the_option(tmp_path: Path) -> None:
    odd = wire(bomb(512), "Content-Encoding: gzip")
    with ChatServer(odd=lambda prompt, *_: odd if prompt == "bomb" else None) as server:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, server.base_url], cwd=ROOT, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    finish, megabytes, error = done.stdout.strip().split(" ", 2)
    assert finish == "error" and int(megabytes) < 100
    assert "its reply is larger than 8 MiB, the limit of llm.max_reply_mb" in error


@pytest.mark.parametrize(
    ("body", "coding"),
    [(GOOD, "identity"), (PACKED, "gzip"), (zlib.compress(GOOD), "deflate"), (PACKED, "identity, gzip")],
)  # fmt: skip
def test_compressed_replies_are_read(body: bytes, coding: str) -> None:
    assert generate(wire(body, f"Content-Encoding: {coding}")).text == "Rome"


@pytest.mark.parametrize(
    ("body", "coding", "says"),
    [(gzip.compress(PACKED, mtime=0), "gzip, gzip", "compressed more than once"),
     (GOOD, "gzip", "not compressed as it says"), (PACKED[:20], "gzip", "no JSON")],
)  # fmt: skip
def test_replies_that_are_compressed_wrongly_are_an_error_of_their_prompt(body: bytes, coding: str, says: str) -> None:
    made = generate(wire(body, f"Content-Encoding: {coding}"))
    assert made.finish == "error" and says in (made.error or "")


def test_the_limit_of_a_reply_is_an_option() -> None:
    large = GOOD + b" " * 3 * 2**20
    assert generate(wire(large)).text == "Rome"
    made = generate(wire(large), max_reply_mb=2.5)
    assert made.finish == "error" and "larger than 2.5 MiB" in (made.error or "")
    assert LlmOptions().max_reply_mb == 8


def test_a_reply_that_is_too_large_is_not_paid_again_in_the_same_call() -> None:
    odd = wire(GOOD + b" " * 2**21)
    with ChatServer(odd=lambda prompt, *_: odd if prompt == "odd" else None) as server:
        model = OpenAIModel("stub", LlmOptions(base_url=server.base_url, retries=4, max_reply_mb=1))
        model.generate(["warm", "odd"], PARAMS)
    assert server.prompts == ["warm", "odd"]


def test_the_body_of_an_error_is_read_to_a_bound_and_its_status_counts() -> None:
    made = generate(wire(bomb(64), "Content-Encoding: gzip", status="400 Bad"))
    assert made.error is not None and made.error.startswith("status 400") and len(made.error) < 300


@pytest.mark.parametrize("pieces", [[b"HTTP/1.1 200 OK\r\nX: "] + [b"y"] * 300,
                                    [b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"] + [b" "] * 300,
                                    [b"HTTP/1.1 103 Hints\r\n\r\n"] * 300])  # fmt: skip
def test_a_reply_in_drops_is_given_up_after_the_time_of_one_request(pieces: list[bytes]) -> None:
    started = time.monotonic()
    made = generate(OddReply("", None, pieces, pause=0.1), timeout_seconds=1)
    assert made.error == "timed out" and time.monotonic() - started < 15


@pytest.mark.parametrize("status", ["301 X", "302 X", "303 X", "307 X", "308 X"])
def test_a_redirect_to_another_server_is_refused_and_the_key_stays(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with ChatServer() as other:
        target = other.base_url.replace("http://", "http://me:word@") + "/chat/completions"
        odd = wire(b"", f"Location: {target}?token=x", status=status)
        with ChatServer(odd=lambda *_: odd) as server, pytest.raises(EndpointError) as caught:
            OpenAIModel("stub", LlmOptions(base_url=server.base_url)).generate(["a", "b"], PARAMS)
    says = str(caught.value)
    assert f"{server.base_url}/chat/completions to another server, {other.base_url}/chat/completions, where" in says
    assert "word" not in says and "token" not in says and "sk-very-secret" not in says
    assert len(server.sent) == 1 and not other.prompts


def test_a_redirect_within_the_server_names_the_address_to_give() -> None:
    odd = wire(b"", "Location: /v2/chat/completions", status="308 X")
    says = r"redirects \(status 308\) to .*/v2/chat/completions; give the address"
    with ChatServer(odd=lambda *_: odd) as server, pytest.raises(EndpointError, match=says):
        OpenAIModel("stub", LlmOptions(base_url=server.base_url)).generate(["a"], PARAMS)


@pytest.mark.parametrize("place", ["http://[", "file:///etc/passwd", "http://x:99999/", ""])
def test_a_redirect_to_nowhere_is_an_error_of_the_tree(place: str) -> None:
    odd = wire(b"", f"Location: {place}", status="307 X")
    with ChatServer(odd=lambda *_: odd) as server, pytest.raises(EndpointError, match="it redirects"):
        OpenAIModel("stub", LlmOptions(base_url=server.base_url)).generate(["a"], PARAMS)


@pytest.mark.parametrize(
    "body",
    [b"", b"{not json", b"[]", b"5", b'{"data": 5}', b'{"data": [5, null]}', b"[" * 100_000, b"\xff",
     b'{"data": [{"id": []}]}',
     b" " * 9 * 2**20, b'{"data": [{"id": "half \\ud83d \\u001b[31m"}]}'],
    ids=lambda body: ascii(body)[:30],
)  # fmt: skip
def test_a_list_of_models_that_is_odd_passes(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kgqa")
    with ChatServer(models=wire(body, "Content-Type: application/json")) as server:
        check_endpoint("openai:stub", LlmOptions(base_url=server.base_url))
    assert all(record.getMessage().isprintable() for record in caplog.records if record.name.startswith("kgqa"))


def test_a_list_of_models_elsewhere_is_refused() -> None:
    with ChatServer() as other:
        odd = wire(b"", f"Location: {other.base_url}/models", status="302 X")
        with ChatServer(models=odd) as server, pytest.raises(EndpointError, match="to another server"):
            check_endpoint("openai:stub", LlmOptions(base_url=server.base_url))
