"""A server of chat completions and plain completions on loopback that misbehaves on demand.

with ChatServer(reply=lambda prompt: "Paris") as server:
    server.fail("capital", Fault(status=429, headers={"Retry-After": "0"}))
    … base_url=server.base_url …
    assert len(server.prompts) == 2

In a process of its own, `python -m tests.support.chat_server --port 0 --slow 0.02 …`, it prints its address as JSON
and answers `GET /stats` with its counts; `ServerProcess` starts one.  Faults at random rates follow the seed, the
prompt and the request's own seed, so that two runs with the same seed meet the same; what a completion says never
depends on the order of the requests.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import inspect
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from tests.support.odd_replies import OddReply

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fault:
    """What happens to one request: an error status, a hang-up, garbage instead of JSON, or a wait before the answer.

    hang_up: before a byte of the reply.  cut: after the headers and half of the body.  garbage: no JSON.  finish: the
    finish reason of the reply.  refusal, content: fields of its message, where they are not the usual ones.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    cut: bool = False
    garbage: bool = False
    delay: float = 0.0
    finish: str = "stop"
    refusal: str | None = None
    content: str | None = None
    choices: bool = True
    usage: bool = True


@dataclass(frozen=True)
class Rates:
    """Shares of requests, in [0, 1], that meet a fault.

    throttled: 429 with Retry-After.  failing: 500.  hang_up, cut, garbage: see Fault.  slow: an answer only after
    `slow_seconds`.  empty, nonsense: completions without text, or with text that is none.  most: transport faults that
    one request, repeated, meets in a row.
    """

    throttled: float = 0.0
    failing: float = 0.0
    hang_up: float = 0.0
    cut: float = 0.0
    garbage: float = 0.0
    slow: float = 0.0
    empty: float = 0.0
    nonsense: float = 0.0
    slow_seconds: float = 1.0
    retry_after: float = 0.01
    most: int = 3

    def fault(self, seed: int, prompt: str, drawn: Any, count: int) -> Fault:
        """The fault of the `count`-th request for a prompt, drawn with the request's own seed."""
        said = Random(f"{seed}/{prompt}/{drawn}").random()
        content = "" if said < self.empty else None
        if self.empty <= said < self.empty + self.nonsense:
            content = NONSENSE[int(said * 1e6) % len(NONSENSE)]
        dice = Random(f"{seed}/{prompt}/{drawn}/{count}").random()
        if count % (self.most + 1) == self.most:
            return Fault(content=content)
        for name in ("throttled", "failing", "hang_up", "cut", "garbage", "slow"):
            share = getattr(self, name)
            if dice < share:
                return {
                    "throttled": Fault(status=429, headers={"Retry-After": str(self.retry_after)}),
                    "failing": Fault(status=500),
                    "hang_up": Fault(hang_up=True, content=content),
                    "cut": Fault(cut=True, content=content),
                    "garbage": Fault(garbage=True, content=content),
                    "slow": Fault(delay=self.slow_seconds, content=content),
                }[name]
            dice -= share
        return Fault(content=content)


NONSENSE = ("%%%", "### ### ###", "lorem ipsum dolor", "\ufffd\ufffd\ufffd", "}{ null undefined")

COUNTS = ("requests", "answered", "lost", "refused", "prompt_tokens", "completion_tokens")


class ChatServer:
    """Serves `/v1/chat/completions` and `/v1/completions` and keeps what was asked.

    Counts, of all requests and of each prompt and seed: requests; answered (a whole reply was handed to the
    connection); lost (worked on, but the reply was cut, no JSON, or the client had gone); refused (an error status, no
    tokens); and the tokens of what was worked on, which are words unless `tokens` counts them otherwise.  keep: also
    prompts, bodies, headers and times.  gate: nothing is answered before so many requests are under way at once.
    odd: from a prompt, the request's own seed, the number of its requests before, the text and the token counts to the
    reply that is sent instead, None for the usual one; `sent` has the key and the reply of each request, in order.
    models: the reply to any GET but that of the counts.  act: from the body of a request to the message of its reply,
    tool calls and all, in place of `reply`.  lacks: a path that is answered with 404, as by a server without it.
    """

    def __init__(
        self,
        reply: Callable[..., str] = lambda prompt: f"echo {prompt}",
        *,
        rates: Rates | None = None,
        seed: int = 0,
        keep: bool = True,
        port: int = 0,
        tokens: Callable[[str], int] = lambda text: len(text.split()),
        odd: Callable[[str, Any, int, str, dict[str, int]], OddReply | None] | None = None,
        models: OddReply | None = None,
        act: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        lacks: str = "",
    ) -> None:
        self.reply, self.rates, self.seed, self.keep, self.tokens = reply, rates, seed, keep, tokens
        self.odd, self.models, self.act, self.lacks = odd, models, act, lacks
        self.sent: list[tuple[str, OddReply | None, dict[str, int]]] = []
        self._drawn = len(inspect.signature(reply).parameters) > 1
        self.prompts: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.max_at_once = 0
        self.slowness = 0.0
        self.gate = 0
        self._held: list[Callable[[], None]] = []
        self.total = dict.fromkeys(COUNTS, 0)
        self.by_prompt: dict[str, dict[str, int]] = {}
        self._faults: list[tuple[str, Fault]] = []
        self._always: list[tuple[str, Fault]] = []
        self._at_once = 0
        self._port = port
        self._connections: set[_Connection] = set()
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    def fail(self, part: str, *faults: Fault) -> None:
        """The next requests whose prompt contains `part` meet these faults, one each."""
        self._faults += [(part, fault) for fault in faults]

    def always(self, part: str, fault: Fault) -> None:
        """Every request whose prompt contains `part` meets this fault."""
        self._always.append((part, fault))

    def say(self, prompt: str, drawn: Any) -> str:
        """What the model says; a reply that takes two arguments is given the request's own seed too."""
        return self.reply(prompt, drawn) if self._drawn else self.reply(prompt)

    def stats(self) -> dict[str, Any]:
        """Counts of all requests, and `prompts`: those of each `SEED|PROMPT`."""
        with self._lock:
            prompts = {key: dict(counts) for key, counts in self.by_prompt.items()}
            return {**self.total, "max_at_once": self.max_at_once, "prompts": prompts}

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve_forever(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self._port, backlog=2048)
        )
        self._port = int(listening.sockets[0].getsockname()[1])
        self._ready.set()
        self._loop.run_forever()
        listening.close()
        for connection in list(self._connections):
            connection.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _next_fault(self, prompt: str, drawn: Any, count: int) -> Fault:
        for index, (part, fault) in enumerate(self._faults):
            if part in prompt:
                del self._faults[index]
                return fault
        for part, fault in self._always:
            if part in prompt:
                return fault
        return self.rates.fault(self.seed, prompt, drawn, count) if self.rates is not None else Fault()


class _Connection(asyncio.Protocol):
    """One client.  Requests of one connection come one after another."""

    transport: asyncio.Transport

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server._connections.add(self)

    def connection_lost(self, fault: Exception | None) -> None:
        self.server._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
            method, path, _ = lines[0].split(" ", 2)
            if method == "GET" and self.server.models is not None and not path.startswith("/stats"):
                self.send_pieces(self.server.models)
            elif method == "GET":
                self.send(200, self.server.stats() if path.startswith("/stats") else {})
            elif self.server.lacks and path.endswith(self.server.lacks):
                self.send(404, error_body(404))
            else:
                self.asked(json.loads(body), headers)

    def asked(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        server = self.server
        prompt = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        key = f"{body.get('seed')}|{prompt}"
        with server._lock:
            counts = server.by_prompt.setdefault(key, dict.fromkeys(COUNTS, 0))
            fault = server._next_fault(prompt, body.get("seed"), counts["requests"])
            self.count(counts, requests=1)
            if server.keep:
                server.prompts.append(prompt)
                server.bodies.append(body)
                server.headers.append(headers)
                server.times.append(time.monotonic())
            server._at_once += 1
            server.max_at_once = max(server.max_at_once, server._at_once)
        delay = fault.delay or server.slowness
        if server.gate:
            server._held.append(lambda: self.answer(body, prompt, fault, counts))
            if server._at_once >= server.gate:
                server.gate = 0
                for answer in server._held:
                    answer()
        elif delay:
            server._loop.call_later(delay, self.answer, body, prompt, fault, counts)
        else:
            self.answer(body, prompt, fault, counts)

    def answer(self, body: dict[str, Any], prompt: str, fault: Fault, counts: dict[str, int]) -> None:
        server = self.server
        with server._lock:
            server._at_once -= 1
            if fault.status != 200:
                self.count(counts, refused=1)
                self.send(fault.status, error_body(fault.status), fault.headers)
                return
            acted = server.act(body) if server.act is not None and fault.content is None else None
            if acted is not None:
                text = json.dumps(acted, ensure_ascii=False)
            else:
                text = fault.content if fault.content is not None else server.say(prompt, body.get("seed"))
            finish, words = fault.finish, text.split() if acted is None else []
            limit = body.get("max_tokens") or body.get("max_completion_tokens")
            while limit and words and server.tokens(text) > limit:
                words.pop()
                text, finish = " ".join(words), "length"
            messages = body.get("messages", [{"content": prompt}])
            read = json.dumps(messages, ensure_ascii=False) if server.act else " ".join(m["content"] for m in messages)
            usage = {"prompt_tokens": server.tokens(read), "completion_tokens": server.tokens(text)}
            before = counts["requests"] - 1
            odd = server.odd(prompt, body.get("seed"), before, text, usage) if server.odd is not None else None
            if server.odd is not None:
                server.sent.append((f"{body.get('seed')}|{prompt}", odd, usage))
            whole = not (fault.hang_up or fault.cut or fault.garbage or self.transport.is_closing())
            self.count(counts, answered=whole, lost=not whole, **usage)
        if odd is not None:
            self.send_pieces(odd)
            return
        if fault.hang_up:
            self.transport.close()
            return
        message = {"role": "assistant", "content": text, "refusal": fault.refusal, **(acted or {})}
        finish = "tool_calls" if message.get("tool_calls") else finish
        choice = {"index": 0, "message": message, "finish_reason": finish}
        if "messages" not in body:
            scores = {"tokens": words, "token_logprobs": [-0.5] * len(words)} if body.get("logprobs") else None
            choice = {"index": 0, "text": text, "logprobs": scores, "finish_reason": finish}
        data: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 0, "model": "stub"}
        data["choices"] = [choice] if fault.choices else []
        if fault.usage:
            data["usage"] = usage | {"total_tokens": sum(usage.values())}
        self.send(200, "{not json" if fault.garbage else data, fault.headers, cut=fault.cut)

    def count(self, counts: dict[str, int], **more: int) -> None:
        for name, number in more.items():
            counts[name] += number
            self.server.total[name] += number

    def send_pieces(self, odd: OddReply, place: int = 0) -> None:
        """Sends the pieces of an odd reply, from one of them on."""
        if self.transport.is_closing():
            return
        if odd.pause and place < len(odd.pieces):
            self.transport.write(odd.pieces[place])
            self.server._loop.call_later(odd.pause, self.send_pieces, odd, place + 1)
            return
        self.transport.writelines(odd.pieces[place:])
        if odd.close:
            self.transport.close()

    def send(self, status: int, data: Any, headers: dict[str, str] | None = None, *, cut: bool = False) -> None:
        if self.transport.is_closing():
            return
        body = (data if isinstance(data, str) else json.dumps(data)).encode()
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        self.transport.write(head + (body[: len(body) // 2] if cut else body))
        if cut:
            self.transport.close()


class ServerProcess:
    """A server in a process of its own, started with the given options of the command line."""

    def __init__(self, *options: str) -> None:
        self.options = options
        self.base_url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.support.chat_server", "--port", "0", *self.options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.base_url = json.loads(self.process.stdout.readline())["base_url"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stats(self) -> dict[str, Any]:
        """The server's own counts."""
        with urllib.request.urlopen(self.base_url.removesuffix("/v1") + "/stats", timeout=30) as reply:
            found: dict[str, Any] = json.loads(reply.read())
        return found


def error_body(status: int) -> dict[str, Any]:
    """What an error status says."""
    return {"error": {"message": f"refused with {status}"}}


def digest_words(prompt: str) -> str:
    """Eight words that depend on the prompt alone."""
    return " ".join(hashlib.sha256(prompt.encode()).hexdigest()[start : start + 4] for start in range(0, 32, 4))


def _reply(name: str) -> Callable[..., str]:
    if name == "echo":
        return lambda prompt: f"echo {prompt}"
    if name == "words":
        return digest_words
    found: Callable[..., str] = _found(name)
    return found


def _found(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--reply", default="echo", help="echo, words, or MODULE:FUNCTION from prompt (and seed) to text"
    )
    parser.add_argument("--tokens", default="", help="MODULE:FUNCTION from text to its tokens; words when absent")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--seed", type=int, default=0)
    for each in fields(Rates):
        parser.add_argument(
            "--" + each.name.replace("_", "-"), type=int if each.name == "most" else float, default=each.default
        )
    given = parser.parse_args(arguments)
    rates = Rates(**{each.name: getattr(given, each.name) for each in fields(Rates)})
    counted: dict[str, Any] = {"tokens": _found(given.tokens)} if given.tokens else {}
    server = ChatServer(_reply(given.reply), rates=rates, seed=given.seed, keep=False, port=given.port, **counted)
    server.slowness = given.latency
    with server:
        sys.stdout.write(json.dumps({"base_url": server.base_url}) + "\n")
        sys.stdout.flush()
        server._thread.join()


if __name__ == "__main__":
    main()
