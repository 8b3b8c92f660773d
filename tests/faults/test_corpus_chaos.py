"""A corpus of 1,000 questions from a server that misbehaves, with the stage killed 20 times.

The server keeps its own count.  What it says depends on a prompt alone, so every run must end with the same corpus.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.datasets.files.question import read_questions
from kgqa_core.store.artifacts import content_digest
from tests.support import writing_runs
from tests.support.chat_server import ServerProcess
from tests.support.writing_runs import finish, kill, make_atlas

pytestmark = pytest.mark.slow

SIZE = 1_000
KILLS = 20
CONCURRENCY = 16

FAULTS = {
    "throttled": 0.03, "retry-after": 0.05, "failing": 0.02, "hang-up": 0.01, "cut": 0.01, "garbage": 0.005,
    "slow": 0.001, "slow-seconds": 9, "empty": 0.03, "nonsense": 0.03,
}  # fmt: skip
"""Shares of requests; `empty` and `nonsense` are completions that are paid for and no use."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graph, DKG and questions of Atlas, and the answers that the server knows."""
    folder = tmp_path_factory.mktemp("atlas")
    make_atlas(folder, SIZE + 400, 100)
    chosen = read_questions(folder / "questions")
    answers = {question.text: question.answer_names[0][0] for question in chosen if question.answer_names}
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    return folder


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    monkeypatch.setenv(writing_runs.ANSWERS, str(folder / "answers.json"))
    with started() as running:
        yield running


def started() -> ServerProcess:
    """A server with its faults."""
    rates = [word for name, share in FAULTS.items() for word in (f"--{name}", str(share))]
    module = "tests.support.writing_runs"
    return ServerProcess(
        "--reply", f"{module}:reply", "--tokens", f"{module}:tokens", "--latency", "0.02", "--seed", "5", *rates
    )  # fmt: skip


def start(folder: Path, at: Path, server: ServerProcess, size: int = SIZE, **limits: float) -> subprocess.Popen[str]:
    """The stage in a process of its own; results and cache are under `at`."""
    words = (folder, at / "out", at / "cache", server.base_url, size, CONCURRENCY)
    return writing_runs.start("corpus", words, **limits)


def worked(stats: dict[str, int]) -> int:
    """Replies that the server worked on."""
    return stats["answered"] + stats["lost"]


def tokens(stats: dict[str, int]) -> int:
    return stats["prompt_tokens"] + stats["completion_tokens"]


def test_killed_20_times_pays_no_prompt_twice_and_makes_the_same_corpus(
    folder: Path, tmp_path: Path, server: ServerProcess
) -> None:
    counts = json.loads(finish(start(folder, tmp_path / "undisturbed", server)))
    undisturbed = server.stats()
    kept = pl.read_parquet(tmp_path / "undisturbed/out/corpus.parquet")
    assert counts["asked"] == SIZE and 0.8 < counts["acceptance"] < 0.9
    assert kept["question"].n_unique() == SIZE
    assert counts["spent_attempts"] > 20, "the server wrote texts that are none"
    print(
        "undisturbed, by the server:", {name: value for name, value in undisturbed.items() if name != "prompts"}, counts
    )
    draw = random.Random(11)
    with started() as again:
        killed = 0
        for number in range(KILLS):
            requests = None if number % 7 == 3 else draw.randint(0, 110)
            killed += kill(start(folder, tmp_path / "killed", again), again, requests, draw.uniform(0.0, 3.0))
        under_way = again.stats()
        last = json.loads(finish(start(folder, tmp_path / "killed", again)))
        disturbed = again.stats()
    print("killed, by the server:", {name: value for name, value in disturbed.items() if name != "prompts"})
    twice = sum(max(0, each["answered"] - 1) for each in disturbed["prompts"].values())
    twice_undisturbed = sum(max(0, each["answered"] - 1) for each in undisturbed["prompts"].values())
    print(
        f"killed {killed} times, {under_way['answered']} replies before the last run; replies delivered twice: {twice} "
        f"(at most {CONCURRENCY * killed} were under way at kills; {twice_undisturbed} in the undisturbed run)"
    )
    assert killed == KILLS, "every kill met a running stage"
    assert 500 < under_way["answered"] < undisturbed["answered"], "the kills were spread over the run"
    assert twice <= CONCURRENCY * killed
    assert disturbed["answered"] <= len(disturbed["prompts"]) + CONCURRENCY * killed
    assert set(disturbed["prompts"]) == set(undisturbed["prompts"])
    assert last == counts
    assert content_digest(tmp_path / "killed/out") == content_digest(tmp_path / "undisturbed/out")


@pytest.mark.parametrize("limit", ["max_calls", "max_tokens"])
def test_budget_is_never_exceeded_over_kills_and_restarts(
    folder: Path, tmp_path: Path, server: ServerProcess, limit: str
) -> None:
    limits = {"max_calls": 900, "max_tokens": 60_000}
    draw = random.Random(13)
    for _ in range(6):
        kill(start(folder, tmp_path, server, **{limit: limits[limit]}), server, draw.randint(0, 110), 0.0)
    ends = [finish(start(folder, tmp_path, server, **{limit: limits[limit]})) for _ in range(2)]
    spent = server.stats()
    real = {"max_calls": spent["requests"], "max_tokens": tokens(spent)}[limit]
    print(f"{limit} {limits[limit]}: the server counted {real}; {ends[-1]}")
    assert all(end.startswith("BudgetReached") for end in ends)
    assert real <= limits[limit]
    assert real > limits[limit] / 2, "most of the budget was used"
