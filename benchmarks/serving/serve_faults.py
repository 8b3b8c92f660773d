"""What each client of `kgqa serve` gets when something is wrong: itself, the server's surroundings, or the server.

    python -m benchmarks.serving.serve_faults --work DIR [--json benchmarks/results/serve_faults.json]

The graph is the 200 lines of benchmarks.answers.graph_alone; one run answers with `auto`, another with a language model
at an endpoint on loopback that is slow, fails or is gone.  Each row: what was done, what that client got (status and
message, or how its connection ended) after how many seconds, and whether a good question beside it was answered right.
A client that has nothing after LIMIT seconds hangs.  leaks: open files, threads and memory of the server before and
after 200 rounds of clients that go away in the middle.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, conditions
from benchmarks.kgqa_command import kgqa_json
from benchmarks.results_file import CONDITIONS
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from tests.support.chat_server import ChatServer, Fault
from tests.support.kgqa_serve import served
from tests.support.toy import write_graph

FIELDS = (
    *CONDITIONS, "rows/*/done", "rows/*/got", "rows/*/seconds", "rows/*/beside", "leaks/*/before", "leaks/*/after"
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED, LINES, LIMIT = 7, 200, 60.0
QUESTION, RIGHT = "who started Gekobo Ltd", ["Tasafu Molo"]
SETTINGS = (
    "questions.generated.size=150", "label_parser.generated=150", "label_parser.steps=40", "hop_path.encoder=scratch",
    "hop_path.epochs=2", "answering.limit=12", "evaluation.bootstrap=100",
)  # fmt: skip
JSON = "Content-Type: application/json\r\n"


def answer(url: str, text: str = QUESTION, **more: Any) -> str:
    """What a question gets: the status and its answers or message, or how the connection ended."""
    body = json.dumps({"question": text, **more}).encode()
    request = urllib.request.Request(f"{url}/ask", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as reply:
            found = json.loads(reply.read())
        return f"200 {', '.join(found['answers']) or found.get('reason')}"
    except urllib.error.HTTPError as fault:
        return f"{fault.code} {json.loads(fault.read())['error']['message']}"
    except TimeoutError:
        return "HANGS"
    except OSError as fault:
        return f"no connection ({type(fault.reason if isinstance(fault, urllib.error.URLError) else fault).__name__})"


def raw(url: str, *pieces: bytes, pause: float = 0.0, leave: bool = False) -> str:
    """What a client gets that sends these bytes, with pauses between; `leave`: closes at once instead of reading."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=LIMIT) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
        except OSError:
            pass  # the server has closed; what it said before is read
        if leave:
            return "went away"
        try:
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            text = reply.read().decode()
        except TimeoutError:
            return "HANGS"
        except (http.client.HTTPException, OSError):
            return "connection closed"
    try:
        return f"{reply.status} {json.loads(text)['error']['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{reply.status} {text.strip()[:120]}"


def post(length: int | None, *more: str, path: str = "/ask") -> bytes:
    """The head of a request with a JSON body."""
    said = "Transfer-Encoding: chunked\r\n" if length is None else f"Content-Length: {length}\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{JSON}{said}{''.join(more)}\r\n".encode()


class Table:
    """The rows so far.  folder: is written as FOLDER in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.rows: list[dict[str, Any]] = []

    def add(self, done: str, client: Callable[[], str], beside: Callable[[], str] | None) -> None:
        """Lets one client do its thing, with a good question beside it and one after it."""
        results: list[str] = []
        started = time.monotonic()
        worker = threading.Thread(target=lambda: results.append(client()))
        worker.start()
        others = [beside()] if beside is not None else []
        worker.join(LIMIT + 30)
        seconds = round(time.monotonic() - started, 1)
        others += [beside()] if beside is not None else []
        wanted = f"200 {', '.join(RIGHT)}"
        fine = "-" if not others else "right" if all(one == wanted for one in others) else "; ".join(others)
        got = (results[0] if results else "HANGS").replace(self.folder, "FOLDER")
        self.rows.append({"done": done, "got": got, "seconds": seconds, "beside": fine})
        print(self.rows[-1], flush=True)


def clients(url: str, table: Table) -> None:
    """Clients that are slow, broken, too much or hostile."""
    body = json.dumps({"question": QUESTION}).encode()

    def beside() -> str:
        return answer(url)

    table.add("connects and says nothing", lambda: raw(url), beside)
    table.add("sends half of its headers", lambda: raw(url, b"POST /ask HTTP/1.1\r\nHost:"), beside)
    table.add("sends half of its body, then nothing", lambda: raw(url, post(len(body)), body[:10]), beside)
    table.add("sends its body byte by byte, one a second",
              lambda: raw(url, post(len(body)), *(bytes([one]) for one in body), pause=1.0), beside)  # fmt: skip
    table.add("closes in the middle of its body", lambda: raw(url, post(len(body)), body[:10], leave=True), beside)
    table.add("closes instead of reading its answer", lambda: raw(url, post(len(body)) + body, leave=True), beside)
    table.add("announces a body of 5 MB", lambda: raw(url, post(5 << 20)), beside)
    chunk = b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))
    table.add(
        "sends 5 MB in chunks without a length", lambda: raw(url, post(None), *([chunk] * 80), b"0\r\n\r\n"), beside
    )
    table.add("speaks TLS", lambda: raw(url, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), beside)
    table.add("headers of 100 kB", lambda: raw(url, post(2, f"X: {'a' * 100_000}\r\n") + b"{}"), beside)
    for what, text in (
        ("no JSON", b"{nope"), ("JSON, but no object", b"[]"), ("no question", b"{}"),
        ("an empty question", b'{"question": ""}'), ("a question that is a number", b'{"question": 7}'),
        ("a confidence of 2", b'{"question": "a", "min_confidence": 2}'),
        ("a topic that is not in the graph", b'{"question": "a", "topics": ["Atlantis"]}'),
        ("an unknown field", b'{"question": "a", "topic": ["b"]}'), ("100,000 brackets", b"[" * 100_000),
        ("a question of 500,000 letters", b'{"question": "%s"}' % (b"a" * 500_000)),
        ("half a character", b'{"question": "\\ud800"}'), ("bytes that are no UTF-8", b'{"question": "\xff"}'),
    ):  # fmt: skip
        table.add(f"posts {what}", lambda text=text: raw(url, post(len(text)) + text), beside)  # type: ignore[misc]
    table.add(
        "asks for a path that is none", lambda: raw(url, b"GET /nope HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), beside
    )
    table.add("gets /ask", lambda: raw(url, b"GET /ask HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), beside)
    other = b"GET /ready HTTP/1.1\r\nHost: example.org\r\n\r\n"
    table.add("calls the server by another name (Host)", lambda: raw(url, other), beside)
    origin = "Origin: http://example.org\r\n"
    table.add("a page of another origin asks", lambda: raw(url, post(len(body), origin) + body), beside)
    table.add("200 connect and say nothing at once", lambda: _crowd(url), beside)


def _crowd(url: str) -> str:
    address = urlsplit(url)
    held = [socket.create_connection((address.hostname, address.port), timeout=LIMIT) for _ in range(200)]
    said = answer(url)
    for one in held:
        one.close()
    return said


def surroundings(home: Path, runs: dict[str, str], endpoint: ChatServer, end: Callable[[], None], table: Table) -> None:
    """An endpoint that is slow, failing or gone, and artifacts that are gone.  end: ends the endpoint."""
    with served(home, "--run", runs["model"], "--timeout", "5") as running:
        url = running.url
        table.add("language model: answers", lambda: answer(url), None)
        for what, fault in (
            ("answers with 500 each time", Fault(status=500)), ("says no JSON", Fault(garbage=True)),
            ("hangs up each time", Fault(hang_up=True)), ("takes 30 s, the server's limit being 5", Fault(delay=30.0)),
        ):  # fmt: skip
            endpoint._always[:] = [("", fault)]
            table.add(f"language model: {what}", lambda what=what: answer(url, f"{QUESTION}, {what}?"), None)  # type: ignore[misc]
        endpoint._always.clear()
        table.add("language model: answers again", lambda: answer(url, "who founded Gekobo Ltd"), None)
        end()
        table.add("language model: is gone", lambda: answer(url, "who set up Gekobo Ltd?"), None)
    record = newest_run(Home(home), runs["auto"])
    made = {one["name"]: Path(one["artifact"]["path"]) for one in record["stages"] if one.get("artifact")}
    gone = {name: made[name] for name in ("label_parser", "kg")}
    with served(home, "--run", runs["auto"]) as running:
        url = running.url
        for name, folder in gone.items():
            folder.rename(_aside(folder))
            table.add(f"artifact `{name}` is taken away under the server", lambda: answer(url), None)
    table.add("a server starts without these artifacts", lambda: _start(home, runs["auto"]), None)
    for folder in gone.values():
        _aside(folder).rename(folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-aside")


def _start(home: Path, run: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", "serve", "--home", str(home), "--port", "0", "--run", run],
        cwd=home.parent, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    printed = " ".join(done.stderr.split())
    return f"exit {done.returncode}: {printed[-160:]}"


def ends(home: Path, run: str, table: Table) -> None:
    """Signals with requests under way, and a kill."""
    texts = [{"question": f"{QUESTION} {number}"} for number in range(16)]

    def batch(url: str, results: list[str]) -> None:
        body = json.dumps({"questions": texts}).encode()
        request = urllib.request.Request(f"{url}/ask/batch", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as reply:
                results.append(f"{reply.status} {len(json.loads(reply.read())['answers'])} answers")
        except (OSError, http.client.HTTPException) as fault:
            results.append(f"connection closed ({type(fault).__name__})")

    for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C"), (signal.SIGKILL, "SIGKILL")):
        with served(home, "--run", run) as running:
            process, url = running.process, running.url

            def client(process: subprocess.Popen[bytes] = process, url: str = url, number: int = number) -> str:
                results: list[str] = []
                workers = [threading.Thread(target=batch, args=(url, results)) for _ in range(4)]
                for one in workers:
                    one.start()
                time.sleep(0.2)
                os.kill(process.pid, number)
                for one in workers:
                    one.join(LIMIT)
                code = process.wait(LIMIT)
                told = "; ".join(f"{results.count(one)} × {one}" for one in sorted(set(results)))
                return f"{told}; the server ends with {code}; then {answer(url)}"

            table.add(f"{name} with 4 batches of 16 questions under way", client, None)
    with served(home, "--run", run) as running:
        url = running.url
        table.add("a server starts after the kill", lambda: answer(url), None)


def leaks(home: Path, run: str) -> dict[str, dict[str, float]]:
    """Open files, threads and memory before and after clients that go away."""
    body = json.dumps({"question": QUESTION}).encode()
    with served(home, "--run", run) as running:
        process, url = running.process, running.url
        server = psutil.Process(process.pid)

        def rounds(number: int) -> None:
            for _ in range(number):
                raw(url, post(len(body)), body[:10], leave=True)
                raw(url, post(len(body)) + body, leave=True)
                raw(url, b"GET /entities?q=a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", leave=True)
                answer(url)

        def counts() -> dict[str, float]:
            time.sleep(2)
            size = round(server.memory_info().rss / 2**20, 1)
            return {"open files": server.num_fds(), "threads": server.num_threads(), "resident MB": size}

        rounds(50)
        before = counts()
        rounds(200)
        after = counts()
    return {name: {"before": before[name], "after": after[name]} for name in before}


def main() -> None:
    """Makes the two runs, lets everything go wrong, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=RESULTS / "serve_faults.json")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    home, graph = work / "home", work / "graph.tsv"
    write_graph(graph, LINES)
    settings = [word for one in SETTINGS for word in ("--set", one)]
    with contextlib.ExitStack() as stack:
        endpoint = stack.enter_context(ChatServer(reply=lambda prompt: RIGHT[0]))
        os.environ |= {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "none"}
        model = ("--set", "answering.answerer=openai:loop")
        runs = {
            "model": kgqa_json("run", "--kg", str(graph), *settings, *model, home=home)[0]["run_id"],
            "auto": kgqa_json("run", "--kg", str(graph), *settings, home=home)[0]["run_id"],
        }
        table = Table(work)
        with served(home, "--run", runs["auto"]) as running:
            url = running.url
            clients(url, table)
        ends(home, runs["auto"], table)
        surroundings(home, runs, endpoint, stack.close, table)
    found = {"conditions": conditions(SEED), "rows": table.rows, "leaks": leaks(home, runs["auto"])}
    results_file.write(given.json, found, FIELDS)


if __name__ == "__main__":
    main()
