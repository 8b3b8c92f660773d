"""What questions of every shape and length cost, alone and while others ask.

    python -m benchmarks.serving.long_questions --home HOME [--json benchmarks/results/long_questions.json]

alone: seconds of processor time, megabytes that the process grew by, and what came of it, of each shape of
`tests/support/long_questions.py` at each length, by the system of the home's newest run in this process, which was
asked another of the shape before.  beside: what NORMAL clients of `kgqa serve` on that home wait for their questions,
in seconds, while as many others as it says ask the COSTLIEST of these shapes again and again.  The questions are of
the home's dev split, each asked once before the measurement; first: the longest wait for one that was asked then.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import resource
import statistics
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.results_file import CONDITIONS
from benchmarks.serving.serve import dev_questions
from kgqa_core.errors import InputError
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from kgqa_core.system import System
from tests.support.kgqa_serve import served
from tests.support.long_questions import SHAPES, LongQuestion

FIELDS = (
    *CONDITIONS, "alone/*/shape", "alone/*/length", "alone/*/seconds", "alone/*/megabytes", "alone/*/outcome",
    "beside/*/costly_clients", "beside/*/questions", "beside/*/median", "beside/*/p99", "beside/*/longest",
    "beside/*/costly_questions", "beside/*/not_ready", "beside/*/first",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED, LENGTHS, SECONDS = 7, (100, 400, 1000, 2000, 3990, 10_000, 1_000_000), 40.0
NORMAL, COSTLY, QUESTIONS, COSTLIEST, PAUSE = 4, (0, 1, 4), 100, 3, 0.2
"""Clients that ask usual questions, others, usual questions, shapes of the others, seconds between two questions."""


def alone(system: System) -> list[dict[str, Any]]:
    """A row for each shape and length."""
    rows = []
    for shape, length in itertools.product(SHAPES, LENGTHS):
        before_it, long = LongQuestion.of(shape, length - 1), LongQuestion.of(shape, length)
        with contextlib.suppress(InputError):
            system.ask(before_it.text, before_it.topics, before_it.dialogue)
        began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            reply = system.ask(long.text, long.topics, long.dialogue)
            outcome = "answered" if reply.answer is not None else f"declined: {reply.reason}"
        except InputError as fault:
            outcome = f"refused: {fault}"
        seconds = round(time.process_time() - began, 3)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        rows.append({"shape": shape, "length": length, "seconds": seconds, "megabytes": round(grown, 1)})
        rows[-1]["outcome"] = outcome
        print(rows[-1], flush=True)
    return rows


def beside(home: Path, texts: Sequence[str], worst: Sequence[LongQuestion], costly_clients: int) -> dict[str, Any]:
    """What others wait while so many clients ask the worst questions."""
    over, waits, costly, not_ready = threading.Event(), list[float](), list[int](), list[int]()
    first: list[float] = []
    with served(home) as server:

        def post(body: Any) -> int:
            data = json.dumps(body).encode()
            request = urllib.request.Request(f"{server.url}/ask", data, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=120) as reply:
                    return int(reply.status)
            except urllib.error.HTTPError as fault:
                return fault.code

        def ask_costly(number: int) -> None:
            for long in itertools.islice(itertools.cycle(worst), number, None):
                if over.is_set():
                    return
                dialogue = [{"role": role, "content": text} for role, text in long.dialogue]
                costly.append(post({"question": long.text, "topics": [*long.topics], "dialogue": dialogue}))

        def timed(text: str, waits: list[float]) -> None:
            began = time.monotonic()
            assert post({"question": text}) == 200
            waits.append(time.monotonic() - began)

        def ask_first(number: int) -> None:
            for text in texts[number::NORMAL]:
                timed(text, first)

        def ask_normal(number: int) -> None:
            for text in itertools.islice(itertools.cycle(texts), number * len(texts) // NORMAL, None):
                if over.is_set():
                    return
                timed(text, waits)
                time.sleep(PAUSE)

        def look() -> None:
            while not over.wait(0.5):
                try:
                    urllib.request.urlopen(f"{server.url}/ready", timeout=30).close()
                except urllib.error.HTTPError as fault:
                    not_ready.append(fault.code)

        with ThreadPoolExecutor(NORMAL) as pool:
            list(pool.map(ask_first, range(NORMAL)))
        works = [(ask_costly, costly_clients), (ask_normal, NORMAL)]
        threads = [threading.Thread(target=work, args=(n,)) for work, many in works for n in range(many)]
        threads.append(threading.Thread(target=look))
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        over.set()
        for thread in threads:
            thread.join()
    waits.sort()
    return {
        "costly_clients": costly_clients, "questions": len(waits), "median": round(statistics.median(waits), 3),
        "p99": round(waits[int(0.99 * len(waits))], 3), "longest": round(waits[-1], 3),
        "costly_questions": len(costly), "not_ready": len(not_ready), "first": round(max(first), 3),
    }  # fmt: skip


def main() -> None:
    """Measures, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=RESULTS / "long_questions.json")
    given = parser.parse_args()
    texts = dev_questions(newest_run(Home(given.home.resolve()).look()))[:QUESTIONS]
    rows = alone(System.from_run(given.home))
    costly = sorted((row for row in rows if not row["outcome"].startswith("refused")), key=lambda row: -row["seconds"])
    by_shape: dict[str, int] = {}
    for row in costly:
        by_shape.setdefault(row["shape"], row["length"])
    costliest = list(by_shape.items())[:COSTLIEST]
    worst = [LongQuestion.of(shape, length - less) for less in range(5) for shape, length in costliest]
    found = {
        "conditions": conditions(SEED),
        "alone": rows,
        "beside": [beside(given.home, texts, worst, many) for many in COSTLY],
    }
    results_file.write(given.json, found, FIELDS)
    print(json.dumps(found["beside"], indent=1))


if __name__ == "__main__":
    main()
