"""Hundreds of odd replies, drawn with a seed, through the endpoint backend with its cache and its budget.

Whatever a server sends: no fault but one of the project's, no good reply lost or paid twice, the budget is kept, the
memory is bounded, and it ends.  `KGQA_FUZZ_OUTPUT` names a folder for the table of outcomes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions
from kgqa_core.errors import BudgetReached, EndpointError, KgqaError
from kgqa_core.llm import openai_api
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE, open_cache
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import Outcome, PromptBatch, generate_cached, identity_of, peek
from kgqa_core.llm.protocol import GenerationParams
from tests.support.chat_server import ChatServer
from tests.support.odd_replies import FIELDS, KINDS, OddReply, draw

PROMPTS = 30
"""Of one world; two thirds of them meet odd replies."""

RUNS = 3
"""Times that each world is run: the second and third find what the first paid for."""

PARAMS = GenerationParams(max_new_tokens=16, log_probabilities=True)
REPLY_MB = 1.0
GROWTH = 300 * 2**20
"""Bytes that the process may grow by while it reads replies of at most REPLY_MB, eight at once."""

Table = dict[str, Counter[str]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Retry-After of a year is a hundredth of a second here."""
    monkeypatch.setattr(openai_api, "LONGEST_RETRY_AFTER", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    """Outcomes by kind of reply, over all worlds."""
    outcomes: Table = defaultdict(Counter)
    yield outcomes
    print("\n" + shown(outcomes))
    if folder := os.environ.get("KGQA_FUZZ_OUTPUT"):
        Path(folder, "replies.md").write_text(shown(outcomes) + "\n", encoding="utf-8")


def shown(outcomes: Table) -> str:
    """The table in Markdown."""
    names = ("replies", "read", "spent", "failed", "ended the run")
    rows = [f"| kind of reply | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for kind, counts in [*sorted(outcomes.items()), ("all", sum(outcomes.values(), Counter()))]:
        rows.append(f"| {kind} | {' | '.join(f'{counts[name]:,}' for name in names)} |")
    return "\n".join(rows)


class World:
    """A server with its odd replies, and a home whose runs ask it again and again."""

    def __init__(self, seed: int, folder: Path, kinds: Sequence[str], timeout_seconds: float) -> None:
        self.seed, self.folder, self.kinds, self.timeout_seconds = seed, folder, kinds, timeout_seconds
        random = Random(f"world/{seed}")
        self.prompts = [f"Who is n{number} of w{seed}?" for number in range(PROMPTS)]
        self.limits = random.choice(
            [BudgetOptions(), BudgetOptions(max_calls=random.randint(5, 150)),
             BudgetOptions(max_tokens=random.randint(500, 15_000))]
        )  # fmt: skip
        self.server = ChatServer(odd=self.odd)

    def odd(self, prompt: str, drawn: Any, count: int, text: str, counts: dict[str, int]) -> OddReply | None:
        """Odd replies to two thirds of the prompts: to a third of these always the same, else to one or two tries."""
        random = Random(f"{self.seed}/{prompt}/{drawn}")
        share, tries = random.random(), random.randint(1, 2)
        if share < 1 / 3 or (share < 7 / 9 and count >= tries):
            return None
        return draw(f"{self.seed}/{prompt}/{drawn}/{count if share < 7 / 9 else 0}", text, counts, self.kinds)

    def budget(self) -> Budget:
        """The budget, opened again as by another process."""
        return Budget(self.limits, ledger=self.folder / FILE, account="fuzz")

    def model(self) -> OpenAIModel:
        """The model, as another process would open it."""
        limits = {"concurrency": 8, "timeout_seconds": self.timeout_seconds, "retries": 1, "max_reply_mb": REPLY_MB}
        llm = LlmOptions.model_validate({"base_url": self.server.base_url, **limits})
        return OpenAIModel("stub", llm, first_wait=0.001, budget=self.budget())

    def run(self) -> tuple[list[Outcome], KgqaError | None]:
        """One run over all prompts.  Any fault but one of the project's is a failure of the test."""
        cache = open_cache(self.folder)
        try:
            return generate_cached(self.model(), PromptBatch(self.prompts, PARAMS, cache=cache, attempts=2)), None
        except KgqaError as fault:
            return [], fault

    def kept(self) -> dict[str, str]:
        """Texts in the cache by prompt."""
        batch = PromptBatch(self.prompts, PARAMS, cache=open_cache(self.folder), attempts=2)
        pairs = zip(self.prompts, peek(identity_of(self.model()), batch), strict=True)
        return {prompt: each.completion.text for prompt, each in pairs if each.completion is not None}


def check(seed: int, folder: Path, outcomes: Table, kinds: Sequence[str] = KINDS, timeout_seconds: float = 20) -> int:
    """Runs one world and checks it.  Returns the number of its odd replies."""
    world = World(seed, folder, kinds, timeout_seconds)
    exact = "timing" not in kinds
    with world.server as server:
        for _ in range(RUNS):
            before, start = world.kept(), len(server.sent)
            found, fault = world.run()
            kept, sent = world.kept(), server.sent[start:]
            asked = [key.partition("|")[2] for key, _, _ in sent]
            assert not set(before) & set(asked), "what is in the cache is not asked for again"
            assert before.items() <= kept.items(), "nothing in the cache is lost"
            if fault is not None:
                assert isinstance(fault, EndpointError | BudgetReached), repr(fault)
                assert str(fault).isprintable() and len(str(fault)) < 1500, str(fault)
            for place, (key, odd, _) in enumerate(sent):
                prompt = key.partition("|")[2]
                expected = f"echo {prompt}" if odd is None else odd.expects
                if expected is not None and exact:
                    assert kept.get(prompt) == expected, (prompt, odd)
                    assert prompt not in asked[place + 1 :], "a reply that can be read is paid for once"
            for prompt, outcome in zip(world.prompts, found, strict=True) if found else ():
                if outcome.completion is not None and not outcome.failed:
                    assert outcome.completion.text == kept[prompt], "this run uses what the next one finds"
            note(outcomes, sent, kept, found, fault, world.prompts)
        spent, limits = world.budget().spent(), world.limits
        honest = sum(sum(usage.values()) for _, odd, usage in server.sent if odd is None)
        assert len(server.sent) <= spent.calls <= (limits.max_calls or spent.calls)
        assert spent.calls == len(server.sent) or not exact, "only a request that timed out may never have arrived"
        assert honest <= spent.tokens <= (limits.max_tokens or spent.tokens)
        entries = open_cache(folder)
        assert entries.export(folder / "export.jsonl") == entries.stats()["entries"]
        for line in (folder / "export.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            assert 0 <= row["prompt_tokens"] < 2**31 and 0 <= row["completion_tokens"] < 2**31
            row["text"].encode("utf-8")
    return sum(odd is not None for _, odd, _ in server.sent)


def note(
    outcomes: Table, sent: Sequence[tuple[str, OddReply | None, Any]], kept: dict[str, str], found: Sequence[Outcome],
    fault: KgqaError | None, prompts: Sequence[str],
) -> None:  # fmt: skip
    """Counts what came of each odd reply of a run."""
    spent = {prompt for prompt, each in zip(prompts, found, strict=True) if each.spent} if found else set()
    last = max(
        (number for number, (_, odd, _) in enumerate(sent) if odd is not None and odd.expects is None), default=-1
    )
    last = last if isinstance(fault, EndpointError) else -1
    for number, (key, odd, _) in enumerate(sent):
        if odd is None:
            continue
        prompt, kind = key.partition("|")[2], odd.kind.partition(":")[0]
        read = odd.expects is not None and kept.get(prompt) == odd.expects
        outcomes[kind].update(["replies", "read" if read else "spent" if prompt in spent else "failed"])
        outcomes[kind]["ended the run"] += number == last


def grown() -> Callable[[], int]:
    """A function that tells by how many bytes the largest size of this process has grown since now."""

    def peak() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    before = peak()
    return lambda: peak() - before


def test_some_hundred_odd_replies_lose_nothing_and_are_paid_once(tmp_path: Path, table: Table) -> None:
    started, growth, replies = time.monotonic(), grown(), 0
    for seed in range(12):
        (tmp_path / str(seed)).mkdir()
        replies += check(seed, tmp_path / str(seed), table, [*FIELDS, "framing"])
    assert replies > 250
    assert growth() < GROWTH and time.monotonic() - started < 120


def test_replies_without_end_are_ended(tmp_path: Path, table: Table) -> None:
    started = time.monotonic()
    assert check(77, tmp_path, table, ["timing"], timeout_seconds=0.4) > 20
    assert time.monotonic() - started < 120


@pytest.mark.slow
def test_thousands_of_odd_replies_lose_nothing_and_are_paid_once(tmp_path: Path, table: Table) -> None:
    growth, replies = grown(), 0
    for seed in range(1000, 1150):
        (tmp_path / str(seed)).mkdir()
        kinds, seconds = ([*FIELDS, "framing"], 20.0) if seed % 10 else (KINDS, 0.4)
        replies += check(seed, tmp_path / str(seed), table, kinds, seconds)
    for number, kind in enumerate(FIELDS):
        (tmp_path / kind).mkdir()
        replies += check(2000 + number, tmp_path / kind, table, [kind])
    assert replies > 3000
    assert growth() < GROWTH
