"""Language models: what the paid layer costs beside a bare client, and what batches of a local model bring.

    python -m benchmarks.models.llm [--requests 2000] [--rounds 7] [--json OUT]

Endpoint: requests a second through `openai` with response cache and budget on disk, against a bare asyncio + openai
loop, both with 64 requests at once, the same prompts and the same loopback server in a process of its own.  `cached`
asks the same again, from the file.  Local: the builtin model, all prompts in batches against one prompt at a time, and
whether both write the same.  Roads take turns; figures are medians, ratios are medians of each round's ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import BudgetOptions, LlmOptions, Price
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE, open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.prompts import answer_prompt, rewrite_prompt, spaced_triples, triple_form
from tests.support.chat_server import ServerProcess

FIELDS = (
    *CONDITIONS, "machine/*", "seed", "endpoint/...", "local/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

CONCURRENCY = 64
PARAMS = GenerationParams(max_new_tokens=64)
SEED = 7


def facts(random: Random, count: int) -> list[tuple[str, str, str]]:
    """Facts about invented things, distinct in each draw."""
    name = [f"{random.choice('BDKLMNRTV')}{random.choice('aeiou')}{random.randrange(10**6)}" for _ in range(count + 1)]
    relations = ("capital", "currency", "located in", "member of", "time zone", "shares border with")
    return [(name[0], random.choice(relations), other) for other in name[1:]]


def requests(count: int, salt: str) -> list[str]:
    """Prompts of some 1,000 characters."""
    random = Random(f"{SEED}/{salt}")
    return [rewrite_prompt(spaced_triples(facts(random, 22))) for _ in range(count)]


def question_prompts(count: int) -> list[str]:
    """Questions about one of 20 facts, with these facts."""
    random = Random(SEED)
    prompts = []
    for _ in range(count):
        own = facts(random, 20)
        prompts.append(answer_prompt(f"what is the {own[3][1]} of {own[3][0]}?", triple_form(own)))
    return prompts


def bare(url: str, prompts: Sequence[str]) -> list[str]:
    """The loop that one would write by hand."""
    from openai import AsyncOpenAI

    async def run() -> list[str]:
        texts = [""] * len(prompts)
        queue = iter(enumerate(prompts))

        async def worker(client: AsyncOpenAI) -> None:
            for place, prompt in queue:
                reply = await client.chat.completions.create(
                    model="stub", messages=[{"role": "user", "content": prompt}], temperature=0.0,
                    max_tokens=PARAMS.max_new_tokens,
                )  # fmt: skip
                texts[place] = reply.choices[0].message.content or ""

        async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
            await asyncio.gather(*(worker(client) for _ in range(CONCURRENCY)))
        return texts

    return asyncio.run(run())


def ours(url: str, prompts: Sequence[str], folder: Path) -> list[str]:
    """The same through the layer that keeps and counts."""
    limits = BudgetOptions(max_calls=10**9, max_tokens=10**12, max_cost=10**6)
    budget = Budget(limits, {"openai:stub": Price(prompt=1.0, completion=2.0)}, folder / FILE, "benchmark")
    model = OpenAIModel("stub", LlmOptions(base_url=url, concurrency=CONCURRENCY), budget=budget)
    found = generate_cached(model, PromptBatch(prompts, PARAMS, cache=open_cache(folder)))
    return [outcome.completion.text if outcome.completion else "" for outcome in found]


def capacity(url: str, prompt: str, count: int) -> float:
    """Requests a second that the server itself manages, for a client that only counts bytes."""
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    body = json.dumps({"model": "stub", "messages": [{"role": "user", "content": prompt}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def worker(share: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in range(share):
            writer.write(head + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
        writer.close()

    async def run() -> None:
        await asyncio.gather(*(worker(count // CONCURRENCY) for _ in range(CONCURRENCY)))

    started = time.perf_counter()
    asyncio.run(run())
    return count // CONCURRENCY * CONCURRENCY / (time.perf_counter() - started)


def timed(road: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a road gives, and its wall and CPU seconds."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    found = road()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def endpoint(count: int, rounds: int) -> dict[str, Any]:
    """The `openai` layer against a bare loop."""
    walls: dict[str, list[float]] = {"bare": [], "kgqa": [], "cached": []}
    cpus: dict[str, list[float]] = {name: [] for name in walls}
    with ServerProcess("--reply", "words") as server:
        bare(server.base_url, requests(200, "warm"))
        most = capacity(server.base_url, requests(1, "x")[0], 4096)
        for number in range(rounds):
            prompts = requests(count, str(number))
            with tempfile.TemporaryDirectory() as folder:

                def with_cache(prompts: list[str] = prompts, folder: str = folder) -> list[str]:
                    return ours(server.base_url, prompts, Path(folder))

                roads = {"bare": lambda prompts=prompts: bare(server.base_url, prompts), "kgqa": with_cache}
                order = ["bare", "kgqa"] if number % 2 == 0 else ["kgqa", "bare"]
                texts = {}
                for name in [*order, "cached"]:
                    before = server.stats()["requests"]
                    texts[name], wall, cpu = timed(roads.get(name, with_cache))
                    n_requests = server.stats()["requests"] - before
                    assert n_requests == (0 if name == "cached" else count), (name, n_requests)
                    walls[name].append(wall)
                    cpus[name].append(cpu)
                assert texts["bare"] == texts["kgqa"] == texts["cached"]
            print(f"round {number + 1}: " + ", ".join(f"{n} {count / w[-1]:,.0f}/s" for n, w in walls.items()))
    ratios = [theirs / mine for theirs, mine in zip(walls["bare"], walls["kgqa"], strict=True)]
    return {
        "concurrency": CONCURRENCY,
        "requests": count,
        "rounds": rounds,
        "prompt_characters": round(statistics.mean(map(len, requests(50, "0")))),
        "server_requests_per_second": round(most),
        "roads": {
            name: {
                "requests_per_second": round(count / statistics.median(walls[name]), 1),
                "cpu_ms_per_request": round(1e3 * statistics.median(cpus[name]) / count, 3),
            }
            for name in walls
        },
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "cpu_ratio": round(
            statistics.median(theirs / mine for theirs, mine in zip(cpus["bare"], cpus["kgqa"], strict=True)), 3
        ),
    }


def local(count: int, rounds: int) -> dict[str, Any]:
    """Batches of the builtin model against one prompt at a time."""
    random = Random(SEED)
    prompts = [
        answer_prompt(f"What is the {known[0][1]} of {known[0][0]}?", triple_form(known))
        for known in (facts(random, random.randint(1, 12)) for _ in range(count))
    ]
    params = GenerationParams(max_new_tokens=32)
    model = load_model("builtin", LlmOptions(device="cpu"))
    walls: dict[str, list[float]] = {"batched": [], "one by one": []}
    roads: dict[str, Callable[[], list[str]]] = {
        "batched": lambda: [completion.text for completion in model.generate(prompts, params)],
        "one by one": lambda: [model.generate([prompt], params)[0].text for prompt in prompts],
    }
    same = count
    model.generate(prompts[:4], params)
    for number in range(rounds):
        texts = {}
        for name in sorted(roads, reverse=number % 2 == 1):
            texts[name], wall, _ = timed(roads[name])
            walls[name].append(wall)
        same = min(same, sum(a == b for a, b in zip(texts["batched"], texts["one by one"], strict=True)))
        print(f"round {number + 1}: " + ", ".join(f"{n} {count / w[-1]:,.1f}/s" for n, w in walls.items()))
    ratios = [alone / batched for alone, batched in zip(walls["one by one"], walls["batched"], strict=True)]
    return {
        "model": "builtin",
        "prompts": count,
        "rounds": rounds,
        "prompts_per_second": {name: round(count / statistics.median(wall), 2) for name, wall in walls.items()},
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "same_outputs": same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--prompts", type=int, default=96, help="prompts of the local model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    import openai
    import torch

    found = {
        "machine": {
            "platform": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version(),
            "openai": openai.__version__, "torch": torch.__version__, "threads": torch.get_num_threads(),
            "load": os.getloadavg()[0],
        },
        "seed": SEED,
        "endpoint": endpoint(given.requests, given.rounds),
        "local": local(given.prompts, given.rounds),
    }  # fmt: skip
    print(json.dumps({name: found[name] for name in ("endpoint", "local")}, indent=1))
    if given.json is not None:
        results_file.write(given.json, {"conditions": conditions(SEED), **found}, FIELDS)


if __name__ == "__main__":
    main()
