"""`kgqa serve` against the same system called in process: speed, memory, start, a change of champion under load.

    python -m benchmarks.serving.serve --home HOME [--runs auto=RUN builtin=RUN] [--clients 1,8,64] [--workers 1,2]
        [--requests 600] [--long 20000] [--swap 10000] [--parts speed,memory,swap]
        [--json benchmarks/results/serve.json]

HOME has finished runs over one graph; `--runs` names those that are measured, the first also for memory and the change.
--parts may measure these in another home, one that answers faster; what the JSON holds of other parts stays.
Questions are the dev questions of a run, in a seeded order, again and again.  in_process: `System.ask`, one question at
a time, after one pass to warm up, as for the server; stages: the same again with a tracer, by step.
overhead_ms: p50 of the server with one client less that.
memory: resident bytes of the server after each twentieth of the requests, at 8 clients; growth is that of the second
half.  swap: requests at 8 clients while `champions/*.json` is pointed at the other run and back; failed: replies that
are not 200, or none.  ready_seconds: from the start of the process until `/ready` says so.  Clients are asyncio
connections that are kept open, in this process, on the same cores as the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.latency import percentiles
from benchmarks.results_file import CONDITIONS
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import Home, read_manifest
from kgqa_core.system import System
from kgqa_core.tracing import QuestionTrace
from tests.support.kgqa_serve import served

FIELDS = (*CONDITIONS, "graph/...", "speed/...", "?memory/...", "?swap/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
STEPS = 20


class Clients:
    """Connections that ask questions of a server, each the next one as soon as its last is answered."""

    def __init__(self, url: str, questions: Sequence[str]) -> None:
        address = urlsplit(url)
        self.host, self.port = str(address.hostname), int(address.port or 80)
        self.bodies = [json.dumps({"question": text}).encode() for text in questions]
        self.seconds: list[float] = []
        self.failed: list[str] = []
        self.asked = 0

    def run(self, clients: int, requests: int) -> float:
        """Asks so many questions with so many connections; seconds of all together."""
        self.seconds, self.failed, self.asked = [], [], 0
        started = time.perf_counter()
        asyncio.run(self._all(clients, requests))
        return time.perf_counter() - started

    async def _all(self, clients: int, requests: int) -> None:
        await asyncio.gather(*(self._client(requests) for _ in range(clients)))

    async def _client(self, requests: int) -> None:
        reader = writer = None
        while self.asked < requests:
            body = self.bodies[self.asked % len(self.bodies)]
            self.asked += 1
            head = (
                f"POST /ask HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            ).encode()
            began = time.perf_counter()
            try:
                if writer is None or reader is None:
                    reader, writer = await asyncio.open_connection(self.host, self.port)
                writer.write(head + body)
                top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(top.split("content-length: ")[1].split("\r\n")[0])
                await reader.readexactly(length)
                if " 200 " not in top.split("\r\n")[0]:
                    self.failed.append(top.split("\r\n")[0])
            except (OSError, asyncio.IncompleteReadError, IndexError) as fault:
                self.failed.append(repr(fault))
                reader = writer = None
            self.seconds.append(time.perf_counter() - began)
        if writer is not None:
            writer.close()


def resident(process: subprocess.Popen[bytes]) -> int:
    """Resident bytes of a server and its workers."""
    parent = psutil.Process(process.pid)
    return sum(one.memory_info().rss for one in (parent, *parent.children(recursive=True)))


class Steps:
    """A tracer that keeps the seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def wants(self) -> bool:
        """Every question."""
        return True

    def record(self, trace: QuestionTrace) -> None:
        """Adds the steps of a question."""
        for span in trace.spans:
            self.seconds.setdefault(span.name, []).append(span.seconds)


def dev_questions(record: Mapping[str, Any]) -> list[str]:
    """The dev questions of a run, in a seeded order."""
    questions = read_questions(stage_artifact(record, "questions").folder)
    texts = sorted({question.text for question in questions if question.split == "dev"})
    random.Random(SEED).shuffle(texts)
    return texts


def in_process(home: Home, run: str, questions: Sequence[str], requests: int) -> dict[str, Any]:
    """The same questions to a system in this process, one at a time."""
    system = System.from_run(home, run)
    for text in questions[: min(len(questions), requests)]:
        system.ask(text)
    seconds = []
    for number in range(requests):
        began = time.perf_counter()
        system.ask(questions[number % len(questions)])
        seconds.append(time.perf_counter() - began)
    steps = Steps()
    traced = replace(system, tracer=steps)
    for number in range(requests):
        traced.ask(questions[number % len(questions)])
    stages = {name: percentiles(values) for name, values in steps.seconds.items()}
    return {"requests": requests, **percentiles(seconds), "stages": stages}


def speed(home: Home, run: str, questions: Sequence[str], given: argparse.Namespace) -> dict[str, Any]:
    """Figures of one run's system."""
    found: dict[str, Any] = {"in_process": in_process(home, run, questions, given.requests), "served": {}}
    for workers in given.workers:
        with served(home.root, "--run", run, "--workers", str(workers)) as server:
            clients = Clients(server.url, questions)
            clients.run(4 * workers, min(len(questions), given.requests))
            rows = {}
            for number in given.clients:
                seconds = clients.run(number, given.requests)
                rows[str(number)] = {
                    "requests": given.requests, "failed": len(clients.failed), **percentiles(clients.seconds),
                    "per_second": round(given.requests / seconds, 1),
                }  # fmt: skip
                print(run, workers, number, rows[str(number)], flush=True)
            found["served"][str(workers)] = {
                "ready_seconds": round(server.seconds, 2), "resident_mb": round(resident(server.process) / 2**20),
                "clients": rows,
            }  # fmt: skip
    first = found["served"].get("1", {}).get("clients", {}).get("1")
    if first:
        found["overhead_ms"] = round(first["p50_ms"] - found["in_process"]["p50_ms"], 2)
    return found


def memory(home: Home, run: str, questions: Sequence[str], requests: int) -> dict[str, Any]:
    """Resident memory over many requests."""
    with served(home.root, "--run", run) as server:
        clients = Clients(server.url, questions)
        clients.run(8, min(len(questions), requests // STEPS))
        sizes = [resident(server.process)]
        failed = 0
        for _ in range(STEPS):
            clients.run(8, requests // STEPS)
            failed += len(clients.failed)
            sizes.append(resident(server.process))
    half = sizes[len(sizes) // 2]
    return {
        "requests": requests, "failed": failed, "resident_mb": [round(size / 2**20, 1) for size in sizes],
        "growth_of_second_half": round(sizes[-1] / half - 1, 4), "growth": round(sizes[-1] / sizes[0] - 1, 4),
    }  # fmt: skip


def swap(home: Home, runs: Sequence[str], questions: Sequence[str], requests: int) -> dict[str, Any]:
    """Requests while the champion changes twice."""
    [file] = (home.root / "champions").glob("*.json")
    before = file.read_text(encoding="utf-8")

    def crown(run: str) -> None:
        record = json.loads(before)
        record["champion"] = {**record["champion"], "run_id": run}
        file.with_suffix(".part").write_text(json.dumps(record), encoding="utf-8")
        file.with_suffix(".part").replace(file)

    try:
        crown(runs[0])
        with served(home.root) as server:
            clients = Clients(server.url, questions)

            async def change() -> None:
                for share, run in ((1 / 4, runs[1]), (2 / 3, runs[0])):
                    while clients.asked < share * requests:
                        await asyncio.sleep(0.05)
                    await asyncio.to_thread(crown, run)

            async def work() -> None:
                await asyncio.gather(clients._all(8, requests), change())

            asyncio.run(work())
            state = server.call("/ready")
        return {
            "requests": requests, "failed": len(clients.failed), "swaps": state["swaps"],
            **percentiles(clients.seconds),
            "longest_ms": round(1000 * max(clients.seconds), 1),
        }  # fmt: skip
    finally:
        file.write_text(before, encoding="utf-8")


def numbers(text: str) -> list[int]:
    """`1,8` as numbers."""
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Measures, and writes the JSON after each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--runs", nargs="+", default=[], metavar="NAME=RUN")
    parser.add_argument("--clients", type=numbers, default=[1, 8, 64])
    parser.add_argument("--workers", type=numbers, default=[1, 2])
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--swap", type=int, default=10_000)
    parser.add_argument("--parts", default="speed,memory,swap")
    parser.add_argument("--json", type=Path, default=RESULTS / "serve.json")
    given = parser.parse_args()
    parts = given.parts.split(",")
    home = Home(given.home.resolve()).look()
    runs = dict(one.split("=", 1) for one in given.runs) or {"newest": newest_run(home)["run_id"]}
    record = newest_run(home, next(iter(runs.values())))
    questions = dev_questions(record)
    counts = read_manifest(stage_artifact(record, "kg").folder)["counts"]
    graph = {"name": record["profile"]["kg"]["name"], "triples": counts["triples"], "questions": len(questions)}
    found: dict[str, Any] = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    made = conditions(SEED)
    if "speed" in parts:
        found |= {"conditions": made, "graph": graph, "speed": {}}
        for name, run in runs.items():
            found["speed"][name] = speed(home, run, questions, given)
            results_file.write(given.json, found, FIELDS)
    first = next(iter(runs.values()))
    if "memory" in parts:
        found["memory"] = memory(home, first, questions, given.long) | {"graph": graph, "commit": made["commit"]}
        results_file.write(given.json, found, FIELDS)
    if "swap" in parts and len(runs) > 1:
        found["swap"] = swap(home, list(runs.values()), questions, given.swap) | {
            "graph": graph,
            "commit": made["commit"],
        }
        results_file.write(given.json, found, FIELDS)


if __name__ == "__main__":
    main()
